"""The functions of CUDA's libdevice by name, without the "__nv_" that they all begin with.

Where a function comes for two float types, the one for float32 has an "f" more at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npuscope.tile import bits, directed, special
from npuscope.tile.floats import reciprocal_root
from npuscope.tile.integers import high_product_unsigned
from npuscope.tile.special import from_torch, through_wide

Function = Callable[..., Any]


def _flag(function: Function) -> Function:
    return lambda value: function(value).astype(np.int32)


def _exp10(value: np.ndarray) -> np.ndarray:
    return np.power(10.0, value.astype(np.float64)).astype(value.dtype)


def _positive_difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.where(one <= other, one.dtype.type(0), one - other)


def _norm(*values: np.ndarray) -> np.ndarray:
    """The length of a vector, without overflow on the way."""
    wide = [np.abs(value.astype(np.longdouble)) for value in values]
    length = np.sqrt(sum(value * value for value in wide))
    infinite = np.any([np.isinf(value) for value in np.broadcast_arrays(*wide)], axis=0)
    return np.where(infinite, np.inf, length).astype(values[0].dtype)


def _inverse_norm(*values: np.ndarray) -> np.ndarray:
    return values[0].dtype.type(1) / _norm(*values)


def _power(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.power(one.astype(np.float64), other.astype(np.float64)).astype(one.dtype)


def _scaled(value: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    return np.ldexp(value, exponent.astype(np.int32))


FLOATS: dict[str, Function] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos,
    "cosh": np.cosh, "cospi": special.cosine_of_pi, "cyl_bessel_i0": from_torch("i0"),
    "cyl_bessel_i1": from_torch("i1"),
    "erf": special.erf, "erfc": special.erfc, "erfcinv": special.inverse_erfc, "erfcx": special.scaled_erfc,
    "erfinv": special.inverse_erf, "exp": np.exp, "exp10": _exp10, "exp2": np.exp2, "expm1": np.expm1, "fabs": np.abs,
    "fdim": _positive_difference, "floor": np.floor, "fma": partial(directed.multiply_add, "rn"), "fmax": np.fmax,
    "fmin": np.fmin, "fmod": np.fmod, "hypot": _norm, "ilogb": special.whole_exponent, "j0": special.of_order(0),
    "j1": special.of_order(1), "jn": special.bessel_first, "ldexp": _scaled,
    "lgamma": special.log_gamma, "llrint": lambda value: directed.to_integer(np.dtype(np.int64), "rn", value),
    "llround": lambda value: directed.to_integer(np.dtype(np.int64), "rn", special.away_from_zero(value)),
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logb": special.exponent,
    "nearbyint": np.rint,
    "nextafter": np.nextafter, "norm3d": _norm, "norm4d": _norm, "normcdf": special.normal,
    "normcdfinv": special.inverse_normal, "pow": _power, "powi": _power, "rcbrt": lambda value: 1 / np.cbrt(value),
    "remainder": special.remainder, "rhypot": _inverse_norm, "rint": np.rint, "rnorm3d": _inverse_norm,
    "rnorm4d": _inverse_norm, "round": special.away_from_zero, "rsqrt": reciprocal_root, "scalbn": _scaled,
    "sin": np.sin, "sinh": np.sinh, "sinpi": special.sine_of_pi, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "tgamma": special.gamma, "trunc": np.trunc, "y0": from_torch("bessel_y0"), "y1": from_torch("bessel_y1"),
    "yn": special.bessel_second,
}  # fmt: skip
"""Functions that have a name for float64 and one for float32."""


def _saturate(value: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(value, nan=0.0, posinf=1.0, neginf=0.0), 0, 1).astype(value.dtype)


def _high_word(value: np.ndarray) -> np.ndarray:
    return (np.ascontiguousarray(value).view(np.int64) >> 32).astype(np.int32)


def _low_word(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value).view(np.int64).astype(np.int32)


def _of_words(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    words = (high.astype(np.int64) << 32) | low.astype(np.int64) & 0xFFFFFFFF
    return words.view(np.float64)


def _reciprocal_high(value: np.ndarray) -> np.ndarray:
    inverse = np.ascontiguousarray(1.0 / value).view(np.int64)
    return (inverse & ~np.int64(0xFFFFFFFF)).view(np.float64)


def _view(dtype: type) -> Function:
    return lambda value: np.ascontiguousarray(value).view(dtype)


def _high_product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    high = high_product_unsigned(one, other)
    result: np.ndarray = high - np.where(one < 0, other, 0) - np.where(other < 0, one, 0)
    return result.astype(one.dtype)


def _low24(value: np.ndarray) -> np.ndarray:
    return (value.astype(np.int64) << 40) >> 40


def _product24(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (_low24(one) * _low24(other)).astype(np.int32)


def _unsigned_product24(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    mask = np.int64(0xFFFFFF)
    return ((one.astype(np.int64) & mask) * (other.astype(np.int64) & mask)).astype(np.int32)


def _unsigned(function: Function) -> Function:
    """A function of numbers without a sign, for the same bits with one."""
    return lambda *values: function(*(bits.bare(value) for value in values))


def _distance(one: np.ndarray, other: np.ndarray, more: np.ndarray) -> np.ndarray:
    return bits.absolute_difference(one, other).astype(np.int64) + more


OTHERS: dict[str, Function] = {
    "abs": np.abs, "llabs": np.abs, "brev": bits.reversed_bits, "brevll": bits.reversed_bits,
    "byte_perm": bits.permuted_bytes, "clz": bits.leading_zeros, "clzll": bits.leading_zeros, "ffs": bits.first_one,
    "ffsll": bits.first_one, "popc": bits.count_ones, "popcll": bits.count_ones, "mul24": _product24,
    "umul24": _unsigned_product24, "mulhi": _high_product, "mul64hi": _high_product, "umulhi": high_product_unsigned,
    "umul64hi": high_product_unsigned, "sad": _distance, "usad": _unsigned(_distance),
    "hadd": partial(bits.half_sum, upwards=False), "rhadd": partial(bits.half_sum, upwards=True),
    "uhadd": _unsigned(partial(bits.half_sum, upwards=False)),
    "urhadd": _unsigned(partial(bits.half_sum, upwards=True)),
    "saturatef": _saturate, "finitef": _flag(np.isfinite), "isfinited": _flag(np.isfinite), "isinff": _flag(np.isinf),
    "isinfd": _flag(np.isinf), "isnanf": _flag(np.isnan), "isnand": _flag(np.isnan), "signbitf": _flag(np.signbit),
    "signbitd": _flag(np.signbit), "double2hiint": _high_word, "double2loint": _low_word, "hiloint2double": _of_words,
    "rcp64h": _reciprocal_high, "float_as_int": _view(np.int32), "float_as_uint": _view(np.int32),
    "int_as_float": _view(np.float32), "uint_as_float": _view(np.float32), "double_as_longlong": _view(np.int64),
    "longlong_as_double": _view(np.float64), "frsqrt_rn": through_wide(reciprocal_root),
    "fast_cosf": np.cos, "fast_exp10f": _exp10, "fast_expf": np.exp, "fast_fdividef": np.divide,
    "fast_log10f": np.log10, "fast_log2f": np.log2, "fast_logf": np.log, "fast_powf": _power, "fast_sinf": np.sin,
    "fast_tanf": np.tan,
}  # fmt: skip

ROUNDED: dict[str, Callable[..., np.ndarray]] = {
    "add": directed.add, "sub": directed.subtract, "mul": directed.multiply, "div": directed.divide,
    "rcp": directed.reciprocal, "sqrt": directed.root,
}  # fmt: skip
INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
REALS = {"float": np.float32, "double": np.float64}


def _to_integer(dtype: np.dtype[Any], mode: str) -> Function:
    return lambda value: directed.to_integer(dtype, mode, value)


def _from_integer(source: np.dtype[Any], dtype: np.dtype[Any], mode: str) -> Function:
    return lambda value: directed.narrow(dtype, mode, np.ascontiguousarray(value).view(source))


def _table() -> dict[str, Function]:
    table = dict(OTHERS)
    for name, function in FLOATS.items():
        table[name] = table[name + "f"] = function
    for mode in directed.MODES:
        for letter in "fd":
            for name, rounded in ROUNDED.items():
                table[f"{letter}{name}_{mode}"] = partial(rounded, mode)
        table[f"fma_{mode}"] = table[f"fmaf_{mode}"] = partial(directed.multiply_add, mode)
        table[f"double2float_{mode}"] = partial(directed.narrow, np.dtype(np.float32), mode)
        for real, wide in REALS.items():
            for word, kind in INTEGERS.items():
                table[f"{real}2{word}_{mode}"] = _to_integer(np.dtype(kind), mode)
                table[f"{word}2{real}_{mode}"] = _from_integer(np.dtype(kind), np.dtype(wide), mode)
    return table


FUNCTIONS = _table()
"""Every function by its name."""
