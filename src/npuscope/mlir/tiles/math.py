"""math: functions of one number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npuscope.mlir.tiles.calls import pure
from npuscope.tile import floats
from npuscope.tile.special import erf


def _of(function: Callable[[np.ndarray], np.ndarray]) -> Any:
    return pure(partial(floats.through, function))


def _power(one: np.ndarray, other: Any) -> np.ndarray:
    return np.power(one, floats.dense(other)).astype(one.dtype)


LOWERINGS = {
    "math.exp": _of(np.exp),
    "math.exp2": _of(np.exp2),
    "math.expm1": _of(np.expm1),
    "math.log": _of(np.log),
    "math.log2": _of(np.log2),
    "math.log10": _of(np.log10),
    "math.log1p": _of(np.log1p),
    "math.sqrt": _of(np.sqrt),
    "math.rsqrt": _of(floats.reciprocal_root),
    "math.sin": _of(np.sin),
    "math.cos": _of(np.cos),
    "math.tan": _of(np.tan),
    "math.tanh": _of(np.tanh),
    "math.sinh": _of(np.sinh),
    "math.cosh": _of(np.cosh),
    "math.asin": _of(np.arcsin),
    "math.acos": _of(np.arccos),
    "math.atan": _of(np.arctan),
    "math.erf": _of(erf),
    "math.absf": pure(np.abs),
    "math.absi": pure(lambda value: np.abs(floats.dense(value))),
    "math.floor": _of(np.floor),
    "math.ceil": _of(np.ceil),
    "math.round": _of(lambda value: np.trunc(value + np.copysign(value.dtype.type(0.5), value))),
    "math.roundeven": _of(np.rint),
    "math.trunc": _of(np.trunc),
    "math.fma": pure(floats.multiply_add),
    "math.powf": pure(_power),
    "math.fpowi": pure(_power),
    "math.atan2": pure(np.arctan2),
    "math.copysign": pure(np.copysign),
    "math.isnan": pure(np.isnan),
    "math.isinf": pure(np.isinf),
}
