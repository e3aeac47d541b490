"""Which element types an operation takes on which chip, and how a wrong one is said."""

from __future__ import annotations

from typing import Any

from npuscope.errors import UserError
from npuscope.npu.core import Core
from npuscope.npu.numbers import dtype_of, type_name
from npuscope.npu.tensor import Tensor

Types = dict[str, frozenset[Any]]
"""Architecture -> element types; the entry "" stands for every architecture without one of its own."""


def types_of(names: str) -> frozenset[Any]:
    """A set of element types from Ascend C names: ``types_of("half float")``."""
    return frozenset(dtype_of(name) for name in names.split())


def check_types(core: Core, site: int, operation: str, types: Types, *tensors: Tensor) -> None:
    """Raise UserError unless all `tensors` have one element type that `operation` takes on this chip."""
    taken = types.get(core.chip.arch)
    if taken is None:
        taken = types[""]
    first = tensors[0].dtype
    if first in taken and all(tensor.dtype == first for tensor in tensors[1:]):
        return
    raise wrong_types(core, site, operation, f"one of {_listed(taken)} for all operands", *tensors)


def wrong_types(core: Core, site: int, operation: str, wanted: str, *tensors: Tensor) -> UserError:
    """The error for operands of the wrong element types, at the user's line."""
    frames = core.recorder.sites[site].frames
    where = f"{frames[0].file}:{frames[0].line}: " if frames else ""
    given = ", ".join(type_name(tensor.dtype) for tensor in tensors)
    return UserError(f"{where}{operation} takes {wanted} on {core.chip.name}, not {given}")


def _listed(types: frozenset[Any]) -> str:
    return ", ".join(sorted(type_name(dtype) for dtype in types))


def absent(core: Core, operation: str, where: str) -> None:
    """Note that the chip has no such instruction; what it would do is simulated all the same."""
    core.fault("bad_operand", what=operation, value=f"used on {core.chip.name}", limit=f"it on {where}")
