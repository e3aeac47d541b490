"""UB bank conflicts of vector instructions (hardware.md 2.3), counted repeat by repeat on the operands' real
addresses."""

from __future__ import annotations

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.operands import Operands
from npuscope.npu.timing.shapes import COUNT1, COUNT2, HIGH, LOW, MASKED, RUN, STRIDE1, STRIDE2, TOTAL
from npuscope.npu.timing_facts import Banks
from npuscope.trace.schema import Space
from npuscope.trace.values import distinct

SAMPLE = 64
"""Repeats that are looked at one by one; longer instructions are taken to go on like these."""
BLOCKS = 8
OPERANDS = 4
ROWS = 256
"""Instructions that are counted at a time, for the memory that it takes."""
ADDRESS, REPEAT_STRIDE, BLOCK_STRIDE, BLOCK_COUNT, WRITES = range(5)
FIELDS = 5


def conflicts(operands: Operands, chosen: np.ndarray, repeats: np.ndarray, chip: Chip) -> tuple[np.ndarray, np.ndarray]:
    """(cycles lost between reads or between writes of one group, cycles lost between a read and a write of one bank)
    for each row of `chosen` (numbers), (chosen,) float64 each. `repeats`: (rows,) of each."""
    looked_at = np.zeros(operands.rows, bool)
    looked_at[chosen] = True
    place = np.flatnonzero((operands.space == Space.UB) & looked_at[operands.row])
    if not place.size:
        return np.zeros(chosen.size), np.zeros(chosen.size)
    row = operands.row[place]
    rank = np.arange(place.size) - np.searchsorted(row, row)
    place, row, rank = place[rank < OPERANDS], row[rank < OPERANDS], rank[rank < OPERANDS]
    keys = _keys(operands, place, row, rank, repeats)
    first, inverse = distinct(keys[chosen])
    sample = chosen[first]
    index = np.full(operands.rows, -1)
    index[sample] = np.arange(sample.size)
    table = np.full((sample.size, OPERANDS, FIELDS), -1, np.int64)
    seen = index[row] >= 0
    for access, at, number in zip(place[seen], index[row[seen]], rank[seen], strict=True):
        table[at, number] = _operand(operands, access, int(repeats[sample[at]]))
    facts = chip.timing.banks
    found = _counted(table, repeats[sample], facts)
    vector = chip.timing.vector
    return found[inverse, 0] * vector.read_conflict, found[inverse, 1] * vector.write_conflict


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
    shape = operands.shape.one(access)
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


def _counted(table: np.ndarray, repeats: np.ndarray, facts: Banks) -> np.ndarray:
    """(rows, 2): lost cycles by kind, before they are weighed, of rows of operands (rows, OPERANDS, FIELDS)."""
    found = np.zeros((table.shape[0], 2))
    for first in range(0, table.shape[0], ROWS):
        part = slice(first, first + ROWS)
        seen = np.minimum(repeats[part], SAMPLE)
        number = np.arange(int(seen.max(initial=0)))
        counts = number < seen[:, None]  # (rows, repeats)
        groups = _group_cycles(table[part], number, facts) - 1
        shares = _bank_shares(table[part], number, facts)
        scale = repeats[part] / np.maximum(seen, 1)
        found[part, 0] = (groups * counts).sum(1) * scale
        found[part, 1] = (shares * counts).sum(1) * scale
    return found


def _blocks(operand: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """(rows, repeats, BLOCKS): addresses of the blocks of an operand (rows, FIELDS)."""
    base = operand[:, ADDRESS, None] + repeats * operand[:, REPEAT_STRIDE, None]
    return base[:, :, None] + operand[:, BLOCK_STRIDE, None, None] * np.arange(BLOCKS)


def _group_cycles(table: np.ndarray, repeats: np.ndarray, facts: Banks) -> np.ndarray:
    """(rows, repeats): cycles that a repeat takes at the busiest group: its reads by the ports that it has, or its
    writes."""
    touched = np.zeros((2, table.shape[0] * repeats.size * facts.groups), np.int64)
    place = np.arange(table.shape[0] * repeats.size).reshape(table.shape[0], repeats.size, 1) * facts.groups
    for number in range(OPERANDS):
        operand = table[:, number]
        stays, one = operand[:, REPEAT_STRIDE] == 0, operand[:, BLOCK_STRIDE] == 0
        # What an instruction reads, or a block that it writes, in the same place again and again counts once.
        once = stays & (one | (operand[:, WRITES] == 0))
        active = (operand[:, WRITES] >= 0) & ~_repeated(table, number)
        mine = active[:, None] & ((repeats == 0) | ~once[:, None])
        blocks = np.where(one, 1, operand[:, BLOCK_COUNT])
        counts = mine[:, :, None] & (np.arange(BLOCKS) < blocks[:, None, None])
        group = (_blocks(operand, repeats) >> facts.group_shift) % facts.groups
        for writes in set(operand[active, WRITES].tolist()):
            chosen = counts & (operand[:, WRITES] == writes)[:, None, None]
            touched[writes] += np.bincount((place + group)[chosen], minlength=touched.shape[1])
    reads, writes = (side.reshape(table.shape[0], repeats.size, facts.groups).max(2) for side in touched)
    return np.maximum(np.maximum(-(-reads // facts.reads), writes), 1)


def _repeated(table: np.ndarray, number: int) -> np.ndarray:
    """(rows,): whether an earlier operand reads just the same bytes: the two reads are one."""
    same = np.zeros(table.shape[0], bool)
    for other in range(number):
        same |= (table[:, other] == table[:, number]).all(1)
    return same & (table[:, number, WRITES] == 0)


def _bank_shares(table: np.ndarray, repeats: np.ndarray, facts: Banks) -> np.ndarray:
    """(rows, repeats): blocks written, as a share of eight, whose bank another block of the repeat is read from. Where
    the chip has the relief, an operand all of whose blocks meet the written block of their own number costs nothing."""
    writes = table[:, :, WRITES] == 1
    target = table[np.arange(table.shape[0]), writes.argmax(1)]
    written, count = _blocks(target, repeats), target[:, BLOCK_COUNT]
    number = np.arange(BLOCKS)
    share = np.zeros(written.shape[:2])
    for operand in table.transpose(1, 0, 2):
        if not (operand[:, WRITES] == 0).any():
            continue
        read, one = _blocks(operand, repeats), operand[:, BLOCK_STRIDE] == 0
        blocks = np.where(one, np.minimum(operand[:, BLOCK_COUNT], 1), operand[:, BLOCK_COUNT])
        inside = (number < count[:, None])[:, :, None] & (number < blocks[:, None])[:, None, :]
        meets = _bank(written, facts)[..., None] == _bank(read, facts)[:, :, None, :]
        meets &= inside[:, None]
        meetings, aligned = meets.any(3).sum(2), meets[:, :, number, number].sum(2)
        in_place = (read[:, :, 0] == written[:, :, 0]) & (operand[:, BLOCK_STRIDE] == target[:, BLOCK_STRIDE])[:, None]
        again = (repeats > 0) & (operand[:, REPEAT_STRIDE] == 0)[:, None]
        relieved = (aligned == count[:, None]) & bool(facts.relief)
        costs = (operand[:, WRITES] == 0)[:, None] & ~in_place & ~again & ~relieved
        share = np.maximum(share, np.where(costs, meetings / BLOCKS, 0.0))
    return share * writes.any(1)[:, None]


def _bank(address: np.ndarray, facts: Banks) -> np.ndarray:
    """The number of the bank of each address."""
    group = (address >> facts.group_shift) % facts.groups
    return group * facts.banks + (address >> facts.bank_shift) % facts.banks
