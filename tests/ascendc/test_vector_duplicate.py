"""Duplicate and Brcb."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.trace.schema import Role

WORDS = (np.float16, ml_dtypes.bfloat16, np.float32, np.int16, np.uint16, np.int32, np.uint32)


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("count", [1, 99, 128])
def test_count_form(device: Any, dtype: Any, count: int) -> None:
    dst = device.local(np.zeros(128, dtype))
    device.run("duplicate_l2", dst, 3, count)
    assert np.array_equal(device.values(dst), np.where(np.arange(128) < count, 3, 0).astype(dtype))


@pytest.mark.parametrize(("dtype", "scalar"), [(np.float16, 0.1), (ml_dtypes.bfloat16, 0.1), (np.float32, 1e-30)])
def test_the_scalar_is_rounded_to_the_element_type(device: Any, dtype: Any, scalar: float) -> None:
    dst = device.local(np.zeros(16, dtype))
    device.run("duplicate_l2", dst, scalar, 16)
    assert np.array_equal(device.values(dst), np.full(16, scalar).astype(dtype))


@pytest.mark.parametrize("dtype", WORDS)
def test_masked_and_strided_repeats(device: Any, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    per_block = lanes // 8
    dst = device.local(np.zeros(5 * lanes, dtype))
    device.run("duplicate_l0", dst, 2, 3 * per_block + 1, 2, 2, 16, is_set_mask=True)
    whole = np.zeros((5 * 8, per_block))
    for repeat in range(2):
        for block in range(3):
            whole[repeat * 16 + 2 * block] = 2
        whole[repeat * 16 + 6, 0] = 2
    assert np.array_equal(device.values(dst), whole.reshape(-1).astype(dtype))


def test_bit_masks_and_counter_mode(device: Any) -> None:
    dst = device.local(np.zeros(200, np.float32))
    device.run("duplicate_l1", dst, 1.0, [0b1010, 0], 2, 1, 8, is_set_mask=True)
    assert np.flatnonzero(device.values(dst)).tolist() == [1, 3, 65, 67]
    device.run("set_mask_count")
    device.run("duplicate_l0", dst, 4.0, 150, 1, 1, 8, is_set_mask=True)
    assert np.array_equal(device.values(dst), np.where(np.arange(200) < 150, 4, 0))


def test_strides_of_more_than_127_blocks_arrive_as_negative_bytes(device: Any) -> None:
    dst = device.local(np.zeros(8 * 201 + 64, np.float32))
    device.run("duplicate_l0", dst, 1.0, 1, 2, 1, 200 - 256, is_set_mask=True)
    assert np.flatnonzero(device.values(dst)).tolist() == [0, 1600]


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_other_types(device: Any, make_device: Any, dtype: Any) -> None:
    with pytest.raises(UserError, match="ascendc.duplicate does not take"):
        device.run("duplicate_l2", device.local(np.zeros(32, dtype)), 1, 32)
    wide = make_device("Ascend950PR")
    dst = wide.local(np.zeros(40, dtype))
    wide.run("duplicate_l2", dst, -3, 33)
    assert wide.values(dst).tolist() == [-3] * 33 + [0] * 7


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize(("repeat", "block_stride", "repeat_stride"), [(1, 1, 8), (3, 1, 8), (2, 2, 16), (2, 1, 10)])
def test_brcb(device: Any, dtype: Any, repeat: int, block_stride: int, repeat_stride: int) -> None:
    lanes = 32 // np.dtype(dtype).itemsize
    values = np.arange(1, 8 * repeat + 1).astype(dtype)
    src, dst = device.local(values), device.local(np.zeros(40 * lanes, dtype))
    record = construct("brcb_repeat_params", "", block_stride, repeat_stride)
    device.run("brcb_l0", dst, src, repeat, record)
    whole = np.zeros((40, lanes), dtype)
    for index, value in enumerate(values):
        whole[index // 8 * repeat_stride + index % 8 * block_stride] = value
    assert np.array_equal(device.values(dst), whole.reshape(-1))


def test_brcb_with_block_stride_0_counts_as_1(device: Any) -> None:
    src, dst = device.local(np.arange(8, dtype=np.float32)), device.local(np.zeros(64, np.float32))
    device.run("brcb_l0", dst, src, 1, construct("brcb_repeat_params", "", 0, 8))
    assert np.array_equal(device.values(dst), np.repeat(np.arange(8), 8))
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]


def test_brcb_refuses_bytes(device: Any) -> None:
    x = device.local(np.zeros(32, np.int8))
    with pytest.raises(UserError, match="ascendc.brcb does not take int8_t"):
        device.run("brcb_l0", x, x, 1, construct("brcb_repeat_params", ""))


def test_footprints(device: Any) -> None:
    src, dst = device.local(np.zeros(64, np.float16)), device.local(np.zeros(512, np.float16))
    device.run("duplicate_l0", dst, 1.0, 5, 2, 1, 9, is_set_mask=True)
    assert device.touched(dst, Role.WRITE) == {dst.address + r * 288 + byte for r in (0, 1) for byte in range(10)}
    device.run("brcb_l0", dst, src, 2, construct("brcb_repeat_params", "", 1, 8))
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 32))
    device.run("brcb_l0", dst, src, 2, construct("brcb_repeat_params", "", 2, 16))
    blocks = {dst.address + 32 * (r * 16 + 2 * b) for r in (0, 1) for b in range(8)}
    assert device.touched(dst, Role.WRITE) == {start + byte for start in blocks for byte in range(32)}
