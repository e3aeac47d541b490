"""A first timing model: in-order pipes fed by one scalar unit, flags, and fixed costs for each kind of work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.units import unit_table
from npuscope.trace.events import HardEvent
from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Origin, Pipe, Role, Space
from npuscope.trace.marks import marks_of
from npuscope.trace.timeline import (
    CORE_COLUMNS,
    EDGE_COLUMNS,
    SLICE_COLUMNS,
    TRANSFER_COLUMNS,
    UNKNOWN,
    EdgeKind,
    Lane,
    Source,
    Step,
    Timeline,
)

SET_FLAG, WAIT_FLAG = OPCODES.number("set_flag"), OPCODES.number("wait_flag")
BASE = 0x10D0_0000
LATENCY = {Pipe.MTE2: 600, Pipe.MTE3: 220, Pipe.FIX: 220}
RATE = {Pipe.MTE2: 100, Pipe.MTE3: 100, Pipe.FIX: 100, Pipe.MTE1: 200, Pipe.V: 64, Pipe.M: 4096, Pipe.S: 1}
OVERHEAD = 2000


class Operands(Sequence[str]):
    """The operands of each slice as text, made when asked for."""

    def __init__(self, rows: LaunchRows) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return int(self.rows.instruction.shape[1])

    def __getitem__(self, index: Any) -> Any:
        a, b, c, d, work = (int(self.rows.column(name)[int(index)]) for name in ("a", "b", "c", "d", "work"))
        return f"a={a}, b={b}, c={c}, d={d}, work={work}"


def time_launch(rows: LaunchRows, chip: Chip) -> Timeline:
    """When each instruction of a launch would run on `chip`."""
    count = rows.instruction.shape[1]
    columns = {name: np.full(count, UNKNOWN, np.int64) for name in SLICE_COLUMNS}
    core, pipe = rows.column("core"), rows.column("pipe")
    key = (rows.column("site") << 32) + (rows.column("opcode") << 8) + pipe * 4 + rows.column("origin")
    kinds, first, step = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    steps: list[Step | None] = [None] * len(kinds)
    dtypes = _dtypes(rows)
    for kind, row in enumerate(first):
        number = int(order[kind])
        steps[number] = Step(
            BASE + 4 * number,
            OPCODES.names[int(rows.column("opcode")[row])].upper(),
            Lane(int(pipe[row])),
            rows.sites[int(rows.column("site")[row])],
            Origin(int(rows.column("origin")[row])),
            dtypes.get(int(row), ""),
        )
    columns["core"], columns["lane"], columns["step"] = core, pipe, order[step]
    columns["row"] = np.arange(count)
    columns["work"] = rows.column("work")
    for name in ("bank_group", "bank"):
        columns[name] = np.zeros(count, np.int64)
    edges = _schedule(rows, columns)
    transfers = _transfers(rows, columns)
    table = np.stack([columns[name] for name in SLICE_COLUMNS])
    cores = _cores(rows, columns)
    return Timeline(
        rows.launch, chip.name, float(chip.frequency_mhz), Source.MODEL,
        int(columns["end"].max(initial=0)), OVERHEAD, [item for item in steps if item is not None], table,
        Operands(rows), transfers=transfers, edges=edges, cores=cores, units=unit_table(rows), notes={"model": "first"},
        marks=marks_of(rows),
    )


def _dtypes(rows: LaunchRows) -> dict[int, str]:
    """The element type of an instruction: that of the buffer of its first access."""
    found: dict[int, str] = {}
    for row, buffer in zip(
        rows.access_column("instruction").tolist(), rows.access_column("buffer").tolist(), strict=True
    ):
        found.setdefault(row, rows.buffers[buffer].dtype)
    return found


def _schedule(rows: LaunchRows, columns: dict[str, np.ndarray]) -> np.ndarray:
    scalar: dict[int, int] = defaultdict(lambda: OVERHEAD)
    free: dict[tuple[int, int], int] = defaultdict(int)
    flags: dict[tuple[int, int, int], tuple[int, int]] = {}
    edges = []
    names = ("core", "pipe", "opcode", "a", "b", "work")
    for row, (core, pipe, opcode, a, b, work) in enumerate(zip(*(rows.column(n).tolist() for n in names), strict=True)):
        issue = scalar[core]
        scalar[core] = issue + 1
        columns["fetch"][row], columns["control"][row], columns["issue"][row] = max(issue - 8, 0), issue - 1, issue
        start = max(issue, free[core, pipe])
        if opcode == SET_FLAG:
            end = start + 1
            flags[core, a, b] = (end, row)
        elif opcode == WAIT_FLAG:
            raised, source = flags.pop((core, a, b), (start, -1))
            end = max(start, raised) + 1
            if source >= 0:
                edges.append((source, row, EdgeKind.FLAG, b))
            if HardEvent(a).target is Pipe.S:
                scalar[core] = end
        else:
            kind = Pipe(pipe)
            end = start + max(work // RATE.get(kind, 1) if pipe != Pipe.S else 1, 1) + LATENCY.get(kind, 10)
        if pipe == Pipe.S:
            scalar[core] = max(scalar[core], end)
        columns["start"][row], columns["end"][row] = start, end
        free[core, pipe] = end
    return np.array(edges, np.int64).reshape(-1, len(EDGE_COLUMNS)).T.copy()


def _transfers(rows: LaunchRows, columns: dict[str, np.ndarray]) -> np.ndarray:
    columns["bytes"] = np.zeros(rows.instruction.shape[1], np.int64)
    reads: dict[int, tuple[int, int]] = {}
    found = []
    accesses = zip(*(rows.access_column(n).tolist() for n in ("instruction", "role", "buffer", "address", "footprint")),
                   strict=True)
    for row, role, buffer, address, footprint in accesses:
        space = rows.buffers[buffer].space
        if columns["lane"][row] not in (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX):
            continue
        if role == Role.READ:
            reads[row] = (int(space), address)
            continue
        source, at = reads.get(row, (int(Space.GM), UNKNOWN))
        shape = FOOTPRINTS[footprint] if footprint >= 0 else None
        size = shape.offsets().size if shape is not None else int(rows.explicit[-1 - footprint].starts.size)
        place = at if source == Space.GM else address if space is Space.GM else UNKNOWN
        lines = -(-size // 512) if place != UNKNOWN else 0
        if lines:
            columns["bytes"][row] += size
        found.append((row, source, int(space), place, size, -(-size // 128), 0, lines, 0,
                      int(columns["start"][row]), int(columns["end"][row])))
    return np.array(found, np.int64).reshape(-1, len(TRANSFER_COLUMNS)).T.copy()


def _cores(rows: LaunchRows, columns: dict[str, np.ndarray]) -> np.ndarray:
    table = np.full((len(CORE_COLUMNS), len(rows.launch.cores)), UNKNOWN, np.int64)
    for core in range(len(rows.launch.cores)):
        mine = columns["core"] == core
        table[CORE_COLUMNS.index("start"), core] = OVERHEAD
        table[CORE_COLUMNS.index("end"), core] = columns["end"][mine].max(initial=OVERHEAD)
        table[CORE_COLUMNS.index("scalar_busy"), core] = int((mine & (columns["lane"] == Pipe.S)).sum())
    return table
