"""Vector instructions with a tensor and a scalar, which is cast to the element type first, at API levels 0, 1 and 2.

Sources: the vendor's page of each instruction (types, ranges of shift amounts). Without isSetMask the count form
ignores its count and runs once under the mask registers as they are (vendor's mask page).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import (
    Instruction,
    count_level,
    has_vector_unit,
    strided_level,
    unary_strides,
)
from npuscope.npu.core import Core
from npuscope.npu.isa.arithmetic import (
    BF16,
    F16,
    F32,
    I8,
    I16,
    I32,
    I64,
    NARROW_AND_LONG,
    U8,
    U16,
    U32,
    U64,
    Pair,
    Table,
    axpy,
    leaky_relu,
    pair,
    same,
    saturating_axpy,
    widening_multiply_add,
)
from npuscope.npu.isa.vector import Strides, as_element
from npuscope.npu.layout import BLOCK, REPEAT_BYTES
from npuscope.npu.numbers import shift_left, shift_right
from npuscope.npu.numbers.dtypes import Array
from npuscope.npu.tensor import Tensor

NUMBERS = (F16, F32, I16, I32)
SHIFTED = (I16, U16, I32, U32)
SHIFTS = frozenset({"shift_left", "shift_right"})


def _axpy_table(*dtypes: np.dtype) -> Table:
    """Axpy of one type; its arguments are the source, the destination's old content and the scalar."""
    return {
        (dtype, dtype): Pair(axpy, saturating_axpy) if dtype in (F16, BF16) else pair(axpy, dtype) for dtype in dtypes
    }


def _widening_axpy(values: Array, old: Array, scalar: Any) -> Array:
    return widening_multiply_add(values, scalar, old)


INSTRUCTIONS = (
    Instruction("adds", "vadds", same(np.add, 1, NUMBERS), same(np.add, 1, (*NARROW_AND_LONG, BF16))),
    Instruction("muls", "vmuls", same(np.multiply, 1, NUMBERS), same(np.multiply, 1, (I64, U64, BF16))),
    Instruction("maxs", "vmaxs", same(np.maximum, 1, NUMBERS), same(np.maximum, 1, (*NARROW_AND_LONG, BF16))),
    Instruction("mins", "vmins", same(np.minimum, 1, NUMBERS), same(np.minimum, 1, (*NARROW_AND_LONG, BF16))),
    Instruction("leaky_relu", "vlrelu", same(leaky_relu, 1, (F16, F32))),
    Instruction("shift_left", "vshl", same(shift_left, 1, SHIFTED), same(shift_left, 1, (I8, U8, I64, U64))),
    Instruction("shift_right", "vshr", same(shift_right, 1, SHIFTED), same(shift_right, 1, (I8, U8, I64, U64))),
    Instruction("axpy", "vaxpy", {**_axpy_table(F16, F32), (F32, F16): Pair(_widening_axpy, _widening_axpy)},
                _axpy_table(BF16, I64, U64), accumulate=True),
)


def _operand(instruction: Instruction, scalar: Any, src: Tensor) -> Any:
    """The scalar as the instruction takes it: an element, or a shift amount held within the element's width."""
    element = as_element(scalar, src.dtype)
    if instruction.operation in SHIFTS:
        return min(max(int(element), 0), 8 * src.dtype.itemsize)
    return element


def _check_amount(core: Core, instruction: Instruction, scalar: Any, src: Tensor) -> None:
    """Record a shift amount that the device does not take; belongs to the instruction last begun."""
    width = 8 * src.dtype.itemsize
    if instruction.operation in SHIFTS and not 0 <= int(scalar) <= width:
        core.fault("bad_operand", what="the shift amount", value=int(scalar), limit=f"0 to {width}")


def _dense(dst: Tensor, src: Tensor) -> tuple[Strides, Strides]:
    """Strides of operands without gaps."""
    lanes = REPEAT_BYTES // max(dst.dtype.itemsize, src.dtype.itemsize)
    return (1, lanes * dst.dtype.itemsize // BLOCK), (1, lanes * src.dtype.itemsize // BLOCK)


def _register(instruction: Instruction) -> None:
    name = instruction.operation

    @operation(f"ascendc.{name}_l2")
    def level2(
        core: Core, site: int, dst: Tensor, src: Tensor, scalar: Any, count: int, *, is_set_mask: bool = False
    ) -> None:
        if not has_vector_unit(core):
            return
        if is_set_mask or name == "axpy":  # Axpy has no isSetMask in its count form
            count_level(core, site, instruction, dst, (src,), count, (_operand(instruction, scalar, src),))
            _check_amount(core, instruction, scalar, src)
        else:
            _strided(core, site, dst, src, scalar, None, 1, _dense(dst, src))

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src: Tensor, scalar: Any, mask: int, repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        if has_vector_unit(core):
            _strided(core, site, dst, src, scalar, mask if is_set_mask else None, repeat, unary_strides(params))

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src: Tensor, scalar: Any, mask: list[int], repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        if has_vector_unit(core):
            _strided(core, site, dst, src, scalar, mask if is_set_mask else None, repeat, unary_strides(params))

    def _strided(
        core: Core, site: int, dst: Tensor, src: Tensor, scalar: Any, mask: int | list[int] | None, repeat: int,
        strides: tuple[Strides, Strides],
    ) -> None:
        scalars = (_operand(instruction, scalar, src),)
        strided_level(core, site, instruction, dst, (src,), mask, repeat, strides, scalars)
        _check_amount(core, instruction, scalar, src)


for _instruction in INSTRUCTIONS:
    _register(_instruction)
