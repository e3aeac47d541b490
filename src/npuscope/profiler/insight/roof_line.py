"""Block ROOF_LINE: the rooflines."""

from __future__ import annotations

from npuscope.profiler.charts.roofline import Roof, Roofline
from npuscope.profiler.insight.plain import Json, figure

DIGITS = 9
"""Decimals of a point: a short kernel's is far below one operation a byte."""


def roof_line(chart: Roofline) -> Json | None:
    """The document; None where nothing that computes was counted."""
    if not chart.charts:
        return None
    return {
        "multiple_rooflines": [
            {"title": picture.title, "rooflines": [_roof(line) for line in picture.lines]} for picture in chart.charts
        ],
        "advice": chart.advice,
    }


def _roof(line: Roof) -> Json:
    return {
        "computility_name": line.unit,
        "computility": round(line.peak, DIGITS),
        "bw_name": line.path,
        "bw": round(line.bandwidth, DIGITS),
        "point": [round(line.x, DIGITS), round(line.y, DIGITS)],
        "ratio": figure(line.ratio),
    }
