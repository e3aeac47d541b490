"""Copies through the memory that all cores share: what each asks of its port, of L2 and of GM (hardware.md 6.5,
6.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.kinds import FIX, MTE2, MTE3, SLOTS
from npuscope.npu.timing.layout import fill
from npuscope.npu.timing.operands import NOWHERE, Operands
from npuscope.npu.timing.shapes import COUNT0, COUNT1, COUNT2, ROWS, RUN, STRIDE0, STRIDE1, STRIDE2, TOTAL, Shapes
from npuscope.npu.timing.work import path_width
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Space
from npuscope.trace.values import distinct

CACHE_HINT = OPCODES.number("l2_cache_hint")
TO_L1 = OPCODES.number("copy_gm_to_l1")
NO_CACHE = 1
"""The L2 mode that keeps a copy's lines out of the cache (pyasc: CacheMode.CACHE_MODE_DISABLE)."""
SAMPLE = 16
"""Rows of an access whose alignment is looked at; the others are taken to be like them."""
SHORT = 512
"""Rows below this many bytes do not reach the full rate of GM."""
SHORT_NZ = 1024
"""Rows of up to this many bytes that a copy rearranges do not reach the full rate of L2."""
GRAIN = 128
"""A2 asks for 128, 256 or 512 aligned bytes at a time (LIM22); less is a whole unit."""
ACCESS = np.dtype([
    (name, np.int64)
    for name in ("address", "run_bytes", "count_a", "stride_a", "count_b", "stride_b", "count_c", "stride_c", "write",
                 "allocate", "weight")
], align=True)  # fmt: skip
"""An access to GM: address, bytes of a run, three loops of runs (outermost first), whether it
writes, whether its lines stay in L2, and the thousandfold of the bytes that it costs GM for each byte it moves."""


@dataclass(frozen=True)
class Transfers:
    """`row`: (copies,) the rows that copy. For each of them: `busy`, cycles that it takes by itself; `latency` and
    `latency_hit`; `l2_bytes`, what it weighs for L2. `bytes`: (rows,) moved; `first`: (rows + 1,) where each row's part
    of `table`, records ACCESS, begins."""

    row: np.ndarray
    busy: np.ndarray
    latency: np.ndarray
    latency_hit: np.ndarray
    l2_bytes: np.ndarray
    bytes: np.ndarray
    first: np.ndarray
    table: np.ndarray


def transfers_of(rows: LaunchRows, slot: np.ndarray, copies: np.ndarray, operands: Operands, chip: Chip) -> Transfers:
    """What the rows of `copies` (bool, (rows,)) ask; they are on pipes `slot` (kinds.PIPES)."""
    mte2, mte3, fix, memory = chip.timing.mte2, chip.timing.mte3, chip.timing.fix, chip.timing.memory
    mine = np.flatnonzero(copies)
    slot, target = slot[mine], operands.target[mine]
    accesses = np.flatnonzero(operands.gm & copies[operands.row])
    row = operands.row[accesses]
    shape, copy = operands.shape.of(accesses), (np.cumsum(copies) - 1)[row]
    run = shape[RUN]
    nbytes = np.bincount(copy, shape[TOTAL], minlength=mine.size).astype(np.int64)
    unknown = nbytes == 0  # the library's own memory: only the size is known
    nbytes = np.where(unknown, rows.column("work")[mine], nbytes)
    rate = _port_rates(chip, slot, target)
    nz = _rearranges(rows, mine)
    each = np.where((slot == MTE2) & nz, mte2.row_nz, _of_pipe(slot, mte2.row, mte3.row, fix.row))
    moved = shape[ROWS] * np.maximum(each[copy], -(-run // 32) * 32 / rate[copy])
    moving = np.where(unknown, nbytes / rate, np.bincount(copy, moved, minlength=mine.size))
    moving = np.where(slot == FIX, np.maximum(moving, _converted(rows, mine, chip)), moving)
    setup = _of_pipe(slot, mte2.setup, mte3.setup, fix.setup)
    busy = np.maximum(_of_pipe(slot, mte2.spacing, mte3.spacing, 0.0), setup + moving)
    longest = np.zeros(mine.size, np.int64)
    np.maximum.at(longest, copy, run)
    share = np.where(longest <= SHORT_NZ, memory.l2_short_nz, memory.l2_nz)
    wide = np.where((slot == MTE2) & (target != Space.UB), 1 / share, 1.0)
    moves = np.zeros(operands.rows, np.int64)
    moves[mine] = nbytes
    first = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=operands.rows))))
    table = _table(operands, accesses, nz[copy], _allocates(rows, operands, accesses), chip)
    latency = _of_pipe(slot, mte2.latency, mte3.latency, fix.latency)
    latency_hit = _of_pipe(slot, mte2.latency_hit, mte3.latency_hit, fix.latency)
    return Transfers(mine, busy, latency, latency_hit, nbytes * wide, moves, first, table)


def _of_pipe(slot: np.ndarray, mte2: float, mte3: float, fix: float) -> np.ndarray:
    """(copies,): the fact of the pipe that each is on."""
    facts = np.zeros(SLOTS)
    facts[[MTE2, MTE3, FIX]] = mte2, mte3, fix
    return np.asarray(facts[slot])


def _rearranges(rows: LaunchRows, which: np.ndarray) -> np.ndarray:
    """Whether each row of `which` makes NZ of rows; it has their number and length as operands."""
    of_rows = (rows.column("a")[which] > 0) & (rows.column("b")[which] > 0)
    return (rows.column("opcode")[which] == TO_L1) & of_rows


def _port_rates(chip: Chip, slot: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(copies,): bytes per cycle of the port that each goes through."""
    loads = np.full(max(Space) + 2, path_width(chip, "gm_to_ub"))
    names = {Space.L1: "gm_to_l1", Space.L0A: "gm_to_l0a", Space.L0B: "gm_to_l0b"}
    for space, name in names.items():
        loads[space] = path_width(chip, name)
    loads[NOWHERE] = path_width(chip, "gm_to_l1")  # a Matmul's copies show no L1
    stores = _of_pipe(slot, 0.0, path_width(chip, "ub_to_gm"), path_width(chip, "l0c_to_gm"))
    return np.where(slot == MTE2, loads[target], stores)


def _converted(rows: LaunchRows, which: np.ndarray, chip: Chip) -> np.ndarray:
    """Cycles in which Fixpipe converts the elements of each row of `which`."""
    elements = rows.column("a")[which] * rows.column("b")[which]
    narrow = rows.column("work")[which] < 4 * elements
    return elements / np.where(narrow, chip.timing.fix.elements, chip.timing.fix.elements_wide)


def _table(operands: Operands, chosen: np.ndarray, nz: np.ndarray, allocates: np.ndarray, chip: Chip) -> np.ndarray:
    """Records ACCESS of the `chosen` accesses; `nz` and `allocates`, (chosen,), are whether each rearranges, and
    whether its lines stay in L2."""
    shape = operands.shape.of(chosen)
    table = np.empty(chosen.size, ACCESS)
    fill(table, {
        "address": operands.address[chosen], "run_bytes": shape[RUN], "count_a": shape[COUNT0],
        "stride_a": shape[STRIDE0], "count_b": shape[COUNT1], "stride_b": shape[STRIDE1], "count_c": shape[COUNT2],
        "stride_c": shape[STRIDE2], "write": operands.writes[chosen], "allocate": allocates,
        "weight": np.round(1000 * _weights(operands.address[chosen], shape, nz, chip)),
    })  # fmt: skip
    return table


def _allocates(rows: LaunchRows, operands: Operands, chosen: np.ndarray) -> np.ndarray:
    """Whether each access' lines stay in L2: not where the kernel set the tensor's cache hint to keep them out."""
    keeps = np.ones(chosen.size, np.int64)
    for row in np.flatnonzero(rows.column("opcode") == CACHE_HINT):
        mode, ways, buffer, core = (int(rows.column(name)[row]) for name in ("a", "b", "c", "core"))
        mine = (operands.buffer[chosen] == buffer) & (rows.column("core")[operands.row[chosen]] == core)
        mine &= operands.row[chosen] > row
        mine &= np.where(operands.writes[chosen], bool(ways & 2), bool(ways & 1))
        keeps[mine] = mode != NO_CACHE
    return keeps


def _weights(address: np.ndarray, shape: Shapes, nz: np.ndarray, chip: Chip) -> np.ndarray:
    """(accesses,): bytes that GM has to move for each byte wanted, by how the rows lie on its units and whether the
    copy rearranges them."""
    memory = chip.timing.memory
    place = address % memory.unit
    run, pitch = shape[RUN], shape[STRIDE2] % memory.unit
    keys = ((run << 13) ^ shape[COUNT2]) * (memory.unit * memory.unit) + place * memory.unit + pitch
    first, inverse = distinct(keys)
    start, length, count, pitch = place[first], run[first], shape.of(first)[COUNT2], pitch[first]
    costs = np.zeros(first.size)
    for sample in range(SAMPLE):
        row = np.minimum(sample, count - 1)
        costs += _row_cost((start + row * pitch) % memory.unit, length, memory.unit, memory.sector)
    costs /= SAMPLE * np.maximum(length, 1)
    short = run < SHORT
    reached = np.where(nz, np.where(short, memory.short_row_nz, memory.gm_nz), np.where(short, memory.short_row, 1.0))
    return costs[inverse] / reached


def _row_cost(offset: np.ndarray, length: np.ndarray, unit: int, sector: int) -> np.ndarray:
    """Bytes moved for a row of `length` that starts `offset` into a unit: whole units, and its ends as parts."""
    head = np.where(offset > 0, np.minimum(unit - offset, length), 0)
    rest = length - head
    tail = rest % unit
    return _part(offset, head, unit, sector) + rest - tail + _part(np.zeros_like(offset), tail, unit, sector)


def _part(offset: np.ndarray, length: np.ndarray, unit: int, sector: int) -> np.ndarray:
    """Bytes moved for a part of a unit."""
    aligned = (offset % GRAIN == 0) & (length % GRAIN == 0) & (unit > GRAIN)
    return np.where(aligned, length, np.minimum(-(-length // sector) * sector, unit))
