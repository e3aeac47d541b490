"""Everything that the page shows of one launch, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.profile import Profile
from npuscope.profiler.sources import source_lines
from npuscope.profiler.summary import WORDS
from npuscope.profiler.waits import is_wait
from npuscope.report.page.blobs import Blobs
from npuscope.report.profile.document import launch as document_launch
from npuscope.report.profile.page.charts import chart_payload
from npuscope.report.profile.page.slices import timeline_payload
from npuscope.trace.timeline import Lane

AROUND = 60
"""Lines of a file shown before and after those that have figures."""
MOST_LINES = 6000
"""Lines of a file shown at most; beyond it, only those near lines with figures."""


def launch_payload(profile: Profile, blobs: Blobs, room: int) -> tuple[dict[str, Any], int]:
    """The launch, and how many of its slices are drawn (at most `room`)."""
    files = _Files()
    timeline, shown = timeline_payload(profile, blobs, room)
    known = document_launch(profile)
    wanted = (
        "kernel", "index", "chip", "provenance", "blocks", "notes", "cycles", "overhead", "mhz", "time_us", "partial",
        "losses", "bound", "critical_path", "speed_of_light", "traffic", "advice", "tables",
    )  # fmt: skip
    payload = {name: known[name] for name in wanted} | {
        "words": WORDS,
        "coresUsed": profile.summary.cores_used,
        "coresThere": profile.summary.cores_there,
        "cores": [
            {"name": core.name, "vendor": name, "type": core.type.name}
            for core, name in zip(profile.timeline.launch.cores, core_names(profile.timeline.launch), strict=True)
        ],
        "lanes": {str(int(lane)): lane.name for lane in Lane},
        "lines": _lines(profile, files),
        "steps": _steps(profile, files),
        "timeline": timeline,
        "charts": chart_payload(profile),
    }
    for advice in payload["advice"]:
        for line in advice["lines"]:
            line["file"] = files.number(line["file"])
    payload["files"] = files.payload(payload["lines"])
    return payload, shown


class _Files:
    """Numbers the files that lines are in."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, file: str) -> int:
        return self._numbers.setdefault(file, len(self._numbers))

    def payload(self, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """For each file its path and the stretches of text shown: [first line, its text ...]."""
        found = []
        for path, number in self._numbers.items():
            used = [line["line"] for line in lines if line["file"] == number]
            found.append({"path": path, "name": PurePath(path).name, "parts": _parts(path, used)})
        return found


def _parts(path: str, used: Sequence[int]) -> list[dict[str, Any]] | None:
    text = source_lines(path)
    if text is None:
        return None
    if len(text) <= MOST_LINES:
        return [{"first": 1, "text": list(text)}]
    near = sorted({line for at in used for line in range(max(1, at - AROUND), min(len(text), at + AROUND) + 1)})
    parts: list[dict[str, Any]] = []
    for line in near:
        if not parts or parts[-1]["first"] + len(parts[-1]["text"]) != line:
            parts.append({"first": line, "text": []})
        parts[-1]["text"].append(text[line - 1])
    return parts


def _lines(profile: Profile, files: _Files) -> list[dict[str, Any]]:
    path = {(line.frame.file, line.frame.line): line.path for line in profile.summary.lines}
    return [
        {
            "file": files.number(spot.frame.file),
            "line": spot.frame.line,
            "critical": path.get((spot.frame.file, spot.frame.line), 0),
            "cycles": spot.cycles,
            "covered": spot.covered,
            "executed": spot.executed,
            "bytes": spot.bytes,
            "hits": spot.hits,
            "misses": spot.misses,
            "steps": list(spot.steps),
        }
        for spot in profile.hot_spots.lines
    ]


def _steps(profile: Profile, files: _Files) -> list[dict[str, Any]]:
    timeline, spots = profile.timeline, profile.hot_spots
    path = np.bincount(
        timeline.slice("step"),
        profile.critical_path.by_slice(timeline.slices.shape[1]),
        minlength=len(timeline.steps),
    ).astype(np.int64)
    first = _first_runs(timeline.slice("step"), len(timeline.steps))
    records = []
    for number, step in enumerate(timeline.steps):
        frame = step.site.frames[0] if step.site.frames else None
        records.append(
            {
                "pc": f"{step.address:#x}",
                "text": step.text,
                "lane": int(step.lane),
                "wait": is_wait(step),
                "origin": step.origin.name.lower(),
                "operation": step.site.name,
                "dtype": step.dtype,
                "file": files.number(frame.file) if frame else None,
                "line": frame.line if frame else None,
                "stack": [f"{PurePath(one.file).name}:{one.line}" for one in step.site.frames],
                "critical": path[number],
                "cycles": spots.cycles[number],
                "executed": spots.executed[number],
                "bytes": spots.bytes[number],
                "conflict": int(max(spots.read_conflict[number].max(), spots.write_conflict[number].max())),
                "utilisation": _least(spots.utilisation[number]),
                "detail": timeline.details[int(first[number])] if first[number] >= 0 else "",
            }
        )
    return records


def _first_runs(step: np.ndarray, steps: int) -> np.ndarray:
    """The first slice of each step, -1 for none."""
    first = np.full(steps, -1, np.int64)
    first[step[::-1]] = np.arange(step.size)[::-1]
    return first


def _least(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.min()) if known.size else None
