"""BilinearInterpolation step by step in half, as the vendor's page takes it apart, and that page's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.errors import UserError
from npuscope.npu.registers import COUNTER, NORMAL
from npuscope.trace.schema import Role

HALF, U32, U8 = np.dtype(np.float16), np.dtype(np.uint32), np.dtype(np.uint8)
KEPT = 77


def words(flags: np.ndarray) -> list[int]:
    value = sum(1 << int(lane) for lane in np.flatnonzero(flags))
    return [value & (2**64 - 1), value >> 64]


def reference(
    source: np.ndarray, blocks: np.ndarray, weights: np.ndarray, horizontal: int, vertical: int, per_block: bool
) -> np.ndarray:
    """The sums, (vertical, 128): gather, multiply, add the terms one after the other."""
    sums = np.zeros((vertical, 128), HALF)
    for row in range(vertical):
        for column in range(horizontal):
            term = row * horizontal + column
            gathered = source.reshape(-1, 16)[blocks[8 * term : 8 * term + 8]].reshape(-1)
            factor = np.repeat(weights[8 * term : 8 * term + 8], 16) if per_block else weights[term]
            product = gathered * factor
            sums[row] = product if column == 0 else product + sums[row]
    return sums


def run(device: Any, level: str, mask: Any, *, h: int, v: int, per_block: bool, block: int = 1, step: int = 128) -> Any:
    rng = np.random.default_rng(h * 10 + v)
    source = rng.uniform(-10, 10, 512).astype(HALF)
    blocks = rng.integers(0, 32, 8 * h * v)
    weights = rng.uniform(-10, 10, 8 * h * v + 8).astype(HALF)
    src0, src1 = device.local(source), device.local(weights)
    offset = device.local((blocks * 32).astype(U32))
    dst, work = device.local(np.full(2048, KEPT, HALF)), device.local(np.zeros(20000, U8))
    device.run(f"bilinearInterpolation_{level}", dst, src0, offset, src1, mask, h, int(per_block), block, step, v, work)
    return dst, work, reference(source, blocks, weights, h, v, per_block)


def test_the_vendors_example(device: Any) -> None:
    # dst = [389, 394, 399, 404, ...] from src0 = 1..512, src1 = 2..17, one weight a term.
    src0, src1 = device.local(np.arange(1, 513, dtype=HALF)), device.local(np.arange(2, 18, dtype=HALF))
    offset = device.local((np.arange(32) * 32).astype(U32))
    dst, work = device.local(np.zeros(256, HALF)), device.local(np.zeros(4096, U8))
    device.run("bilinearInterpolation_l0", dst, src0, offset, src1, 128, 2, 0, 1, 128, 2, work)
    result = device.values(dst)
    assert result[:4].tolist() == [389, 394, 399, 404]
    expected = [2 * (k + 1) + 3 * (k + 129) for k in range(128)] + [4 * (k + 257) + 5 * (k + 385) for k in range(128)]
    np.testing.assert_allclose(result.astype(float), expected, rtol=2**-10)
    assert device.opcodes() == ["bilinear_interpolation"]


@pytest.mark.parametrize("per_block", [False, True])
@pytest.mark.parametrize(("h", "v"), [(1, 1), (1, 3), (3, 1), (4, 2)])
def test_all_lanes(device: Any, per_block: bool, h: int, v: int) -> None:
    dst, _, sums = run(device, "l0", 128, h=h, v=v, per_block=per_block)
    expected = np.full(2048, KEPT, HALF)
    expected[: 128 * v] = sums.reshape(-1)
    np.testing.assert_array_equal(device.values(dst), expected)


@pytest.mark.parametrize("mask", [1, 50, 128])
def test_leading_lanes_and_strides(device: Any, mask: int) -> None:
    device.core.registers.mask_mode = COUNTER
    dst, _, sums = run(device, "l0", mask, h=2, v=2, per_block=True, block=2, step=512)
    expected = np.full((4, 32, 16), KEPT, HALF)  # results 32 blocks apart, every second block
    flags = (np.arange(128) < mask).reshape(8, 16)
    for row in range(2):
        expected[row, :16:2][flags] = sums[row].reshape(8, 16)[flags]
    np.testing.assert_array_equal(device.values(dst), expected.reshape(-1))
    assert device.core.registers.mask_mode == NORMAL


def test_bits(device: Any) -> None:
    flags = np.random.default_rng(0).random(128) < 0.5
    dst, _, sums = run(device, "l1", words(flags), h=3, v=2, per_block=False)
    expected = np.full((16, 128), KEPT, HALF)
    expected[:2, flags] = sums[:, flags]
    np.testing.assert_array_equal(device.values(dst), expected.reshape(-1))


def test_footprints(device: Any) -> None:
    dst, work, _ = run(device, "l0", 128, h=2, v=2, per_block=False)
    batch = device.trace()
    assert batch.column("work").tolist() == [512]
    device.batches.clear()
    dst, work, _ = run(device, "l0", 40, h=2, v=2, per_block=False)
    # 4 terms of 128 products, then each of the tensor's 40 weights over a data block, needed or not
    assert device.touched(work, Role.WRITE) == set(range(work.address, work.address + 512 * 2 + 40 * 32))
    dst, work, _ = run(device, "l0", 40, h=2, v=2, per_block=False)
    assert device.touched(dst, Role.WRITE) == {dst.address + 256 * row + byte for row in range(2) for byte in range(80)}


def test_no_work_buffer_on_950(make_device: Any) -> None:
    device = make_device("Ascend950PR")
    _, work, _ = run(device, "l0", 128, h=2, v=1, per_block=False)
    assert not device.touched(work, Role.WRITE)


@pytest.mark.parametrize(("step", "values"), [(64, [64]), (136, ["272 bytes"])])
def test_offsets_between_results_that_the_device_does_not_take(device: Any, step: int, values: list[Any]) -> None:
    run(device, "l0", 128, h=1, v=1, per_block=False, step=step)
    assert [fault.facts["value"] for fault in device.recorder.faults] == values


def test_nothing_to_do(device: Any) -> None:
    dst, _, _ = run(device, "l0", 128, h=0, v=2, per_block=False)
    assert (device.values(dst) == KEPT).all()
    assert device.trace().access.shape[1] == 0


def test_wrong_types_are_named(device: Any) -> None:
    wide, offset = device.local(np.zeros(128, np.float32)), device.local(np.zeros(8, U32))
    with pytest.raises(UserError, match="bilinear_interpolation takes one of half .* not float, float, float"):
        device.run("bilinearInterpolation_l0", wide, wide, offset, wide, 64, 1, 0, 1, 128, 1, offset)


def test_the_cube_core_skips_it(cube: Any) -> None:
    dst, _, _ = run(cube, "l1", [1, 0], h=1, v=1, per_block=False)
    assert (cube.values(dst) == KEPT).all() and cube.opcodes() == []
