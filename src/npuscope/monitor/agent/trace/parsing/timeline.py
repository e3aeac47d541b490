"""`trace_view.json`: PyTorch's trace, with what readers miss in it.

The text is copied as it is, but for what has to change: ranges that overlap others on their thread (collectives that
end on another thread) get tracks of their own, because readers drop what overlaps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.events import Piece, is_slice, records_of
from npuscope.monitor.agent.trace.parsing.model import ANNOTATION, CALLS, FUNCTION, OPERATOR, Model
from npuscope.monitor.agent.trace.parsing.nesting import nest

Column = NDArray[Any]
TRACKS = 2_000_000_000
"""Numbers of tracks that are no threads begin here: the kernel's thread numbers end at 4,194,304."""
MARK_TRACK, COLLECTION_TRACK = TRACKS - 1, TRACKS - 2
ANNOTATED = re.compile(
    rb'("name": "(?:gloo|mpi|ucc|nccl|hccl|xccl):(?:[^"\\]|\\.)*", "pid": \d+, "tid": )(\d+)'
)  # as Kineto lays it out


def write_timeline(raw: Path, path: Path, model: Model) -> None:
    """Write it. `raw` is PyTorch's file."""
    tracks = own_tracks(model)
    with raw.open("rb") as source, path.open("wb") as target:
        target.write(_opening(model))
        first = True
        for piece in model.trace.pieces:
            source.seek(piece.first)
            text = source.read(piece.last - piece.first)
            if not text.strip():
                continue
            if not first:
                target.write(b",")
            target.write(_moved(text, piece, tracks) if model.trace.unread == 0 else _readable(text, piece, tracks))
            first = False
        _append(target, [*_track_names(model, tracks), *_extra_events(model)], first)
        target.write(b"\n]}\n")


def own_tracks(model: Model) -> dict[int, int]:
    """By row of the slices, the track of what cannot stay on its thread."""
    rows = np.setdiff1d(model.rows_of(OPERATOR, ANNOTATION, FUNCTION, *CALLS), model.collective_annotations)
    # Where a range and a function overlap (a step begins and ends within a call), it is the range that goes.
    ranges = np.intersect1d(_overlapping(model, rows), model.rows_of(ANNOTATION))
    rest = _overlapping(model, np.setdiff1d(rows, ranges))
    moved = np.concatenate([model.collective_annotations, ranges, rest])
    moved = moved[np.argsort(model.slices.start[moved], kind="stable")]
    return dict(zip(moved.tolist(), _lanes(model, moved), strict=True))


def _overlapping(model: Model, rows: Column) -> Column:
    """Those that begin within another one on their thread and end after it."""
    slices = model.slices
    parent = nest(slices.thread[rows], slices.start[rows], slices.end[rows]).parent
    child = np.flatnonzero(parent >= 0)
    return rows[child[slices.end[rows[child]] > slices.end[rows[parent[child]]]]]


def _lanes(model: Model, rows: Column) -> list[int]:
    """The fewest tracks on which nothing overlaps."""
    free_at: list[int] = []
    found = []
    for start, end in zip(model.slices.start[rows].tolist(), model.slices.end[rows].tolist(), strict=True):
        lane = next((number for number, free in enumerate(free_at) if free <= start), len(free_at))
        if lane == len(free_at):
            free_at.append(0)
        free_at[lane] = end
        found.append(TRACKS + lane)
    return found


def _opening(model: Model) -> bytes:
    header = {name: value for name, value in model.trace.header.items() if name not in ("traceEvents", "traceName")}
    told = header.get("distributedInfo") or {}
    metadata = model.metadata
    header["distributedInfo"] = {
        "backend": metadata.get("backend", ""),
        "rank": max(model.rank, 0),
        "world_size": metadata.get("world_size", 1),
        **told,
    }
    if metadata.get("partial"):
        header["partial"] = metadata["partial"]
    # With spaces: HolisticTraceAnalysis looks for the rank in the text.
    return json.dumps(header).encode()[:-1] + b', "traceEvents": ['


def _moved(text: bytes, piece: Piece, tracks: dict[int, int]) -> bytes:
    """The text of a piece, ranges moved to their tracks."""
    rows = [row for row in range(piece.first_row, piece.last_row) if row in tracks] if tracks else []
    if not rows:
        return text
    numbers = iter([tracks[row] for row in rows])
    if len(ANNOTATED.findall(text)) == len(rows):
        return ANNOTATED.sub(lambda found: found[1] + b"%d" % next(numbers), text)
    return _readable(text, piece, tracks)


def _readable(text: bytes, piece: Piece, tracks: dict[int, int]) -> bytes:
    """The same, event by event; what is no JSON is left out."""
    records, _ = records_of(text)
    slices = (record for record in records if is_slice(record))
    for row, record in enumerate(slices, piece.first_row):
        if row in tracks:
            record["tid"] = tracks[row]
    return orjson.dumps(records)[1:-1]


def _track_names(model: Model, tracks: dict[int, int]) -> Iterator[dict[str, Any]]:
    names = {track: f"overlapping ranges {track - TRACKS}" for track in sorted(set(tracks.values()))}
    if (model.extras.get("marks") or {}).get("start"):
        names[MARK_TRACK] = "mstx"
    if (model.extras.get("collections") or {}).get("start"):
        names[COLLECTION_TRACK] = "Python GC"
    for track, name in names.items():
        yield {"ph": "M", "name": "thread_name", "pid": model.pid, "tid": track, "args": {"name": name}}


def _extra_events(model: Model) -> Iterator[dict[str, Any]]:
    """Garbage collections, marks, and what was used of the host."""
    base = int(model.trace.header.get("baseTimeNanoseconds", 0))
    pid = model.pid
    collections = model.extras.get("collections") or {}
    for start, end, generation in _rows(collections, "start", "end", "generation"):
        common = {"ph": "X", "cat": "gc", "name": "GC", "pid": pid, "tid": COLLECTION_TRACK}
        yield common | _when(start, end, base) | {"args": {"generation": generation}}
    for start, end, message, domain in _rows(model.extras.get("marks") or {}, "start", "end", "message", "domain"):
        args = {"args": {"domain": domain}}
        if start == end:
            yield {"ph": "i", "s": "t", "cat": "mstx", "name": message, "pid": pid, "tid": MARK_TRACK,
                   "ts": (start - base) / 1000} | args  # fmt: skip
        else:
            # Ranges of several threads overlap as they like: they are told apart by their numbers.
            mark = {"cat": "mstx", "name": message, "pid": pid, "tid": MARK_TRACK, "id": f"{start}-{end}-{message}"}
            yield {"ph": "b", "ts": (start - base) / 1000} | mark | args
            yield {"ph": "e", "ts": (end - base) / 1000} | mark
    use = model.extras.get("host") or {}
    for name, title in (("cpu", "CPU usage (%)"), ("mem", "Memory (bytes)")):
        for time, value in _rows(use, "time", name):
            yield {"ph": "C", "name": title, "pid": pid, "ts": (time - base) / 1000, "args": {title: value}}


def _rows(columns: dict[str, Sequence[Any]], *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(columns.get(name) or [] for name in names), strict=False)


def _when(start: int, end: int, base: int) -> dict[str, float]:
    return {"ts": (start - base) / 1000, "dur": (end - start) / 1000}


def _append(target: BinaryIO, events: list[dict[str, Any]], first: bool) -> None:
    if events:
        target.write((b"" if first else b",\n") + orjson.dumps(events)[1:-1])
