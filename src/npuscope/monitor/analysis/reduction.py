"""One rank's file made small: a few numbers for each step, and three for each collective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.database import read_database
from npuscope.monitor.analysis.files import DATABASE, Recording
from npuscope.monitor.analysis.intervals import Cover, step_of
from npuscope.monitor.analysis.json_lines import read_lines
from npuscope.monitor.analysis.records import Group, Records, Unreadable
from npuscope.monitor.analysis.steps import Steps, steps_of


@dataclass(frozen=True)
class Occurrences:
    """A rank's collectives on one communicator, in the order of their start. `step` is an index into the rank's steps;
    `at` is the start since the step's start, `duration` and `overlap` (with kernels) are nanoseconds, float32."""

    comm: str
    group: Group
    step: Column
    name: Column
    """Numbers of `names`."""
    names: tuple[str, ...]
    bytes: Column
    at: Column
    duration: Column
    overlap: Column


@dataclass(frozen=True)
class Operators:
    """What a rank's kernels came to in its steps, by name: calls and nanoseconds."""

    names: tuple[str, ...] = ()
    calls: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    time: Column = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Summary:
    """One rank, by step. All times are nanoseconds on the rank's own clock: `end` (int64) is when a step ended; of its
    `duration` (float64) kernels run for `compute`; collectives run for `communication`, and alone, with no kernel
    beside them, for `exposed`; neither runs for `duration - compute - exposed`."""

    rank: int
    pid: int
    host: str
    device: int
    path: str
    label: Column
    end: Column
    duration: Column
    compute: Column
    communication: Column
    exposed: Column
    occurrences: tuple[Occurrences, ...]
    operators: Operators
    source: str
    """What the steps were told from."""
    has_kernels: bool
    notes: tuple[str, ...] = ()

    @property
    def own(self) -> Column:
        """The time of each step that the rank spent by itself and not in collectives alone."""
        return self.duration - self.exposed

    @property
    def idle(self) -> Column:
        """The time in which neither a kernel nor a collective ran."""
        return self.duration - self.compute - self.exposed


@dataclass(frozen=True)
class Failure:
    """A recording that says nothing, and why."""

    rank: int
    path: str
    reason: str


def reduce_file(recording: Recording) -> Summary | Failure:
    """Read and reduce one rank's files; runs wherever they lie, and never raises for what is wrong with them."""
    try:
        if recording.form == DATABASE:
            records = read_database(recording.paths[0], recording.rank, recording.pid)
        else:
            records = read_lines(recording.paths, recording.rank, recording.pid)
        return reduced(records)
    except Unreadable as error:
        return Failure(recording.rank, recording.name, str(error))


def reduced(records: Records) -> Summary:
    """A rank's records by step. Raises Unreadable when there are none."""
    steps = steps_of(records)
    if not len(steps.label):
        raise Unreadable("no steps: mark them (domain step, names step 1, step 2, ...), or record more collectives")
    kernels, collectives = records.kernels, records.collectives
    compute = Cover(kernels.start, kernels.end)
    alone = Cover(collectives.start, collectives.end)
    both = Cover(np.append(kernels.start, collectives.start), np.append(kernels.end, collectives.end))
    running = compute.within(steps.start, steps.end).astype(float)
    return Summary(
        records.rank, records.pid, records.host, records.device, records.path,
        steps.label, steps.end, (steps.end - steps.start).astype(float), running,
        alone.within(steps.start, steps.end).astype(float),
        both.within(steps.start, steps.end) - running,
        _occurrences(records, steps, compute), _operators(records, steps), steps.source, len(kernels) > 0,
        tuple(records.notes),
    )  # fmt: skip


def _occurrences(records: Records, steps: Steps, compute: Cover) -> tuple[Occurrences, ...]:
    inside = steps.of_collective >= 0
    found, step = records.collectives.where(inside), steps.of_collective[inside]
    overlap = compute.within(found.start, found.end)
    made = []
    for number in np.unique(found.comm).tolist():
        mine = np.flatnonzero(found.comm == number)
        mine = mine[np.argsort(step[mine], kind="stable")]
        comm = records.strings.get(number, f"communicator {number}")
        names, name = _texts(records.strings, found.name[mine])
        made.append(
            Occurrences(
                comm, records.groups.get(comm, Group("", ())), step[mine].astype(np.int32), name, names,
                found.bytes[mine], (found.start[mine] - steps.start[step[mine]]).astype(np.float32),
                (found.end - found.start)[mine].astype(np.float32), overlap[mine].astype(np.float32),
            )
        )  # fmt: skip
    return tuple(made)


def _operators(records: Records, steps: Steps) -> Operators:
    kernels = records.kernels
    if not len(kernels):
        return Operators()
    inside = step_of(kernels.start, steps.start, steps.end) >= 0
    names, name = _texts(records.strings, kernels.name[inside])
    spent = np.maximum(kernels.end - kernels.start, 0)[inside].astype(float)
    return Operators(names, np.bincount(name, minlength=len(names)), np.bincount(name, spent, len(names)))


def _texts(strings: Mapping[int, str], numbers: Column) -> tuple[tuple[str, ...], Column]:
    """The texts in use and each record's place among them, uint16 or wider."""
    used, place = np.unique(numbers, return_inverse=True)
    texts = tuple(strings.get(number, f"name {number}") for number in used.tolist())
    return texts, place.reshape(-1).astype(np.min_scalar_type(max(len(used), 1)))
