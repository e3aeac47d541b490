"""``import mstx``, and ``torch.npu.mstx``."""

from __future__ import annotations

import types
from typing import Any

from npuscope.mstx import calls
from npuscope.mstx.ranges import Ranges
from npuscope.mstx.supply import supplied, supply

NAME = "mstx"


def supply_mstx(ranges: Ranges) -> None:
    """Let ``import mstx`` give a module whose ranges are `ranges`, also where the vendor's own is installed: that one
    needs a library which exists on machines with a card only. ``torch.npu.mstx`` is to follow with `attach_mstx`."""
    calls.use(ranges)
    supply(NAME, make_mstx, first=True)


def supply_missing_mstx() -> None:
    """Let ``import mstx`` give a module where there would be none."""
    if not supplied(NAME):
        supply(NAME, make_mstx)


def attach_mstx(npu: Any) -> None:
    """Give ``torch.npu`` its ``mstx``, once that is supplied."""
    if supplied(NAME):
        npu.mstx = make_mstx(NAME)


def make_mstx(name: str) -> types.ModuleType:
    """A module with the calls, those on a hot path bound to the ranges without a step between."""
    module: Any = types.ModuleType(name, "Ranges and marks of this process.")
    ranges = calls.current()
    module.range_start, module.range_end, module.mark = ranges.start, ranges.end, ranges.mark
    module.mstx_range, module.annotate, module.get_tool_id = calls.mstx_range, calls.annotate, calls.get_tool_id
    return module
