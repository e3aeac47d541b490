"""Which lanes of which repeats a vector instruction handles, for instructions that do more than element-wise work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.core import Core
from npuscope.npu.isa.vector import Extent, V, mask_columns
from npuscope.npu.layout import BLOCK, Layout, bit_mask, prefix_mask, repeats

MAX_REPEAT = 255
"""Repeats of one instruction (sanitizer.md 5.2)."""


@dataclass(frozen=True, slots=True)
class Run:
    """`repeat` repeats from repeat `first` on that share a lane mask: one flag byte per lane, None for all lanes."""

    repeat: int
    mask: bytes | None
    first: int

    @property
    def active(self) -> np.ndarray | None:
        """The mask as bool flags, None for all lanes."""
        return None if self.mask is None else np.frombuffer(self.mask, np.bool_)


def runs(extent: Extent, lanes: int) -> list[Run]:
    """Cut an extent of `lanes` lanes a repeat into runs; none where no lane is active (hardware.md 4.1: a NOP)."""
    if extent.count >= 0:
        full, tail = divmod(extent.count, lanes)
        parts = [Run(full, None, 0)] if full else []
        if tail:
            parts.append(Run(1, prefix_mask(tail, lanes), full))
        return parts
    mask = None if extent.mask is None else bit_mask(extent.mask, lanes)
    if extent.repeat <= 0 or (mask is not None and not any(mask)):
        return []
    return [Run(extent.repeat, None if mask is None or all(mask) else mask, 0)]


def lane_layout(run: Run, lanes: int, itemsize: int, repeat_stride: int | None = None, block_stride: int = 1) -> Layout:
    """An operand of `lanes` elements a repeat, shape (repeat, blocks, elements per block), masked as the run is.

    Strides are in data blocks; repeats follow one another without a gap unless `repeat_stride` says otherwise.
    """
    blocks = lanes * itemsize // BLOCK
    step = blocks if repeat_stride is None else repeat_stride
    return repeats(run.repeat, block_stride, step, itemsize, run.mask, blocks)


def limited_repeat(core: Core, repeat: int) -> int:
    """The repeat count an instruction can take; one it cannot is a fault of the instruction last begun."""
    if 0 <= repeat <= MAX_REPEAT:
        return repeat
    core.fault("bad_operand", what="the repeat count", value=repeat, limit=f"0 to {MAX_REPEAT}")
    return min(max(repeat, 0), MAX_REPEAT)


def begin(core: Core, site: int, opcode: int, extent: Extent, lanes: int) -> Extent:
    """Write the trace row of an instruction that a mask governs: the repeats in ``a``, the mask registers in ``b`` to
    ``d`` as element-wise instructions have them. Returns the extent with a repeat count that the unit takes.
    """
    work = extent.count if extent.count >= 0 else extent.repeat * lanes
    core.begin(site, V, opcode, extent.repeat, *mask_columns(extent), work=work)
    if extent.count >= 0 or 0 <= extent.repeat <= MAX_REPEAT:
        return extent
    return Extent(limited_repeat(core, extent.repeat), extent.mask)


def has_vector_unit(core: Core) -> bool:
    """Whether vector instructions do anything here: the AIC of a split chip skips them (sanitizer.md 3.5)."""
    return core.is_aiv or not core.chip.split
