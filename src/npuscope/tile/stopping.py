"""What a person sees of a value at a `breakpoint()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.tile.shapes import Shape, whole

PREFIX = "npuscope.breakpoint"
"""How the operation begins that stands for a `breakpoint()`; the names of variables follow."""


def visible(shape: Shape, value: Any) -> Any:
    """The value of the one program that runs: a tile as an array of its own, or a number."""
    array = whole(shape, value)[0]
    return np.array(array) if shape else array.item()
