"""Compare, Compares, Select and CMPMASK, against numpy and the vendor's boundary values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.npu.registers import FULL_MASK
from npuscope.trace.schema import Role

F16, F32, I32, U8, U32 = np.float16, np.float32, np.int32, np.uint8, np.uint32
LT, GT, EQ, LE, GE, NE = range(6)
COMPARISONS = {LT: np.less, GT: np.greater, EQ: np.equal, LE: np.less_equal, GE: np.greater_equal, NE: np.not_equal}
ALL = (1 << 64) - 1


def numbers(dtype: Any, size: int, seed: int) -> np.ndarray:
    """Few different values, so that many are equal."""
    return np.random.default_rng(seed).integers(-3, 4, size).astype(dtype)


def bits(flags: np.ndarray) -> np.ndarray:
    return np.packbits(flags, bitorder="little")


def binary(dst: tuple[int, int] = (1, 8), src0: tuple[int, int] = (1, 8), src1: tuple[int, int] = (1, 8)) -> Any:
    return construct("binary_repeat_params", "", dst[0], src0[0], src1[0], dst[1], src0[1], src1[1])


def unary(src: tuple[int, int] = (1, 8)) -> Any:
    return construct("unary_repeat_params", "", 1, src[0], 8, src[1])


@pytest.mark.parametrize("mode", COMPARISONS)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_compare_count_form(device: Any, dtype: Any, mode: int) -> None:
    a, b = numbers(dtype, 256, 1), numbers(dtype, 256, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.full(64, 0xAA, U8))
    device.run("compare_l2", z, x, y, 256, cmp_mode=mode)
    got = device.values(z)
    assert np.array_equal(got[:32], bits(COMPARISONS[mode](a, b)))
    assert (got[32:] == 0xAA).all()


@pytest.mark.parametrize("mode", COMPARISONS)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_compare_scalar_count_form(device: Any, dtype: Any, mode: int) -> None:
    a = np.concatenate([numbers(dtype, 127, 1), np.array([0.1], dtype)])
    x, z = device.local(a), device.local(np.zeros(16, U8))
    device.run("compare_scalar_l2", z, x, 0.1, 128, cmp_mode=mode)
    assert np.array_equal(device.values(z), bits(COMPARISONS[mode](a, dtype(0.1))))


def test_int32_is_compared_for_equality_alone(device: Any) -> None:
    a, b = numbers(I32, 64, 1), numbers(I32, 64, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(8, U8))
    device.run("compare_l2", z, x, y, 64, cmp_mode=EQ)
    assert np.array_equal(device.values(z), bits(a == b))
    with pytest.raises(UserError, match="ascendc.compare does not take"):
        device.run("compare_l2", z, x, y, 64, cmp_mode=LT)


@pytest.mark.parametrize(("form", "mask"), [("compare_l0", 17), ("compare_l1", [0x33333333, 0])])
def test_compare_of_strided_repeats_ignores_masks(device: Any, form: str, mask: Any) -> None:
    a, b = numbers(F32, 64 * 4, 1), numbers(F32, 64, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(16, U8))
    device.run(form, z, x, y, mask, 2, binary((1, 8), (1, 24), (1, 0)), cmp_mode=LE, is_set_mask=True)
    assert np.array_equal(device.values(z), bits(a.reshape(4, 64)[[0, 3]] <= b))
    assert device.core.registers.mask == FULL_MASK


@pytest.mark.parametrize(("form", "mask"), [("compare_scalar_l0", 64), ("compare_scalar_l1", [ALL, 0])])
def test_compare_scalar_of_repeats(device: Any, form: str, mask: Any) -> None:
    a = numbers(F32, 64 * 4, 1)
    x, z = device.local(a), device.local(np.zeros(16, U8))
    device.run(form, z, x, 1, mask, 2, unary((2, 16)), cmp_mode=GE, is_set_mask=True)
    taken = a.reshape(2, 8, 2, 8)[:, :, 0].reshape(-1)
    assert np.array_equal(device.values(z), bits(taken >= 1))


def test_counter_mode_compares_whole_repeats(device: Any) -> None:
    a = numbers(F32, 192, 1)
    x, z = device.local(a), device.local(np.zeros(24, U8))
    device.run("set_mask_count")
    device.run("set_vector_mask_l0", 128, dtype="f32", mode=1)
    device.run("compare_scalar_l0", z, x, 0, 5, 9, unary(), cmp_mode=GT, is_set_mask=True)
    assert np.array_equal(device.values(z), np.concatenate([bits(a[:128] > 0), np.zeros(8, U8)]))


@pytest.mark.parametrize("count", [65, 127, -1])
def test_counts_that_are_no_whole_repeats(device: Any, count: int) -> None:
    a = numbers(F32, 128, 1)
    x, z = device.local(a), device.local(np.zeros(16, U8))
    device.run("compare_scalar_l2", z, x, 0, count, cmp_mode=EQ)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]
    whole = max(count, 0) // 64 * 8
    assert np.array_equal(device.values(z)[:whole], bits(a == 0)[:whole])
    assert not device.values(z)[whole:].any()


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize(("mode", "row"), [
    (EQ, "0011000"), (GE, "1011001"), (GT, "1000001"), (LE, "0111010"), (LT, "0100010"), (NE, "1100011"),
])
def test_boundary_values_of_zero(device: Any, dtype: Any, mode: int, row: str) -> None:
    """0 against MIN, MAX, 0, -0, NaN, inf, -inf: rows of the vendor's boundary-value page; NE with NaN is false."""
    info = np.finfo(dtype)
    others = np.array([info.min, info.max, 0.0, -0.0, np.nan, np.inf, -np.inf], dtype)
    lanes = 256 // np.dtype(dtype).itemsize
    b = np.zeros(lanes, dtype)
    b[:7] = others
    x, y, z = device.local(np.zeros(lanes, dtype)), device.local(b), device.local(np.zeros(lanes // 8, U8))
    device.run("compare_l2", z, x, y, lanes, cmp_mode=mode)
    assert "".join(str(int(bit)) for bit in np.unpackbits(device.values(z), bitorder="little")[:7]) == row


@pytest.mark.parametrize("dtype", [F16, F32])
def test_compare_into_the_register(device: Any, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    a, b = numbers(dtype, lanes, 1), numbers(dtype, lanes, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(16, U8))
    device.run("compare_r_l0", x, y, lanes, binary(), cmp_mode=NE, is_set_mask=True)
    device.run("get_cmp_mask", z)
    assert np.array_equal(device.values(z)[: lanes // 8], bits(a != b))
    device.run("compare_r_l1", x, y, [0xFF00, 0], binary(), cmp_mode=GE, is_set_mask=True)
    device.run("get_cmp_mask", z)
    on = (np.arange(lanes) >= 8) & (np.arange(lanes) < 16)
    assert np.array_equal(device.values(z)[: lanes // 8], bits((a >= b) & on))


def test_masks_count_on_arch_3510(make_device: Any) -> None:
    device = make_device("Ascend950PR")
    a = numbers(F32, 64, 1)
    x, z = device.local(a), device.local(np.zeros(8, U8))
    device.run("compare_scalar_l0", z, x, 0, 10, 1, unary(), cmp_mode=LE, is_set_mask=True)
    assert np.array_equal(device.values(z), bits((a <= 0) & (np.arange(64) < 10)))


# -- select ----------------------------------------------------------------------------------------------------------


def operands(device: Any, dtype: Any, size: int) -> tuple[Any, ...]:
    a, b = np.arange(size).astype(dtype), -np.arange(size).astype(dtype)
    chosen = np.random.default_rng(5).integers(0, 2, size).astype(np.bool_)
    mask = np.concatenate([bits(chosen), np.zeros(32, U8)])
    return a, b, chosen, device.local(a), device.local(b), device.local(mask), device.local(np.full(size, 5, dtype))


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("count", [1, 100, 200, 256])
def test_select_between_tensors(device: Any, dtype: Any, count: int) -> None:
    a, b, chosen, x, y, mask, z = operands(device, dtype, 256)
    device.run("select_l2", z, mask, x, y, count, sel_mode=2)
    assert np.array_equal(device.values(z), np.where(np.arange(256) < count, np.where(chosen, a, b), 5).astype(dtype))


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("count", [1, 100, 200, 256])
def test_mode_0_uses_the_first_bits_in_every_repeat(device: Any, dtype: Any, count: int) -> None:
    a, b, chosen, x, y, mask, z = operands(device, dtype, 256)
    lanes = 256 // np.dtype(dtype).itemsize
    device.run("select_l2", z, mask, x, y, count, sel_mode=0)
    again = np.tile(chosen[:lanes], 256 // lanes)
    assert np.array_equal(device.values(z), np.where(np.arange(256) < count, np.where(again, a, b), 5).astype(dtype))


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("count", [1, 100, 256])
def test_select_between_a_tensor_and_a_scalar(device: Any, dtype: Any, count: int) -> None:
    a, _, chosen, x, _, mask, z = operands(device, dtype, 256)
    device.run("select_scalar_l2", z, mask, x, 0.1, count, sel_mode=1)
    result = np.where(chosen, a, dtype(0.1))
    assert np.array_equal(device.values(z), np.where(np.arange(256) < count, result, 5).astype(dtype))


@pytest.mark.parametrize(("mode", "form"), [(0, "select_l0"), (2, "select_l0"), (0, "select_l1"), (2, "select_l1")])
def test_select_repeats_under_a_mask(device: Any, mode: int, form: str) -> None:
    a, b, chosen, x, y, mask, z = operands(device, F32, 256)
    lanes = 40 if form == "select_l0" else [(1 << 40) - 1, 0]
    device.run(form, z, mask, x, y, lanes, 3, binary((1, 8), (1, 8), (1, 0)), sel_mode=mode, is_set_mask=True)
    taken = np.tile(chosen[:64], 3) if mode == 0 else chosen[:192]
    result = np.where(taken, a[:192], np.tile(b[:64], 3))
    on = np.arange(192) % 64 < 40
    assert np.array_equal(device.values(z), np.concatenate([np.where(on, result, 5), np.full(64, 5)]).astype(F32))


@pytest.mark.parametrize(("form", "lanes"), [("select_scalar_l0", 128), ("select_scalar_l1", [ALL, ALL])])
def test_select_scalar_repeats(device: Any, form: str, lanes: Any) -> None:
    a, _, chosen, x, _, mask, z = operands(device, F16, 256)
    device.run(form, z, mask, x, -1.0, lanes, 2, binary(), sel_mode=1, is_set_mask=True)
    assert np.array_equal(device.values(z), np.where(chosen, a, -1).astype(F16))


def test_select_in_counter_mode(device: Any) -> None:
    a, b, chosen, x, y, mask, z = operands(device, F32, 256)
    device.run("set_mask_count")
    device.run("select_l0", z, mask, x, y, 150, 1, binary(), sel_mode=2, is_set_mask=True)
    assert np.array_equal(device.values(z), np.where(np.arange(256) < 150, np.where(chosen, a, b), 5).astype(F32))


@pytest.mark.parametrize("dtype", [F16, F32])
def test_select_by_the_register(device: Any, dtype: Any) -> None:
    a, b, chosen, x, y, mask, z = operands(device, dtype, 256)
    lanes = 256 // np.dtype(dtype).itemsize
    device.run("set_cmp_mask", mask)
    device.run("set_vector_mask_l0", 30, dtype="f16" if dtype is F16 else "f32", mode=0)
    device.run("select_reg", z, x, y, 256 // lanes, binary(), sel_mode=0)
    result = np.where(np.tile(chosen[:lanes], 256 // lanes), a, b)
    assert np.array_equal(device.values(z), np.where(np.arange(256) % lanes < 30, result, 5).astype(dtype))


def test_select_by_the_address_in_the_register(device: Any) -> None:
    a, b, chosen, x, y, mask, z = operands(device, F32, 256)
    device.run("set_cmp_mask", device.local(np.full(32, mask.address, U32)))
    device.run("select_reg", z, x, y, 4, binary(), sel_mode=2)
    assert np.array_equal(device.values(z), np.where(chosen, a, b))


@pytest.mark.parametrize("dtype", [F16, F32])
def test_select_of_the_scalar_in_the_register(device: Any, dtype: Any) -> None:
    a, _, chosen, x, _, mask, z = operands(device, dtype, 256)
    device.run("set_cmp_mask", device.local(np.full(16, 2.5, dtype)))
    device.run("select_scalar_reg", z, mask, x, np.dtype(dtype).itemsize, binary())
    assert np.array_equal(device.values(z), np.where(chosen, a, dtype(2.5)))


def test_select_leaves_its_bits_in_the_register(device: Any) -> None:
    _, _, chosen, x, y, mask, z = operands(device, F16, 128)
    out = device.local(np.zeros(16, U8))
    device.run("select_l2", z, mask, x, y, 128, sel_mode=0)
    device.run("get_cmp_mask", out)
    assert np.array_equal(device.values(out), bits(chosen))


def test_what_select_refuses(device: Any) -> None:
    _, _, _, x, y, mask, z = operands(device, F32, 64)
    with pytest.raises(UserError, match="takes selection mode 0 or 2, not 1"):
        device.run("select_l2", z, mask, x, y, 64, sel_mode=1)
    with pytest.raises(UserError, match="takes a mask of uint8_t"):
        device.run("select_l2", z, x, x, y, 64, sel_mode=2)
    with pytest.raises(UserError, match="ascendc.select does not take"):
        device.run("select_l2", device.local(np.zeros(64, F16)), mask, x, y, 64, sel_mode=2)


def test_footprints(device: Any) -> None:
    _, _, _, x, y, mask, z = operands(device, F32, 256)
    out = device.local(np.zeros(32, U8))
    device.run("compare_l2", out, x, y, 128, cmp_mode=LT)
    assert device.touched(out, Role.WRITE) == set(range(out.address, out.address + 16))
    device.run("compare_l2", out, x, y, 128, cmp_mode=LT)
    assert device.touched(x, Role.READ) == set(range(x.address, x.address + 512))
    device.run("select_l2", z, mask, x, y, 100, sel_mode=2)
    assert device.touched(mask, Role.READ) == set(range(mask.address, mask.address + 13))
    device.run("select_l2", z, mask, x, y, 100, sel_mode=0)
    assert device.touched(mask, Role.READ) == set(range(mask.address, mask.address + 8))
    device.run("select_l0", z, mask, x, y, 3, 2, binary(), sel_mode=2, is_set_mask=True)
    lanes = {z.address + repeat * 256 + byte for repeat in (0, 1) for byte in range(12)}
    assert device.touched(z, Role.WRITE) == lanes
    assert device.opcodes() == []
