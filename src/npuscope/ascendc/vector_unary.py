"""Vector instructions with one source tensor, at API levels 0, 1 and 2 (types: the vendor's page of each)."""

from __future__ import annotations

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import Instruction, count_level, has_vector_unit, strided_level, unary_strides
from npuscope.npu.core import Core
from npuscope.npu.isa.arithmetic import (
    F16,
    F32,
    I8,
    I16,
    I32,
    I64,
    NARROW_AND_LONG,
    U16,
    U32,
    reciprocal_root,
    relu,
    same,
    transcendental,
)
from npuscope.npu.tensor import Tensor

FLOATS = (F16, F32)

INSTRUCTIONS = (
    Instruction("abs", "vabs", same(np.absolute, 1, FLOATS), same(np.absolute, 1, (I8, I16, I32, I64))),
    Instruction("exp", "vexp", transcendental(np.exp)),
    Instruction("ln", "vln", transcendental(np.log)),
    Instruction("not", "vnot", same(np.invert, 1, (I16, U16)), same(np.invert, 1, (*NARROW_AND_LONG, I32, U32))),
    Instruction("reciprocal", "vrec", same(np.reciprocal, 1, FLOATS)),
    Instruction("relu", "vrelu", same(relu, 1, (*FLOATS, I32)), same(relu, 1, (I64,))),
    Instruction("rsqrt", "vrsqrt", transcendental(reciprocal_root)),
    Instruction("sqrt", "vsqrt", same(np.sqrt, 1, FLOATS)),
)
NEG = Instruction("neg", "vneg", {}, same(np.negative, 1, (*FLOATS, I8, I16, I32, I64)))


def _register(instruction: Instruction) -> None:
    name = instruction.operation
    _register_count(instruction)

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src: Tensor, mask: int, repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        _strided(core, site, dst, src, mask if is_set_mask else None, repeat, params)

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src: Tensor, mask: list[int], repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        _strided(core, site, dst, src, mask if is_set_mask else None, repeat, params)

    def _strided(
        core: Core, site: int, dst: Tensor, src: Tensor, mask: int | list[int] | None, repeat: int, params: Record
    ) -> None:
        if has_vector_unit(core):
            strided_level(core, site, instruction, dst, (src,), mask, repeat, unary_strides(params))


def _register_count(instruction: Instruction) -> None:
    @operation(f"ascendc.{instruction.operation}_l2")
    def level2(core: Core, site: int, dst: Tensor, src: Tensor, count: int) -> None:
        if has_vector_unit(core):
            count_level(core, site, instruction, dst, (src,), count)


for _instruction in INSTRUCTIONS:
    _register(_instruction)
_register_count(NEG)
