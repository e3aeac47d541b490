"""Atomic writes of the data movers to global memory: add, max and min in the configured type (hardware.md 3.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.npu.core import ATOMIC, Core
from npuscope.npu.layout import Layout
from npuscope.npu.numbers import add, compute_in_f32, dtype_of, is_floating, type_name
from npuscope.npu.tensor import Tensor

ATOMIC_TYPES = ("int8_t", "int16_t", "half", "bfloat16_t", "int32_t", "float")
"""Types of SetAtomicAdd, SetAtomicMax and SetAtomicMin (vendor's pages of these functions)."""

_COMBINE: dict[str, Callable[..., Any]] = {"add": np.add, "max": np.maximum, "min": np.minimum}


def accumulate(core: Core, destination: Tensor, layout: Layout, values: Any) -> None:
    """Combine `values` (broadcastable to the layout, of the destination's type) with what global memory holds.

    The bytes count as elements of the type that SetAtomic* named; where that type is not as wide as the tensor's own, a
    fault is recorded and the tensor's type is used. Integers wrap and floats follow IEEE, or saturate with CTRL[48]
    clear (vendor's table of boundary values of atomics). The access has role ATOMIC.
    """
    operation = core.registers.atomic_operation
    kind = dtype_of(core.registers.atomic_dtype)
    if kind.itemsize != destination.dtype.itemsize:
        core.fault(
            "bad_operand", what="the type of the atomic mode", value=type_name(kind),
            limit=f"elements as wide as the destination's {type_name(destination.dtype)}",
        )
        kind = destination.dtype
    target = destination if kind == destination.dtype else destination.cast(kind)
    core.note(ATOMIC, destination, layout)
    update = np.broadcast_to(np.ascontiguousarray(values, destination.dtype).view(kind), layout.shape)
    core.put(target, layout, _combined(str(operation), core.view(target, layout), update, core.registers.saturate))


def _combined(operation: str, old: np.ndarray, update: np.ndarray, saturate: bool) -> np.ndarray:
    if is_floating(old.dtype) and old.dtype.itemsize <= 4:
        return compute_in_f32(_COMBINE[operation], old, update, saturate=saturate)
    if operation == "add":
        return add(old, update, saturate and old.dtype.itemsize < 8)
    return np.asarray(_COMBINE[operation](old, update))
