"""Functions that numpy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

_REACH = 6.0
_STEPS = 8192


@lru_cache(maxsize=1)
def _table() -> tuple[np.ndarray, np.ndarray]:
    """erf and its slope at evenly spaced places from 0 to 6, beyond which erf is 1."""
    places = np.linspace(0.0, _REACH, _STEPS + 1)
    return np.array([math.erf(place) for place in places]), 2.0 / math.sqrt(math.pi) * np.exp(-places * places)


def erf(value: np.ndarray) -> np.ndarray:
    """The error function, by its Taylor series about the nearest of 8,193 places (error below 1e-14)."""
    heights, slopes = _table()
    wide = value.astype(np.float64)
    size = np.minimum(np.abs(wide), _REACH)
    nearest = np.rint(np.nan_to_num(size) * (_STEPS / _REACH)).astype(np.int64)
    place = nearest * (_REACH / _STEPS)
    step = size - place
    series = 1.0 + step * (-place + step * ((2.0 * place * place - 1.0) / 3.0))
    return np.copysign(heights[nearest] + slopes[nearest] * step * series, wide).astype(value.dtype)


def from_torch(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """A function of `torch.special` on float64; torch is there wherever Triton is."""

    def function(value: np.ndarray) -> np.ndarray:
        import torch

        wide = torch.from_numpy(np.array(value, np.float64))
        result: np.ndarray = getattr(torch.special, name)(wide).numpy()
        return result.astype(value.dtype)

    return function


def each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of single numbers applied to all; where it is not defined the result is no number."""

    def guarded(number: float) -> float:
        try:
            return function(number)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    vector = np.vectorize(guarded, otypes=[np.float64])

    def apply(value: np.ndarray) -> np.ndarray:
        result: np.ndarray = vector(value.astype(np.float64))
        return result.astype(value.dtype)

    return apply


def _gamma(number: float) -> float:
    return math.copysign(math.inf, number) if number == 0 else math.gamma(number)


gamma = each(_gamma)
log_gamma = from_torch("gammaln")
erfc = from_torch("erfc")
scaled_erfc = from_torch("erfcx")
inverse_erf = from_torch("erfinv")
normal = from_torch("ndtr")
inverse_normal = from_torch("ndtri")


def inverse_erfc(value: np.ndarray) -> np.ndarray:
    """Where the complement of the error function has this value."""
    wide = value.astype(np.float64)
    return (-inverse_normal(wide / 2) / math.sqrt(2)).astype(value.dtype)


def sine_of_pi(value: np.ndarray) -> np.ndarray:
    """sin(pi * value), exact at multiples of a half."""
    turn = _turn(value)
    folded = np.where(np.abs(turn) > 0.5, np.copysign(1.0, turn) - turn, turn)
    return np.sin(np.pi * folded).astype(value.dtype)


def cosine_of_pi(value: np.ndarray) -> np.ndarray:
    """cos(pi * value), exact at multiples of a half."""
    turn = np.abs(_turn(value))
    return np.where(turn < 0.25, np.cos(np.pi * turn), np.sin(np.pi * (0.5 - turn))).astype(value.dtype)


def _turn(value: np.ndarray) -> np.ndarray:
    """What is left of the value, between -1 and 1, when whole turns are taken from it."""
    wide = value.astype(np.float64)
    return wide - 2.0 * np.rint(wide / 2.0)


def remainder(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """one - other * n for the whole n nearest to their quotient, as IEEE 754 has it; exact."""
    wide, size = one.astype(np.float64), np.abs(other.astype(np.float64))
    left = np.abs(wide - 0.0)
    left = np.fmod(left, np.where(size < 2.0**1022, 2.0 * size, size))
    half = 0.5 * size
    tiny = size < 2.0**-1021
    above = np.where(tiny, left + left > size, left > half)
    left = np.where(above, left - size, left)
    above &= np.where(tiny, left + left >= size, left >= half)
    left = np.where(above, left - size, left)
    result = np.where(np.signbit(wide), -left, left)
    return np.where(np.isinf(size) & np.isfinite(wide), wide, result).astype(one.dtype)


def exponent(value: np.ndarray) -> np.ndarray:
    """The exponent of two of the highest bit, as a float."""
    found = np.frexp(value)[1].astype(value.dtype) - value.dtype.type(1)
    found = np.where(value == 0, -np.inf, found)
    return np.where(np.isfinite(value), found, np.abs(value)).astype(value.dtype)


def whole_exponent(value: np.ndarray) -> np.ndarray:
    """The same as an integer; the ends of its range for 0 (and what is no number) and for what is infinite."""
    found = np.frexp(value)[1] - 1
    found = np.where(np.isinf(value), np.iinfo(np.int32).max, found)
    return np.where((value == 0) | np.isnan(value), np.iinfo(np.int32).min, found).astype(np.int32)


def away_from_zero(value: np.ndarray) -> np.ndarray:
    """The nearest whole number, halves away from zero."""
    whole = np.trunc(value)
    return np.where(np.abs(value - whole) >= 0.5, whole + np.copysign(value.dtype.type(1), value), whole)


NEAR = 50.0
"""Up to here the Bessel functions of the first kind come by the downward recurrence."""


def bessel_first(order: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The Bessel function of the first kind of whole orders: downwards near zero and for large orders, else upwards."""
    n, x = np.broadcast_arrays(order.astype(np.int64), value.astype(np.float64))
    size = np.abs(x)
    far = (size > NEAR) & (n <= size)
    result = _downwards(n, np.where(far, NEAR, size))
    if far.any():
        result = np.where(far, _upwards(n, size, from_torch("bessel_j0")(size), from_torch("bessel_j1")(size)), result)
    result = np.where((x < 0) & (n % 2 == 1), -result, result)
    result = np.where(x == 0, (n == 0).astype(np.float64), result)
    return np.where((n < 0) | np.isnan(x), np.nan, result).astype(value.dtype)


def _downwards(n: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Miller's recurrence, scaled at its end so that J0 + 2 J2 + 2 J4 + ... is 1."""
    size = np.maximum(size, 1e-300)
    top = int(max(n.max(initial=0) * 1.2, 1.4 * np.nan_to_num(size).max(initial=0.0))) + 40
    top += top % 2
    after, here = np.zeros(n.shape), np.full(n.shape, 1e-30)
    found, total = np.zeros(n.shape), np.zeros(n.shape)
    for k in range(top, 0, -1):
        after, here = here, np.minimum(2.0 * k / size, 1e300) * here - after
        scale = np.where(np.abs(here) > 1e100, 1e-100, 1.0)
        after, here, found, total = after * scale, here * scale, found * scale, total * scale
        found = np.where(n == k - 1, here, found)
        if k % 2 == 1 and k > 1:
            total = total + 2.0 * here
    return found / (total + here)


def _upwards(n: np.ndarray, x: np.ndarray, before: np.ndarray, here: np.ndarray) -> np.ndarray:
    """The recurrence that all Bessel functions keep, from those of order 0 and 1."""
    found = np.where(n == 0, before, here)
    for k in range(1, int(n.max(initial=1))):
        before, here = here, 2.0 * k / x * here - before
        found = np.where(n == k + 1, here, found)
    return found


def bessel_second(order: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The Bessel function of the second kind of whole orders, by upward recurrence."""
    n, x = np.broadcast_arrays(order.astype(np.int64), value.astype(np.float64))
    found = _upwards(n, x, from_torch("bessel_y0")(x), from_torch("bessel_y1")(x))
    result = np.where(np.isnan(found) & (x > 0), -np.inf, found)
    return np.where(n < 0, np.nan, result).astype(value.dtype)


def of_order(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """The Bessel function of the first kind of one order."""
    return lambda value: bessel_first(np.full((1,) * value.ndim, number), value)


def through_wide(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A function of float64 for narrower floats."""

    def apply(*values: np.ndarray) -> np.ndarray:
        result: np.ndarray = function(*(value.astype(np.float64) for value in values))
        return result.astype(values[0].dtype)

    return apply
