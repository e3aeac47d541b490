"""One trace row for an operation that the library composes of many vector instructions.

The row is on V with the number of elements as work. Sources are read, destinations written, and the temporary buffer
that the caller gave is written as a whole: what it holds afterwards is the library's business. A buffer that the
framework takes from its own reserve is not in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.npu.core import READ, WRITE, Core
from npuscope.npu.layout import Layout, contiguous
from npuscope.npu.numbers import round_to_float
from npuscope.npu.numbers.dtypes import F16, F32, is_floating
from npuscope.npu.tensor import DType, Tensor
from npuscope.trace.schema import Pipe

V = int(Pipe.V)


def computes_here(core: Core) -> bool:
    """Whether this core has a vector unit; on the AIC of a mixed kernel vector operations do nothing."""
    return core.is_aiv or not core.chip.split


def begin_composed(core: Core, site: int, code: int, work: int, temporary: Tensor | None) -> None:
    """Write the row and the access to the temporary buffer."""
    core.begin(site, V, code, work=work)
    if temporary is not None and temporary.length > 0:
        core.note(WRITE, temporary, contiguous(temporary.length, temporary.dtype.itemsize))


def note_reused(core: Core, tensor: Tensor, layout: Layout, reuse: Any) -> None:
    """isReuseSource: the library may use a float source as working room, so what it holds afterwards is undefined."""
    if reuse and tensor.dtype == F32:
        core.note(WRITE, tensor, layout)


def rounded(core: Core, values: np.ndarray, dtype: DType) -> np.ndarray:
    """A result as the element type it is stored in, rounded once; half obeys the saturation mode."""
    if values.dtype == dtype or not is_floating(dtype):
        return values
    return round_to_float(values, dtype, saturate=core.registers.saturate and dtype == F16)


def map_elements(
    core: Core,
    site: int,
    code: int,
    compute: Any,
    destination: Tensor,
    sources: Sequence[Tensor],
    count: int | None,
    temporary: Tensor | None,
    reuse: Any = False,
) -> None:
    """``destination = compute(*sources)`` for the first `count` elements (None: all of the first source).

    `compute` gets whole arrays in the types they are stored in and may answer in a wider one.
    """
    elements = max(sources[0].length if count is None else count, 0)
    begin_composed(core, site, code, elements, temporary)
    layouts = [contiguous(elements, tensor.dtype.itemsize) for tensor in (destination, *sources)]
    for tensor, layout in zip(sources, layouts[1:], strict=True):
        core.note(READ, tensor, layout)
    values = [core.view(tensor, layout) for tensor, layout in zip(sources, layouts[1:], strict=True)]
    note_reused(core, sources[0], layouts[1], reuse)
    core.store(destination, layouts[0], rounded(core, compute(*values), destination.dtype))
