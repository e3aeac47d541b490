"""The math functions against Python's math module, element by element, and their footprints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.adv.special_functions import digamma
from npuscope.errors import UserError
from npuscope.trace.schema import CoreInfo, CoreType, Role

F16, F32, I16, U16, I32, U8 = np.float16, np.float32, np.int16, np.uint16, np.int32, np.uint8

EVERYWHERE, UNIT, ABOVE_ONE, POSITIVE = (-12.0, 12.0), (-1.0, 1.0), (1.0, 50.0), (0.01, 60.0)
UNARY: dict[str, tuple[Callable[[float], float], tuple[float, float]]] = {
    "acos": (math.acos, UNIT),
    "acosh": (math.acosh, ABOVE_ONE),
    "asin": (math.asin, UNIT),
    "asinh": (math.asinh, EVERYWHERE),
    "atan": (math.atan, EVERYWHERE),
    "atanh": (math.atanh, (-0.99, 0.99)),
    "ceil": (math.ceil, EVERYWHERE),
    "cos": (math.cos, (-300.0, 300.0)),
    "cosh": (math.cosh, (-10.0, 10.0)),
    "digamma": (lambda x: float(digamma(np.array([x]))[0]), POSITIVE),
    "erf": (math.erf, (-4.0, 4.0)),
    "erfc": (math.erfc, (-4.0, 4.0)),
    "floor": (math.floor, EVERYWHERE),
    "frac": (lambda x: math.modf(x)[0], EVERYWHERE),
    "lgamma": (math.lgamma, POSITIVE),
    "log": (math.log, POSITIVE),
    "round": (round, EVERYWHERE),
    "sign": (lambda x: (x > 0) - (x < 0), EVERYWHERE),
    "sin": (math.sin, (-300.0, 300.0)),
    "sinh": (math.sinh, (-10.0, 10.0)),
    "tan": (math.tan, (-1.5, 1.5)),
    "tanh": (math.tanh, (-5.0, 5.0)),
    "trunc": (math.trunc, EVERYWHERE),
}


def elements(dtype: Any, low: float, high: float, count: int = 77) -> np.ndarray:
    """Values of a range in the element type, its ends and some halves among them."""
    values = np.linspace(low, high, count)
    values[5:9] = np.clip([0.5, 2.5, -1.5, 0.0], low, high)
    return values.astype(dtype)


def faults(device: Any) -> list[str]:
    return [fault.facts["what"] for fault in device.recorder.faults]


# -- one operand -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(UNARY))
@pytest.mark.parametrize("dtype", [F16, F32])
def test_unary(device: Any, name: str, dtype: Any) -> None:
    function, (low, high) = UNARY[name]
    x = elements(dtype, low, high)
    src, dst = device.local(x), device.local(np.full(80, 9, dtype))
    device.run(name, dst, src, None, x.size, 0)
    exact = np.array([float(function(value)) for value in x.astype(np.float64).tolist()])
    found = device.values(dst)
    np.testing.assert_array_max_ulp(found[:77], exact.astype(dtype), maxulp=1)
    wrong = found[:77] != exact.astype(dtype)
    assert wrong.mean() < 0.02  # rounded from float64, so all but what the two libraries round differently
    assert (found[77:] == 9).all()


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("acos", [2.0], [np.nan]),
        ("atanh", [1.0, -1.0, 2.0], [np.inf, -np.inf, np.nan]),
        ("log", [0.0, -1.0, np.inf], [-np.inf, np.nan, np.inf]),
        ("ceil", [-0.5, np.inf, np.nan], [-0.0, np.inf, np.nan]),
        ("round", [0.5, 1.5, -2.5], [0, 2, -2]),
        ("sign", [-np.inf, -0.0, np.nan], [-1, 0, np.nan]),
        ("frac", [-2.75, 3.0], [-0.75, 0]),
        ("tanh", [np.inf, -np.inf], [1, -1]),
        ("lgamma", [0.0, -3.0, np.inf], [np.inf] * 3),
        ("cosh", [100.0], [np.inf]),
    ],
)
def test_special_values(device: Any, name: str, given: list[float], expected: list[float]) -> None:
    src, dst = device.local(np.array(given, F32)), device.local(np.zeros(len(given), F32))
    device.run(name, dst, src, None, len(given), 0)
    np.testing.assert_array_equal(device.values(dst), np.array(expected, F32))


def test_half_that_is_too_large_is_infinite_or_saturates(device: Any) -> None:
    src, dst = device.local(np.array([12.0, -12.0], F16)), device.local(np.zeros(2, F16))
    device.core.registers.saturate = False
    device.run("sinh", dst, src, None, 2, 0)
    np.testing.assert_array_equal(device.values(dst), [np.inf, -np.inf])
    device.core.registers.saturate = True
    device.run("sinh", dst, src, None, 2, 0)
    np.testing.assert_array_equal(device.values(dst), [65504, -65504])


def test_without_a_count_the_whole_source_counts(device: Any) -> None:
    x = elements(F32, -3, 3, 33)
    src, dst = device.local(x), device.local(np.zeros(33, F32))
    device.run("floor", dst, src, None, None, 0)
    np.testing.assert_array_equal(device.values(dst), np.floor(x))


def test_footprint(device: Any) -> None:
    src, dst = device.local(np.zeros(64, F32)), device.local(np.zeros(64, F32))
    temporary = device.local(np.zeros(100, U8))
    device.run("tanh", dst, src, temporary, 33, 0)
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 33 * 4))
    device.run("tanh", dst, src, temporary, 33, 0)
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 33 * 4))
    device.run("tanh", dst, src, temporary, 33, 0)
    assert device.touched(temporary, Role.WRITE) == set(range(temporary.address, temporary.address + 100))
    device.run("tanh", dst, src, temporary, 33, 0)
    assert device.touched(src, Role.WRITE) == set()
    assert device.opcodes() == []
    device.run("tanh", dst, src, temporary, 33, 0)
    assert device.opcodes() == ["tanh"]


@pytest.mark.parametrize(("dtype", "written"), [(F32, 33 * 4), (F16, 0)])
def test_a_reused_float_source_counts_as_written(device: Any, dtype: Any, written: int) -> None:
    src, dst = device.local(np.zeros(64, dtype)), device.local(np.zeros(64, dtype))
    device.run("tanh", dst, src, None, 33, 1)
    assert len(device.touched(src, Role.WRITE)) == written


def test_types_that_do_not_exist(device: Any) -> None:
    whole, floats = device.local(np.zeros(8, I32)), device.local(np.zeros(8, F32))
    with pytest.raises(UserError, match="tanh takes one of float, half"):
        device.run("tanh", whole, whole, None, 8, 0)
    with pytest.raises(UserError, match="float, int32_t"):
        device.run("tanh", floats, whole, None, 8, 0)


def test_a_cube_core_of_a_mixed_kernel_does_nothing(make_device: Any) -> None:
    cube = make_device(cores=(CoreInfo(CoreType.AIC, 0), CoreInfo(CoreType.AIV, 0)))
    src = cube.gm(np.ones(8, F32))
    for name, operands in (
        ("tanh", (src, src, None, 8, 0)), ("exp", (src, src, 8, 0, [0])), ("power", (src, src, 2.0, None, 8, 0)),
        ("xor", (src, src, src, None, 8, 0)), ("axpy", (src, src, 2.0, [8, 0])),
        ("clamp_max", (src, src, [0.5, 8, 0])),
    ):  # fmt: skip
        cube.run(name, *operands)
    assert cube.opcodes() == []
    assert (cube.values(src) == 1).all()


# -- exp and power ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("level", [0, 10])
def test_exp(device: Any, dtype: Any, level: int) -> None:
    x = elements(dtype, -8, 8)
    src, dst = device.local(x), device.local(np.zeros(77, dtype))
    temporary = [device.local(np.zeros(64, U8))] if level else []
    device.run("exp", dst, src, 77, level, [*temporary, 0])
    exact = np.array([math.exp(value) for value in x.tolist()])
    np.testing.assert_array_max_ulp(device.values(dst), exact.astype(dtype), maxulp=1)
    assert faults(device) == []


def test_exp_with_a_level_out_of_range(device: Any) -> None:
    x = device.local(np.zeros(8, F32))
    device.run("exp", x, x, 8, 256, [0])
    assert faults(device) == ["taylor_expand_level of exp"]
    assert (device.values(x) == 1).all()


@pytest.mark.parametrize("dtype", [F16, F32])
def test_power_of_floats(device: Any, dtype: Any) -> None:
    base = np.array([2, 0.5, 3, 10, 1.5, 0, 0, -2, -2, 7], dtype)
    exponent = np.array([10, 3, -2, 0.5, 2.5, 0, 2, 3, 2, -1], dtype)
    expected = [math.pow(x, y) for x, y in zip(base.tolist(), exponent.tolist(), strict=True)]
    dst = device.local(np.zeros(10, dtype))
    device.run("power", dst, device.local(base), device.local(exponent), None, 10, 0)
    np.testing.assert_array_equal(device.values(dst), np.array(expected).astype(dtype))


def test_power_of_floats_that_have_none(device: Any) -> None:
    base, exponent = np.array([-2, 0, np.nan, np.inf], F32), np.array([0.5, -1, 0, -1], F32)
    dst = device.local(np.zeros(4, F32))
    device.run("power", dst, device.local(base), device.local(exponent), None, 4, 0)
    np.testing.assert_array_equal(device.values(dst), np.array([np.nan, np.inf, 1, 0], F32))


def test_power_with_a_scalar_on_either_side(device: Any) -> None:
    x = np.array([1, 2, 3, 4, 5], F32)
    dst = device.local(np.zeros(5, F32))
    device.run("power", dst, device.local(x), 3.0, None, 5, 0)
    np.testing.assert_array_equal(device.values(dst), x**3)
    device.run("power", dst, 2.0, device.local(x), None, None, 0)
    np.testing.assert_array_equal(device.values(dst), [2, 4, 8, 16, 32])


def test_power_of_integers_is_exact_and_wraps(device: Any) -> None:
    base = np.array([3, -3, 7, -2, 2, 0, 1, -1, -1, 5, 0, 46341], I32)
    exponent = np.array([19, 19, 15, 31, 33, 0, -5, -5, -4, -1, -3, 2], I32)
    exact = [int(x) ** int(y) if y >= 0 else 0 for x, y in zip(base, exponent, strict=True)]
    exact[6:9] = [1, -1, 1]
    wrapped = np.array([(value + 2**31) % 2**32 - 2**31 for value in exact], I32)
    dst = device.local(np.zeros(12, I32))
    device.run("power", dst, device.local(base), device.local(exponent), None, 12, 0)
    np.testing.assert_array_equal(device.values(dst), wrapped)


def test_power_of_other_types_depends_on_the_chip(device: Any, make_device: Any) -> None:
    values = np.array([2, 3, 15, 16], U8)
    x = device.local(values)
    with pytest.raises(UserError, match="power takes"):
        device.run("power", x, x, 2, None, 4, 0)
    new = make_device("950PR")
    x = new.local(values)
    new.run("power", x, x, 2, None, 4, 0)
    np.testing.assert_array_equal(new.values(x), [4, 9, 225, 0])


# -- two operands and limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [I16, U16])
def test_xor(device: Any, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 16, 50).astype(U16).view(dtype) for _ in range(2))
    dst = device.local(np.zeros(50, dtype))
    device.run("xor", dst, device.local(a), device.local(b), None, 50, 0)
    np.testing.assert_array_equal(device.values(dst), a ^ b)


def test_xor_of_floats_does_not_exist(device: Any) -> None:
    x = device.local(np.zeros(8, F32))
    with pytest.raises(UserError, match="xor takes one of int16_t, uint16_t"):
        device.run("xor", x, x, x, None, 8, 0)


@pytest.mark.parametrize(("dst_type", "src_type"), [(F16, F16), (F32, F32), (F32, F16)])
@pytest.mark.parametrize("with_temporary", [False, True])
def test_axpy(device: Any, dst_type: Any, src_type: Any, with_temporary: bool) -> None:
    rng = np.random.default_rng(4)
    x, old = rng.normal(size=45).astype(src_type), rng.normal(size=45).astype(dst_type)
    src, dst = device.local(x), device.local(old)
    temporary = [device.local(np.zeros(64, U8))] if with_temporary else []
    device.run("axpy", dst, src, 1.7, [*temporary, 45, 0])
    expected = old.astype(np.float64) + x.astype(np.float64) * float(src_type(1.7))
    # Product and sum are rounded to float32, so a sum that cancels is right to the spacing of its terms.
    np.testing.assert_allclose(
        device.values(dst), expected, rtol=2.0**-11 if dst_type is F16 else 1e-6, atol=2e-7
    )
    device.trace()
    device.run("axpy", dst, src, 1.7, [*temporary, 45, 0])
    assert device.touched(dst, Role.READ) == set(range(dst.address, dst.address + old.nbytes))


def test_axpy_from_float_into_half_does_not_exist(device: Any) -> None:
    with pytest.raises(UserError, match="axpy takes half, float, or half into float"):
        device.run("axpy", device.local(np.zeros(8, F16)), device.local(np.zeros(8, F32)), 1.0, [8, 0])


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("with_temporary", [False, True])
def test_clamps(device: Any, dtype: Any, with_temporary: bool) -> None:
    x = np.array([-3, 1, 1.25, 9, np.inf, -np.inf, np.nan, 1], dtype)
    src, dst = device.local(x), device.local(np.zeros(8, dtype))
    temporary = [device.local(np.zeros(64, U8))] if with_temporary else []
    device.run("clamp_max", dst, src, [*temporary, 1.0, 8, 0])
    np.testing.assert_array_equal(device.values(dst), [-3, 1, 1, 1, 1, -np.inf, np.nan, 1])
    device.run("clamp_min", dst, src, [*temporary, 1.0, 8, 0])
    np.testing.assert_array_equal(device.values(dst), [1, 1, 1.25, 9, np.inf, 1, np.nan, 1])
