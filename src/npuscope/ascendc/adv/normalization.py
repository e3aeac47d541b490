"""RmsNorm: each row over the root of its mean square (the vendor's RmsNorm page)."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.composed import begin_composed, computes_here, rounded
from npuscope.ascendc.adv.shapes import Matrix, matrix_of
from npuscope.ascendc.operand_types import check_types, types_of
from npuscope.ascendc.params import FIELDS
from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.numbers.dtypes import F32
from npuscope.npu.tensor import Tensor

RMSNORM = opcode("rmsnorm")
FLOATS = {"": types_of("half float")}

TILING = (
    "bLength sLength hLength originalHLength reciprocalOfHLength mainBshLength mainBsLength mainBsLengthAlign "
    "loopRound inputTailPos tailBshLength tailBsLength"
)
FIELDS.update({"rmsnorm_tiling": dict.fromkeys(TILING.split(), 0)})


def _shape(src: Tensor, tiling: Any) -> Matrix:
    """Rows and columns from the tiling, or from the source's shape info where it has none."""
    rows, columns = tiling.bLength * tiling.sLength, tiling.hLength
    if rows and columns:
        return Matrix(rows, columns, tiling.originalHLength or columns)
    found = matrix_of(src)
    if found is None:
        raise UserError("rmsnorm does not know its rows; fill bLength, sLength and hLength of the tiling")
    return found


@operation("ascendc.rmsnorm")
def rmsnorm(
    core: Core, site: int, dst: Tensor, src: Tensor, gamma: Tensor, epsilon: float, tiling: Any,
    temporary: Tensor | None = None, *, basic_block: Any = False,
) -> None:  # fmt: skip
    """gamma * x / sqrt(mean(x * x) + epsilon) for each of the B * S rows of H columns, in float32, rounded once.

    Only originalHLength columns count for the mean; the padding behind them is computed like the others. `basic_block`
    promises a shape that the device computes faster.
    """
    if not computes_here(core):
        return
    check_types(core, site, "rmsnorm", FLOATS, dst, src, gamma)
    rows, columns, original = _shape(src, tiling)
    begin_composed(core, site, RMSNORM, rows * columns, temporary)
    size = src.dtype.itemsize
    layout = contiguous(rows * columns, size)
    x = core.load(src, layout).reshape(rows, columns).astype(F32)
    factor = core.load(gamma, contiguous(columns, size)).astype(F32)
    mean = np.square(x[:, :original]).sum(axis=1, keepdims=True, dtype=F32) / F32.type(original)
    scale = F32.type(1) / np.sqrt(mean + np.asarray(epsilon, src.dtype).astype(F32))
    core.store(dst, layout, rounded(core, x * scale * factor, dst.dtype).reshape(-1))
    if basic_block and (columns % 64 or columns >= 2048 or rows % 8):
        core.fault(
            "bad_operand", what="the shape of an rmsnorm with basic_block", value=(rows, columns),
            limit="rows a multiple of 8, columns a multiple of 64 below 2048",
        )  # fmt: skip
