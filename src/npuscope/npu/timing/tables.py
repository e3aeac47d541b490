"""A schedule as the tables of a timeline."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from npuscope.npu.timing import layout as at
from npuscope.npu.timing.kinds import FIX, MTE1, MTE2, MTE3, SLOTS, M, V, by_opcode
from npuscope.npu.timing.links import NO_EDGE
from npuscope.npu.timing.program import Program
from npuscope.trace.schema import Space
from npuscope.trace.timeline import CORE_COLUMNS, EDGE_COLUMNS, LINE_COLUMNS, SLICE_COLUMNS, TRANSFER_COLUMNS, UNKNOWN
from npuscope.trace.values import among

TIMES = ("fetch", "control", "issue", "start", "end")
REQUEST = 128
"""Bytes of a request to GM or between memories of a core, as the counters count them (opprof.md 2.3)."""
_PATHS = {
    "copy_gm_to_ub": (Space.GM, Space.UB), "copy_gm_to_l1": (Space.GM, Space.L1), "copy_ub_to_gm": (Space.UB, Space.GM),
    "load_data": (Space.L1, UNKNOWN), "load_data_3d": (Space.L1, Space.L0A), "copy_l1_to_bt": (Space.L1, Space.BT),
    "fixpipe": (Space.L0C, Space.GM),
}  # fmt: skip
"""Memories of rows that show none (the library's own), by their names."""


def _memory_of(side: int, name: str) -> int:
    """The memory that a row of that name reads (0) or writes (1), UNKNOWN where the name does not tell."""
    return _PATHS.get(name, (UNKNOWN, UNKNOWN))[side]


def cycles(values: np.ndarray) -> np.ndarray:
    """Times in whole cycles; what is not known (negative) stays UNKNOWN."""
    whole = np.rint(values)
    whole[values < 0] = UNKNOWN
    return whole.astype(np.int64)


def slice_table(program: Program, ops: np.ndarray, place: np.ndarray) -> np.ndarray:
    """(SLICE_COLUMNS, rows) in the order of the trace, where each row's op is at `place`."""
    rows = program.rows
    columns = {
        "core": rows.column("core"), "lane": rows.column("pipe"), "step": program.steps.of_row,
        "row": np.arange(place.size), **dict.fromkeys(TIMES, 0),
        "bytes": program.transfers.bytes, "work": rows.column("work"), "bank_group": cycles(program.work.group),
        "bank": cycles(program.work.bank), "warp": UNKNOWN, "threads": UNKNOWN,
    }  # fmt: skip
    table = _table(columns, SLICE_COLUMNS, place.size)
    for first in range(0, place.size, at.CHUNK):
        part = slice(first, first + at.CHUNK)
        for name in TIMES:
            table[SLICE_COLUMNS.index(name), part] = cycles(ops[name][place[part]])
    return table


def _fields(ops: np.ndarray, which: np.ndarray, names: tuple[str, ...]) -> list[np.ndarray]:
    """Fields of some records, piece by piece: each record is read while it is in the processor's cache."""
    found = [np.empty(which.size, ops.dtype[name]) for name in names]
    for first in range(0, which.size, at.CHUNK):
        part = slice(first, first + at.CHUNK)
        for name, column in zip(names, found, strict=True):
            column[part] = ops[name][which[part]]
    return found


def transfer_table(program: Program, ops: np.ndarray, place: np.ndarray) -> np.ndarray:
    """(TRANSFER_COLUMNS, moves); the arguments are those of `slice_table`."""
    rows, operands = program.rows, program.operands
    moves = among(program.slot, (MTE1, MTE2, MTE3, FIX)) & (rows.column("work") > 0)
    mine = np.flatnonzero(moves)
    source, target = operands.source[mine], operands.target[mine]
    for side, number in ((source, 0), (target, 1)):
        side[side < 0] = by_opcode(rows.column("opcode")[mine], partial(_memory_of, number))[side < 0]
    moved = program.transfers.bytes[mine]
    nbytes = np.where(moved > 0, moved, rows.column("work")[mine])
    hits, misses, victims, start, end = _fields(ops, place[mine], ("hits", "misses", "victims", "start", "end"))
    late = np.maximum(end - program.work.latency[mine] - program.work.busy[mine], start)
    columns = {
        "slice": mine, "source": source, "target": target,
        "address": operands.per_row(operands.gm, operands.address, UNKNOWN)[mine], "bytes": nbytes,
        "requests": -(-nbytes // REQUEST), "hits": hits, "misses": misses, "victims": victims,
        "start": cycles(np.where(moved > 0, start, late)), "end": cycles(end),
    }  # fmt: skip
    return _table(columns, TRANSFER_COLUMNS, mine.size)


def _table(columns: dict[str, Any], names: tuple[str, ...], rows: int) -> np.ndarray:
    """(names, rows) int64."""
    table = np.empty((len(names), rows), np.int64)
    for place, name in enumerate(names):
        table[place] = columns[name]
    return table


def edge_table(program: Program) -> np.ndarray:
    """(EDGE_COLUMNS, edges)."""
    links = program.links
    shown = links.kind != NO_EDGE
    columns = {
        "source": links.earlier[shown], "target": links.later[shown], "kind": links.kind[shown],
        "number": links.number[shown],
    }  # fmt: skip
    return np.stack([columns[name] for name in EDGE_COLUMNS]).astype(np.int64)


def line_table(seen: np.ndarray, line_bytes: int) -> np.ndarray:
    """(LINE_COLUMNS, rows) from the schedule's hash table, sorted by step and line."""
    found = seen[np.flatnonzero(seen["step"])]
    step, line = np.ascontiguousarray(found["step"]) - 1, np.ascontiguousarray(found["line"])
    order = np.argsort(step * (int(line.max(initial=0)) + 1) + line)
    columns = {
        "step": step[order], "line": line[order] * line_bytes, "hits": found["hits"][order],
        "misses": found["misses"][order],
    }  # fmt: skip
    return _table(columns, LINE_COLUMNS, found.size)


def core_table(cores: np.ndarray, agents: np.ndarray) -> np.ndarray:
    """(CORE_COLUMNS, cores). Which instructions were issued two at a time is not modelled: all are single."""
    fields = {
        "start": "start", "end": "end", "scalar_busy": "busy", "scalar_wait": "wait", "single_issue": "busy",
        "wait_instruction": "fetch", "stall_ub": "stall_ub", "icache_requests": "icache",
        "icache_misses": "icache_miss", "dcache_hits": "dcache_hit", "dcache_misses": "dcache_miss",
    }  # fmt: skip
    columns = {name: np.rint(cores[field]) for name, field in fields.items()}
    for name, slot in (("mte1", MTE1), ("mte2", MTE2), ("mte3", MTE3), ("cube", M), ("vector", V)):
        columns[f"stall_{name}"] = np.rint(agents["stall"][slot::SLOTS])
    return _table({"dual_issue": 0, **columns}, CORE_COLUMNS, cores.size)
