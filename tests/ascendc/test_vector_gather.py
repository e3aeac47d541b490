"""Gather, Gatherb, Scatter and GatherMask against numpy and the examples on the vendor's pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.trace.schema import Role

U16, U32, HALF, FLOAT = np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.float16), np.dtype(np.float32)
TYPES = [HALF, FLOAT, U16, U32, np.dtype(np.int16), np.dtype(np.int32), np.dtype(ml_dtypes.bfloat16)]


def numbers(dtype: np.dtype[Any], count: int) -> np.ndarray:
    return np.arange(count).astype(dtype)


def words(flags: np.ndarray) -> list[int]:
    value = sum(1 << int(lane) for lane in np.flatnonzero(flags))
    return [value & (2**64 - 1), value >> 64]


# -- gather --------------------------------------------------------------------------------------------------------


def test_the_vendors_gather_example(device: Any) -> None:
    src, dst = device.local(numbers(HALF, 128)), device.local(np.zeros(128, HALF))
    offset = device.local(np.arange(254, -1, -2, dtype=U32))
    device.run("gather_l2", dst, src, offset, 0, 128)
    assert device.values(dst).tolist() == list(range(127, -1, -1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 64, 150, 300])
def test_gather_count(device: Any, dtype: np.dtype[Any], count: int) -> None:
    places = np.random.default_rng(count).integers(0, 200, count)
    src, dst = device.local(numbers(dtype, 256)), device.local(np.full(count + 3, 99).astype(dtype))
    offset = device.local((places * dtype.itemsize).astype(U32))
    device.core.registers.mask_mode = COUNTER
    device.run("gather_l2", dst, src, offset, 3 * dtype.itemsize, count)
    expected = np.full(count + 3, 99).astype(dtype)
    expected[:count] = numbers(dtype, 256)[places + 3]
    assert (device.values(dst) == expected).all()
    assert (device.core.registers.mask_mode, device.core.registers.mask) == (NORMAL, FULL_MASK)


@pytest.mark.parametrize("dtype", [HALF, FLOAT])
def test_gather_bits_and_stride(device: Any, dtype: np.dtype[Any]) -> None:
    lanes = 256 // dtype.itemsize
    rng = np.random.default_rng(4)
    flags = rng.random(lanes) < 0.5
    places = rng.integers(0, 500, 2 * lanes)
    src, dst = device.local(numbers(dtype, 512)), device.local(np.full(3 * lanes, 7, dtype))
    offset = device.local((places * dtype.itemsize).astype(U32))
    device.run("gather_l1", dst, src, offset, 0, words(flags), 2, 12)
    expected = np.full(3 * lanes, 7, dtype)
    for repeat, start in enumerate((0, 12 * 32 // dtype.itemsize)):
        row = places[repeat * lanes : (repeat + 1) * lanes]
        expected[start : start + lanes][flags] = row[flags]
    np.testing.assert_array_equal(device.values(dst), expected)


def test_gather_lane_count_and_footprint(device: Any) -> None:
    src, dst = device.local(numbers(FLOAT, 64)), device.local(np.zeros(64, FLOAT))
    offset = device.local((np.arange(64)[::-1] * 4).astype(U32))

    def run() -> None:
        device.run("gather_l0", dst, src, offset, 0, 3, 1, 8)

    run()
    assert device.values(dst)[:4].tolist() == [63, 62, 61, 0]
    assert device.opcodes() == ["vgather"]
    run()
    assert device.touched(src, Role.READ) == set(range(src.address + 244, src.address + 256))
    run()
    assert device.touched(offset, Role.READ) == set(range(offset.address, offset.address + 12))
    run()
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 12))


def test_gather_adds_addresses_in_32_bits(device: Any) -> None:
    src, dst = device.local(numbers(FLOAT, 64)), device.local(np.zeros(8, FLOAT))
    offset = device.local(np.array([2**32 - 4, 0], U32))
    device.run("gather_l2", dst, src.at(10), offset, 0, 2)
    assert device.values(dst)[:2].tolist() == [9, 10]


def test_gather_outside_the_memory_reads_zero(device: Any) -> None:
    src, dst = device.local(numbers(FLOAT, 8)), device.local(np.ones(8, FLOAT))
    offset = device.local(np.array([2**20, 4], U32))
    device.run("gather_l2", dst, src, offset, 0, 2)
    assert device.values(dst)[:3].tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_gather_count_of_more_types_on_950(make_device: Any, dtype: str) -> None:
    device = make_device("Ascend950PR")
    kind = np.dtype(dtype)
    places = np.random.default_rng(1).integers(0, 100, 140)
    src, dst = device.local(numbers(kind, 100)), device.local(np.zeros(160, kind))
    device.run("gather_l2", dst, src, device.local((places * kind.itemsize).astype(U32)), 0, 140)
    assert device.values(dst)[:141].tolist() == [*places.tolist(), 0]


# -- scatter -------------------------------------------------------------------------------------------------------


@pytest.fixture
def inference(make_device: Any) -> Any:
    """One core of a 310P, which has Scatter."""
    return make_device("Ascend310P3")


def test_the_vendors_scatter_example(inference: Any) -> None:
    src, dst = inference.local(numbers(HALF, 128)), inference.local(np.zeros(128, HALF))
    offset = inference.local(np.arange(254, -1, -2, dtype=U32))
    inference.run("scatter_l2", dst, src, offset, 0, 128)
    assert inference.values(dst).tolist() == list(range(127, -1, -1))
    assert inference.recorder.faults == []


@pytest.mark.parametrize("dtype", [HALF, FLOAT])
def test_scatter_bits_stride_and_base(inference: Any, dtype: np.dtype[Any]) -> None:
    lanes = 256 // dtype.itemsize
    rng = np.random.default_rng(8)
    flags = rng.random(lanes) < 0.5
    places = rng.permutation(2 * lanes)
    data = rng.integers(0, 999, 3 * lanes).astype(dtype)
    src, dst = inference.local(data), inference.local(np.full(2 * lanes + 5, 7, dtype))
    offset = inference.local((places * dtype.itemsize).astype(U32))
    inference.run("scatter_l1", dst, src, offset, 5 * dtype.itemsize, words(flags), 2, 12)
    expected = np.full(2 * lanes + 5, 7, dtype)
    for repeat, start in enumerate((0, 12 * 32 // dtype.itemsize)):
        expected[places[repeat * lanes : (repeat + 1) * lanes][flags] + 5] = data[start : start + lanes][flags]
    np.testing.assert_array_equal(inference.values(dst), expected)


def test_scatter_lane_count_footprint_and_order(inference: Any) -> None:
    src, dst = inference.local(numbers(FLOAT, 64)), inference.local(np.full(64, -1, FLOAT))
    offset = inference.local(np.array([8, 40, 8] + [0] * 61, U32))
    inference.run("scatter_l0", dst, src, offset, 0, 3, 1, 8)
    assert inference.values(dst)[[0, 2, 10]].tolist() == [-1, 2, 1]  # the later of two lanes stays
    places = [*range(8, 12), *range(40, 44)]
    assert inference.touched(dst, Role.WRITE) == {dst.address + byte for byte in places}


def test_scatter_on_a_chip_without_it_is_a_fault(device: Any) -> None:
    src, dst = device.local(numbers(FLOAT, 8)), device.local(np.zeros(8, FLOAT))
    device.run("scatter_l2", dst, src, device.local(numbers(U32, 8) * 4), 0, 8)
    (fault,) = device.recorder.faults
    assert fault.code == "bad_operand" and "Scatter" in str(fault.facts["what"])
    assert device.values(dst).tolist() == list(range(8))


# -- gatherb -------------------------------------------------------------------------------------------------------


def strides(block: int, repeat: int) -> Any:
    return construct("gather_repeat_params", "", block, repeat)


def test_the_vendors_gatherb_example(device: Any) -> None:
    src, dst = device.local(numbers(U16, 128)), device.local(np.zeros(128, U16))
    offset = device.local(np.arange(224, -1, -32, dtype=U32))
    device.core.registers.mask = (1, 0)
    device.run("gatherb_l0", dst, src, offset, 1, strides(1, 8))
    expected = np.arange(128).reshape(8, 16)[::-1].reshape(-1)
    assert device.values(dst).tolist() == expected.tolist()
    assert device.core.registers.mask == FULL_MASK


@pytest.mark.parametrize("block", [0, 1, 2])
def test_gatherb_strides(device: Any, block: int) -> None:
    blocks = np.random.default_rng(block).integers(0, 40, 16)
    src, dst = device.local(numbers(U32, 320)), device.local(np.full(400, 7, U32))
    device.run("gatherb_l0", dst, src, device.local((blocks * 32).astype(U32)), 2, strides(block, 20))
    expected = np.full((50, 8), 7, U32)
    for index, place in enumerate(blocks):
        expected[index // 8 * 20 + index % 8 * (block or 1)] = np.arange(8) + 8 * place
    assert device.values(dst).tolist() == expected.reshape(-1).tolist()


def test_gatherb_footprint(device: Any) -> None:
    src, dst = device.local(numbers(U16, 256)), device.local(np.zeros(128, U16))
    offset = device.local(np.array([64] * 8, U32))
    device.run("gatherb_l0", dst, src, offset, 1, strides(1, 8))
    assert device.touched(src, Role.READ) == set(range(src.address + 64, src.address + 96))


# -- gather_mask ---------------------------------------------------------------------------------------------------


def mask_params(repeat: int, block: int = 1, source: int = 8, pattern: int = 0) -> Any:
    return construct("gather_mask_params", "", block, repeat, source, pattern)


PATTERNS = {
    1: "10" * 64, 2: "01" * 64, 3: "1000" * 32, 4: "0100" * 32, 5: "0010" * 32, 6: "0001" * 32, 7: "1" * 128,
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", [HALF, FLOAT])
def test_built_in_patterns(device: Any, pattern: int, dtype: np.dtype[Any]) -> None:
    lanes = 256 // dtype.itemsize
    flags = np.array([mark == "1" for mark in PATTERNS[pattern][:lanes]])
    src, dst = device.local(numbers(dtype, 3 * lanes)), device.local(np.full(3 * lanes, 7, dtype))
    kept = device.run("gather_mask", dst, src, pattern, 0, 0, mask_params(3))
    expected = numbers(dtype, 3 * lanes)[np.tile(flags, 3)]
    assert kept == expected.size == device.run("get_gather_mask_remain_count")
    assert device.values(dst)[: kept + 1].tolist() == ([*expected.tolist(), 7] if pattern != 7 else expected.tolist())


def test_the_vendors_example_in_place(device: Any) -> None:
    src = device.local(np.arange(1, 257, dtype=U32))
    assert device.run("gather_mask", src, src, 2, 0, 0, mask_params(4)) == 128
    assert device.values(src)[:128].tolist() == list(range(2, 257, 2))


@pytest.mark.parametrize(("dtype", "bits"), [(HALF, U16), (FLOAT, U32)])
@pytest.mark.parametrize("stride", [0, 1])
def test_tensor_patterns(device: Any, dtype: np.dtype[Any], bits: np.dtype[Any], stride: int) -> None:
    lanes = 256 // dtype.itemsize
    flags = np.random.default_rng(stride).random((2, 256)) < 0.3
    packed = np.packbits(flags, bitorder="little").view(bits)  # 32 bytes a row: what a stride of 1 walks
    data = np.random.default_rng(3).integers(0, 999, 2 * lanes).astype(dtype)
    src, dst = device.local(data), device.local(np.zeros(2 * lanes, dtype))
    kept = device.run("gather_mask", dst, src, device.local(packed), 0, 0, mask_params(2, pattern=stride))
    expected = np.concatenate([data[:lanes][flags[0, :lanes]], data[lanes:][flags[stride, :lanes]]])
    assert kept == expected.size
    assert device.values(dst)[:kept].tolist() == expected.tolist()


def test_counter_mode_counts_in_each_repeat(device: Any) -> None:
    # GatherMask page, figure 1 and 2: mask 70, 2 repeats, source stride 8 blocks; 0x99999999 keeps lanes 0 and 3 of 4.
    src, dst = device.local(numbers(FLOAT, 256)), device.local(np.zeros(128, FLOAT))
    row = np.arange(70)
    assert device.run("gather_mask", dst, src, 2, 1, 70, mask_params(2)) == 70
    expected = np.concatenate([row[1::2], 64 + row[1::2]])
    assert device.values(dst)[:70].tolist() == expected.tolist()
    pattern = device.local(np.full(8, 0x99999999, U32))
    kept = device.run("gather_mask", dst, src, pattern, 1, 70, mask_params(2))
    chosen = row[np.isin(row % 4, (0, 3))]
    assert device.values(dst)[:kept].tolist() == [*chosen.tolist(), *(64 + chosen).tolist()]


def test_counter_mode_counts_in_all_on_310p(inference: Any) -> None:
    src, dst = inference.local(numbers(FLOAT, 256)), inference.local(np.zeros(128, FLOAT))
    kept = inference.run("gather_mask", dst, src, 1, 1, 150, mask_params(0))
    assert kept == 75 and inference.values(dst)[:75].tolist() == list(range(0, 150, 2))


def test_block_stride_and_long_repeats(device: Any) -> None:
    data = np.arange(64 * 8).astype(FLOAT)
    src, dst = device.local(data), device.local(np.zeros(256, FLOAT))
    kept = device.run("gather_mask", dst, src, 7, 1, 100, mask_params(1, block=3))
    expected = data.reshape(64, 8)[::3].reshape(-1)[:100]
    assert kept == 100 and device.values(dst)[:100].tolist() == expected.tolist()


@pytest.mark.parametrize(("mode", "mask"), [(0, 0), (1, 70)])
def test_the_mask_registers_afterwards(device: Any, mode: int, mask: int) -> None:
    src, dst = device.local(numbers(FLOAT, 256)), device.local(np.zeros(128, FLOAT))
    device.core.registers.mask_mode = COUNTER
    device.run("gather_mask", dst, src, 1, mode, mask, mask_params(1))
    assert (device.core.registers.mask_mode, device.core.registers.mask) == (NORMAL, (mask, 0))


def test_gather_mask_footprint(device: Any) -> None:
    src, dst = device.local(numbers(FLOAT, 256)), device.local(np.zeros(128, FLOAT))

    def run() -> None:
        device.run("gather_mask", dst, src, 3, 0, 0, mask_params(2, source=16))

    run()
    assert device.opcodes() == ["vreducev2"]
    run()
    starts = (src.address, src.address + 512)
    assert device.touched(src, Role.READ) == {start + byte for start in starts for byte in range(256)}
    run()
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 32 * 4))


def test_an_unknown_pattern_is_a_fault(device: Any) -> None:
    src, dst = device.local(numbers(FLOAT, 64)), device.local(np.zeros(64, FLOAT))
    assert device.run("gather_mask", dst, src, 8, 0, 0, mask_params(1)) == 0
    assert device.recorder.faults[0].facts["value"] == 8


def test_remain_count_before_the_first(device: Any) -> None:
    assert device.run("get_gather_mask_remain_count") == 0


# -- errors --------------------------------------------------------------------------------------------------------


def test_wrong_types_are_named(device: Any) -> None:
    one, half = device.local(np.zeros(64, np.int8)), device.local(np.zeros(64, HALF))
    offset, wide = device.local(np.zeros(64, U32)), device.local(np.zeros(64, np.int64))
    with pytest.raises(UserError, match="gather takes one of"):
        device.run("gather_l2", one, one, offset, 0, 8)
    with pytest.raises(UserError, match="gather takes one of uint32_t .* not int64_t"):
        device.run("gather_l2", half, half, wide, 0, 8)
    with pytest.raises(UserError, match="gatherb takes one of uint16_t, uint32_t"):
        device.run("gatherb_l0", half, half, offset, 1, strides(1, 8))
    with pytest.raises(UserError, match="an unsigned pattern as wide as the elements"):
        device.run("gather_mask", half, half, offset, 0, 0, mask_params(1))


def test_the_cube_core_skips_them(cube: Any) -> None:
    half, offset = cube.local(np.ones(64, HALF)), cube.local(np.zeros(64, U32))
    cube.run("gather_l2", half, half, offset, 0, 8)
    cube.run("scatter_l2", half, half, offset, 0, 8)
    cube.run("gatherb_l0", half, half, offset, 1, SimpleNamespace(dst_blk_stride=1, dst_rep_stride=8))
    assert cube.run("gather_mask", half, half, 1, 0, 0, mask_params(1)) == 0
    assert cube.run("get_gather_mask_remain_count") == 0
    assert cube.opcodes() == []
