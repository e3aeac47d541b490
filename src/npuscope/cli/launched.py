"""What is told of each launch of an application, and where (:mod:`npuscope.cli.keeping` writes it)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson

from npuscope.trace.schema import CoreType, Launch

LIST = "launches"
"""The file with one line of JSON a launch."""


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch of the application: `number` counts all of them from 0, `kept` those that are profiled (-1: it is not
    one of them)."""

    number: int
    kernel: str
    chip: str
    device: int
    process: int
    cores: str
    place: str
    ranges: tuple[str, ...] = ()
    kept: int = -1


def launch_file(folder: Path, number: int) -> Path:
    """Where the trace of the kept launch of that number is."""
    return folder / f"{number:06d}.launch"


def read_launches(folder: Path) -> list[Launched]:
    """Every launch of a run so far."""
    path = folder / LIST
    lines = path.read_bytes().splitlines() if path.exists() else []
    items = [orjson.loads(line) for line in lines]
    return [Launched(**{**item, "ranges": tuple(item["ranges"])}) for item in items]


def cores_of(launch: Launch) -> str:
    """The cores of a launch in a word or two: ``8 AIV``, ``2 AIC + 4 AIV``, ``64 programs``."""
    if launch.of_programs:
        return f"{len(launch.cores)} programs"
    counts = {kind: sum(core.type is kind for core in launch.cores) for kind in CoreType}
    return " + ".join(f"{count} {kind.name}" for kind, count in counts.items() if count) or "no core"
