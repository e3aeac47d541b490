"""What a report needs to know of a launch once its trace is gone."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Launch


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One launch of a run: its number, what ran where, and how much of it was looked at.

    `checked` is false for a launch that a filter left out; `stopped` says how it fell short of its end,
    `part` which of its programs were to run when that was not all of them.
    """

    index: int
    kernel: str
    chip: str
    arch: str
    cores: int
    instructions: int
    checked: bool = True
    stopped: str = ""
    part: str = ""
    tile: bool = False  # it ran programs of a tile kernel


class LaunchLog:
    """Makes records from batches: `take` each batch, and get the record at a launch's last one."""

    def __init__(self) -> None:
        self._instructions = 0

    def take(self, batch: Batch, checked: bool) -> LaunchRecord | None:
        """The launch's record when `batch` is its last, else None."""
        if batch.closing:
            return None
        if batch.first == 0:
            self._instructions = 0
        self._instructions += batch.instruction.shape[1]
        if not batch.last:
            return None
        launch = batch.launch
        stops = [f"stopped early, {fault.facts['error']}" for fault in batch.faults if fault.code == "stopped"]
        stops += ["can never finish"] if any(fault.code == "deadlock" for fault in batch.faults) else []
        return LaunchRecord(
            launch.index, launch.kernel, launch.chip, launch.arch, len(launch.cores),
            self._instructions if checked else 0, checked, "; ".join(stops),
            part_of(launch), launch.of_programs,
        )


def part_of(launch: Launch) -> str:
    """Which of a grid's programs were to run, "" for all."""
    part = launch.options.get("programs", "") if launch.of_programs else ""
    return part and f"{part} of {len(launch.cores)}"
