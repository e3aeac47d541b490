"""How inner functions are compiled: `outer` ones are called from Python and kept on disk, `inner` ones are part of
those. Dividing by zero gives what numpy gives, without a check each time. None makes arrays, so their owners need not
be counted, which would take a fifth of the time to compile. `outer_free` ones let other threads run meanwhile."""

from __future__ import annotations

from typing import Any

from numba import njit

_outside: dict[str, Any] = {"_nrt": False}
_inside: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options that numba takes and its types do not list."""
outer = njit(cache=True, error_model="numpy", **_outside)
outer_free = njit(cache=True, error_model="numpy", nogil=True, **_outside)
inner = njit(error_model="numpy", **_inside)
