"""How each operand's start address must be aligned (sanitizer.md 5.1, hardware.md 1.3)."""

from __future__ import annotations

from npuscope.trace.schema import Role, Space

SPACE_ALIGNMENT = {
    Space.GM: 1,
    Space.UB: 32,
    Space.L1: 32,
    Space.L0A: 512,
    Space.L0B: 512,
    Space.L0C: 64,
    Space.BT: 64,
    Space.FB: 64,
}
"""Bytes, where nothing else is said for the instruction."""

ELEMENT = 0
"""Stands for the width of one element."""

_ELEMENT_WISE = {
    Role.WRITE: ("vcadd", "vcmax", "vcmin", "reduce_sum", "reduce_max", "reduce_min", "scalar_store"),
    Role.READ: ("scalar_load",),
}
"""Instructions that place single elements."""

EXCEPTIONS: dict[tuple[str, Role, Space], int] = {
    ("mmad", Role.WRITE, Space.L0C): 1024,
    ("mmad_sparse", Role.WRITE, Space.L0C): 1024,
    ("scalar_load", Role.READ, Space.GM): ELEMENT,
    ("scalar_store", Role.WRITE, Space.GM): ELEMENT,
    ("vmrgsort4", Role.READ, Space.UB): 8,
    **{(name, Role.WRITE, Space.UB): 16 for name in ("vcgadd", "vcgmax", "vcgmin")},
    **{(name, role, Space.UB): ELEMENT for role, names in _ELEMENT_WISE.items() for name in names},
}
"""(instruction, role, space) -> alignment where it differs from the space's."""


def required(opcode: str, role: Role, space: Space, itemsize: int) -> int:
    """Alignment in bytes of an operand of instruction `opcode`; `itemsize` is the width of its elements."""
    return EXCEPTIONS.get((opcode, role, space), SPACE_ALIGNMENT[space]) or itemsize
