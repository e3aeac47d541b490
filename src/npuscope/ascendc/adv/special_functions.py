"""erf, erfc, lgamma and digamma of whole arrays in float64, right to the last bits of float32.

The device uses its own approximations; what they approximate is computed here. Sources: W. J. Cody, "Rational Chebyshev
approximation for the error function", Math. Comp. 23 (1969), in the form of his program CALERF; M. Abramowitz and I. A.
Stegun, "Handbook of Mathematical Functions", chapter 6 (the numbers of its formulas are given below).
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

_ERF_P = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
          3.20937758913846947e3)
_ERF_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
             2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
             1.23033935479799725e3)
_MIDDLE_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
             3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)
_TAIL_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
           1.60837851487422766e-2, 6.58749161529837803e-4)
_TAIL_Q = (1.0, 2.56852019228982242e0, 1.87295284992346047e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
           2.33520497626869185e-3)
_NEAR, _FAR = 0.46875, 4.0
_SQRT_PI = np.sqrt(np.pi)

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_LARGE = 10.0
"""From here on the asymptotic series above are right to float64."""


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's rule, highest power first."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _erfc_positive(x: Array) -> Array:
    """erfc for x >= 0.46875. exp(-x * x) is split at a multiple of 1/16, whose square is exact, as CALERF does."""
    safe = np.minimum(x, 1e8)
    square = np.where(safe > _NEAR, safe, 1.0) ** 2
    middle = _polynomial(_MIDDLE_P, safe) / _polynomial(_MIDDLE_Q, safe)
    inverse = 1.0 / square
    tail = (1.0 / _SQRT_PI - inverse * _polynomial(_TAIL_P, inverse) / _polynomial(_TAIL_Q, inverse)) / safe
    scaled = np.where(safe <= _FAR, middle, tail)
    coarse = np.trunc(safe * 16.0) / 16.0
    return np.exp(-coarse * coarse) * np.exp(-(safe - coarse) * (safe + coarse)) * scaled


def erf(x: Array) -> Array:
    """2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    square = np.minimum(size, _NEAR) ** 2
    near = x * _polynomial(_ERF_P, square) / _polynomial(_ERF_Q, square)
    far = np.copysign(1.0 - _erfc_positive(np.maximum(size, _NEAR)), x)
    return np.where(np.isnan(x), x, np.where(size <= _NEAR, near, far))


def erfc(x: Array) -> Array:
    """1 - erf(x), without the cancellation for large x."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    far = _erfc_positive(np.maximum(size, _NEAR))
    return np.where(np.isnan(x), x, np.where(size <= _NEAR, 1.0 - erf(x), np.where(x > 0, far, 2.0 - far)))


def _zeta_minus_one(k: int) -> float:
    """zeta(k) - 1 by Euler-Maclaurin summation from 16 on."""
    n = 16.0
    head = sum(float(number) ** -k for number in range(2, 16))
    tail = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1) / 12 - k * (k + 1) * (k + 2) * n ** (-k - 3) / 720
    return head + tail


_ZETA = tuple((-1) ** k * _zeta_minus_one(k) / k for k in range(30, 1, -1))


def _lgamma_two_plus(z: Array) -> Array:
    """log gamma(2 + z) for abs(z) <= 1/2 (Abramowitz and Stegun 6.1.33 with one more factor taken out)."""
    return z * (1.0 - np.euler_gamma) + z * z * _polynomial(_ZETA, z)


def _lgamma_positive(x: Array) -> Array:
    """log gamma for x >= 1/2: near 1 and 2 by the series there, so that the zeros keep their relative precision."""
    low = np.clip(x, 0.5, 2.5)
    near_two = _lgamma_two_plus(np.where(low >= 1.5, low - 2.0, 0.0))
    z = np.where(low < 1.5, low - 1.0, 0.0)
    near_one = _lgamma_two_plus(z) - np.log1p(z)
    shifted, product = np.maximum(x, 2.5), np.ones_like(x)
    for _ in range(8):
        small = shifted < _LARGE
        product = np.where(small, product * shifted, product)
        shifted = np.where(small, shifted + 1.0, shifted)
    inverse = 1.0 / shifted
    series = _polynomial(_STIRLING[::-1], inverse * inverse) * inverse  # 6.1.41
    large = (shifted - 0.5) * np.log(shifted) - shifted + 0.5 * np.log(2.0 * np.pi) + series - np.log(product)
    large = np.where(np.isinf(x), np.inf, large)
    return np.where(x < 1.5, near_one, np.where(x < 2.5, near_two, large))


def lgamma(x: Array) -> Array:
    """log(abs(gamma(x))); infinite at 0, at the negative integers and at both infinities. Below 1/2 by reflection
    (6.1.17)."""
    x = np.asarray(x, np.float64)
    mirrored = x < 0.5
    positive = _lgamma_positive(np.where(mirrored, 1.0 - np.where(mirrored, x, 0.0), x))
    sine = np.abs(np.sin(np.pi * np.fmod(np.where(mirrored & np.isfinite(x), x, 0.5), 2.0)))
    reflected = np.log(np.pi) - np.log(sine) - positive
    result = np.where(mirrored, reflected, positive)
    pole = mirrored & (x == np.floor(x))
    return np.where(np.isnan(x), x, np.where(pole, np.inf, result))


def digamma(x: Array) -> Array:
    """The derivative of log gamma: recurrence up to 10, then the asymptotic series (6.3.5, 6.3.18); below 0 by
    reflection (6.3.7). At 0 it is an infinity of the other sign, at the negative integers NaN."""
    x = np.asarray(x, np.float64)
    mirrored = x < 0
    shifted = np.where(mirrored, 1.0 - x, x)
    total = np.zeros_like(shifted)
    for _ in range(10):
        small = shifted < _LARGE
        total = np.where(small, total - 1.0 / shifted, total)
        shifted = np.where(small, shifted + 1.0, shifted)
    inverse = 1.0 / shifted
    series = inverse * inverse * _polynomial(_DIGAMMA[::-1], inverse * inverse)
    positive = total + np.log(shifted) - 0.5 * inverse - series
    turn = np.fmod(np.where(mirrored & np.isfinite(x), x, 0.25), 1.0)
    result = np.where(mirrored, positive - np.pi / np.tan(np.pi * turn), positive)
    bad = np.isneginf(x) | (mirrored & (x == np.floor(x)))
    result = np.where(bad, np.nan, result)
    return np.where(x == 0, np.copysign(np.inf, -x), result)
