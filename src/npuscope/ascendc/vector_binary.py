"""Vector instructions with two source tensors, at API levels 0 (mask count), 1 (mask bits), 2 (element count).

Level 3 (an operator on whole tensors) exists for add, sub, mul and div. Types are those of the vendor's page of each
instruction: the ones of NPU arch 2002 and 2201 first, then what 3510 adds. Integer division of 3510 is not simulated.
"""

from __future__ import annotations

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import (
    Instruction,
    binary_strides,
    count_level,
    has_vector_unit,
    strided_level,
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
    abs_sub,
    add_dequantise_relu,
    exp_sub,
    leaky_relu,
    mul_cast,
    multiply_add,
    pair,
    relu_cast,
    relu_pair,
    same,
    widening_multiply_add,
)
from npuscope.npu.isa.dequantise import half_scale
from npuscope.npu.tensor import Tensor

FLOATS = (F16, F32)
NUMBERS = (F16, F32, I16, I32)
BITS = (I16, U16)
LONG = (I64, U64)

_WIDENING: Table = {(F32, F16, F16): Pair(widening_multiply_add, widening_multiply_add)}


def _relu_casts(step: np.ufunc) -> Table:
    return {(dst, src, src): relu_cast(step, dst, src) for dst, src in ((I8, F16), (I8, I16), (F16, F32))}


INSTRUCTIONS = (
    Instruction("add", "vadd", same(np.add, 2, NUMBERS), same(np.add, 2, (*NARROW_AND_LONG, U16, U32, BF16))),
    Instruction("sub", "vsub", same(np.subtract, 2, NUMBERS), same(np.subtract, 2, (*NARROW_AND_LONG, U16, U32, BF16))),
    Instruction("mul", "vmul", same(np.multiply, 2, NUMBERS), same(np.multiply, 2, (*LONG, U16, U32, BF16))),
    Instruction("div", "vdiv", same(np.divide, 2, FLOATS)),
    Instruction("max", "vmax", same(np.maximum, 2, NUMBERS), same(np.maximum, 2, (*NARROW_AND_LONG, U16, U32, BF16))),
    Instruction("min", "vmin", same(np.minimum, 2, NUMBERS), same(np.minimum, 2, (*NARROW_AND_LONG, U16, U32, BF16))),
    Instruction("and", "vand", same(np.bitwise_and, 2, BITS), same(np.bitwise_and, 2, (*NARROW_AND_LONG, I32, U32))),
    Instruction("or", "vor", same(np.bitwise_or, 2, BITS), same(np.bitwise_or, 2, (*NARROW_AND_LONG, I32, U32))),
    Instruction("add_relu", "vaddrelu", {(t, t, t): relu_pair(np.add, t) for t in (*FLOATS, I16)},
                {(I64, I64, I64): relu_pair(np.add, I64)}),
    Instruction("sub_relu", "vsubrelu", {(t, t, t): relu_pair(np.subtract, t) for t in (*FLOATS, I16)},
                {(I64, I64, I64): relu_pair(np.subtract, I64)}),
    Instruction("fused_mul_add", "vmadd", multiply_add(FLOATS, addend_last=False),
                multiply_add((BF16, *LONG), addend_last=False), accumulate=True),
    Instruction("fused_mul_add_relu", "vmaddrelu", multiply_add(FLOATS, addend_last=False, rectified=True),
                multiply_add((I64,), addend_last=False, rectified=True), accumulate=True),
    Instruction("mul_add_dst", "vmla", {**multiply_add(FLOATS, addend_last=True), **_WIDENING},
                multiply_add(LONG, addend_last=True), accumulate=True),
    Instruction("add_deq_relu", "vadddeqrelu",
                {(F16, I32, I32): Pair(add_dequantise_relu(False), add_dequantise_relu(True))}),
    Instruction("mul_cast", "vmulconv", {(dst, F16, F16): mul_cast(dst) for dst in (I8, U8)}),
    Instruction("add_relu_cast", "vaddreluconv", _relu_casts(np.add)),
    Instruction("sub_relu_cast", "vsubreluconv", _relu_casts(np.subtract)),
)
WHOLE_TENSORS = frozenset({"add", "sub", "mul", "div"})

ONLY_3510 = (
    Instruction("fused_abs_sub", "vabssub", {}, {(t, t, t): pair(abs_sub, t) for t in FLOATS}),
    Instruction("fused_exp_sub", "vexpsub", {},
                {(dst, src, src): pair(exp_sub(dst), dst) for dst in FLOATS for src in FLOATS}),
    Instruction("prelu", "vprelu", {}, same(leaky_relu, 2, FLOATS)),
)
"""Count forms alone, of NPU arch 3510 (vendor's AbsSub, ExpSub and Prelu pages)."""


def whole_length(core: Core, tensor: Tensor) -> int:
    """Elements of a tensor: what the kernel declared, else up to the end of its buffer."""
    if tensor.length >= 0:
        return tensor.length
    buffer = core.recorder.buffers[tensor.buffer]
    return max(buffer.base + buffer.size - tensor.address, 0) // tensor.dtype.itemsize


def _register(instruction: Instruction) -> None:
    """Levels 0, 1 and 2 of an instruction; add_deq_relu has the scale of SetDeqScale as a hidden operand."""
    name = instruction.operation
    scaled = name == "add_deq_relu"

    @operation(f"ascendc.{name}_l2")
    def level2(core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, count: int) -> None:
        if has_vector_unit(core):
            count_level(
                core, site, instruction, dst, (src0, src1), count, (half_scale(core),) if scaled else ()
            )

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: int, repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        _strided(core, site, dst, src0, src1, mask if is_set_mask else None, repeat, params)

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: list[int], repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        _strided(core, site, dst, src0, src1, mask if is_set_mask else None, repeat, params)

    def _strided(
        core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: int | list[int] | None, repeat: int,
        params: Record,
    ) -> None:
        if has_vector_unit(core):
            strided_level(
                core, site, instruction, dst, (src0, src1), mask, repeat, binary_strides(params),
                (half_scale(core),) if scaled else (),
            )


def _register_whole(instruction: Instruction) -> None:
    @operation(f"ascendc.{instruction.operation}_l3")
    def level3(core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor) -> None:
        if has_vector_unit(core):
            count_level(core, site, instruction, dst, (src0, src1), whole_length(core, dst))


def _register_count(instruction: Instruction) -> None:
    @operation(f"ascendc.{instruction.operation}_l2")
    def level2(core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, count: int) -> None:
        if has_vector_unit(core):
            count_level(core, site, instruction, dst, (src0, src1), count)


for _instruction in INSTRUCTIONS:
    _register(_instruction)
    if _instruction.operation in WHOLE_TENSORS:
        _register_whole(_instruction)
for _instruction in ONLY_3510:
    _register_count(_instruction)
