"""Figures as the viewer reads them (opprof.md 2.7, V3): whole numbers fit 32 bits, others have a decimal point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson

from npuscope.trace.timeline import UNKNOWN

Json = dict[str, Any]
NOT_AVAILABLE = "NA"
INT32 = 2**31 - 1

HIDDEN, INTEGER, FLOAT, STRING, PERCENTAGE, JSON_TEXT, PERCENTAGE_DETAILS = 0, 1, 2, 3, 4, 5, 100
"""Kinds of columns (opprof.md 2.8)."""


def text(document: Json) -> bytes:
    """A document as JSON, in the order of its keys."""
    return orjson.dumps(document)


def whole(value: float) -> int:
    """A count; what does not fit is the largest that does."""
    return int(max(-INT32 - 1, min(value, INT32)))


def wholes(values: np.ndarray) -> Any:
    """Counts as lists; UNKNOWN stays."""
    return np.clip(values, UNKNOWN, INT32).tolist()


def decimals(values: np.ndarray) -> Any:
    """Figures with a point as lists; what is not known is -1.0."""
    return np.where(np.isnan(values), float(UNKNOWN), np.round(values, 6)).tolist()


def figure(value: float | None) -> float | str:
    """A figure with a point, or ``NA``."""
    return NOT_AVAILABLE if value is None else round(float(value), 6)


def count(value: float | None) -> int | str:
    """A count, or ``NA``."""
    return NOT_AVAILABLE if value is None else whole(value)


def written(value: float | int | str | None) -> str:
    """A figure as text: six decimals, a count plain, ``NA``."""
    if value is None:
        return NOT_AVAILABLE
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def address_ranges(addresses: Iterable[int], everyone: list[int]) -> list[list[str]]:
    """The [first, last] ranges of `addresses` as hex; two are in one range where `everyone`, sorted, has none between
    that is not among them."""
    mine = sorted(set(addresses))
    places = np.searchsorted(everyone, mine)
    breaks = np.flatnonzero(np.diff(places) != 1)
    starts, ends = [0, *(breaks + 1).tolist()], [*breaks.tolist(), len(mine) - 1]
    return [[hex(mine[start]), hex(mine[end])] for start, end in zip(starts, ends, strict=True)] if mine else []
