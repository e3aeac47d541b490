"""CumSum: running sums over the rows or along each row of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.composed import begin_composed, computes_here, note_reused, rounded
from npuscope.ascendc.adv.shapes import Matrix, matrix_of
from npuscope.ascendc.operand_types import check_types, types_of
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.numbers.dtypes import F32
from npuscope.npu.tensor import Tensor

CUMSUM = opcode("cumsum")
FLOATS = {"": types_of("half float")}


@operation("ascendc.cumsum", variadic=("rest",))
def cumsum(core: Core, site: int, dst: Tensor, last: Tensor, src: Tensor, rest: list[Any]) -> None:
    """CumSum(dst, last, src, [temporary], last_axis, reuse, output_last): sums in float32 in the order of the elements,
    rounded at the end (the vendor's CumSum page). With `last_axis` each row is summed up, else each column.

    With `output_last` the last row, or the last element of each row, also goes to `last`. The matrix is the one of the
    source's shape info; without one it is a single row.
    """
    *temporary, last_axis, reuse, output_last = rest
    if not computes_here(core):
        return
    check_types(core, site, "cumsum", FLOATS, dst, last, src)
    length = max(src.length, 0)
    rows, columns, _ = matrix_of(src) or Matrix(1, length, length)
    begin_composed(core, site, CUMSUM, rows * columns, temporary[0] if temporary else None)
    layout = contiguous(rows * columns, src.dtype.itemsize)
    values = core.load(src, layout).reshape(rows, columns).astype(F32)
    note_reused(core, src, layout, reuse)
    sums = rounded(core, np.cumsum(values, axis=1 if last_axis else 0, dtype=F32), dst.dtype)
    core.store(dst, layout, sums.reshape(-1))
    if output_last and rows * columns:
        final = sums[:, -1] if last_axis else sums[-1]
        core.store(last, contiguous(final.size, last.dtype.itemsize), final)
