"""What a run came to, from the folder that its processes wrote into, or from a recorded trace."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from npuscope.cli.attend import Ended
from npuscope.cli.compilation import tell_of_compilation
from npuscope.cli.plan import Plan
from npuscope.cli.spool import read_parts
from npuscope.errors import UserError
from npuscope.sanitizer.filters import LaunchSelector
from npuscope.sanitizer.merge import merged
from npuscope.sanitizer.records import LaunchLog, LaunchRecord
from npuscope.sanitizer.suite import Outcome, Suite
from npuscope.trace.recorder import Batch


@dataclass(frozen=True, slots=True)
class Collected:
    """The findings and launches of all processes, why they may not be all, and the mistake that ended the run."""

    outcomes: tuple[Outcome, ...]
    records: tuple[LaunchRecord, ...]
    partial: tuple[str, ...] = ()
    trouble: UserError | None = None


def from_folder(folder: Path, plan: Plan, ended: Ended) -> Collected:
    """What the processes of a live run left."""
    parts = read_parts(folder)
    records: list[LaunchRecord] = []
    found, unfinished = [], []
    for part in parts:
        offset = len(records)
        records += [replace(record, index=record.index + offset) for record in part.records]
        if part.found.outcomes:
            found.append((part.found.outcomes, offset))
        if part.unfinished:
            unfinished.append(f"a process went away while {part.unfinished} ran")
    trouble = next((part.found.trouble for part in parts if part.found.trouble is not None), None)
    if (folder / "outside").exists():
        names = dict.fromkeys((folder / "outside").read_text().splitlines())
        unfinished += [f"kernels of a Python without npuscope were not checked: {name}" for name in names]
    outcomes = merged(found) if found else Suite(plan.checks, plan.settings).outcomes
    partial = _stops(records) or ([f"the run stopped early, {trouble}"] if trouble is not None else [])
    partial += _parts(records)
    if (folder / "stop").exists():
        partial = ["stopped at the first error (--fail-fast)"]
    return Collected(outcomes, tuple(records), (*partial, *unfinished, *_endings(ended)), trouble)


def from_batches(batches: Iterable[Batch], plan: Plan) -> Collected:
    """What the checks say of a recorded trace."""
    tell_of_compilation()
    suite = Suite(plan.checks, plan.settings, LaunchSelector(plan.launches))
    log = LaunchLog()
    records: list[LaunchRecord] = []
    for batch in batches:
        before = suite.skipped
        suite.check(batch)
        record = log.take(batch, suite.skipped == before)
        if record is not None:
            records.append(record)
            if plan.fail_fast and any(plan.stops_at(finding) for finding in suite.findings):
                return Collected(suite.outcomes, tuple(records), ("stopped at the first error (--fail-fast)",))
    return Collected(suite.outcomes, tuple(records), tuple(_stops(records) + _parts(records)))


def _stops(records: list[LaunchRecord]) -> list[str]:
    """The launches that did not come to their end."""
    return list(dict.fromkeys(f"{item.kernel} {item.stopped}" for item in records if item.stopped))


def _parts(records: list[LaunchRecord]) -> list[str]:
    """The launches of which only a part was to run."""
    return list(dict.fromkeys(f"{item.kernel} ran only programs {item.part}" for item in records if item.part))


def _endings(ended: Ended) -> list[str]:
    reasons = ["interrupted by Ctrl-C"] if ended.interrupted else []
    if ended.signal and not (ended.interrupted and ended.signal == signal.SIGINT):
        reasons.append(f"the program was ended by signal {ended.signal} ({signal.strsignal(ended.signal)})")
    return reasons
