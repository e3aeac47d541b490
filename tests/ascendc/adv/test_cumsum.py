"""CumSum against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record
from npuscope.errors import UserError
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Role

F16, F32, U8 = np.float16, np.float32, np.uint8


def shaped(device: Any, values: np.ndarray) -> Tensor:
    """A local tensor with its shape info set."""
    tensor = device.local(values.reshape(-1))
    device.run(
        "local_tensor.set_shape_info", tensor, Record("shape_info", (values.ndim, [*values.shape], 0))
    )
    return tensor


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("last_axis", [0, 1])
@pytest.mark.parametrize("shape", [(4, 8), (3, 16), (1, 40), (2, 3, 16)])
@pytest.mark.parametrize("temporary", [False, True])
def test_sums(device: Any, dtype: Any, last_axis: int, shape: tuple[int, ...], temporary: bool) -> None:
    values = np.random.default_rng(5).integers(-9, 10, shape).astype(dtype)
    matrix = values.reshape(-1, shape[-1]).astype(np.int64)
    src, dst, last = shaped(device, values), device.local(np.zeros(values.size, dtype)), device.local(np.zeros(64, dtype))
    room = [device.local(np.zeros(64, U8))] if temporary else []
    device.run("cumsum", dst, last, src, [*room, last_axis, 0, 1])
    expected = np.cumsum(matrix, axis=last_axis)
    np.testing.assert_array_equal(device.values(dst).reshape(expected.shape), expected)
    final = expected[:, -1] if last_axis else expected[-1]
    found = device.values(last)
    np.testing.assert_array_equal(found[: final.size], final)
    assert (found[final.size :] == 0).all()


def test_half_is_summed_in_float32_and_rounded_at_the_end(device: Any) -> None:
    values = np.full((1, 64), 0.1, F16)
    src, dst = shaped(device, values), device.local(np.zeros(64, F16))
    device.run("cumsum", dst, dst, src, [1, 0, 0])
    expected = np.cumsum(values.astype(np.float64), axis=1).astype(F16)
    np.testing.assert_array_max_ulp(device.values(dst), expected[0], maxulp=1)
    assert np.mean(device.values(dst) == expected[0]) > 0.95


def test_without_a_shape_the_source_is_one_row(device: Any) -> None:
    src, dst = device.local(np.ones(24, F32)), device.local(np.zeros(24, F32))
    device.run("cumsum", dst, dst, src, [1, 0, 0])
    np.testing.assert_array_equal(device.values(dst), np.arange(1, 25))


def test_footprint(device: Any) -> None:
    src, dst = shaped(device, np.ones((4, 8), F32)), device.local(np.zeros(64, F32))
    last = device.local(np.zeros(64, F32))
    operands = (dst, last, src, [0, 0, 1])
    device.run("cumsum", *operands)
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 128))
    device.run("cumsum", *operands)
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 128))
    device.run("cumsum", *operands)
    assert device.touched(last, Role.WRITE) == set(range(last.address, last.address + 32))
    device.run("cumsum", dst, last, src, [0, 1, 0])
    assert device.touched(last, Role.WRITE) == set()
    device.run("cumsum", dst, last, src, [0, 1, 0])
    assert len(device.touched(src, Role.WRITE)) == 128


def test_whole_numbers_do_not_exist(device: Any) -> None:
    x = device.local(np.ones(8, np.int32))
    with pytest.raises(UserError, match="cumsum takes"):
        device.run("cumsum", x, x, x, [1, 0, 1])
