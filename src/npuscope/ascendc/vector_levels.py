"""The forms in which the API offers a vector instruction: level 0 (mask count), 1 (mask bits), 2 (element count)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from npuscope.ascendc.params import Record
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.arithmetic import Compute, Pair, Types
from npuscope.npu.isa.plain import plain_binary
from npuscope.npu.isa.vector import (
    Strides,
    current_extent,
    elementwise,
    elementwise_count,
    lanes_per_repeat,
    set_lanes,
    set_words,
)
from npuscope.npu.numbers import type_name
from npuscope.npu.tensor import Tensor

WIDE_ARCH = "3510"
MAX_REPEAT = 255


@dataclass(frozen=True, slots=True)
class Instruction:
    """An API function over one vector instruction.

    `computes` says what it does for which element types on every chip, `wider` what NPU arch 3510 adds (8-bit and
    64-bit types only in the count form). With `accumulate` the destination's old content is an operand too.
    """

    operation: str
    mnemonic: str
    computes: Mapping[Types, Pair]
    wider: Mapping[Types, Pair] = field(default_factory=dict)
    accumulate: bool = False
    code: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", opcode(self.mnemonic))

    def choose(self, core: Core, types: Types, count_form: bool = False) -> Compute:
        """The computation for these element types. Raises UserError where the chip has none."""
        pair = self.computes.get(types)
        if pair is None:
            if not self._taken_here(core, types, count_form):
                everything = (*self.computes, *self.wider)
                taken = [choice for choice in everything if self._taken_here(core, choice, count_form)]
                raise type_error(core, self.operation, types, taken)
            pair = self.wider[types]
        return pair[core.registers.saturate]

    def _taken_here(self, core: Core, types: Types, count_form: bool) -> bool:
        if types in self.computes:
            return True
        narrow_or_long = any([dtype.itemsize not in (2, 4) for dtype in types])
        return core.chip.arch == WIDE_ARCH and types in self.wider and (count_form or not narrow_or_long)


def type_error(core: Core, operation: str, types: Types, taken: list[Types]) -> UserError:
    """The error for operand types that an instruction does not take: names it, them, and what it takes."""
    names = f"ascendc.{operation}"
    if not taken:
        return UserError(f"{names} does not exist on {core.chip.name}; only NPU arch {WIDE_ARCH} has it")
    choices = ", ".join(_types_text(choice) for choice in taken)
    return UserError(f"{names} does not take {_types_text(types)} on {core.chip.name}; it takes {choices}")


def _types_text(types: Types) -> str:
    if len(set(types)) == 1:
        return type_name(types[0])
    return f"{type_name(types[0])} from {' and '.join(dict.fromkeys(type_name(dtype) for dtype in types[1:]))}"


def has_vector_unit(core: Core) -> bool:
    """Whether vector instructions run on this core; on a split chip an AIC passes over them (sanitizer.md 3.5)."""
    return core.is_aiv or not core.chip.split


def binary_strides(params: Record) -> tuple[Strides, Strides, Strides]:
    """(block, repeat) strides of dst, src0, src1 from BinaryRepeatParams."""
    return (
        (params.dst_blk_stride, params.dst_rep_stride),
        (params.src0_blk_stride, params.src0_rep_stride),
        (params.src1_blk_stride, params.src1_rep_stride),
    )


def unary_strides(params: Record) -> tuple[Strides, Strides]:
    """(block, repeat) strides of dst and src from UnaryRepeatParams."""
    return (params.dst_blk_stride, params.dst_rep_stride), (params.src_blk_stride, params.src_rep_stride)


def repeat_times(repeat: int) -> int:
    """A repeat operand as the 8-bit unsigned number that the API takes (the IR has it as a signed one)."""
    return repeat & 0xFF if -0x80 <= repeat < 0 else min(max(repeat, 0), MAX_REPEAT)


def check_repeat(core: Core, repeat: int) -> None:
    """Record a repeat count that does not fit; belongs to the instruction last begun."""
    if not -0x80 <= repeat <= MAX_REPEAT:
        core.fault("bad_operand", what="the repeat count", value=repeat, limit=f"0 to {MAX_REPEAT}")


def set_mask(core: Core, mask: int | list[int], itemsize: int) -> None:
    """Mask registers of a level 0 (int) or level 1 (words) call whose widest operand has `itemsize` bytes."""
    if isinstance(mask, list):
        set_words(core, mask)
    else:
        set_lanes(core, mask, itemsize)


def check_mask(core: Core, mask: int | list[int], itemsize: int) -> None:
    """Record a mask of more lanes than a repeat has; belongs to the instruction last begun."""
    if isinstance(mask, list) or core.registers.mask_mode:
        return
    lanes = lanes_per_repeat(itemsize)
    if not 0 <= mask <= lanes:
        core.fault("bad_operand", what="the mask", value=mask, limit=f"0 to {lanes} lanes")


def count_level(
    core: Core,
    site: int,
    instruction: Instruction,
    destination: Tensor,
    sources: tuple[Tensor, ...],
    count: int,
    scalars: tuple[Any, ...] = (),
) -> None:
    """Level 2: `count` elements one after the other; the mask registers are at their defaults afterwards."""
    if len(sources) == 2:  # the commonest, spelt out for speed
        one, two = sources
        compute = instruction.choose(core, (destination.dtype, one.dtype, two.dtype), True)
        if not (instruction.accumulate or scalars) and plain_binary(
            core, site, instruction.code, compute, destination, one, two, count
        ):
            return
    else:
        types: Types = (destination.dtype, *[source.dtype for source in sources])
        compute = instruction.choose(core, types, True)
    elementwise_count(
        core, site, instruction.code, compute, destination, sources, count, instruction.accumulate, scalars
    )


def strided_level(
    core: Core,
    site: int,
    instruction: Instruction,
    destination: Tensor,
    sources: tuple[Tensor, ...],
    mask: int | list[int] | None,
    repeat: int,
    strides: tuple[Strides, ...],
    scalars: tuple[Any, ...] = (),
) -> None:
    """Levels 0 (`mask` is a lane count) and 1 (mask words); None leaves the mask registers as they are."""
    types = (destination.dtype, *[source.dtype for source in sources])
    compute = instruction.choose(core, types)
    itemsize = max([dtype.itemsize for dtype in types])
    if mask is not None:
        set_mask(core, mask, itemsize)
    elementwise(
        core, site, instruction.code, compute, destination, sources, current_extent(core, repeat_times(repeat)),
        strides, instruction.accumulate, scalars,
    )
    check_repeat(core, repeat)
    if mask is not None:
        check_mask(core, mask, itemsize)
