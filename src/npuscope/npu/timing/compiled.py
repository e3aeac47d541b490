"""How the model's inner functions are compiled: `outer` ones are called from Python and kept on disk, `inner` ones are
part of those. Dividing by zero gives what numpy gives, without a check each time."""

from __future__ import annotations

from typing import Any

from numba import njit

outer = njit(cache=True, error_model="numpy")
_options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # what numba's types do not list
inner = njit(error_model="numpy", **_options)
