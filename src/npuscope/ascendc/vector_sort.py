"""Sort32, MrgSort and their kin, the region proposals of 310P, and the library's Concat, Sort and Extract."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.operand_types import Types, absent, check_types, types_of, wrong_types
from npuscope.ascendc.params import FIELDS, Record, construct
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa import sort as isa
from npuscope.npu.isa.lanes import has_vector_unit, limited_repeat
from npuscope.npu.isa.vector import V
from npuscope.npu.layout import contiguous
from npuscope.npu.numbers.dtypes import Array
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe

SCORES: Types = {"": types_of("half float")}
INDICES: Types = {"": types_of("uint32_t")}
"""Element types from the vendor's Sort32, MrgSort and ProposalConcat pages."""

FIELDS.update({
    "mrg_sort_src_list": {"src1": None, "src2": None, "src3": None, "src4": None},
    "mrg_sort4_info": {"element_lengths": None, "if_exhausted_suspension": 0, "valid_bit": 15, "repeat_times": 1},
})

SORT, EXTRACT, GET_VMS4 = opcode("sort"), opcode("extract"), opcode("get_vms4_sr")
MERGE_RESULT = "vms4_sr"
"""The register with the records that the last merge took of each queue."""
PROPOSALS = "2002"
"""The architecture that sorts region proposals; the others sort (score, index) records."""
PROPOSAL_CHIPS = "Ascend310P only"
Y1, SCORE, LABEL = 1, isa.SCORE, 5
POSITIONS = range(6)
LOW_HALF, HALF_BITS = 0xFFFF, 16


def _has_proposals(core: Core) -> bool:
    return core.chip.arch == PROPOSALS


# -- sorting instructions ------------------------------------------------------------------------------------------


@operation("ascendc.sort32")
def sort32(core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, repeat: int) -> None:
    """Each 32 scores of `src0` with their indices of `src1` as records of 8 bytes, the largest score first."""
    if not has_vector_unit(core):
        return
    check_types(core, site, "sort32", SCORES, dst, src0)
    check_types(core, site, "sort32", INDICES, src1)
    isa.sort32(core, site, dst, src0, src1, repeat)
    if _has_proposals(core):
        absent(core, "Sort32", "chips other than Ascend310P")


@operation("ascendc.rp_sort16")
def rp_sort16(core: Core, site: int, dst: Tensor, src: Tensor, repeat: int) -> None:
    """Each 16 region proposals by their score, the largest first."""
    if not has_vector_unit(core):
        return
    check_types(core, site, "rp_sort16", SCORES, dst, src)
    isa.sort_proposals(core, site, dst, src, repeat)
    if not _has_proposals(core):
        absent(core, "RpSort16", PROPOSAL_CHIPS)


def _clamped(position: int) -> int:
    return min(max(position, POSITIONS[0]), POSITIONS[-1])


def _check_position(core: Core, operation_name: str, position: int) -> None:
    if position not in POSITIONS:
        core.fault("bad_operand", what=f"modeNumber of {operation_name}", value=position, limit="0 to 5")
    if not _has_proposals(core):
        absent(core, operation_name, PROPOSAL_CHIPS)


@operation("ascendc.proposal_concat")
def proposal_concat(core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mode_number: int) -> None:
    """16 elements a repeat into field `mode_number` (x1, y1, x2, y2, score, label) of as many region proposals."""
    if has_vector_unit(core):
        check_types(core, site, "proposal_concat", SCORES, dst, src)
        isa.place_in_proposals(core, site, dst, src, repeat, _clamped(mode_number))
        _check_position(core, "ProposalConcat", mode_number)


@operation("ascendc.proposal_extract")
def proposal_extract(core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mode_number: int) -> None:
    """Field `mode_number` of 16 region proposals a repeat, one after the other."""
    if has_vector_unit(core):
        check_types(core, site, "proposal_extract", SCORES, dst, src)
        isa.take_from_proposals(core, site, dst, src, repeat, _clamped(mode_number))
        _check_position(core, "ProposalExtract", mode_number)


# -- merging -------------------------------------------------------------------------------------------------------


def _merge(
    core: Core, site: int, name: str, dst: Tensor, queues: Record, plan: isa.Merge, proposals: bool
) -> None:
    sources = [queues.src1, queues.src2, queues.src3, queues.src4]
    check_types(core, site, name, SCORES, dst, *(queue for queue in sources if queue is not None))
    taken = isa.merge(core, site, dst, sources, plan, proposals)
    core.registers.values[MERGE_RESULT] = taken


def _plan(params: Record) -> isa.Merge:
    lengths = tuple(int(length) for length in params.element_lengths)
    return isa.Merge(lengths, params.valid_bit, bool(params.if_exhausted_suspension), params.repeat_times)


@operation("ascendc.mrg_sort_src_list")
def mrg_sort_src_list(core: Core, site: int, *, result_type: str) -> Record:
    """An empty MrgSortSrcList."""
    return construct("mrg_sort_src_list", result_type)


@operation("ascendc.mrg_sort", variadic=("element_count_list", "sorted_num"))
def mrg_sort(
    core: Core, site: int, dst: Tensor, sort_list: Record, element_count_list: list[int], sorted_num: list[int],
    valid_bit: int, repeat: int, *, is_exhausted_suspension: bool = False,
) -> None:
    """Merge up to four sorted queues; get_mrg_sort_result tells how far it came.

    `sorted_num` are the initial values of an output array that the kernel's own program never sees.
    """
    if has_vector_unit(core):
        plan = isa.Merge(tuple(element_count_list), valid_bit, is_exhausted_suspension, repeat)
        _merge(core, site, "mrg_sort", dst, sort_list, plan, _has_proposals(core))


@operation("ascendc.mrg_sort_with_info")
def mrg_sort_with_info(core: Core, site: int, dst: Tensor, src: Record, params: Record) -> None:
    """The same with its parameters in a MrgSort4Info."""
    if has_vector_unit(core):
        _merge(core, site, "mrg_sort", dst, src, _plan(params), _has_proposals(core))


@operation("ascendc.mrg_sort4")
def mrg_sort4(core: Core, site: int, dst: Tensor, src: Record, params: Record) -> None:
    """Merge up to four sorted queues of region proposals."""
    if has_vector_unit(core):
        _merge(core, site, "mrg_sort4", dst, src, _plan(params), proposals=True)
        if not _has_proposals(core):
            absent(core, "MrgSort4", PROPOSAL_CHIPS)


@operation("ascendc.get_mrg_sort_result")
def get_mrg_sort_result(core: Core, site: int) -> tuple[int, ...]:
    """How many records the last merge took of each of its four queues."""
    if not has_vector_unit(core):
        return (0,) * isa.QUEUES
    core.begin(site, int(Pipe.S), GET_VMS4)
    taken = core.registers.values.get(MERGE_RESULT, (0,) * isa.QUEUES)
    assert isinstance(taken, tuple)
    return taken


# -- the library's sort --------------------------------------------------------------------------------------------


def _sorted_elements(core: Core, count: int) -> int:
    """Floats that `count` sorted records take; pyasc asks for float whatever the kernel sorts (its OpProposal.td)."""
    return count * (isa.PROPOSAL_ELEMENTS if _has_proposals(core) else isa.RECORD_BYTES // 4)


@operation("ascendc.get_sort_len")
def get_sort_len(core: Core, site: int, count: int) -> int:
    """GetSortLen<float>: elements that the sort of `count` elements takes."""
    return _sorted_elements(core, count)


@operation("ascendc.get_sort_offset")
def get_sort_offset(core: Core, site: int, offset: int) -> int:
    """GetSortOffset<float>: where element `offset` lies among sorted records, in elements."""
    return _sorted_elements(core, offset)


@operation("ascendc.concat")
def concat(core: Core, site: int, dst: Tensor, src: Tensor, tmp: Tensor, repeat: int) -> None:
    """Prepare scores for Sort: `dst` becomes another name of `src`, on 310P of `tmp` with the scores in proposals.

    The library assigns the handle (vendor's Concat page calls it an output), so that no data moves on chips that sort
    records.
    """
    if not has_vector_unit(core):
        return
    check_types(core, site, "concat", SCORES, dst, src)
    dst.rebind(tmp if _has_proposals(core) else src)  # at once, even if the instruction waits for its pipe
    if _has_proposals(core):
        check_types(core, site, "concat", SCORES, tmp, src)
        isa.place_in_proposals(core, site, tmp, src, repeat, SCORE)


@operation("ascendc.sort")
def sort(
    core: Core, site: int, dst: Tensor, scores: Tensor, index: Tensor, tmp: Tensor, repeat: int,
    *, is_full_sort: bool = False,
) -> None:
    """Sort what Concat prepared: each repeat for itself (32 scores, on 310P 16 proposals), or all with `is_full_sort`.

    The full sort merges the repeats in `tmp`, which afterwards holds what `dst` holds (vendor's Sort page).
    """
    if not has_vector_unit(core):
        return
    check_types(core, site, "sort", SCORES, dst, scores, tmp)
    check_types(core, site, "sort", INDICES, index)
    if _has_proposals(core):
        _sort_proposals(core, site, dst, scores, index, tmp, repeat, is_full_sort)
    elif is_full_sort:
        _sort_all(core, site, dst, scores, index, tmp, repeat)
    else:
        isa.sort32(core, site, dst, scores, index, repeat)


def _sort_all(
    core: Core, site: int, dst: Tensor, scores: Tensor, index: Tensor, tmp: Tensor, repeat: int
) -> None:
    count = repeat * isa.SORTED_AT_ONCE
    core.begin(site, V, SORT, repeat, work=count)
    count = limited_repeat(core, repeat) * isa.SORTED_AT_ONCE
    pairs = isa.read_pairs(core, scores, index, count)
    _store_both(core, dst, tmp, pairs[isa.descending(pairs["score"])])


def _store_both(core: Core, dst: Tensor, tmp: Tensor, values: Array) -> None:
    layout = contiguous(values.size, values.dtype.itemsize)
    core.store(tmp.cast(values.dtype), layout, values)
    core.store(dst.cast(values.dtype), layout, values)


def _sort_proposals(
    core: Core, site: int, dst: Tensor, scores: Tensor, index: Tensor, tmp: Tensor, repeat: int, full: bool
) -> None:
    """On 310P: the index goes into y1 and label of half proposals, into label of float ones, then they are sorted."""
    core.begin(site, V, SORT, repeat, work=repeat * isa.PROPOSALS_AT_ONCE)
    count = limited_repeat(core, repeat) * isa.PROPOSALS_AT_ONCE
    layout = contiguous(count * isa.PROPOSAL_ELEMENTS, scores.dtype.itemsize)
    numbers = core.load(index, contiguous(count, index.dtype.itemsize))
    for position, values in _index_fields(numbers, scores.dtype):
        core.store(scores, isa.field_layout(count, scores.dtype.itemsize, position), values[:, None])
    each = count if full else isa.PROPOSALS_AT_ONCE
    rows = core.load(scores, layout).reshape(count // max(each, 1), each, isa.PROPOSAL_ELEMENTS)
    ordered = np.take_along_axis(rows, isa.descending(rows[..., SCORE])[..., None], 1).reshape(-1)
    if full:
        core.store(tmp, layout, ordered)
    core.store(dst, layout, ordered)


def _index_fields(numbers: Array, dtype: Any) -> list[tuple[int, Array]]:
    """(field of the proposal, its values) that hold a 32-bit index."""
    if dtype.itemsize == 4:
        return [(LABEL, numbers.view(dtype))]
    halves = [(numbers & LOW_HALF).astype(np.uint16), (numbers >> HALF_BITS).astype(np.uint16)]
    return [(Y1, halves[0].view(dtype)), (LABEL, halves[1].view(dtype))]


@operation("ascendc.extract")
def extract(core: Core, site: int, dst_value: Tensor, dst_index: Tensor, src: Tensor, repeat: int) -> None:
    """The scores and the indices of sorted records: 32 a repeat, on 310P 16 proposals (vendor's Extract page)."""
    if not has_vector_unit(core):
        return
    check_types(core, site, "extract", SCORES, dst_value, src)
    if dst_index.dtype.itemsize != 4:
        raise wrong_types(core, site, "extract", "an index tensor of uint32_t", dst_index)
    each = isa.PROPOSALS_AT_ONCE if _has_proposals(core) else isa.SORTED_AT_ONCE
    core.begin(site, V, EXTRACT, repeat, work=repeat * each)
    count = limited_repeat(core, repeat) * each
    scores, indices = _proposal_parts(core, src, count) if _has_proposals(core) else _record_parts(core, src, count)
    core.store(dst_value, contiguous(count, scores.dtype.itemsize), scores)
    core.store(dst_index, contiguous(count, 4), indices)


def _record_parts(core: Core, src: Tensor, count: int) -> tuple[Array, Array]:
    records = core.load(src.cast(isa.record(src.dtype)), contiguous(count, isa.RECORD_BYTES))
    return records["score"].copy(), records["index"].copy()


def _proposal_parts(core: Core, src: Tensor, count: int) -> tuple[Array, Array]:
    rows = core.load(src, contiguous(count * isa.PROPOSAL_ELEMENTS, src.dtype.itemsize))
    rows = rows.reshape(count, isa.PROPOSAL_ELEMENTS).copy()
    bits = rows.view(f"u{rows.dtype.itemsize}").astype(np.uint32)
    low = bits[:, LABEL] if src.dtype.itemsize == 4 else bits[:, Y1] | bits[:, LABEL] << HALF_BITS
    return rows[:, SCORE], low
