"""Copy between places in UB."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.trace.schema import Pipe, Role

WORDS = (np.float16, ml_dtypes.bfloat16, np.float32, np.int16, np.uint16, np.int32, np.uint32)


def params(dst: tuple[int, int] = (1, 8), src: tuple[int, int] = (1, 8)) -> Any:
    return construct("copy_repeat_params", "", dst[0], src[0], dst[1], src[1])


@pytest.mark.parametrize("dtype", WORDS)
def test_leading_lanes_with_strides(device: Any, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    per_block = lanes // 8
    values = np.arange(4 * lanes).astype(dtype)
    src, dst = device.local(values), device.local(np.zeros(2 * lanes, dtype))
    active = 2 * per_block + 3
    device.run("copy_l1", dst, src, active, 2, params((1, 8), (2, 16)), 1)
    blocks = values.reshape(2, 8, 2, per_block)[:, :, 0].reshape(2, lanes)
    assert np.array_equal(
        device.values(dst).reshape(2, lanes), np.where(np.arange(lanes) < active, blocks, dtype(0))
    )


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_bit_masks(device: Any, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    values = np.arange(1, 3 * lanes + 1).astype(dtype)
    src, dst = device.local(values), device.local(np.zeros(3 * lanes, dtype))
    device.run("copy_l0", dst, src, [0x8001_0000_0000_0000, 0], 3, params(), 1)
    assert np.array_equal(device.values(dst), np.where(np.isin(np.arange(3 * lanes) % lanes, [48, 63]), values, 0))


def test_without_is_set_mask_the_registers_count(device: Any) -> None:
    src, dst = device.local(np.ones(64, np.float32)), device.local(np.zeros(64, np.float32))
    device.run("set_vector_mask_l0", 6, dtype="f32", mode=0)
    device.run("copy_l1", dst, src, 64, 1, params(), 0)
    assert device.values(dst).sum() == 6


@pytest.mark.parametrize("count", [3, 8, 20, 100])
def test_counter_mode_copies_the_count_in_every_repeat(device: Any, count: int) -> None:
    values = np.arange(256, dtype=np.float32)
    src, dst = device.local(values), device.local(np.full(256, -1, np.float32))
    device.run("set_mask_count")
    device.run("copy_l1", dst, src, count, 2, params((1, 16), (1, 16)), 1)
    assert np.array_equal(device.values(dst), np.where(np.arange(256) % 128 < count, values, -1))


def test_nan_payloads_survive(device: Any) -> None:
    values = np.arange(0x7F800001, 0x7F800041, dtype=np.uint32)
    src, dst = device.local(values.view(np.float32)), device.local(np.zeros(64, np.float32))
    device.run("copy_l1", dst, src, 64, 1, params(), 1)
    assert np.array_equal(device.values(dst).view(np.uint32), values)


def test_bytes_are_refused(device: Any) -> None:
    x = device.local(np.zeros(64, np.int8))
    with pytest.raises(UserError, match="ascendc.copy does not take int8_t"):
        device.run("copy_l1", x, x, 64, 1, params(), 1)


def test_trace(device: Any) -> None:
    src, dst = device.local(np.zeros(256, np.float16)), device.local(np.zeros(256, np.float16))
    device.run("copy_l1", dst, src, 7, 2, params(), 1)
    batch = device.trace()
    assert batch.column("pipe").tolist() == [Pipe.V]
    device.run("copy_l1", dst, src, 7, 2, params(), 1)
    assert device.touched(dst, Role.WRITE) == {dst.address + r * 256 + byte for r in (0, 1) for byte in range(14)}
    device.run("set_mask_count")
    device.run("copy_l1", dst, src, 20, 1, params(), 1)
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 40))
