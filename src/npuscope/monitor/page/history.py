"""The metrics behind the charts: those asked for, of processes that the viewer may see, and no more than fit a page."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

MOST_SERIES = 512
MOST_POINTS = 720
ORDER = {"host": 0, "device": 1, "daemon": 2, "process": 3}


@dataclass(frozen=True)
class Wanted:
    """Which series: by name, one that ends in a dot for all names that begin so; points newer than `since` only."""

    since: float = 0.0
    names: tuple[str, ...] = ()

    def holds(self, name: str) -> bool:
        """Whether a series of this name is wanted."""
        return not self.names or any(name.startswith(one) if one.endswith(".") else name == one for one in self.names)


def read_wanted(query: Mapping[str, str]) -> Wanted:
    """What a query asks for. Raises ValueError for a time that is none."""
    names = tuple(name for name in query.get("names", "").split(",") if name)
    return Wanted(float(query.get("since", "0")), names)


def history(series: Iterable[Mapping[str, Any]], pids: Collection[str] | None, wanted: Wanted, now: float) -> bytes:
    """The document: {"now", "series", "leftOut"}. `pids` are the processes shown, by their numbers here."""
    found = [one for one in series if wanted.holds(one["name"]) and _visible(one, pids)]
    found.sort(key=lambda one: ORDER.get(one["entity"], 4))
    # One by one: a single long call would keep the interpreter from answering polls.
    parts = [orjson.dumps(_newer(one, wanted.since)) for one in found[:MOST_SERIES]]
    head = orjson.dumps({"now": now, "leftOut": max(0, len(found) - MOST_SERIES)})
    return head[:-1] + b',"series":[' + b",".join(parts) + b"]}"


def _visible(series: Mapping[str, Any], pids: Collection[str] | None) -> bool:
    labels = series["labels"]
    return pids is None or series["entity"] != "process" or labels.get("host_pid", labels.get("pid")) in pids


def _newer(series: Mapping[str, Any], since: float) -> dict[str, Any]:
    times: Sequence[float] = series["times"]
    start = max(bisect.bisect_right(times, since), len(times) - MOST_POINTS)
    return {
        "name": series["name"],
        "entity": series["entity"],
        "labels": dict(series["labels"]),
        "times": list(times[start:]),
        "values": list(series["values"][start : len(times)]),
    }
