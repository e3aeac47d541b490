"""tt.extern_elementwise: functions of a vendor's device library, called by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.mlir.tiles.calls import call
from npuscope.mlir.tiles.kinds import dtype_of, element_of
from npuscope.tile.affine import dense
from npuscope.tile.libdevice import FUNCTIONS
from npuscope.tile.overflow import plain

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter

PREFIX = "__nv_"


def extern(writer: TileWriter, op: Op) -> None:
    """tt.extern_elementwise. Raises Unsupported for a function whose meaning is not known."""
    symbol = op.attr_str("symbol")
    function = FUNCTIONS.get(symbol.removeprefix(PREFIX)) if symbol.startswith(PREFIX) else None
    if function is None:
        raise writer.unsupported(f"calls {symbol}, which is no function of libdevice that is known here")
    call(writer, op, typed(function, dtype_of(element_of(op.results[0].type))))


def typed(function: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., np.ndarray]:
    """The function on arrays, its result in the type that the IR says (an integer's bits, whatever its sign)."""

    def apply(*values: Any) -> np.ndarray:
        result = np.asarray(function(*(plain(dense(value)) for value in values)))
        if result.dtype.kind in "iu" and dtype.kind in "iu" and result.dtype.itemsize == dtype.itemsize:
            return result.view(dtype)
        return result.astype(dtype, copy=False)

    return apply


LOWERINGS = {"tt.extern_elementwise": extern}
