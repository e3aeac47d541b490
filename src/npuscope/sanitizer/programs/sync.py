"""The sync check of tile kernels: programs that wait for each other for ever."""

from __future__ import annotations

from npuscope.sanitizer.findings import Finding, Severity, launched
from npuscope.sanitizer.fingerprint import shown_path
from npuscope.sanitizer.programs.tally import ProgramTally
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault, SourceFrame

MOST_PLACES = 8
"""Lines that a finding names."""


class ProgramSync:
    """Takes the faults of launches of programs."""

    name = "sync"
    limits: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._tally = ProgramTally()

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._tally.findings

    def check(self, batch: Batch) -> None:
        """Look at a launch when its last batch comes."""
        for fault in batch.faults if batch.last else ():
            if fault.code == "deadlock":
                self._tally.add((batch.launch.kernel,), stuck(batch, fault), fault, batch.launch)


def stuck(batch: Batch, fault: Fault) -> Finding:
    """Every program waits, each at its line."""
    launch, facts = batch.launch, fault.facts
    places = facts["places"]
    notes = [
        f"{_shown(programs)} wait{'s' * (_total(programs) == 1)} at {shown_path(file)}:{line}."
        for file, line, programs in places[:MOST_PLACES]
    ]
    count = facts["among"]
    waits = "the only program left waits" if count == 1 else f"all {count} programs that have not ended wait"
    frames = tuple(SourceFrame(file, line) for file, line, _ in places[:1])
    return Finding(
        "deadlock", Severity.ERROR, f"{waits} in loops that nothing can end: memory no longer changes",
        "Let every program that is waited for set its flag before it waits itself, on every way through the kernel.",
        launch.kernel, launch.index, (), launched=launched(launch), launch_frame=launch.frame, notes=tuple(notes),
        facts=dict(facts), frames=frames,
    )  # fmt: skip


def _shown(programs: list[list[int]]) -> str:
    words = [str(low) if low == high else f"{low} to {high}" for low, high in programs[:4]]
    return f"Program{'s' * (_total(programs) > 1)} {', '.join(words)}{', ...' if len(programs) > 4 else ''}"


def _total(programs: list[list[int]]) -> int:
    return sum(high - low + 1 for low, high in programs)
