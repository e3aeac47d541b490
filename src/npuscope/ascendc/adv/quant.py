"""AscendQuant with one scale and offset for the whole tensor (the vendor's AscendQuant page, PER_TENSOR)."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.composed import computes_here, map_elements
from npuscope.ascendc.operand_types import types_of, wrong_types
from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.numbers import RoundMode, compute_in_f32, round_to_float, round_to_int
from npuscope.npu.numbers.dtypes import F16, F32
from npuscope.npu.tensor import Tensor

QUANT = opcode("quant")
I8 = np.dtype(np.int8)
SOURCES = types_of("half float")

FIELDS.update(
    {"ascend_quant_config": {"calc_count": 0, "offset_count": 0, "scale_count": 0, "work_local_size": 0}}
)


def quantised(values: np.ndarray, scale: float, offset: float, in_half: bool) -> np.ndarray:
    """round(values * scale + offset) as int8, half to even, saturating.

    `in_half` is the composition of all chips before 3510: a float source, the scale and the offset become half, and
    product and sum are each rounded to half (the page's algorithm diagram). 3510 computes in float32.
    """
    if in_half:
        narrow = values if values.dtype == F16 else round_to_float(values, F16, RoundMode.RINT)
        factor, addend = F16.type(scale), F16.type(offset)
        product = compute_in_f32(np.multiply, narrow, factor)
        return round_to_int(compute_in_f32(np.add, product, addend), I8, RoundMode.RINT)
    wide = values.astype(F32) * F32.type(scale) + F32.type(offset)
    return round_to_int(wide, I8, RoundMode.RINT)


@operation("ascendc.quant")
def quant(
    core: Core, site: int, dst: Tensor, src: Tensor, scale: float, offset: float, count: int | None,
    temporary: Tensor | None, config: Record | None, *, is_reuse_source: Any = False,
) -> None:  # fmt: skip
    """Quantise `count` elements of half or float to int8; a count in the config goes before the call's."""
    if not computes_here(core):
        return
    if dst.dtype != I8 or src.dtype not in SOURCES:
        raise wrong_types(core, site, "quant", "half or float into int8_t", dst, src)
    elements = config.calc_count if config is not None and config.calc_count else count
    in_half = core.chip.arch != "3510"
    map_elements(
        core, site, QUANT, lambda values: quantised(values, scale, offset, in_half), dst, (src,), elements, temporary,
        is_reuse_source,
    )  # fmt: skip
