"""The timeline as the page carries it: one column a figure, sorted by core, lane and time."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.profiler.profile import Profile
from npuscope.report.page.blobs import Blobs
from npuscope.trace.timeline import Lane

MOST_DETAILS = 20_000
"""Slices whose operands are all carried; beyond it a slice shows those of the first run of its instruction."""
MOST_EDGES = 400_000
MOST_PATH = 400_000


def timeline_payload(profile: Profile, blobs: Blobs, room: int) -> tuple[dict[str, Any], int]:
    """The slices of as many whole cores as `room` allows, and how many those are."""
    timeline = profile.timeline
    core, lane, shown = timeline.slice("core"), timeline.slice("lane"), profile.placed.drawn  # as the files have it
    start = shown.start
    kept = _whole_cores(core, len(timeline.launch.cores), room)
    span = int(start.max(initial=0)) + 2  # one axis, on which pipes lie behind each other; a start may be -1
    order = np.argsort((core * (max(Lane) + 1) + lane) * span + start, kind="stable")
    order = order[kept[core[order]] & (start[order] >= 0)]
    begin = start[order]
    end = np.maximum(shown.end[order], begin)
    payload: dict[str, Any] = {
        "slices": int(order.size),
        "all": int(core.size),
        "cores": int(kept.sum()),
        "rows": _rows(core[order], lane[order]),
        "start": blobs.add(begin),
        "length": blobs.add(end - begin),
        "step": blobs.add(timeline.slice("step")[order]),
        # One more than the figure: 0 stands for what is not known.
        "issue": blobs.add(timeline.slice("issue")[order] + 1),
        "bytes": blobs.add(timeline.slice("bytes")[order] + 1),
    }
    place = np.full(core.size, -1, np.int64)
    place[order] = np.arange(order.size)
    payload |= _edges(profile, place, blobs)
    payload |= _path(profile, place, blobs)
    if order.size <= MOST_DETAILS:
        payload |= _details(timeline.details, order, blobs)
    return payload, int(order.size)


def _whole_cores(core: np.ndarray, cores: int, room: int) -> np.ndarray:
    """Which cores are kept, the first ones that fit, (cores,) bool."""
    return np.asarray(np.cumsum(np.bincount(core, minlength=cores)) <= room)


def _rows(core: np.ndarray, lane: np.ndarray) -> list[list[int]]:
    """[core, lane, first slice, slice after the last] of each stretch."""
    if not core.size:
        return []
    turns = np.flatnonzero((core[1:] != core[:-1]) | (lane[1:] != lane[:-1])) + 1
    first, after = np.append(0, turns), np.append(turns, core.size)
    return np.stack([core[first], lane[first], first, after]).T.tolist()


def _edges(profile: Profile, place: np.ndarray, blobs: Blobs) -> dict[str, Any]:
    timeline = profile.timeline
    source, target = place[timeline.edge("source")], place[timeline.edge("target")]
    keep = np.flatnonzero((source >= 0) & (target >= 0))[:MOST_EDGES]
    return {
        "edges": int(keep.size),
        "allEdges": int(source.size),
        "edgeSource": blobs.add(source[keep]),
        "edgeTarget": blobs.add(target[keep]),
        "edgeNumber": blobs.add(timeline.edge("number")[keep] + 1),
        "edgeKind": blobs.add(timeline.edge("kind")[keep]),
    }


def _path(profile: Profile, place: np.ndarray, blobs: Blobs) -> dict[str, Any]:
    path = profile.critical_path
    at = np.where(path.slice >= 0, place[path.slice], -1)
    keep = np.flatnonzero(at >= 0)[-MOST_PATH:]
    return {
        "pathSlice": blobs.add(at[keep]),
        "pathStart": blobs.add(path.start[keep]),
        "pathEnd": blobs.add(path.end[keep]),
        "pathPiece": blobs.add(path.piece[keep]),
    }


def _details(details: Any, order: np.ndarray, blobs: Blobs) -> dict[str, Any]:
    numbers: dict[str, int] = {}
    which = [numbers.setdefault(details[row], len(numbers)) for row in order.tolist()]
    return {"details": list(numbers), "detail": blobs.add(np.array(which, np.int64))}
