"""Vector instructions with two source tensors, against numpy and the vendor's published results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.trace.schema import CoreInfo, CoreType, Role

F16, F32, I16, I32, I8, U8, U16 = (np.float16, np.float32, np.int16, np.int32, np.int8, np.uint8, np.uint16)
FLOATS = (F16, F32)
NUMBERS = (F16, F32, I16, I32)
ARITHMETIC = {
    "add": (np.add, NUMBERS),
    "sub": (np.subtract, NUMBERS),
    "mul": (np.multiply, NUMBERS),
    "div": (np.divide, FLOATS),
    "max": (np.maximum, NUMBERS),
    "min": (np.minimum, NUMBERS),
    "and": (np.bitwise_and, (I16, U16)),
    "or": (np.bitwise_or, (I16, U16)),
}
CASES = [(name, dtype) for name, (_, dtypes) in ARITHMETIC.items() for dtype in dtypes]


def numbers(dtype: Any, size: int, seed: int) -> np.ndarray:
    """Values of the whole range of an integer type, floats around 0 without 0."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size, dtype, endpoint=True)
    values = rng.normal(0, 30, size).astype(dtype)
    values[values == 0] = 1
    return values


def expected(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's result; half in float32, rounded once."""
    function = ARITHMETIC[name][0]
    with np.errstate(all="ignore"):
        if a.dtype == F16:
            return function(a.astype(F32), b.astype(F32)).astype(F16)
        return function(a, b)


def params(dst: tuple[int, int] = (1, 8), src0: tuple[int, int] = (1, 8), src1: tuple[int, int] = (1, 8)) -> Any:
    return construct("binary_repeat_params", "", dst[0], src0[0], src1[0], dst[1], src0[1], src1[1])


@pytest.mark.parametrize(("name", "dtype"), CASES)
@pytest.mark.parametrize("count", [1, 77, 128, 200])
def test_count_form(device: Any, name: str, dtype: Any, count: int) -> None:
    a, b = numbers(dtype, 200, 1), numbers(dtype, 200, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(200, dtype))
    device.run(f"{name}_l2", z, x, y, count)
    got = device.values(z)
    assert np.array_equal(got[:count], expected(name, a, b)[:count])
    assert not got[count:].any()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_masked_and_strided_repeats(device: Any, name: str, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    per_block = lanes // 8
    a, b = numbers(dtype, 2 * lanes, 3), numbers(dtype, 6 * lanes, 4)
    x, y, z = device.local(a), device.local(b), device.local(np.full(5 * lanes, 7, dtype))
    device.run(f"{name}_l0", z, x, y, 37, 2, params((2, 16), (1, 8), (1, 24)), is_set_mask=True)
    whole = np.full(5 * lanes, 7, dtype)
    for repeat in range(2):
        for lane in range(37):
            at = repeat * 2 * lanes + lane // per_block * 2 * per_block + lane % per_block
            whole[at] = expected(name, a[repeat * lanes + lane :][:1], b[repeat * 3 * lanes + lane :][:1])[0]
    assert np.array_equal(device.values(z), whole)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_bit_masks(device: Any, name: str, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    words = [0x8421_0000_FFFF_0001, 0xF000_0000_0000_000F][: max(lanes // 64, 1)]
    on = np.array([(words[lane // 64] >> (lane % 64)) & 1 for lane in range(lanes)], np.bool_)
    a, b = numbers(dtype, 3 * lanes, 5), numbers(dtype, 3 * lanes, 6)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(3 * lanes, dtype))
    device.run(f"{name}_l1", z, x, y, words, 3, params(), is_set_mask=True)
    assert np.array_equal(device.values(z), np.where(np.tile(on, 3), expected(name, a, b), 0).astype(dtype))


def test_counter_mode_ignores_the_repeat_count(device: Any) -> None:
    a = np.arange(200, dtype=F32)
    x, z = device.local(a), device.local(np.zeros(200, F32))
    device.run("set_mask_count")
    device.run("add_l0", z, x, x, 150, 1, params(), is_set_mask=True)
    assert np.array_equal(device.values(z), np.where(np.arange(200) < 150, 2 * a, 0))


def test_without_is_set_mask_the_registers_count(device: Any) -> None:
    x, z = device.local(np.ones(128, F16)), device.local(np.zeros(128, F16))
    device.run("set_vector_mask_l1", 0, 0xFF, dtype="f16", mode=0)
    device.run("add_l0", z, x, x, 128, 1, params())
    assert device.values(z).sum() == 16
    device.run("add_l2", z, x, x, 128)
    assert device.values(z).sum() == 256
    device.run("mul_l0", z, x, x, 3, 1, params())
    assert np.array_equal(device.values(z), np.ones(128)), "the count form left all lanes on"


def test_repeats_above_127_arrive_as_negative_bytes(device: Any) -> None:
    x = device.local(np.ones(200 * 64, F32))
    z = device.local(np.zeros(200 * 64, F32))
    device.run("add_l0", z, x, x, 64, 200 - 256, params(), is_set_mask=True)
    assert device.values(z).sum() == 2 * 200 * 64
    assert device.recorder.faults == []


@pytest.mark.parametrize(("mask", "repeat"), [(65, 1), (-1, 1), (64, 256)])
def test_operands_out_of_range_are_faults(device: Any, mask: int, repeat: int) -> None:
    x = device.local(np.ones(64, F32))
    device.run("add_l0", x, x, x, mask, repeat, params(), is_set_mask=True)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_whole_tensors(device: Any, name: str) -> None:
    a, b = numbers(F32, 70, 1), numbers(F32, 70, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(70, F32))
    z.length = 50
    device.run(f"{name}_l3", z, x, y)
    assert np.array_equal(device.values(z), expected(name, a, b)[:50])
    z.length = -1
    device.run(f"{name}_l3", z, x, y)
    assert np.array_equal(device.values(z, 70), expected(name, a, b))


SPECIAL = [
    ("add", F16, 65504, 65504, np.inf, 65504), ("add", F16, np.inf, -np.inf, np.nan, 0),
    ("add", I16, -32768, -32768, 0, -32768), ("add", I32, 2147483647, 2147483647, -2, 2147483647),
    ("sub", F16, -65504, 65504, -np.inf, -65504), ("sub", I16, 32767, -32768, -1, 32767),
    ("sub", I32, -2147483648, 2147483647, 1, -2147483648), ("mul", F16, 0, np.inf, np.nan, 0),
    ("mul", I16, -32768, 32767, -32768, -32768), ("mul", I32, 2147483647, 2147483647, 1, 2147483647),
    ("div", F16, -65504, 0, -np.inf, -65504), ("max", F16, -65504, np.nan, np.nan, 0),
    ("min", F16, np.inf, np.inf, np.inf, 65504), ("add", F32, np.inf, -np.inf, np.nan, np.nan),
    ("mul", F32, 3.4e38, 10, np.inf, np.inf),
]
"""operation, type, operands, result, result with saturation: rows of the vendor's boundary-value page."""


@pytest.mark.parametrize(("name", "dtype", "a", "b", "plain", "saturated"), SPECIAL)
def test_special_values(
    device: Any, name: str, dtype: Any, a: float, b: float, plain: float, saturated: float
) -> None:
    x, y, z = device.local(np.full(8, a, dtype)), device.local(np.full(8, b, dtype)), device.local(np.zeros(8, dtype))
    device.run(f"{name}_l2", z, x, y, 8)
    np.testing.assert_array_equal(device.values(z), np.full(8, plain, dtype))
    device.core.registers.saturate = True
    device.run(f"{name}_l2", z, x, y, 8)
    np.testing.assert_array_equal(device.values(z), np.full(8, saturated, dtype))


# -- compound instructions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add_relu", "sub_relu"])
@pytest.mark.parametrize("dtype", [F16, F32, I16])
def test_relu_of_sum_and_difference(device: Any, name: str, dtype: Any) -> None:
    a, b = numbers(dtype, 131, 1), numbers(dtype, 131, 2)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(131, dtype))
    device.run(f"{name}_l2", z, x, y, 131)
    assert np.array_equal(device.values(z), np.maximum(expected(name[:3], a, b), 0))


PUBLISHED = {
    "fused_mul_add": [
        [21.02, 4.74, 70.25, -63.03, 51.4, 25.92],
        [94.4, -70.6, 43.44, 84.8, -43.1, -90.0],
        [61.4, 14.92, 61.2, -38.94, -18.36, 44.94],
        [1384.0, 0.0625, 4344.0, 2538.0, -987.0, 1075.0],
    ],
    "fused_mul_add_relu": [
        [19.3, -45.88, -60.75, -31.77, 77.25, 59.84],
        [27.14, 43.16, 65.6, -78.44, -20.95, -1.547],
        [19.9, -70.0, -23.17, -35.6, -69.5, -8.8],
        [411.5, 3256.0, 1474.0, 1053.0, 0.0, 0.0],
    ],
}
"""src0, src1, dst before, dst after: from the examples on the vendor's FusedMulAdd and MulAddRelu pages."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_half_products_are_rounded_before_the_addition(device: Any, name: str) -> None:
    a, b, old, new = (np.array(values, F16) for values in PUBLISHED[name])
    x, y, z = device.local(a), device.local(b), device.local(old)
    device.run(f"{name}_l2", z, x, y, a.size)
    assert np.array_equal(device.values(z), new)


def test_mul_add_dst_of_half_into_float(device: Any) -> None:
    a, b, old, new = [
        [-83.0, 58.2, -14.28, -43.12],
        [-57.97, 43.5, 8.08, 72.4],
        [-97.94773, -61.303955, 32.56878, -87.50743],
        [4713.4585, 2469.8523, -82.79694, -3208.6792],
    ]  # vendor's MulAddDst page
    x, y = device.local(np.array(a, F16)), device.local(np.array(b, F16))
    z = device.local(np.array(old, F32))
    device.run("mul_add_dst_l2", z, x, y, len(a))
    np.testing.assert_allclose(device.values(z), np.array(new, F32), rtol=1e-7)


@pytest.mark.parametrize("name", ["fused_mul_add", "fused_mul_add_relu", "mul_add_dst"])
def test_multiply_add_of_float_under_a_mask(device: Any, name: str) -> None:
    a, b, c = (numbers(F32, 128, seed) for seed in (1, 2, 3))
    x, y, z = device.local(a), device.local(b), device.local(c)
    device.run(f"{name}_l0", z, x, y, 50, 2, params(), is_set_mask=True)
    result = a * b + c if name == "mul_add_dst" else a * c + b
    if name.endswith("relu"):
        result = np.maximum(result, 0)
    assert np.array_equal(device.values(z), np.where(np.arange(128) % 64 < 50, result, c))


def test_mul_add_dst_repeats_of_two_types(device: Any) -> None:
    a, b, c = numbers(F16, 256, 1), numbers(F16, 256, 2), numbers(F32, 256, 3)
    x, y, z = device.local(a), device.local(b), device.local(c)
    device.run("mul_add_dst_l0", z, x, y, 60, 4, params((1, 8), (1, 4), (1, 4)), is_set_mask=True)
    result = a.astype(F32) * b.astype(F32) + c
    assert np.array_equal(device.values(z), np.where(np.arange(256) % 64 < 60, result, c))


def test_saturation_applies_to_the_product_first(device: Any) -> None:
    """65504 * 65504 saturates to 65504, so that adding -65504 gives 0 (boundary-value page, MulAddDst)."""
    x, z = device.local(np.full(16, 65504, F16)), device.local(np.full(16, -65504, F16))
    device.core.registers.saturate = True
    device.run("mul_add_dst_l2", z, x, x, 16)
    assert not device.values(z).any()


@pytest.mark.parametrize(
    ("name", "src", "dst", "a", "b", "result"),
    [
        ("mul_cast", F16, I8, [1.5, 100, -3, -50, 0.5], [1, 2, 1, 9, 1], [2, 127, -3, -128, 0]),
        ("mul_cast", F16, U8, [1.5, 100, -3, 51, np.nan], [1, 2, 1, 9, 1], [2, 200, 0, 255, 0]),
        ("add_relu_cast", F16, I8, [1, 1, 3, 0.5, 100], [0, 0.5, -4, 0, 100], [1, 2, 0, 0, 127]),
        ("add_relu_cast", I16, I8, [1, -5, 100, 32767, 126], [1, 1, 50, 32767, 1], [2, 0, 127, 127, 127]),
        ("add_relu_cast", F32, F16, [1, -5, 1e5, 0.1, 2049], [1, 1, 1, 0, 0], [2, 0, np.inf, 0.1, 2048]),
        ("sub_relu_cast", F16, I8, [1, 2, 3, 0.5, 100], [0, 0.5, 4, 0, -100], [1, 2, 0, 0, 127]),
        ("sub_relu_cast", I16, I8, [1, -5, 100, 32767, 0], [1, 1, -50, -1, 7], [0, 0, 127, 127, 0]),
        ("sub_relu_cast", F32, F16, [1, -5, 1e5, 0.1, 2051], [0, 1, 1, 0, 0], [1, 0, np.inf, 0.1, 2052]),
    ],
)
def test_instructions_that_convert(
    device: Any, name: str, src: Any, dst: Any, a: list[float], b: list[float], result: list[float]
) -> None:
    x, y = device.local(np.array(a).astype(src)), device.local(np.array(b).astype(src))
    z = device.local(np.full(8, 9, dst))
    device.run(f"{name}_l2", z, x, y, 5)
    assert np.array_equal(device.values(z), np.array([*result, 9, 9, 9]).astype(dst))


def test_converting_repeats_have_the_lanes_of_the_source(device: Any) -> None:
    a, b = numbers(F16, 256, 1), np.ones(256, F16)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(256, I8))
    device.run("mul_cast_l0", z, x, y, 128, 2, params((1, 4)), is_set_mask=True)
    assert np.array_equal(device.values(z), np.clip(np.rint(a.astype(F32)), -128, 127).astype(I8))


def test_add_deq_relu_multiplies_with_the_scale_of_set_deq_scale(device: Any) -> None:
    """The example on the vendor's AddDeqRelu page, scale 0.1."""
    a, b = [70, 36, 43, 54, 28, 49, 27, 82, -95], [19, 33, 34, 50, 42, 2, 97, 93, 9]
    x, y = device.local(np.array(a, I32)), device.local(np.array(b, I32))
    z = device.local(np.zeros(9, F16))
    device.run("set_deq_scale", 0.1)
    device.run("add_deq_relu_l2", z, x, y, 9)
    published = [8.9, 6.9, 7.7, 10.4, 7.0, 5.1, 12.4, 17.5, 0]
    assert np.round(device.values(z).astype(F32), 1).tolist() == np.array(published, F32).tolist()
    sums = np.maximum(np.array(a, F32) + np.array(b, F32), 0)
    assert np.array_equal(device.values(z), (sums * F16(0.1).astype(F32)).astype(F16))
    device.run("set_deq_scale", 2)
    device.run("add_deq_relu_l0", z, x, y, 2, 1, params((1, 4)), is_set_mask=True)
    assert device.values(z)[:3].astype(F32).round(1).tolist() == np.array([178, 138, 7.7], F32).tolist()


# -- types, chips, trace ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dst", "src", "words"),
    [
        ("add", U16, U16, "ascendc.add does not take uint16_t on Ascend910B1; it takes half, float, int16_t, int32_t"),
        ("div", I32, I32, "it takes half, float"),
        ("and", I32, I32, "it takes int16_t, uint16_t"),
        ("add", F32, F16, "float from half"),
        ("mul_cast", F32, F16, "int8_t from half"),
        ("prelu", F32, F32, "does not exist on Ascend910B1"),
    ],
)
def test_other_types_are_refused_in_words(device: Any, name: str, dst: Any, src: Any, words: str) -> None:
    x, z = device.local(np.zeros(64, src)), device.local(np.zeros(64, dst))
    with pytest.raises(UserError) as error:
        device.run(f"{name}_l2", z, x, x, 64)
    assert words in str(error.value)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int8, np.int64])
def test_what_arch_3510_adds(make_device: Any, dtype: Any) -> None:
    device = make_device("Ascend950PR")
    a = np.arange(40, dtype=dtype)
    x, z = device.local(a), device.local(np.zeros(40, dtype))
    device.run("add_l2", z, x, x, 33)
    assert np.array_equal(device.values(z)[:33], 2 * a[:33])
    if np.dtype(dtype).itemsize not in (2, 4):
        with pytest.raises(UserError):
            device.run("add_l0", z, x, x, 16, 1, params(), is_set_mask=True)


@pytest.mark.parametrize("dtype", [F16, F32])
def test_count_forms_of_arch_3510(make_device: Any, dtype: Any) -> None:
    device = make_device("Ascend950PR")
    a, b = np.array([1, -2, -3, 4], dtype), np.array([3, -2, 5, 0.5], dtype)
    x, y, z = device.local(a), device.local(b), device.local(np.zeros(4, dtype))
    device.run("prelu_l2", z, x, y, 4)
    assert np.array_equal(device.values(z), np.array([1, 4, -15, 4], dtype))
    device.run("fused_abs_sub_l2", z, x, y, 4)
    assert np.array_equal(device.values(z), np.abs(a - b))
    device.run("fused_exp_sub_l2", z, x, y, 4)
    assert np.array_equal(device.values(z), np.exp(a.astype(np.float64) - b.astype(np.float64)).astype(dtype))


def test_a_cube_core_passes_over_vector_instructions(make_device: Any) -> None:
    device = make_device(cores=(CoreInfo(CoreType.AIC, 0),))
    x = device.local(np.ones(64, F32))
    device.run("add_l2", x, x, x, 64)
    device.run("add_l0", x, x, x, 64, 1, params(), is_set_mask=True)
    assert device.opcodes() == []


def test_footprints(device: Any) -> None:
    x, y, z = (device.local(np.ones(256, F16)) for _ in range(3))
    device.run("sub_l0", z, x, y, 10, 2, params((1, 8), (1, 8), (0, 0)), is_set_mask=True)
    row = device.trace()
    assert row.instruction.shape[1] == 1
    assert row.access.shape[1] == 3
    device.run("sub_l2", z, x, y, 77)
    assert device.touched(z, Role.WRITE) == set(range(z.address, z.address + 154))
    device.run("sub_l2", z, x, y, 77)
    assert device.touched(x, Role.READ) == set(range(x.address, x.address + 154))
    device.run("mul_add_dst_l0", z, x, y, 10, 2, params(), is_set_mask=True)
    lanes = {z.address + repeat * 256 + byte for repeat in (0, 1) for byte in range(20)}
    assert device.touched(z, Role.READ) == lanes
