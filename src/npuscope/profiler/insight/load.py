"""Blocks COMPUTE_LOAD_FIGURE and COMPUTE_LOAD_TABLE: the bars of the pipes, and the figures behind them."""

from __future__ import annotations

from collections.abc import Iterable

from npuscope.profiler.charts.compute_load import Load, Unit
from npuscope.profiler.insight.plain import Json, whole


def load(figures: Iterable[Load], advice: list[str]) -> Json:
    """The document; figures that are not known are left out."""
    return {"subblock_detail": [_figure(item) for item in figures if item.value is not None], "advice": advice}


def _figure(item: Load) -> Json:
    counted = item.unit in (Unit.INSTRUCTIONS, Unit.BYTES)
    return {
        "block_id": item.block,
        "block_type": item.core,
        "name": item.name,
        "unit": int(item.unit),
        "value": _number(item.value, counted),
        "origin_value": _number(item.origin, counted),
    }


def _number(value: float | None, counted: bool) -> int | float:
    known = value or 0.0
    return whole(known) if counted else round(float(known), 6)
