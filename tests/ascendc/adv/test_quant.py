"""AscendQuant of a whole tensor: rounding, saturation, and the precision of each chip."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.trace.schema import Role

F16, F32, I8, U8 = np.float16, np.float32, np.int8, np.uint8


def exact(x: np.ndarray, scale: float, offset: float) -> np.ndarray:
    """round(x * scale + offset) in whole fractions, half to even, saturated to int8."""
    values = [round(Fraction(value) * Fraction(scale) + Fraction(offset)) for value in x.astype(np.float64).tolist()]
    return np.clip(values, -128, 127).astype(I8)


@pytest.mark.parametrize("chip", ["910B1", "310P3", "950PR"])
@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("temporary", [False, True])
def test_steps_that_every_precision_holds(make_device: Any, chip: str, dtype: Any, temporary: bool) -> None:
    device = make_device(chip)
    x = (np.arange(-300, 301) / 2).astype(dtype)
    src, dst = device.local(x), device.local(np.full(640, 7, I8))
    room = device.local(np.zeros(64, U8)) if temporary else None
    device.run("quant", dst, src, 0.5, 2.0, x.size, room, None)
    found = device.values(dst)
    np.testing.assert_array_equal(found[:601], exact(x, 0.5, 2.0))
    assert (found[601:] == 7).all()


def test_ties_go_to_even_and_large_values_saturate(device: Any) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128, 1e4, -128.5, -1e4, np.inf, -np.inf], F16)
    src, dst = device.local(x), device.local(np.zeros(12, I8))
    device.run("quant", dst, src, 1.0, 0.0, 12, None, None)
    np.testing.assert_array_equal(device.values(dst), [0, 2, 2, 0, -2, 127, 127, 127, -128, -128, 127, -128])


@pytest.mark.parametrize(("chip", "expected"), [("910B1", 2), ("310P3", 2), ("950PR", 3)])
def test_chips_before_3510_round_a_float_source_to_half(make_device: Any, chip: str, expected: int) -> None:
    device = make_device(chip)
    # Half numbers from 4 to 8 are 1/256 apart, so 5.0005 is 5 there and the product a tie, 2.5.
    src, dst = device.local(np.array([5.0005], F32)), device.local(np.zeros(1, I8))
    device.run("quant", dst, src, 0.5, 0.0, 1, None, None)
    assert device.values(dst)[0] == expected


def test_product_and_sum_are_each_rounded_to_half(device: Any) -> None:
    x = np.random.default_rng(9).normal(size=500).astype(F16) * F16(30)
    src, dst = device.local(x), device.local(np.zeros(500, I8))
    device.run("quant", dst, src, 1.3, 0.7, 500, None, None)
    steps = (x * F16(1.3)).astype(F16) + F16(0.7)  # numpy's half arithmetic rounds every step
    np.testing.assert_array_equal(device.values(dst), np.clip(np.rint(steps.astype(np.float64)), -128, 127).astype(I8))


def test_the_count_of_the_config_goes_before_the_calls(device: Any) -> None:
    config = construct("ascend_quant_config", "!ascendc.ascend_quant_config", 20, 0, 0, 0)
    src, dst = device.local(np.ones(64, F16)), device.local(np.zeros(64, I8))
    device.run("quant", dst, src, 1.0, 0.0, 50, None, config)
    assert device.values(dst).sum() == 20
    config.__dict__["calc_count"] = 0
    device.run("quant", dst, src, 1.0, 0.0, 50, None, config)
    assert device.values(dst).sum() == 50
    device.run("quant", dst, src, 1.0, 0.0, None, None, None)
    assert device.values(dst).sum() == 64


def test_footprint(device: Any) -> None:
    src, dst, room = device.local(np.ones(64, F32)), device.local(np.zeros(64, I8)), device.local(np.zeros(96, U8))

    def touched(tensor: Any, role: Role, reuse: bool = False) -> int:
        device.trace()
        device.run("quant", dst, src, 1.0, 0.0, 33, room, None, is_reuse_source=reuse)
        return len(device.touched(tensor, role))

    assert (touched(src, Role.READ), touched(dst, Role.WRITE), touched(room, Role.WRITE)) == (132, 33, 96)
    assert touched(src, Role.WRITE) == 0
    assert touched(src, Role.WRITE, reuse=True) == 132


@pytest.mark.parametrize(("dst", "src"), [(np.int16, F16), (I8, np.int32), (F16, F16)])
def test_types_that_do_not_exist(device: Any, dst: Any, src: Any) -> None:
    with pytest.raises(UserError, match="quant takes half or float into int8_t"):
        device.run("quant", device.local(np.zeros(8, dst)), device.local(np.zeros(8, src)), 1.0, 0.0, 8, None, None)
