"""UB bank conflicts of vector instructions (hardware.md 2.3), counted repeat by repeat on the operands' real
addresses."""

from __future__ import annotations

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.compiled import inner, outer
from npuscope.npu.timing.operands import Operands
from npuscope.npu.timing.shapes import COUNT1, COUNT2, HIGH, LOW, MASKED, RUN, STRIDE1, STRIDE2, TOTAL
from npuscope.trace.schema import Space

SAMPLE = 64
"""Repeats that are looked at one by one; longer instructions are taken to go on like these."""
BLOCKS = 8
OPERANDS = 4
GROUPS, GROUP_SHIFT, BANKS, BANK_SHIFT, READS, RELIEF = range(6)
ADDRESS, REPEAT_STRIDE, BLOCK_STRIDE, BLOCK_COUNT, WRITES = range(5)
FIELDS = 5


def conflicts(operands: Operands, chosen: np.ndarray, repeats: np.ndarray, chip: Chip) -> tuple[np.ndarray, np.ndarray]:
    """(cycles lost between reads or between writes of one group, cycles lost between a read and a write of one bank)
    for each row, (rows,) float64 each; only rows of `chosen` (bool) are looked at. `repeats`: (rows,) of each."""
    group, bank = np.zeros(operands.rows), np.zeros(operands.rows)
    wanted = (operands.space == Space.UB) & chosen[operands.row]
    place = np.flatnonzero(wanted)
    if not place.size:
        return group, bank
    row = operands.row[place]
    rank = np.arange(place.size) - np.searchsorted(row, row)
    place, row, rank = place[rank < OPERANDS], row[rank < OPERANDS], rank[rank < OPERANDS]
    keys = _keys(operands, place, row, rank, repeats)
    rows = np.flatnonzero(chosen)
    _, first, inverse = np.unique(keys[rows], return_index=True, return_inverse=True)
    sample = rows[first]
    index = np.full(operands.rows, -1)
    index[sample] = np.arange(sample.size)
    table = np.full((sample.size, OPERANDS, FIELDS), -1, np.int64)
    seen = index[row] >= 0
    for access, at, number in zip(place[seen], index[row[seen]], rank[seen], strict=True):
        table[at, number] = _operand(operands, access, int(repeats[sample[at]]))
    facts = chip.timing.banks
    settings = np.array(
        [facts.groups, facts.group_shift, facts.banks, facts.bank_shift, facts.reads, facts.relief], np.int64
    )
    found = np.zeros((sample.size, 2))
    room = np.zeros((2, facts.groups), np.int64)
    _count(table, repeats[sample], settings, room[0], room[1], found)
    vector = chip.timing.vector
    group[rows] = found[inverse, 0] * vector.read_conflict
    bank[rows] = found[inverse, 1] * vector.write_conflict
    return group, bank


def _keys(
    operands: Operands, place: np.ndarray, row: np.ndarray, rank: np.ndarray, repeats: np.ndarray
) -> np.ndarray:
    """A number for each row that is the same for rows whose operands lie alike."""
    keys = repeats.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    one = (operands.footprint[place] * 2 + operands.writes[place]).astype(np.uint64) << np.uint64(24)
    one = (one ^ operands.address[place].astype(np.uint64)) * np.uint64(0xD6E8FEB86659FD93)
    one ^= one >> np.uint64(29)
    for number in range(OPERANDS):
        mine = rank == number
        keys[row[mine]] = (keys[row[mine]] ^ one[mine]) * np.uint64(0xFF51AFD7ED558CCD)
    return keys


def _operand(operands: Operands, access: int, repeats: int) -> tuple[int, int, int, int, int]:
    """(address, repeat stride, block stride, blocks in a repeat, writes) of one access of an instruction."""
    shape = operands.shape[:, access]
    run, total = int(shape[RUN]), int(shape[TOTAL])
    writes = int(operands.writes[access])
    address = int(operands.address[access])
    if run >= 32 and shape[COUNT2] == 1:
        share = -(-total // max(repeats, 1))
        return address, share, 32, min(-(-share // 32), BLOCKS), writes
    if run > 32:
        return address, int(shape[STRIDE2]), 32, min(-(-run // 32), BLOCKS), writes
    if shape[COUNT1] == 1 and repeats > 1 and int(shape[COUNT2]) == repeats:
        return address, int(shape[STRIDE2]), 0, 1, writes
    if shape[HIGH] == shape[LOW] or (shape[MASKED] and run < 32):
        return address, int(shape[STRIDE1]), int(shape[STRIDE2]), 1, writes
    return address, int(shape[STRIDE1]), int(shape[STRIDE2]), min(int(shape[COUNT2]), BLOCKS), writes


@outer
def _count(
    table: np.ndarray, repeats: np.ndarray, settings: np.ndarray, reads: np.ndarray, writes: np.ndarray,
    found: np.ndarray,
) -> None:
    """Fill `found` (rows, 2): lost cycles by kind, before they are weighed. `reads`, `writes`: room for each group."""
    for row in range(table.shape[0]):
        seen = min(repeats[row], SAMPLE)
        for repeat in range(seen):
            found[row, 0] += _group_cycles(table[row], repeat, settings, reads, writes) - 1
            found[row, 1] += _bank_share(table[row], repeat, settings)
        if seen:
            found[row, 0] *= repeats[row] / seen
            found[row, 1] *= repeats[row] / seen


@inner
def _group_cycles(
    operands: np.ndarray, repeat: int, settings: np.ndarray, reads: np.ndarray, writes: np.ndarray
) -> int:
    """Cycles that one repeat takes at the busiest group: its reads by the ports that it has, or its writes."""
    for group in range(reads.size):
        reads[group] = writes[group] = 0
    for number in range(operands.shape[0]):
        if operands[number, WRITES] < 0:
            break
        stride = operands[number, BLOCK_STRIDE]
        blocks = 1 if stride == 0 else operands[number, BLOCK_COUNT]
        if repeat > 0 and stride == 0 and operands[number, REPEAT_STRIDE] == 0:
            continue  # read once in the whole instruction
        if repeat > 0 and operands[number, REPEAT_STRIDE] == 0 and operands[number, WRITES] == 0:
            continue
        if operands[number, WRITES] == 0 and _repeated(operands, number):
            continue
        base = operands[number, ADDRESS] + repeat * operands[number, REPEAT_STRIDE]
        for block in range(blocks):
            group = ((base + block * stride) >> settings[GROUP_SHIFT]) % settings[GROUPS]
            if operands[number, WRITES] == 1:
                writes[group] += 1
            else:
                reads[group] += 1
    most = 1
    for group in range(settings[GROUPS]):
        most = max(most, -(-reads[group] // settings[READS]), writes[group])
    return most


@inner
def _repeated(operands: np.ndarray, number: int) -> bool:
    """Whether an earlier operand reads just the same bytes: the two reads are one."""
    for other in range(number):
        if operands[other, WRITES] == 0:
            same = True
            for field in range(operands.shape[1]):
                same = same and operands[other, field] == operands[number, field]
            if same:
                return True
    return False


@inner
def _bank_share(operands: np.ndarray, repeat: int, settings: np.ndarray) -> float:
    """Blocks written, as a share of eight, whose bank another block of the repeat is read from. Where the chip has the
    relief, an operand all of whose blocks meet the written block of their own number costs nothing."""
    target = -1
    for number in range(operands.shape[0]):
        if operands[number, WRITES] == 1:
            target = number
            break
    if target < 0:
        return 0.0
    base = operands[target, ADDRESS] + repeat * operands[target, REPEAT_STRIDE]
    share = 0.0
    for number in range(operands.shape[0]):
        if operands[number, WRITES] != 0 or (repeat > 0 and operands[number, REPEAT_STRIDE] == 0):
            continue
        source = operands[number, ADDRESS] + repeat * operands[number, REPEAT_STRIDE]
        if source == base and operands[number, BLOCK_STRIDE] == operands[target, BLOCK_STRIDE]:
            continue  # in place
        meetings, aligned = 0, 0
        for block in range(operands[target, BLOCK_COUNT]):
            at = _bank(base + block * operands[target, BLOCK_STRIDE], settings)
            met = False
            for other in range(operands[number, BLOCK_COUNT]):
                if _bank(source + other * operands[number, BLOCK_STRIDE], settings) == at:
                    met = True
                    aligned += other == block
                if operands[number, BLOCK_STRIDE] == 0:
                    break
            meetings += met
        if meetings and not (settings[RELIEF] and aligned == operands[target, BLOCK_COUNT]):
            share = max(share, meetings / BLOCKS)
    return share


@inner
def _bank(address: int, settings: np.ndarray) -> int:
    group = (address >> settings[GROUP_SHIFT]) % settings[GROUPS]
    return group * settings[BANKS] + (address >> settings[BANK_SHIFT]) % settings[BANKS]
