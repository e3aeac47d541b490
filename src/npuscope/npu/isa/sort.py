"""Sorting: (score, index) records of 8 bytes (vbitsort, vmrgsort4) and region proposals of 8 elements.

Scores go from large to small; of equal ones the earlier comes first (vendor's Sort32, MrgSort, RpSort16 pages).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.lanes import limited_repeat
from npuscope.npu.isa.reduce import result_layout
from npuscope.npu.isa.vector import V
from npuscope.npu.layout import Layout, contiguous, strided
from npuscope.npu.numbers.dtypes import Array, DType
from npuscope.npu.tensor import Tensor

VBITSORT, VMRGSORT4 = opcode("vbitsort"), opcode("vmrgsort4")
VCONCAT, VEXTRACT = opcode("vconcat"), opcode("vextract")
RECORD_BYTES = 8
SORTED_AT_ONCE, PROPOSALS_AT_ONCE = 32, 16
"""Records that one repeat of vbitsort sorts: (score, index) pairs, region proposals."""
PROPOSAL_ELEMENTS, SCORE = 8, 4
"""Elements of a region proposal (x1, y1, x2, y2, score, label, 2 reserved) and which one is the score."""
QUEUES = 4
ALL_VALID = 0b1111
VALID_BITS = {0b0011: 2, 0b0111: 3, ALL_VALID: QUEUES}
MAX_LENGTH = 4095


@cache
def record(dtype: DType) -> DType:
    """A sorted record: the score in the low bytes, the index in the high four (vendor's Sort32 page)."""
    fields: list[Any] = [("score", dtype), ("index", np.uint32)]
    if dtype.itemsize == 2:
        fields.insert(1, ("reserved", np.uint16))
    return np.dtype(fields)


def descending(scores: Array) -> Array:
    """The stable order of the last axis from large to small; NaN comes last."""
    return (-scores).argsort(axis=-1, kind="stable")


def records_of(scores: Array, indices: Array) -> Array:
    """Records from scores and indices; reserved bytes are 0."""
    made = np.zeros(scores.shape, record(scores.dtype))
    made["score"] = scores
    made["index"] = indices
    return made


def read_pairs(core: Core, scores: Tensor, indices: Tensor, count: int) -> Array:
    """`count` scores and their uint32 indices, unsorted, as records."""
    return records_of(
        core.load(scores, contiguous(count, scores.dtype.itemsize)),
        core.load(indices, contiguous(count, indices.dtype.itemsize)),
    )


def sort32(core: Core, site: int, destination: Tensor, scores: Tensor, indices: Tensor, repeat: int) -> None:
    """Sort each 32 scores with their indices into 32 records (vendor's Sort32 page)."""
    core.begin(site, V, VBITSORT, repeat, work=repeat * SORTED_AT_ONCE)
    count = limited_repeat(core, repeat) * SORTED_AT_ONCE
    pairs = read_pairs(core, scores, indices, count).reshape(-1, SORTED_AT_ONCE)
    ordered = np.take_along_axis(pairs, descending(pairs["score"]), -1)
    core.store(destination.cast(record(scores.dtype)), contiguous(count, RECORD_BYTES), ordered.reshape(-1))


def sort_proposals(core: Core, site: int, destination: Tensor, source: Tensor, repeat: int) -> None:
    """Sort each 16 region proposals by their score; source and destination may be the same (RpSort16 page)."""
    core.begin(site, V, VBITSORT, repeat, work=repeat * PROPOSALS_AT_ONCE)
    repeat = limited_repeat(core, repeat)
    layout = contiguous(repeat * PROPOSALS_AT_ONCE * PROPOSAL_ELEMENTS, source.dtype.itemsize)
    rows = core.load(source, layout).reshape(repeat, PROPOSALS_AT_ONCE, PROPOSAL_ELEMENTS)
    order = descending(rows[..., SCORE])
    core.store(destination, layout, np.take_along_axis(rows, order[..., None], 1).reshape(-1))


def place_in_proposals(
    core: Core, site: int, destination: Tensor, source: Tensor, repeat: int, position: int
) -> None:
    """vconcat: 16 elements a repeat into element `position` of as many proposals (ProposalConcat page)."""
    core.begin(site, V, VCONCAT, repeat, position, work=repeat * PROPOSALS_AT_ONCE)
    count = limited_repeat(core, repeat) * PROPOSALS_AT_ONCE
    values = core.load(source, contiguous(count, source.dtype.itemsize))
    core.store(destination, field_layout(count, source.dtype.itemsize, position), values[:, None])


def take_from_proposals(
    core: Core, site: int, destination: Tensor, source: Tensor, repeat: int, position: int
) -> None:
    """vextract: element `position` of 16 proposals a repeat, one after the other (ProposalExtract page)."""
    core.begin(site, V, VEXTRACT, repeat, position, work=repeat * PROPOSALS_AT_ONCE)
    count = limited_repeat(core, repeat) * PROPOSALS_AT_ONCE
    rows = core.load(source, field_layout(count, source.dtype.itemsize, position))
    core.store(destination, contiguous(count, source.dtype.itemsize), rows[:, position])


def field_layout(count: int, itemsize: int, position: int) -> Layout:
    """Element `position` of `count` proposals, shape (count, 8) with the other elements masked off."""
    flags = bytes(element == position for element in range(PROPOSAL_ELEMENTS))
    return result_layout(count, PROPOSAL_ELEMENTS * itemsize, PROPOSAL_ELEMENTS, itemsize, flags)


# -- merging -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merge:
    """What vmrgsort4 does: queue lengths in records, which queues are valid, whether it stops when one is used up."""

    lengths: tuple[int, ...]
    valid: int
    suspend: bool
    repeat: int


def merged_order(scores: Sequence[Array], suspend: bool) -> tuple[Array, tuple[int, ...]]:
    """How a merge takes records: positions in the queues laid end to end, and how many it took of each queue.

    The head with the largest score goes next, of equal ones that of the earlier queue. A record behind a smaller one of
    its queue follows it at once, so a queue counts with its running minimum, and the merge is one stable sort. With
    `suspend` it ends with the last record of the first queue to run out.
    """
    lengths = [len(queue) for queue in scores]
    keys = np.concatenate([np.minimum.accumulate(queue) if len(queue) else queue for queue in scores])
    order = descending(keys)
    if suspend:
        ends = np.cumsum(lengths) - 1
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        taken = min(int(place[end]) + 1 if length else 0 for end, length in zip(ends, lengths, strict=True))
        order = order[:taken]
    owners = np.repeat(np.arange(len(lengths)), lengths)[order]
    return order, tuple(np.bincount(owners, minlength=len(lengths)).tolist())


def merge(
    core: Core, site: int, destination: Tensor, queues: Sequence[Tensor | None], plan: Merge, proposals: bool
) -> tuple[int, ...]:
    """Merge up to four sorted queues of records, or of region `proposals`, into one (vendor's MrgSort, MrgSort4 pages).

    Returns how many records of each of the four queues it took in the last repeat. Repeats count only where all four
    queues are valid, equally long and lie end to end, and nothing suspends the instruction; the next repeat begins
    behind the four queues.
    """
    core.begin(site, V, VMRGSORT4, plan.repeat, plan.valid, work=sum(plan.lengths) * plan.repeat)
    used = [queue for queue in queues[: _valid_queues(core, plan)] if queue is not None]
    if not used:
        return (0,) * QUEUES
    kind = used[0].dtype if proposals else record(used[0].dtype)
    width = PROPOSAL_ELEMENTS if proposals else 1
    lengths = [min(max(length, 0), MAX_LENGTH) for length in plan.lengths[: len(used)]]
    repeat = _effective_repeat(core, plan, used, lengths, width * kind.itemsize)
    total = sum(lengths)
    rows = [
        _rows(core, queue.cast(kind), length, width, repeat, total) for queue, length in zip(used, lengths, strict=True)
    ]
    merged = [np.empty((0, width), kind)]
    counts: tuple[int, ...] = (0,) * QUEUES
    for turn in range(repeat):
        scores = [queue[turn, :, SCORE] if proposals else queue[turn, :, 0]["score"] for queue in rows]
        order, counts = merged_order(scores, plan.suspend)
        merged.append(np.concatenate([queue[turn] for queue in rows])[order])
    result = np.concatenate(merged).reshape(-1)
    core.store(destination.cast(kind), contiguous(result.size, kind.itemsize), result)
    return (*counts, *(0,) * (QUEUES - len(counts)))


def _rows(core: Core, queue: Tensor, length: int, width: int, repeat: int, total: int) -> Array:
    """A queue's records in every repeat, (repeat, length, width)."""
    itemsize = queue.dtype.itemsize
    layout = strided((repeat, length * width), (total * width * itemsize, itemsize), itemsize)
    return core.load(queue, layout).reshape(repeat, length, width)


def _valid_queues(core: Core, plan: Merge) -> int:
    """How many queues take part; lengths and valid bits that the device does not take are faults."""
    for length in plan.lengths:
        if not 0 <= length <= MAX_LENGTH:
            core.fault("bad_operand", what="the length of a queue", value=length, limit=f"0 to {MAX_LENGTH}")
    if plan.valid not in VALID_BITS:
        core.fault("bad_operand", what="validBit", value=plan.valid, limit="3, 7 or 15")
        return (plan.valid & ALL_VALID).bit_count()
    return VALID_BITS[plan.valid]


def _effective_repeat(core: Core, plan: Merge, queues: list[Tensor], lengths: list[int], nbytes: int) -> int:
    """The repeats that take effect; more than one where the conditions for them do not hold are a fault."""
    repeat = limited_repeat(core, plan.repeat)
    gaps = {second.address - first.address for first, second in zip(queues, queues[1:], strict=False)}
    laid = plan.valid == ALL_VALID and len(set(lengths)) == 1 and gaps == {lengths[0] * nbytes}
    if repeat <= 1 or (laid and not plan.suspend):
        return repeat
    core.fault(
        "bad_operand", what="the repeat count of a merge", value=repeat,
        limit="more than 1 only for four valid queues of one length that lie end to end, without suspension",
    )
    return 1
