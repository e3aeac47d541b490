"""SetAtomic*: what later copies to global memory do with the old content (hardware.md 3.5)."""

from __future__ import annotations

from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.atomic import ATOMIC_TYPES
from npuscope.npu.numbers import dtype_of, type_name
from npuscope.trace.schema import Pipe

S = int(Pipe.S)
SET_ATOMIC = opcode("set_atomic")

STORE_TYPES = ("", "float", "half", "int16_t", "int32_t", "int8_t", "bfloat16_t")
"""AtomicDtype of SetStoreAtomicConfig, by its number; 0 is off."""
STORE_OPERATIONS = ("add", "max", "min")
"""AtomicOp by its number. The vendor documents 0; the others are what GetStoreAtomicConfig gives here after
SetAtomicMax and SetAtomicMin."""


def _set(core: Core, site: int, operation_name: str | None, dtype: str) -> None:
    core.begin(site, S, SET_ATOMIC, STORE_TYPES.index(dtype))
    core.registers.atomic_operation = operation_name
    core.registers.atomic_dtype = dtype


def _checked(dtype: str, name: str) -> str:
    kind = type_name(dtype_of(dtype))
    if kind not in ATOMIC_TYPES:
        raise UserError(f"{name} takes {', '.join(ATOMIC_TYPES)}, not {kind}")
    return kind


@operation("ascendc.set_atomic_add")
def set_atomic_add(core: Core, site: int, *, dtype: str) -> None:
    """Copies to GM add to what is there."""
    _set(core, site, "add", _checked(dtype, "SetAtomicAdd"))


@operation("ascendc.set_atomic_max")
def set_atomic_max(core: Core, site: int, *, dtype: str) -> None:
    """Copies to GM keep the larger element."""
    _set(core, site, "max", _checked(dtype, "SetAtomicMax"))


@operation("ascendc.set_atomic_min")
def set_atomic_min(core: Core, site: int, *, dtype: str) -> None:
    """Copies to GM keep the smaller element."""
    _set(core, site, "min", _checked(dtype, "SetAtomicMin"))


@operation("ascendc.set_atomic_type")
def set_atomic_type(core: Core, site: int, *, dtype: str) -> None:
    """Only the element type of atomic copies; whether and how they combine stays."""
    _set(core, site, core.registers.atomic_operation, _checked(dtype, "SetAtomicType"))


@operation("ascendc.set_atomic_none")
def set_atomic_none(core: Core, site: int) -> None:
    """Copies to GM overwrite again."""
    _set(core, site, None, "")


@operation("ascendc.set_store_atomic_config")
def set_store_atomic_config(core: Core, site: int, *, atomic_type: int, atomic_op: int) -> None:
    """The same registers by number: AtomicDtype (0: off) and AtomicOp (0: sum)."""
    if not 0 <= atomic_type < len(STORE_TYPES) or not 0 <= atomic_op < len(STORE_OPERATIONS):
        raise UserError(f"SetStoreAtomicConfig has no type {atomic_type} with operation {atomic_op}")
    _set(core, site, STORE_OPERATIONS[atomic_op] if atomic_type else None, STORE_TYPES[atomic_type])


@operation("ascendc.get_store_atomic_config")
def get_store_atomic_config(core: Core, site: int) -> tuple[int, int]:
    """(AtomicDtype, AtomicOp) as numbers; type 0 where copies overwrite."""
    name = core.registers.atomic_operation
    if name is None:
        return 0, 0
    return STORE_TYPES.index(core.registers.atomic_dtype), STORE_OPERATIONS.index(name)
