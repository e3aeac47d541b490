"""Which files belong to which rank, and which file of a rank counts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuscope.errors import UserError

DATABASE, LINES, EXPOSITION = "database", "lines", "exposition"
MONITOR = re.compile(r"msmonitor_(\d+)_(\d{17})_(-1|\d+)\.(db|jsonl)")
"""Process, time and rank, as the vendor's tools read them from the name."""
PROFILER = re.compile(r"ascend_(?:pytorch|mindspore)_profiler(?:_(\d+))?\.db")
FOLDER = re.compile(r"(?:.*_)?(\d+)_(\d{14,17})\d*_ascend_(?:pt|ms)")
"""A profiler's folder: `<host>_<process>_<time>_ascend_pt`."""
EXPOSITIONS = (".prom", ".txt", ".metrics")
DEEPEST = 8


@dataclass(frozen=True)
class Recording:
    """The files of one rank from one process, in the order of their time. For an exposition, rank and process are -1:
    it holds those of many."""

    form: str
    paths: tuple[Path, ...]
    rank: int
    pid: int = -1
    stamp: str = ""

    @property
    def name(self) -> str:
        """The newest file, as people are told of it."""
        return str(self.paths[-1])


@dataclass(frozen=True)
class Found:
    """What counts, by rank, and what does not, a line each."""

    recordings: tuple[Recording, ...]
    left_out: tuple[str, ...] = ()
    replaced: int = 0
    """Older files of ranks that have a newer one."""

    def without(self, form: str) -> Found:
        """The same, with recordings of a form left out and named."""
        others = [f"{one.name}: only files of one kind can be compared" for one in self.recordings if one.form == form]
        kept = tuple(one for one in self.recordings if one.form != form)
        return Found(kept, (*self.left_out, *others), self.replaced)


def find(places: Iterable[str | Path]) -> Found:
    """The newest recording of every rank below folders, or of single files. Raises UserError when there is none."""
    places = list(places)
    recordings: list[Recording] = []
    left_out: list[str] = []
    for place in places:
        path = Path(place)
        if path.is_dir():
            paths: Iterable[Path] = _below(path)
        elif path.exists():
            paths = [path]
        else:
            raise UserError(f"there is no {path}")
        for one in paths:
            recording = _recording(one, given=one == path)
            if recording is None:
                if one == path:
                    left_out.append(f"{one}: neither a database nor JSON lines of a rank by its name")
            elif recording.rank < 0 and recording.form != EXPOSITION:
                left_out.append(f"{one}: the rank is not known (-1 in the name)")
            else:
                recordings.append(recording)
    chosen, replaced = _newest(recordings)
    if not chosen:
        reasons = f"; {left_out[0]}" if left_out else ""
        more = f" (and {len(left_out) - 1} more)" if len(left_out) > 1 else ""
        raise UserError(f"no files of ranks in {', '.join(map(str, places))}{reasons}{more}")
    return Found(chosen, tuple(left_out), replaced)


def _below(folder: Path, depth: int = 0) -> list[Path]:
    """Files whose names may be those of ranks, in the order of their names."""
    found = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        if not depth:
            raise UserError(f"cannot read {folder}: {error.strerror}") from None
        return []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            found += _below(Path(entry.path), depth + 1) if depth < DEEPEST else []
        elif MONITOR.fullmatch(entry.name) or PROFILER.fullmatch(entry.name) or entry.name.endswith(".prom"):
            found.append(Path(entry.path))
    return found


def _recording(path: Path, *, given: bool) -> Recording | None:
    if match := MONITOR.fullmatch(path.name):
        form = DATABASE if match[4] == "db" else LINES
        return Recording(form, (path,), int(match[3]), int(match[1]), match[2])
    if match := PROFILER.fullmatch(path.name):
        folder = next((found for part in reversed(path.parts) if (found := FOLDER.fullmatch(part))), None)
        rank = int(match[1]) if match[1] else -1
        return Recording(DATABASE, (path,), rank, int(folder[1]) if folder else -1, folder[2] if folder else "")
    if path.suffix == ".prom" or (given and path.suffix in EXPOSITIONS):
        return Recording(EXPOSITION, (path,), -1)
    return None


def _newest(recordings: Sequence[Recording]) -> tuple[tuple[Recording, ...], int]:
    """One recording a rank. JSON lines of one process are one recording: rotation cut them."""
    joined: dict[tuple[str, int, int, Path], list[Recording]] = {}
    others: list[Recording] = []
    for one in recordings:
        if one.form == LINES:
            joined.setdefault((one.form, one.rank, one.pid, one.paths[0].parent), []).append(one)
        else:
            others.append(one)
    for parts in joined.values():
        parts.sort(key=lambda part: part.stamp)
        paths = tuple(path for part in parts for path in part.paths)
        others.append(Recording(LINES, paths, parts[-1].rank, parts[-1].pid, parts[-1].stamp))
    by_rank: dict[int, Recording] = {}
    scrapes = [one for one in others if one.form == EXPOSITION]
    for one in sorted((one for one in others if one.form != EXPOSITION), key=lambda one: (one.stamp, one.name)):
        by_rank[one.rank] = one
    replaced = sum(one.form != EXPOSITION for one in others) - len(by_rank)
    return tuple(by_rank[rank] for rank in sorted(by_rank)) + tuple(scrapes), replaced
