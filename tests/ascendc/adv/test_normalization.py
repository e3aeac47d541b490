"""RmsNorm against its definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record, construct
from npuscope.errors import UserError
from npuscope.trace.schema import Role

F16, F32, U8 = np.float16, np.float32, np.uint8


def tiling(batch: int, sequence: int, columns: int, original: int = 0) -> Record:
    record = construct("rmsnorm_tiling", "!ascendc.rmsnorm_tiling")
    record.__dict__.update(bLength=batch, sLength=sequence, hLength=columns, originalHLength=original)
    return record


def rmsnorm(x: np.ndarray, gamma: np.ndarray, epsilon: float, original: int) -> np.ndarray:
    x = x.astype(np.float64)
    mean = (x[:, :original] ** 2).mean(axis=1, keepdims=True)
    return x / np.sqrt(mean + epsilon) * gamma.astype(np.float64)


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize(("batch", "sequence", "columns", "original"), [(1, 1, 16, 16), (2, 3, 48, 0), (2, 2, 32, 27)])
@pytest.mark.parametrize("temporary", [False, True])
def test_rows(
    device: Any, dtype: Any, batch: int, sequence: int, columns: int, original: int, temporary: bool
) -> None:
    rng = np.random.default_rng(8)
    x, gamma = rng.normal(size=(batch * sequence, columns)).astype(dtype), rng.normal(size=columns).astype(dtype)
    src, factor, dst = device.local(x.reshape(-1)), device.local(gamma), device.local(np.zeros(x.size, dtype))
    room = device.local(np.zeros(64, U8)) if temporary else None
    device.run("rmsnorm", dst, src, factor, 0.25, tiling(batch, sequence, columns, original), room)
    expected = rmsnorm(x, gamma, 0.25, original or columns)
    rtol = 2.0**-11 * 1.01 if dtype is F16 else 1e-6
    np.testing.assert_allclose(device.values(dst).reshape(x.shape), expected, rtol=rtol, atol=1e-7)


def test_epsilon_is_of_the_type_of_the_operands(device: Any) -> None:
    src, dst = device.local(np.zeros(16, F16)), device.local(np.zeros(16, F16))
    device.run("rmsnorm", dst, src, device.local(np.ones(16, F16)), 1e-9, tiling(1, 1, 16))
    assert np.isnan(device.values(dst)).all()  # 1e-9 is 0 as half, and 0 / 0 is no number


def test_the_shape_may_come_from_the_source(device: Any) -> None:
    x = np.arange(1, 33, dtype=F32).reshape(2, 16)
    src, dst = device.local(x.reshape(-1)), device.local(np.zeros(32, F32))
    gamma = np.ones(16, F32)
    with pytest.raises(UserError, match="rmsnorm does not know its rows"):
        device.run("rmsnorm", dst, src, device.local(gamma), 0.0, tiling(0, 0, 0))
    device.run("local_tensor.set_shape_info", src, Record("shape_info", (2, [2, 16], 0)))
    device.run("rmsnorm", dst, src, device.local(gamma), 0.0, tiling(0, 0, 0))
    np.testing.assert_allclose(device.values(dst).reshape(2, 16), rmsnorm(x, gamma, 0.0, 16), rtol=1e-6)


def test_a_basic_block_that_is_none_is_a_fault(device: Any) -> None:
    x = device.local(np.ones(8 * 2048, F32))
    for rows, columns in ((8, 64), (4, 64), (8, 48), (8, 2048)):
        device.run("rmsnorm", x, x, x, 0.0, tiling(1, rows, columns), basic_block=True)
    assert [fault.facts["value"] for fault in device.recorder.faults] == [(4, 64), (8, 48), (8, 2048)]


def test_footprint(device: Any) -> None:
    src, dst, gamma = (device.local(np.ones(64, F32)) for _ in range(3))

    def touched(tensor: Any, role: Role) -> set[int]:
        device.trace()
        device.run("rmsnorm", dst, src, gamma, 0.0, tiling(1, 3, 16))
        return {address - tensor.address for address in device.touched(tensor, role)}

    assert touched(src, Role.READ) == touched(dst, Role.WRITE) == set(range(192))
    assert touched(gamma, Role.READ) == set(range(64))
    assert touched(src, Role.WRITE) == set()


def test_types_must_be_one(device: Any) -> None:
    x, y = device.local(np.ones(16, F16)), device.local(np.ones(16, F32))
    with pytest.raises(UserError, match="rmsnorm takes"):
        device.run("rmsnorm", x, x, y, 0.0, tiling(1, 1, 16))
