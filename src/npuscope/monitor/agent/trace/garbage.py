"""Garbage collections that hold the program up."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Mapping


class Collections:
    """Notes each collection that takes longer than the threshold."""

    def __init__(self, threshold_ms: float) -> None:
        self._threshold = threshold_ms * 1e6
        self._began = (0, 0)
        self._found: list[tuple[int, int, int, int]] = []

    def start(self) -> None:
        """From now on."""
        gc.callbacks.append(self._called)

    def stop(self) -> dict[str, list[int]]:
        """No longer; the columns `start`, `end` (wall clock, ns), `thread` and `generation`."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)
        columns = zip(*self._found, strict=True) if self._found else ([], [], [], [])
        return dict(zip(("start", "end", "thread", "generation"), map(list, columns), strict=True))

    def _called(self, phase: str, info: Mapping[str, int]) -> None:
        # Collections do not nest: the interpreter runs one at a time.
        if phase == "start":
            self._began = (time.time_ns(), time.perf_counter_ns())
            return
        wall, began = self._began
        taken = time.perf_counter_ns() - began
        if wall and taken > self._threshold:
            self._found.append((wall, wall + taken, threading.get_native_id(), info["generation"]))
