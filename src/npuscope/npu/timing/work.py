"""How long each instruction keeps its pipe busy, and how long after that its result is there (hardware.md 6.2, 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.banks import conflicts
from npuscope.npu.timing.kinds import COMPOSED, FIX, MTE1, MTE2, MTE3, M, V, by_opcode, rate_class
from npuscope.npu.timing.operands import SIZES, Operands
from npuscope.npu.timing.shapes import TOTAL
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Space

REPEAT = 256
SIZE_PLACE = np.array([0, 0, 1, 1, 2, 2, 2, 2, 3], np.int64)
"""Where an element size stands in a list of rates."""
CUBE = {"float16": "half", "bfloat16": "half", "float32": "float", "int8": "int8", "uint8": "int8", "int4": "int4",
        "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "hf32": "hf32"}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """(rows,) float64 each: `busy` and `latency` of what runs on a pipe, and the cycles of `busy` that bank conflicts
    between reads or writes of a group (`group`), or between a read and a write of a bank (`bank`), cost; `repeats` of
    vector instructions, (rows,) int64."""

    busy: np.ndarray
    latency: np.ndarray
    group: np.ndarray
    bank: np.ndarray
    repeats: np.ndarray


def work_of(rows: LaunchRows, slot: np.ndarray, operands: Operands, chip: Chip) -> Work:
    """The time of every row on pipe `slot` (kinds.PIPES) by itself; copies through GM are :mod:`.transfers`'
    business."""
    count = rows.instruction.shape[1]
    work = Work(np.ones(count), np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count, np.int64))
    for pipe, fill in ((V, _vector), (M, _cube), (MTE1, _load), (FIX, _output), (MTE3, _inside), (MTE2, _inside)):
        chosen = slot == pipe
        if chosen.any():
            fill(rows, chosen, operands, chip, work)
    return work


# -- vector ----------------------------------------------------------------------------------------------------------


def _vector(rows: LaunchRows, chosen: np.ndarray, operands: Operands, chip: Chip, work: Work) -> None:
    facts, mine = chip.timing.vector, np.flatnonzero(chosen)
    opcode, elements, a, b = (rows.column(name)[mine] for name in ("opcode", "work", "a", "b"))
    largest = operands.largest((operands.space == Space.UB) & chosen[operands.row])[mine]
    size = _element_size(operands, operands.dtype[mine], largest, elements)
    repeats = -(-largest // REPEAT)
    plain = (b == 0) & (a > 0) & by_opcode(opcode, _repeating, bool)
    repeats = np.where(plain, np.maximum(repeats, a), repeats)
    rate = _rates(chip)[opcode, SIZE_PLACE[size]]
    sides = np.diff(operands.first)[mine]
    if facts.ordered:
        sides -= _repeated_reads(operands, chosen)[mine]
    rate = np.where(sides >= 3, np.maximum(rate, facts.operands), rate)
    passes = by_opcode(opcode, lambda name: _passes(chip, name), np.float64)
    start = facts.start * np.where(facts.ordered, 1.0, passes)  # register vectors: one vector function a call
    start += 0.0 if facts.ordered else facts.latency * passes * (passes > 1)
    work.latency[mine], work.repeats[mine] = facts.latency, repeats
    simple = mine[passes == 1]
    work.group[simple], work.bank[simple] = conflicts(operands, simple, work.repeats, chip)
    work.busy[mine] = start + passes * repeats * rate + work.group[mine] + work.bank[mine]


def _repeated_reads(operands: Operands, chosen: np.ndarray) -> np.ndarray:
    """(rows,): reads of what the same instruction reads already, which a register vector unit does once (E-BK35);
    only rows of `chosen` (bool) are looked at."""
    reads = np.flatnonzero(~operands.writes & chosen[operands.row])
    order = reads[np.lexsort((operands.address[reads], operands.row[reads]))]
    row, address, size = operands.row[order], operands.address[order], operands.shape.of(order)[TOTAL]
    same = (row[1:] == row[:-1]) & (address[1:] == address[:-1]) & (size[1:] == size[:-1])
    return np.bincount(row[1:][same], minlength=operands.rows)


def _repeating(name: str) -> bool:
    """Whether operands a and b of the row are repeats and mask mode."""
    return name.startswith("v") and name not in ("vmrgsort4", "vbitsort", "vconcat", "vextract", "vtranspose")


def _element_size(operands: Operands, dtype: np.ndarray, largest: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Bytes of the widest element of some rows: what their largest access has for each element of work, or their first
    access' type (`dtype`, in operands.dtypes) where that tells nothing."""
    named = np.array([SIZES.get(name, 4) for name in operands.dtypes] or [4], np.int64)[np.maximum(dtype, 0)]
    each = largest // np.maximum(elements, 1)
    return np.where((each > 0) & (each <= 8) & (each & (each - 1) == 0), each, np.minimum(named, 8))


def _rates(chip: Chip) -> np.ndarray:
    """(opcodes, 4): cycles of a repeat by element size."""
    rates = chip.timing.vector.rates
    return np.array([rates[rate_class(name)] for name in OPCODES.names])


def _passes(chip: Chip, name: str) -> float:
    """Vector instructions of a call that the library composes; 1 for an instruction."""
    composed = chip.timing.vector.composed
    return composed.get(name, composed["other"]) if name in COMPOSED else 1.0


# -- cube and the memories around it -----------------------------------------------------------------------------------


def _cube(rows: LaunchRows, chosen: np.ndarray, operands: Operands, chip: Chip, work: Work) -> None:
    facts = chip.timing.cube
    m, n, k = (rows.column(name)[chosen] for name in "abc")
    lanes = np.array([facts.k.get(CUBE.get(name, "half"), facts.k["half"]) for name in operands.dtypes] or [16])
    step = np.where(operands.dtype >= 0, lanes[np.maximum(operands.dtype, 0)], facts.k["half"])[chosen]
    blocks = -(-m // 16) * -(-n // 16) * -(-k // step)
    work.busy[chosen] = facts.gap + blocks
    work.latency[chosen] = facts.latency


def path_width(chip: Chip, name: str) -> float:
    """Bytes per cycle that one core reaches on a path: its ceiling, else the port's width."""
    path = chip.path(name)
    if path is None:
        return 128.0
    if path.ceiling is not None:
        return path.ceiling * 1e3 / chip.frequency_mhz
    return float(path.port or 128)


def _load(rows: LaunchRows, chosen: np.ndarray, operands: Operands, chip: Chip, work: Work) -> None:
    facts = chip.timing.mte1
    name = {Space.L0A: "l1_to_l0a", Space.L0B: "l1_to_l0b", Space.BT: "l1_to_bt", Space.UB: "l1_to_ub"}
    widths = np.full(max(Space) + 2, 256.0)  # the last is for loads that show no memory
    for space, path in name.items():
        found = chip.path(path)
        if found is not None:
            widths[space] = float(found.port or 128)
    width = widths[operands.target]
    turned = by_opcode(rows.column("opcode"), lambda one: one == "load_data_transposed", bool)
    width = np.where(turned & (operands.target == Space.L0B), np.minimum(width, facts.transposed), width)
    work.busy[chosen] = (facts.setup + rows.column("work") / width)[chosen]
    work.latency[chosen] = facts.latency


def _output(rows: LaunchRows, chosen: np.ndarray, operands: Operands, chip: Chip, work: Work) -> None:
    """L0C to L1 or UB, and L1 to the buffers of Fixpipe."""
    facts = chip.timing.fix
    nbytes = rows.column("work")
    busy = facts.setup + nbytes / path_width(chip, "l0c_to_l1")
    work.busy[chosen] = busy[chosen]
    work.latency[chosen] = facts.latency


def _inside(rows: LaunchRows, chosen: np.ndarray, operands: Operands, chip: Chip, work: Work) -> None:
    """Copies of MTE2 and MTE3 that do not touch GM: fills, UB to L1."""
    work.busy[chosen] = chip.timing.mte3.setup + rows.column("work")[chosen] / path_width(chip, "ub_to_l1")
    work.latency[chosen] = chip.timing.mte1.latency


def touched(operands: Operands, chosen: np.ndarray) -> np.ndarray:
    """(rows,): all bytes of the `chosen` accesses."""
    return np.bincount(operands.row, operands.shape[TOTAL] * chosen, minlength=operands.rows)
