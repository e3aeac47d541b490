"""Vector instructions with two source tensors, at API levels 0 (mask count), 1 (mask bits), 2 (element count)."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.vector import (
    DENSE,
    Compute,
    Strides,
    count_extent,
    current_extent,
    elementwise,
    set_lanes,
    set_words,
)
from npuscope.npu.tensor import Tensor

TABLE: dict[str, tuple[str, Compute]] = {
    "add": ("vadd", np.add),
    "sub": ("vsub", np.subtract),
    "mul": ("vmul", np.multiply),
    "max": ("vmax", np.maximum),
    "min": ("vmin", np.minimum),
}


def binary_strides(params: Record) -> tuple[Strides, Strides, Strides]:
    """(block, repeat) strides of dst, src0, src1 from BinaryRepeatParams."""
    return (
        (params.dst_blk_stride, params.dst_rep_stride),
        (params.src0_blk_stride, params.src0_rep_stride),
        (params.src1_blk_stride, params.src1_rep_stride),
    )


def _register(name: str, code: int, compute: Compute) -> None:
    @operation(f"ascendc.{name}_l2")
    def level2(core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, count: int) -> None:
        if core.is_aiv:
            elementwise(
                core, site, code, compute, dst, (src0, src1), count_extent(core, count), (DENSE, DENSE, DENSE)
            )

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: int, repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        if core.is_aiv:
            if is_set_mask:
                set_lanes(core, mask, dst.dtype.itemsize)
            _strided(core, site, dst, src0, src1, repeat, params)

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: list[int], repeat: int, params: Record,
        *, is_set_mask: bool = False,
    ) -> None:
        if core.is_aiv:
            if is_set_mask:
                set_words(core, mask)
            _strided(core, site, dst, src0, src1, repeat, params)

    def _strided(
        core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, repeat: int, params: Any
    ) -> None:
        elementwise(
            core, site, code, compute, dst, (src0, src1), current_extent(core, repeat), binary_strides(params)
        )


for _name, (_mnemonic, _compute) in TABLE.items():
    _register(_name, opcode(_mnemonic), _compute)
