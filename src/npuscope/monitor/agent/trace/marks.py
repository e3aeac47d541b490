"""Ranges and marks that the program sets while it is traced."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import ANY_END, ANY_INSTANT, ANY_START, Kind, Side
from npuscope.monitor.activity.strings import Strings

SOURCE = "npuscope.monitor.agent.sources.mstx"
EVENT_MARK, EVENT_RANGE = 0, 2
"""In the vendor's tables: marker, start/end."""


class Marks:
    """Records what the `mstx` calls of the program say, of the domains asked for."""

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._include, self._exclude = include, exclude
        self._strings = Strings()
        self._batches: list[Batch] = []
        self._source: Any = None

    def start(self) -> None:
        """From now on."""
        self._source = importlib.import_module(SOURCE).MstxSource()
        self._source.start(frozenset({Kind.MARKER}), self._strings, self._batches.append)

    def stop(self) -> dict[str, list[Any]]:
        """No longer; the columns `start`, `end` (wall clock, ns), `thread`, `end_thread`, `id`, `type`, `message` and
        `domain`. A range that was not ended is left out."""
        if self._source is None:
            return {}
        self._source.stop()
        return _columns(joined(self._batches), self._strings, self._wanted) if self._batches else {}

    def _wanted(self, domain: str) -> bool:
        return domain in self._include if self._include else domain not in self._exclude


def _columns(records: Batch, strings: Strings, wanted: Any) -> dict[str, list[Any]]:
    keep = np.array([wanted(text) for text in strings.texts])[records["domain"]] & (records["side"] == Side.HOST)
    records = records.where(keep)
    flag = records["flag"]
    instants = np.flatnonzero(flag & int(ANY_INSTANT))
    starts, ends = np.flatnonzero(flag & int(ANY_START)), np.flatnonzero(flag & int(ANY_END))
    _, first, second = np.intersect1d(records["id"][starts], records["id"][ends], return_indices=True)
    begin, end = np.concatenate([instants, starts[first]]), np.concatenate([instants, ends[second]])
    order = np.argsort(records["time"][begin], kind="stable")
    begin, end = begin[order], end[order]
    texts = strings.texts
    return {
        "start": records["time"][begin].tolist(),
        "end": records["time"][end].tolist(),
        "thread": records["thread"][begin].tolist(),
        "end_thread": records["thread"][end].tolist(),
        "id": records["id"][begin].tolist(),
        "type": np.where(begin == end, EVENT_MARK, EVENT_RANGE).tolist(),
        "message": [texts[number] for number in records["name"][begin]],
        "domain": [texts[number] for number in records["domain"][begin]],
    }
