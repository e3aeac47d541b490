"""The vector mask registers: SetMaskCount, SetMaskNorm, SetVectorMask, ResetMask (hardware.md 4.1, vendor's mask page).

Their trace rows hold the registers afterwards in b (mode), c and d (words), as rows of vector instructions do.
"""

from __future__ import annotations

from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import has_vector_unit
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.vector import WORD, lanes_per_repeat, signed_word
from npuscope.npu.numbers import dtype_of
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.trace.schema import Pipe

S = int(Pipe.S)
SET_COUNT, SET_NORM = opcode("set_mask_count"), opcode("set_mask_norm")
SET_MASK, RESET = opcode("set_vector_mask"), opcode("reset_mask")


def _row(core: Core, site: int, code: int) -> None:
    low, high = core.registers.mask
    core.begin(site, S, code, 0, core.registers.mask_mode, signed_word(low), signed_word(high))


@operation("ascendc.set_mask_count")
def set_mask_count(core: Core, site: int) -> None:
    """Counter mode: the low mask word is the element count of each instruction from here on."""
    if has_vector_unit(core):
        core.registers.mask_mode = COUNTER
        _row(core, site, SET_COUNT)


@operation("ascendc.set_mask_norm")
def set_mask_norm(core: Core, site: int) -> None:
    """Normal mode: the mask words select lanes of every repeat."""
    if has_vector_unit(core):
        core.registers.mask_mode = NORMAL
        _row(core, site, SET_NORM)


@operation("ascendc.reset_mask")
def reset_mask(core: Core, site: int) -> None:
    """All lanes; the mode stays as it is."""
    if has_vector_unit(core):
        core.registers.mask = FULL_MASK
        _row(core, site, RESET)


@operation("ascendc.set_vector_mask_l0")
def set_vector_mask_l0(core: Core, site: int, length: int, *, dtype: str, mode: int = NORMAL) -> None:
    """SetVectorMask<T, mode>(len): leading lanes of a repeat of T in normal mode, the element count in counter mode."""
    if not has_vector_unit(core):
        return
    if mode == COUNTER:
        core.registers.mask = (max(length, 0), 0)
        limit, text = WORD, "0 or more"
    else:
        limit = min(lanes_per_repeat(dtype_of(dtype).itemsize), 128)
        ones = (1 << min(max(length, 0), limit)) - 1
        core.registers.mask = (ones & WORD, ones >> 64)
        text = f"0 to {limit} lanes"
    _row(core, site, SET_MASK)
    if not 0 <= length <= limit:
        core.fault("bad_operand", what="the mask length", value=length, limit=text)


@operation("ascendc.set_vector_mask_l1")
def set_vector_mask_l1(
    core: Core, site: int, mask_high: int, mask_low: int, *, dtype: str = "", mode: int = NORMAL
) -> None:
    """SetVectorMask<T, mode>(maskHigh, maskLow): the two words as they are; T and the mode do not change them."""
    if has_vector_unit(core):
        core.registers.mask = (mask_low & WORD, mask_high & WORD)
        _row(core, site, SET_MASK)
