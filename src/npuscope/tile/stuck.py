"""Programs that wait for each other for ever: known by their coming back to the very same state in the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from npuscope.tile.affine import Affine
from npuscope.tile.box import Box
from npuscope.tile.pointer import Pointer
from npuscope.tile.polling import Poll

PATIENCE = 64
"""Rounds in which no memory changes before the programs' states are compared at all."""

Place = tuple[str, int]
"""File and line."""


class Stuck(Exception):
    """No program can go on. `places` are the numbers of programs and the lines at which they wait."""

    def __init__(self, places: list[tuple[int, Place]]) -> None:
        super().__init__("its programs wait for each other for ever")
        self.places = places


class Watch:
    """Asked once for every round of turns; a program is a pure function of its locals and of memory, so two rounds that
    begin alike go on alike."""

    def __init__(self) -> None:
        self._quiet = 0
        self._before: list[dict[str, Any]] | None = None

    def stuck(self, changed: bool, steps: Sequence[Any]) -> bool:
        """Whether nothing can ever happen any more."""
        if changed:
            self._quiet, self._before = 0, None
            return False
        self._quiet += 1
        if self._quiet < PATIENCE:
            return False
        now = [state for step in steps for state in _states(step)]
        before, self._before = self._before, now
        return before is not None and len(before) == len(now) and all(map(_alike, before, now))


def place_of(steps: Any) -> Place:
    """Where a program waits; of a function that it calls, the line there."""
    while getattr(steps, "gi_yieldfrom", None) is not None:
        steps = steps.gi_yieldfrom
    frame: FrameType | None = getattr(steps, "gi_frame", None)
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _states(steps: Any) -> list[dict[str, Any]]:
    found = []
    while steps is not None and getattr(steps, "gi_frame", None) is not None:
        found.append({**steps.gi_frame.f_locals, "": steps.gi_frame.f_lasti})
        steps = steps.gi_yieldfrom
    return found


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())


def same(one: Any, other: Any) -> bool:
    """Whether two values of a kernel are equal; what a wait for a time holds never is."""
    if isinstance(one, Poll):
        return isinstance(other, Poll) and not one.timed
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Affine):
        return one.strides == other.strides and one.shape == other.shape and np.array_equal(one.base, other.base)
    if isinstance(one, Pointer):
        return one.argument is other.argument and same(one.address, other.address)
    if isinstance(one, Box):
        return one.shape == other.shape and np.array_equal(one.dense(), other.dense())
    return bool(one == other) if isinstance(one, (int, float, bool, str, tuple)) else _turns(one)


def _turns(value: Any) -> bool:
    """Loops and branches hold what their locals say as well."""
    return type(value).__module__ == "npuscope.tile.control"
