"""Sorting against Python's own stable sort and a merge written step by step, and the examples on the vendor's pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record, construct
from npuscope.ascendc.registry import entries
from npuscope.errors import UserError
from npuscope.npu.isa.sort import record, records_of
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Role

HALF, FLOAT, U32 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.uint32)
DTYPES = [HALF, FLOAT]


@pytest.fixture
def inference(make_device: Any) -> Any:
    """One core of a 310P, which sorts region proposals."""
    return make_device("Ascend310P3")


def made(name: str, *values: Any) -> Record:
    """A parameter record; loading the library tells its fields."""
    entries()
    return construct(name, "", *values)


def scores_of(dtype: np.dtype[Any], count: int, seed: int = 0) -> np.ndarray:
    """Few different values, so that many are equal."""
    return np.random.default_rng(seed).integers(-20, 20, count).astype(dtype)


def elements(records: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Records as the elements that a tensor of `dtype` holds."""
    return records.view(np.uint8).view(dtype)


def records_in(device: Any, tensor: Tensor, count: int) -> list[tuple[float, int]]:
    found = device.values(tensor.cast(record(tensor.dtype)), count)
    return [(float(item["score"]), int(item["index"])) for item in found]


def ordered(pairs: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """From large to small; Python's sort is stable."""
    return sorted(pairs, key=lambda pair: -pair[0])


def pairs_of(scores: np.ndarray, indices: np.ndarray) -> list[tuple[float, int]]:
    return [(float(score), int(index)) for score, index in zip(scores, indices, strict=True)]


# -- sort32 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("repeat", [0, 1, 3])
def test_sort32(device: Any, dtype: np.dtype[Any], repeat: int) -> None:
    scores, indices = scores_of(dtype, 96), np.random.default_rng(1).integers(0, 2**32, 96, U32)
    src0, src1, dst = device.local(scores), device.local(indices), device.local(np.full(512, 7, dtype))
    device.run("sort32", dst, src0, src1, repeat)
    expected = []
    for start in range(0, 32 * repeat, 32):
        expected += ordered(pairs_of(scores[start : start + 32], indices[start : start + 32]))
    assert records_in(device, dst, 32 * repeat) == expected
    assert (device.values(dst)[256 * repeat // dtype.itemsize :] == 7).all()
    assert device.opcodes() == ["vbitsort"]


def test_a_half_record_has_its_index_in_the_high_bytes(device: Any) -> None:
    src0, src1 = device.local(np.arange(32, dtype=HALF)), device.local(np.arange(32, dtype=U32) + 0x1_0000)
    dst = device.local(np.full(128, 7, HALF))
    device.run("sort32", dst, src0, src1, 1)
    assert device.values(dst)[0] == 31
    assert device.values(dst.cast(U32))[:4].tolist() == [int(HALF.type(31).view(np.uint16)), 0x1_001F,
                                                         int(HALF.type(30).view(np.uint16)), 0x1_001E]


def test_sort32_footprint(device: Any) -> None:
    src0, src1 = device.local(scores_of(HALF, 64)), device.local(np.zeros(64, U32))
    dst = device.local(np.zeros(256, HALF))
    touched = {}
    for tensor, role in ((src0, Role.READ), (src1, Role.READ), (dst, Role.WRITE)):
        device.run("sort32", dst, src0, src1, 2)
        touched[tensor.address] = device.touched(tensor, role)
    assert touched[src0.address] == set(range(src0.address, src0.address + 128))
    assert touched[src1.address] == set(range(src1.address, src1.address + 256))
    assert touched[dst.address] == set(range(dst.address, dst.address + 512))


# -- merge ---------------------------------------------------------------------------------------------------------


def merged(queues: list[list[Any]], key: Any, suspend: bool) -> tuple[list[Any], list[int]]:
    """Take the largest head, of equal ones that of the earlier queue, one after the other."""
    taken, result = [0] * len(queues), []
    while True:
        heads = [(number, queue[taken[number]]) for number, queue in enumerate(queues) if taken[number] < len(queue)]
        if not heads or (suspend and len(heads) < len(queues)):
            return result, taken
        number, item = max(heads, key=lambda head: (key(head[1]), -head[0]))
        taken[number] += 1
        result.append(item)


def queue_list(device: Any, queues: list[np.ndarray], dtype: np.dtype[Any]) -> Any:
    tensors = [device.local(elements(queue, dtype)) for queue in queues]
    return made("mrg_sort_src_list", *tensors)


def random_queues(dtype: np.dtype[Any], lengths: list[int], sort: bool = True) -> list[np.ndarray]:
    queues = []
    for number, length in enumerate(lengths):
        scores = scores_of(dtype, length, number)
        if sort:
            scores = np.sort(scores)[::-1]
        queues.append(records_of(scores, np.arange(length, dtype=U32) + 1000 * number))
    return queues


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("suspend", [False, True])
@pytest.mark.parametrize(
    ("valid", "lengths"), [(3, [5, 40]), (7, [33, 1, 64]), (15, [32, 32, 32, 32]), (15, [7, 100, 3, 60])]
)
@pytest.mark.parametrize("sort", [True, False])
def test_mrg_sort(
    device: Any, dtype: np.dtype[Any], suspend: bool, valid: int, lengths: list[int], sort: bool
) -> None:
    queues = random_queues(dtype, lengths, sort)
    dst = device.local(np.full(sum(lengths) * 8 // dtype.itemsize, 7, dtype))
    counts = [*lengths, *[9] * (4 - len(lengths))]
    device.run(
        "mrg_sort", dst, queue_list(device, queues, dtype), counts, [0] * 4, valid, 1, is_exhausted_suspension=suspend
    )
    expected, taken = merged(
        [pairs_of(queue["score"], queue["index"]) for queue in queues], lambda pair: pair[0], suspend
    )
    assert records_in(device, dst, len(expected)) == expected
    assert (device.values(dst)[len(expected) * 8 // dtype.itemsize :] == 7).all()
    assert list(device.run("get_mrg_sort_result")) == [*taken, *[0] * (4 - len(taken))]
    assert device.opcodes() == ["vmrgsort4", "get_vms4_sr"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_mrg_sort_repeats(device: Any, dtype: np.dtype[Any]) -> None:
    # The MrgSort page's example: 2 repeats of four queues of 32 records that lie end to end.
    queues = random_queues(dtype, [32] * 8)
    work = device.local(elements(np.concatenate(queues), dtype))
    dst = device.local(np.zeros(2048 // dtype.itemsize, dtype))
    step = 256 // dtype.itemsize
    sources = made("mrg_sort_src_list", *(work.at(number * step) for number in range(4)))
    info = made("mrg_sort4_info", [32, 32, 32, 32], 0, 15, 2)
    device.run("mrg_sort_with_info", dst, sources, info)
    pairs = [pairs_of(queue["score"], queue["index"]) for queue in queues]
    expected = [*merged(pairs[:4], lambda pair: pair[0], False)[0], *merged(pairs[4:], lambda pair: pair[0], False)[0]]
    assert records_in(device, dst, 256) == expected
    assert device.recorder.faults == []


def test_repeats_without_their_conditions_are_a_fault(device: Any) -> None:
    queues = random_queues(FLOAT, [8, 8, 8, 8])
    dst = device.local(np.zeros(128, FLOAT))
    info = made("mrg_sort4_info", [8, 8, 8, 8], 0, 15, 3)  # each queue in a buffer of its own
    device.run("mrg_sort_with_info", dst, queue_list(device, queues, FLOAT), info)
    (fault,) = device.recorder.faults
    assert fault.code == "bad_operand" and fault.facts["value"] == 3
    assert len({index for _, index in records_in(device, dst, 32)}) == 32


@pytest.mark.parametrize(("valid", "lengths", "value"), [(5, [4, 4, 4, 4], 5), (3, [5000, 4, 4, 4], 5000)])
def test_faulty_merge_parameters(device: Any, valid: int, lengths: list[int], value: int) -> None:
    queues = random_queues(FLOAT, [4, 4])
    dst = device.local(np.zeros(16, FLOAT))
    device.run("mrg_sort", dst, queue_list(device, queues, FLOAT), lengths, [0] * 4, valid, 1)
    assert [fault.facts["value"] for fault in device.recorder.faults] == [value]


def test_merge_footprint(device: Any) -> None:
    queues = random_queues(FLOAT, [4, 4])
    sources, dst = queue_list(device, queues, FLOAT), device.local(np.zeros(32, FLOAT))
    device.run("mrg_sort", dst, sources, [3, 4, 4, 4], [0] * 4, 3, 1)
    assert device.touched(sources.src1, Role.READ) == set(range(sources.src1.address, sources.src1.address + 24))
    device.run("mrg_sort", dst, sources, [3, 4, 4, 4], [0] * 4, 3, 1)
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 56))


def test_merge_result_before_the_first_merge(device: Any) -> None:
    assert device.run("get_mrg_sort_result") == (0, 0, 0, 0)
    assert device.run("mrg_sort_src_list", result_type="!ascendc.mrg_sort_src_list<f16>").src1 is None


# -- the library's sort --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("repeat", [1, 4, 9])
def test_concat_sort_extract(device: Any, dtype: np.dtype[Any], full: bool, repeat: int) -> None:
    count = 32 * repeat
    scores, indices = scores_of(dtype, count), np.random.default_rng(2).permutation(count).astype(U32)
    source, index = device.local(scores), device.local(indices)
    prepared, work = device.local(np.zeros(count, dtype)), device.local(np.zeros(8 * count // dtype.itemsize, dtype))
    dst = device.local(np.zeros(8 * count // dtype.itemsize, dtype))
    device.run("concat", prepared, source, work, 2 * repeat)
    assert prepared.address == source.address  # the handle, not the data
    device.run("sort", dst, prepared, index, work, repeat, is_full_sort=full)
    width = count if full else 32
    expected = []
    for start in range(0, count, width):
        expected += ordered(pairs_of(scores[start : start + width], indices[start : start + width]))
    assert records_in(device, dst, count) == expected
    values, places = device.local(np.zeros(count + 1, dtype)), device.local(np.full(count + 1, 9, U32))
    device.run("extract", values, places, dst, repeat)
    assert device.values(values)[:count].tolist() == [score for score, _ in expected]
    assert device.values(places).tolist() == [*(place for _, place in expected), 9]
    assert device.opcodes() == ["sort" if full else "vbitsort", "extract"]


def test_full_sort_footprint(device: Any) -> None:
    source, index = device.local(scores_of(FLOAT, 64)), device.local(np.zeros(64, U32))
    dst, work = device.local(np.zeros(128, FLOAT)), device.local(np.zeros(128, FLOAT))
    device.run("sort", dst, source, index, work, 2, is_full_sort=True)
    assert device.touched(work, Role.WRITE) == set(range(work.address, work.address + 512))
    device.run("sort", dst, source, index, work, 2)
    assert device.touched(work, Role.WRITE) == set()


def test_sort_lengths(device: Any, inference: Any) -> None:
    # pyasc calls GetSortLen<float> and GetSortOffset<float>: 8 bytes a record, on 310P a proposal of 8 floats.
    assert (device.run("get_sort_len", 100), device.run("get_sort_offset", 10)) == (200, 20)
    assert (inference.run("get_sort_len", 100), inference.run("get_sort_offset", 10)) == (800, 80)


# -- region proposals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("field", range(6))
def test_proposal_fields(inference: Any, dtype: np.dtype[Any], field: int) -> None:
    values = np.random.default_rng(field).uniform(-90, 90, 32).astype(dtype)
    src, dst = inference.local(values), inference.local(np.zeros(33 * 8, dtype))
    inference.run("proposal_concat", dst, src, 2, field)
    rows = inference.values(dst).reshape(33, 8)
    assert rows[:32, field].tolist() == values.tolist()
    assert not np.delete(rows, field, 1).any() and not rows[32].any()
    size = dtype.itemsize
    fields = {8 * size * row + size * field + byte for row in range(32) for byte in range(size)}
    assert {place - dst.address for place in inference.touched(dst, Role.WRITE)} == fields
    inference.run("proposal_concat", dst, src, 2, field)
    back = inference.local(np.zeros(40, dtype))
    inference.run("proposal_extract", back, dst, 2, field)
    assert inference.values(back).tolist() == [*values.tolist(), *[0] * 8]
    assert inference.opcodes() == ["vconcat", "vextract"] and inference.recorder.faults == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_rp_sort16_in_place_and_merge(inference: Any, dtype: np.dtype[Any]) -> None:
    rows = np.random.default_rng(3).uniform(-9, 9, (64, 8)).astype(dtype)
    rows[:, 4] = scores_of(dtype, 64)
    src = inference.local(rows)
    inference.run("rp_sort16", src, src, 4)
    groups = [sorted(rows[start : start + 16].tolist(), key=lambda row: -row[4]) for start in range(0, 64, 16)]
    assert inference.values(src).reshape(64, 8).tolist() == sum(groups, [])
    sources = made("mrg_sort_src_list", *(src.at(128 * number) for number in range(4)))
    dst = inference.local(np.zeros(512, dtype))
    info = made("mrg_sort4_info", [16, 16, 16, 16], 0, 15, 1)
    inference.run("mrg_sort4", dst, sources, info)
    expected, _ = merged(groups, lambda row: row[4], False)
    assert inference.values(dst).reshape(64, 8).tolist() == expected
    assert inference.recorder.faults == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
def test_sort_of_proposals(inference: Any, dtype: np.dtype[Any], full: bool) -> None:
    scores, indices = scores_of(dtype, 48), np.random.default_rng(5).integers(0, 2**32, 48, U32)
    source, index = inference.local(scores), inference.local(indices)
    work, more, dst = (inference.local(np.zeros(48 * 8, dtype)) for _ in range(3))
    prepared = inference.local(np.zeros(48, dtype))
    inference.run("concat", prepared, source, work, 3)
    assert prepared.address == work.address
    inference.run("sort", dst, prepared, index, more, 3, is_full_sort=full)
    values, places = inference.local(np.zeros(48, dtype)), inference.local(np.zeros(48, U32))
    inference.run("extract", values, places, dst, 3)
    width = 48 if full else 16
    expected = []
    for start in range(0, 48, width):
        expected += ordered(pairs_of(scores[start : start + width], indices[start : start + width]))
    assert pairs_of(inference.values(values), inference.values(places)) == expected


def test_proposals_on_other_chips_are_a_fault(device: Any) -> None:
    src, dst = device.local(scores_of(HALF, 128)), device.local(np.zeros(128, HALF))
    sources = made("mrg_sort_src_list", src, src, src, src)
    device.run("proposal_concat", dst, src, 1, 4)
    device.run("proposal_extract", src, dst, 1, 4)
    device.run("rp_sort16", dst, src, 1)
    device.run("mrg_sort4", dst, sources, made("mrg_sort4_info", [4, 4, 4, 4], 0, 15, 1))
    names = [str(fault.facts["what"]).split()[-1] for fault in device.recorder.faults]
    assert names == ["ProposalConcat", "ProposalExtract", "RpSort16", "MrgSort4"]


def test_an_unknown_field_is_a_fault(inference: Any) -> None:
    src, dst = inference.local(scores_of(HALF, 16)), inference.local(np.zeros(128, HALF))
    inference.run("proposal_concat", dst, src, 1, 6)
    assert inference.recorder.faults[0].facts["value"] == 6


# -- errors --------------------------------------------------------------------------------------------------------


def test_wrong_types_are_named(device: Any) -> None:
    whole, half, number = (device.local(np.zeros(64, kind)) for kind in (np.int32, HALF, U32))
    with pytest.raises(UserError, match="sort32 takes one of float, half .* not int32_t, int32_t"):
        device.run("sort32", whole, whole, number, 1)
    with pytest.raises(UserError, match="sort takes one of uint32_t"):
        device.run("sort", half, half, whole, half, 1)
    with pytest.raises(UserError, match="extract takes an index tensor"):
        device.run("extract", half, half, half, 1)


def test_the_cube_core_skips_them(cube: Any) -> None:
    half, number = cube.local(np.ones(128, HALF)), cube.local(np.zeros(64, U32))
    sources = made("mrg_sort_src_list", half, half)
    cube.run("sort32", half, half, number, 1)
    cube.run("sort", half, half, number, half, 1)
    cube.run("extract", half, number, half, 1)
    cube.run("mrg_sort", half, sources, [1, 1, 0, 0], [0] * 4, 3, 1)
    assert cube.run("get_mrg_sort_result") == (0, 0, 0, 0)
    assert cube.opcodes() == [] and (cube.values(half) == 1).all()
