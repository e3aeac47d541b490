"""SoftMax and SimpleSoftMax against their definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record, construct
from npuscope.errors import UserError
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Role

F16, F32, U8 = np.float16, np.float32, np.uint8
KINDS = [(F16, F16), (F32, F32), (F16, F32)]


def softmax(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Result, sums and maxima of the rows, in float64."""
    x = x.astype(np.float64)
    largest = x.max(axis=1, keepdims=True)
    powers = np.exp(x - largest)
    return powers / powers.sum(axis=1, keepdims=True), powers.sum(axis=1), largest[:, 0]


def shaped(device: Any, tensor: Tensor, *extents: int) -> Tensor:
    device.run("local_tensor.set_shape_info", tensor, Record("shape_info", (len(extents), [*extents], 0)))
    return tensor


def info(rows: int, columns: int, original_rows: int, original: int) -> Record:
    return construct("softmax_shape_info", "!ascendc.softmax_shape_info", rows, columns, original_rows, original)


def no_tiling() -> Record:
    return construct("softmax_tiling", "!ascendc.softmax_tiling")


def outputs(device: Any, count: int, rows: int, kind: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Destination, sums and maxima."""
    dtype, other = kind
    block = 32 // np.dtype(other).itemsize
    return (
        device.local(np.zeros(count, dtype)),
        device.local(np.zeros(rows * block, other)),
        device.local(np.zeros(rows * block, other)),
    )


def close(found: np.ndarray, expected: np.ndarray, kind: Any) -> None:
    half = kind is F16
    np.testing.assert_allclose(found, expected, rtol=2e-3 if half else 2e-6, atol=6e-8 if half else 1e-12)


def nz(matrix: np.ndarray) -> np.ndarray:
    """Blocks of 16 columns one after the other."""
    return matrix.reshape(matrix.shape[0], -1, 16).transpose(1, 0, 2).copy()


def random(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return (np.random.default_rng(6).normal(size=shape) * 4).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("extents", [(8, 64), (5, 48), (1, 16), (2, 3, 32)])
@pytest.mark.parametrize("temporary", [False, True])
def test_rows_of_the_shape_info(device: Any, kind: Any, extents: tuple[int, ...], temporary: bool) -> None:
    x = random(extents, kind[0]).reshape(-1, extents[-1])
    src = shaped(device, device.local(x.reshape(-1)), *extents)
    dst, total, largest = outputs(device, x.size, x.shape[0], kind)
    room = device.local(np.zeros(256, U8)) if temporary else None
    device.run("softmax", dst, total, largest, src, room, no_tiling(), None)
    expected, sums, maxima = softmax(x)
    close(device.values(dst).reshape(x.shape), expected, kind[0])
    close(device.values(total).reshape(x.shape[0], -1), np.repeat(sums[:, None], total.length // len(sums), 1), kind[1])
    np.testing.assert_array_equal(device.values(largest), np.repeat(maxima, largest.length // len(maxima)))
    assert device.recorder.faults == []


def test_extreme_rows(device: Any) -> None:
    x = np.zeros((4, 8), F32)
    x[0] = [-100, -80, -60, -50, -30, -20, -15, -10]
    x[1] = [9, 10, 15, 20, 30, 50, 60, 80]
    x[2, :2] = [3e38, -3e38]
    x[3, 0] = np.nan
    src = shaped(device, device.local(x.reshape(-1)), 4, 8)
    dst, total, largest = outputs(device, 32, 4, (F32, F32))
    device.run("softmax", dst, total, largest, src, None, no_tiling(), None)
    found = device.values(dst).reshape(4, 8)
    np.testing.assert_allclose(found[:2], softmax(x[:2])[0], rtol=1e-5, atol=1e-30)
    np.testing.assert_array_equal(found[2], [1, 0, 0, 0, 0, 0, 0, 0])
    assert np.isnan(found[3]).all()


@pytest.mark.parametrize("by", ["tiling", "call"])
def test_shapes_from_the_tiling_or_the_call(device: Any, by: str) -> None:
    x = random((6, 16), F32)
    src, (dst, total, largest) = device.local(x.reshape(-1)), outputs(device, 96, 6, (F32, F32))
    tiling = no_tiling()
    if by == "tiling":
        tiling.__dict__.update(srcM=6, srcK=16)
    shape = info(6, 16, 6, 16) if by == "call" else None
    device.run("softmax", dst, total, largest, src, None, tiling, shape)
    close(device.values(dst).reshape(6, 16), softmax(x)[0], F32)


def test_a_shape_is_needed(device: Any) -> None:
    src, (dst, total, largest) = device.local(np.zeros(64, F32)), outputs(device, 64, 4, (F32, F32))
    with pytest.raises(UserError, match="set_shape_info"):
        device.run("softmax", dst, total, largest, src, None, no_tiling(), None)


def test_padding_columns_take_no_part_in_maximum_and_sum(device: Any) -> None:
    x = random((4, 32), F32)
    x[:, 27:] = 50
    src, (dst, total, largest) = device.local(x.reshape(-1)), outputs(device, x.size, 4, (F32, F32))
    device.run("softmax", dst, total, largest, src, None, no_tiling(), info(4, 32, 4, 27))
    expected, sums, maxima = softmax(x[:, :27])
    close(device.values(dst).reshape(4, 32)[:, :27], expected, F32)
    close(device.values(total).reshape(4, 8)[:, 0], sums, F32)
    np.testing.assert_array_equal(device.values(largest).reshape(4, 8)[:, 5], maxima)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("original", [48, 37])
def test_nz(device: Any, kind: Any, original: int) -> None:
    x = random((32, 48), kind[0])
    src, (dst, total, largest) = device.local(nz(x).reshape(-1)), outputs(device, x.size, 32, kind)
    device.run(
        "softmax", dst, total, largest, src, None, no_tiling(), info(32, 48, 32, original), data_format_nz=True
    )
    expected, sums, _ = softmax(x[:, :original])
    found = device.values(dst).reshape(3, 32, 16).transpose(1, 0, 2).reshape(32, 48)
    close(found[:, :original], expected, kind[0])
    np.testing.assert_array_equal(found[:, original:], x[:, original:])
    close(device.values(total).reshape(32, -1)[:, 0], sums, kind[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [False, True])
def test_simple_softmax_takes_sums_and_maxima(device: Any, kind: Any, blocks: bool) -> None:
    x = random((16, 32), kind[0])
    expected, sums, maxima = softmax(x)
    stored = nz(x) if blocks else x
    src = shaped(device, device.local(stored.reshape(-1)), 16, 32)
    dst, total, largest = outputs(device, x.size, 16, kind)
    block = 32 // np.dtype(kind[1]).itemsize
    given = [device.local(np.repeat(values, block).astype(kind[1])) for values in (sums, maxima)]
    device.run("simple_softmax", dst, *given, src, None, no_tiling(), None, data_format_nz=blocks)
    wanted = nz(expected) if blocks else expected
    close(device.values(dst).reshape(wanted.shape), wanted, kind[0])


def test_a_basic_block_that_is_none_is_a_fault(device: Any) -> None:
    for name in ("softmax", "simple_softmax"):
        for extents in ((8, 64), (4, 64), (8, 48), (8, 2048)):
            src = shaped(device, device.local(np.zeros(extents, F32).reshape(-1), address=0), *extents)
            dst, total, largest = (device.local(np.zeros(8, F32)) for _ in range(3))
            device.run(name, dst, total, largest, src, None, no_tiling(), None, basic_block=True)
    values = [fault.facts["value"] for fault in device.recorder.faults]
    assert values == [(4, 64), (8, 48), (8, 2048)] * 2


def test_footprint(device: Any) -> None:
    x = np.zeros((4, 16), F32)
    src = shaped(device, device.local(x.reshape(-1), size=1024), 4, 16)
    dst, total, largest = (device.local(np.zeros(256, F32)) for _ in range(3))
    room = device.local(np.zeros(96, U8))

    def touched(tensor: Tensor, role: Role, **flags: bool) -> int:
        device.trace()
        device.run("softmax", dst, total, largest, src, room, no_tiling(), None, **flags)
        found = device.touched(tensor, role)
        assert found == set(range(tensor.address, tensor.address + len(found)))
        return len(found)

    assert touched(src, Role.READ) == 256
    assert touched(src, Role.WRITE) == 0
    assert touched(src, Role.WRITE, reuse_source=True) == 256
    assert touched(dst, Role.WRITE) == 256
    assert touched(total, Role.WRITE) == touched(largest, Role.WRITE) == 128
    assert touched(room, Role.WRITE) == 96


@pytest.mark.parametrize("kinds", [(F32, F16, F16, F32), (F16, F16, F32, F16), (F32, F32, F32, F16)])
def test_types_that_do_not_exist(device: Any, kinds: Any) -> None:
    dst, total, largest, src = (device.local(np.zeros(64, kind)) for kind in kinds)
    with pytest.raises(UserError, match="softmax takes"):
        device.run("softmax", dst, total, largest, src, None, no_tiling(), info(4, 16, 4, 16))
