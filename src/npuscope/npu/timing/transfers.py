"""Copies through the memory that all cores share: what each asks of its port, of L2 and of GM (hardware.md 6.5,
6.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.kinds import FIX, MTE2, MTE3
from npuscope.npu.timing.layout import fill
from npuscope.npu.timing.operands import Operands
from npuscope.npu.timing.shapes import COUNT0, COUNT1, COUNT2, ROWS, RUN, STRIDE0, STRIDE1, STRIDE2, TOTAL, Shapes
from npuscope.npu.timing.work import path_width
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Space

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
    """`busy`: (rows,) cycles that a copy takes by itself; `bytes`: (rows,) moved; `first`: (rows + 1,) where each row's
    part of `table`, records ACCESS, begins; `wide`: (rows,) how much heavier a byte is for L2; `latency` and
    `latency_hit`: (rows,)."""

    busy: np.ndarray
    bytes: np.ndarray
    first: np.ndarray
    table: np.ndarray
    wide: np.ndarray
    latency: np.ndarray
    latency_hit: np.ndarray


def transfers_of(rows: LaunchRows, slot: np.ndarray, copies: np.ndarray, operands: Operands, chip: Chip) -> Transfers:
    """What the rows of `copies` (bool, (rows,)) ask; they are on pipes `slot` (kinds.PIPES)."""
    facts = chip.timing
    chosen = operands.gm & copies[operands.row]
    accesses = np.flatnonzero(chosen)
    shape, row = operands.shape.of(accesses), operands.row[accesses]
    run = shape[RUN]
    nbytes = np.bincount(row, shape[TOTAL], minlength=operands.rows).astype(np.int64)
    unknown = copies & (nbytes == 0)  # the library's own memory: only the size is known
    nbytes = np.where(unknown, rows.column("work"), nbytes)
    rate = _port_rates(chip, slot, operands)
    rearranges = _rearranges(rows)
    each = np.where(rearranges, facts.mte2.row_nz, facts.mte2.row)
    each = np.where(slot == FIX, facts.fix.row, np.where(slot == MTE3, facts.mte3.row, each))
    moved = shape[ROWS] * np.maximum(each[row], -(-run // 32) * 32 / rate[row])
    moving = np.bincount(row, moved, minlength=operands.rows)
    moving = np.where(unknown, nbytes / rate, moving)
    by_pipe = {MTE2: facts.mte2, MTE3: facts.mte3}
    setup, spacing = np.full(operands.rows, facts.fix.setup), np.zeros(operands.rows)
    latency, latency_hit = np.full(operands.rows, facts.fix.latency), np.full(operands.rows, facts.fix.latency)
    for pipe, fact in by_pipe.items():
        mine = slot == pipe
        setup[mine], spacing[mine] = fact.setup, fact.spacing
        latency[mine], latency_hit[mine] = fact.latency, fact.latency_hit
    moving = np.where(slot == FIX, np.maximum(moving, _converted(rows, operands, chip)), moving)
    busy = np.maximum(spacing, setup + moving)
    longest = np.zeros(operands.rows, np.int64)
    np.maximum.at(longest, row, run)
    share = np.where(longest <= SHORT_NZ, facts.memory.l2_short_nz, facts.memory.l2_nz)
    wide = np.where((slot == MTE2) & (operands.target != Space.UB), 1 / share, 1.0)
    return Transfers(
        busy, nbytes * copies, np.concatenate(([0], np.cumsum(np.bincount(row, minlength=operands.rows)))),
        _table(rows, operands, accesses, chip), wide, latency, latency_hit,
    )  # fmt: skip


def _rearranges(rows: LaunchRows) -> np.ndarray:
    """(rows,): whether a copy makes NZ of rows; it has their number and length as operands."""
    return (rows.column("opcode") == TO_L1) & (rows.column("a") > 0) & (rows.column("b") > 0)


def _port_rates(chip: Chip, slot: np.ndarray, operands: Operands) -> np.ndarray:
    """(rows,): bytes per cycle of the port that each row's copy goes through."""
    rate = np.full(slot.size, path_width(chip, "gm_to_ub"))
    names = {Space.L1: "gm_to_l1", Space.L0A: "gm_to_l0a", Space.L0B: "gm_to_l0b"}
    for space, name in names.items():
        rate[(slot == MTE2) & (operands.target == space)] = path_width(chip, name)
    rate[(slot == MTE2) & (operands.target < 0)] = path_width(chip, "gm_to_l1")  # a Matmul's copies show no L1
    rate[slot == MTE3] = path_width(chip, "ub_to_gm")
    rate[slot == FIX] = path_width(chip, "l0c_to_gm")
    return rate


def _converted(rows: LaunchRows, operands: Operands, chip: Chip) -> np.ndarray:
    """(rows,): cycles in which Fixpipe converts the elements of a row."""
    elements = rows.column("a") * rows.column("b")
    narrow = rows.column("work") < 4 * elements
    return elements / np.where(narrow, chip.timing.fix.elements, chip.timing.fix.elements_wide)


def _table(rows: LaunchRows, operands: Operands, chosen: np.ndarray, chip: Chip) -> np.ndarray:
    shape = operands.shape.of(chosen)
    table = np.empty(chosen.size, ACCESS)
    nz = _rearranges(rows)[operands.row[chosen]]
    fill(table, {
        "address": operands.address[chosen], "run_bytes": shape[RUN], "count_a": shape[COUNT0],
        "stride_a": shape[STRIDE0], "count_b": shape[COUNT1], "stride_b": shape[STRIDE1], "count_c": shape[COUNT2],
        "stride_c": shape[STRIDE2], "write": operands.writes[chosen], "allocate": _allocates(rows, operands, chosen),
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
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
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
