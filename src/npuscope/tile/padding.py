"""The masks of a kernel's loads: what lies outside them is padding that no result should depend on."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from npuscope.tile.affine import dense

MOST_MASKS = 8
"""Masks of one shape that are remembered."""


class Padding:
    """Remembers masks by the shape of their tile."""

    def __init__(self) -> None:
        self._masks: dict[tuple[int, ...], deque[Any]] = {}

    def note(self, shape: tuple[int, ...], mask: Any) -> None:
        """A load leaves lanes out."""
        known = self._masks.get(shape)
        if known is None:
            known = self._masks[shape] = deque(maxlen=MOST_MASKS)
        if not any(mask is one for one in known):
            known.append(mask)

    def covers(self, lanes: np.ndarray) -> bool:
        """Whether one of the masks leaves out all of these lanes, (programs or 1, ...)."""
        for shape, masks in self._masks.items():
            if len(shape) != lanes.ndim - 1:
                continue
            for mask in masks:
                truths = dense(mask)
                if _fit(truths.shape, lanes.shape) and not (truths & lanes).any():
                    return True
        return False


def _fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(left == right or 1 in (left, right) for left, right in zip(one, other, strict=True))
