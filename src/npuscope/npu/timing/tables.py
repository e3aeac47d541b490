"""A schedule as the tables of a timeline."""

from __future__ import annotations

from functools import partial

import numpy as np

from npuscope.npu.timing import layout as at
from npuscope.npu.timing.kinds import FIX, MTE1, MTE2, MTE3, M, V, by_opcode
from npuscope.npu.timing.links import NO_EDGE
from npuscope.npu.timing.program import Program
from npuscope.trace.schema import Space
from npuscope.trace.timeline import CORE_COLUMNS, EDGE_COLUMNS, LINE_COLUMNS, SLICE_COLUMNS, TRANSFER_COLUMNS, UNKNOWN

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
    """Times in whole cycles; what is not known stays UNKNOWN."""
    return np.where(values < 0, UNKNOWN, np.rint(values)).astype(np.int64)


def slice_table(program: Program, times: np.ndarray) -> np.ndarray:
    """(SLICE_COLUMNS, ops) in the order of the trace; `times` is in that order already."""
    rows = program.rows
    count = rows.instruction.shape[1]
    columns = {
        "core": rows.column("core"), "lane": rows.column("pipe"), "step": program.steps.of_row,
        "row": np.arange(count), "fetch": cycles(times[at.FETCH]), "control": cycles(times[at.CONTROL]),
        "issue": cycles(times[at.ISSUE]), "start": cycles(times[at.START]), "end": cycles(times[at.END]),
        "bytes": program.transfers.bytes, "work": rows.column("work"),
        "bank_group": cycles(program.work.group), "bank": cycles(program.work.bank),
        "warp": np.full(count, UNKNOWN), "threads": np.full(count, UNKNOWN),
    }  # fmt: skip
    return np.stack([columns[name] for name in SLICE_COLUMNS]).astype(np.int64)


def transfer_table(program: Program, times: np.ndarray, results: np.ndarray) -> np.ndarray:
    """(TRANSFER_COLUMNS, moves), `times` and `results` in the order of the trace."""
    rows, operands = program.rows, program.operands
    moves = np.isin(program.slot, (MTE1, MTE2, MTE3, FIX)) & (rows.column("work") > 0)
    place = np.flatnonzero(moves)
    source, target = operands.source.copy(), operands.target.copy()
    for side, number in ((source, 0), (target, 1)):
        side[side < 0] = by_opcode(rows.column("opcode"), partial(_memory_of, number))[side < 0]
    nbytes = np.where(program.transfers.bytes > 0, program.transfers.bytes, rows.column("work"))
    start = np.maximum(times[at.END] - program.work.latency - program.work.busy, times[at.START])
    columns = {
        "slice": place, "source": source[place], "target": target[place],
        "address": operands.per_row(operands.gm, operands.address, UNKNOWN)[place], "bytes": nbytes[place],
        "requests": -(-nbytes[place] // REQUEST), "hits": results[at.HITS][place],
        "misses": results[at.MISSES][place], "victims": results[at.VICTIMS][place],
        "start": cycles(np.where(program.transfers.bytes > 0, times[at.START], start))[place],
        "end": cycles(times[at.END])[place],
    }  # fmt: skip
    return np.stack([columns[name] for name in TRANSFER_COLUMNS]).astype(np.int64)


def edge_table(program: Program) -> np.ndarray:
    """(EDGE_COLUMNS, edges)."""
    links = program.links
    shown = links.kind != NO_EDGE
    columns = {
        "source": links.earlier[shown], "target": links.later[shown], "kind": links.kind[shown],
        "number": links.number[shown],
    }  # fmt: skip
    return np.stack([columns[name] for name in EDGE_COLUMNS]).astype(np.int64)


def line_table(counted: np.ndarray, line_bytes: int) -> np.ndarray:
    """(LINE_COLUMNS, rows) from the schedule's hash table, sorted by step and line."""
    found = counted[counted[:, 0] > 0]
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    columns = {"step": found[:, 0] - 1, "line": found[:, 1] * line_bytes, "hits": found[:, 2], "misses": found[:, 3]}
    return np.stack([columns[name] for name in LINE_COLUMNS]).astype(np.int64)


def core_table(cores: np.ndarray) -> np.ndarray:
    """(CORE_COLUMNS, cores). Which instructions were issued two at a time is not modelled: all are single."""
    stall = {f"stall_{name}": at.C_STALL + slot for name, slot in (
        ("mte1", MTE1), ("mte2", MTE2), ("mte3", MTE3), ("cube", M), ("vector", V))}  # fmt: skip
    fields = {
        "start": at.C_START, "end": at.C_END, "scalar_busy": at.C_BUSY, "scalar_wait": at.C_WAIT,
        "single_issue": at.C_BUSY, "wait_instruction": at.C_FETCH, "stall_ub": at.C_STALL_UB,
        "icache_requests": at.C_ICACHE, "icache_misses": at.C_ICACHE_MISS, "dcache_hits": at.C_DCACHE_HIT,
        "dcache_misses": at.C_DCACHE_MISS, **stall,
    }  # fmt: skip
    table = [
        np.zeros(cores.shape[1]) if name == "dual_issue" else cores[fields[name]] for name in CORE_COLUMNS
    ]
    return np.rint(np.stack(table)).astype(np.int64)
