from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from npuscope.npu.numbers import Hf32Mode, RoundMode, round_to_integer, to_hf32

pytestmark = pytest.mark.filterwarnings("error")


def f32(bits: list[int]) -> np.ndarray:
    return np.array(bits, np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("bits", "even", "zero", "toward"),
    [
        (0x3F80_0000, 0x3F80_0000, 0x3F80_0000, 0x3F80_0000),  # 1.0
        (0x3F80_0FFF, 0x3F80_0000, 0x3F80_0000, 0x3F80_0000),  # below a tie
        (0x3F80_1000, 0x3F80_0000, 0x3F80_0000, 0x3F80_0000),  # tie, even below
        (0x3F80_1001, 0x3F80_2000, 0x3F80_2000, 0x3F80_0000),  # above a tie
        (0x3F80_3000, 0x3F80_4000, 0x3F80_2000, 0x3F80_2000),  # tie, even above
        (0xBF80_3000, 0xBF80_4000, 0xBF80_2000, 0xBF80_2000),  # negative: the same by size
        (0x3FFF_F000, 0x4000_0000, 0x3FFF_E000, 0x3FFF_E000),  # carry into the exponent
        (0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0000, 0x7F7F_E000),  # past the largest: infinity
        (0x8000_0000, 0x8000_0000, 0x8000_0000, 0x8000_0000),  # -0
        (0x7F80_0000, 0x7F80_0000, 0x7F80_0000, 0x7F80_0000),
        (0xFF80_0000, 0xFF80_0000, 0xFF80_0000, 0xFF80_0000),
    ],
)
def test_bit_patterns(bits: int, even: int, zero: int, toward: int) -> None:
    for mode, expected in zip(Hf32Mode, (even, zero, toward), strict=True):
        assert to_hf32(f32([bits]), mode).view(np.uint32).tolist() == [expected], mode


@pytest.mark.parametrize("mode", Hf32Mode)
@pytest.mark.parametrize("mantissa_bits", [10, 11])
def test_against_exact_arithmetic(mode: Hf32Mode, mantissa_bits: int) -> None:
    rng = np.random.default_rng(5)
    values = np.ldexp(rng.integers(1 << 23, 1 << 24, 777), rng.integers(-140, 100, 777)).astype(np.float32)
    values[::5] = (values[::5].view(np.uint32) & np.uint32(0xFFFF_F000)).view(np.float32)  # ties among them
    expected = []
    for value in values.tolist():
        exponent = max(int(np.frexp(value)[1]) - 1, -126)
        unit = Fraction(2) ** (exponent - mantissa_bits)
        count, rest = divmod(Fraction(value), unit)
        nearest = rest * 2 > unit or (rest * 2 == unit and mode is Hf32Mode.NEAREST_EVEN and count % 2 == 1)
        expected.append(float((count + (nearest and mode is not Hf32Mode.TOWARD_ZERO)) * unit))
    for sign in (1, -1):
        result = to_hf32(np.float32(sign) * values, mode, mantissa_bits=mantissa_bits)
        assert (sign * result.astype(np.float64)).tolist() == expected


def test_nan_stays_nan() -> None:
    values = f32([0x7FC0_0000, 0xFFFF_FFFF, 0x7F80_0001, 0x7FFF_FFFF])
    for mode in Hf32Mode:
        assert np.isnan(to_hf32(values, mode)).all()


@pytest.mark.parametrize("shape", [(0,), (1,), (5, 3), (2, 1, 7)])
def test_shape_and_strides(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + np.float32(1 / 3)
    expected = round_to_integer(values[..., ::2].astype(np.float64) * 2**20, RoundMode.RINT)  # finer than HF32
    result = to_hf32(values[..., ::2])
    assert result.shape == values[..., ::2].shape
    assert np.all(np.abs(result * 2.0**20 - expected) <= np.abs(expected) * 2.0**-11)
    assert to_hf32(values.T).shape == values.T.shape


def test_operands_are_checked() -> None:
    with pytest.raises(ValueError, match="half"):
        to_hf32(np.zeros(2, np.float16))
    with pytest.raises(ValueError, match="23"):
        to_hf32(np.zeros(2, np.float32), mantissa_bits=23)
