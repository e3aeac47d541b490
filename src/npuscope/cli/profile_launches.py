"""The kept launches of a run, or those of a trace, one after the other, with their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npuscope.cli.launched import Launched, cores_of, launch_file, read_launches
from npuscope.errors import UserError
from npuscope.npu.chip import Chip, load_chip
from npuscope.npu.timing import time_launch
from npuscope.npu.timing.l2 import L2, cold
from npuscope.profiler.choice import Choice
from npuscope.profiler.profile import Profile
from npuscope.trace.recorder import Batch
from npuscope.trace.rows import LaunchRows, launches
from npuscope.trace.timeline import Loss

STOPPED = "stopped"
"""The kind of the loss that says that a launch did not come to its end."""


@dataclass(frozen=True, slots=True)
class Model:
    """How launches are timed: on `chip` (None: each on its own), with `facts` in place of the chip's. The L2 cache of
    a launch is empty, or `warm`: as the launch before left it; with `warmed` as an earlier run of the same launch did,
    which is as any number of them would, because the last accesses decide what a cache holds."""

    chip: str | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    warm: bool = False
    warmed: bool = False


@dataclass(slots=True)
class Profiled:
    """One launch: `order` counts those of its kernel and device; `profile` is None where `problem` says why."""

    launched: Launched
    order: int
    profile: Profile | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """How it is called for people."""
        return f"{self.launched.kernel} (launch {self.launched.number})"


class Timer:
    """Times launches in their order, and carries the L2 cache from one to the next of a device."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._l2: dict[tuple[int, str], L2] = {}

    def profile(self, rows: LaunchRows) -> Profile:
        """The profile of one launch. Raises UserError for one that has no times."""
        chip = chip_with(self.model.chip or rows.launch.chip, self.model.facts)
        timeline = time_launch(rows, chip, self._cache(rows, chip))
        timeline.losses = (*timeline.losses, *_stops(rows))
        return Profile(timeline, chip)

    def _cache(self, rows: LaunchRows, chip: Chip) -> L2 | None:
        """The L2 cache that a launch finds; None: empty."""
        if not self.model.warm or rows.launch.of_programs:
            return None
        key = rows.launch.device, chip.name
        if key not in self._l2:
            self._l2[key] = cold(chip)
        if self.model.warmed:
            time_launch(rows, chip, self._l2[key])
        return self._l2[key]


def chip_with(name: str, facts: Mapping[str, float]) -> Chip:
    """A chip with some of its facts replaced. Raises UserError for a name that is none."""
    return load_chip(name, facts) if facts else load_chip(name)


def from_run(folder: Path, model: Model) -> Iterator[Profiled]:
    """The kept launches that the processes of a run left in its folder."""
    kept = sorted((item for item in read_launches(folder) if item.kept >= 0), key=lambda item: item.kept)
    pairs = ((item, _batches(launch_file(folder, item.kept))) for item in kept)
    return _profiled(((item, next(launches(batches), None)) for item, batches in pairs), model)


def _batches(path: Path) -> Iterable[Batch]:
    from npuscope.cli.spooled_trace import read_spooled  # which a recorded trace does not need

    return read_spooled(path) if path.exists() else ()


def from_batches(batches: Iterable[Batch], choice: Choice, model: Model) -> Iterator[Profiled]:
    """The launches of a trace that a choice takes."""

    def chosen() -> Iterator[tuple[Launched, LaunchRows | None]]:
        kept = 0
        for number, rows in enumerate(launches(batches)):
            launch = rows.launch
            if (
                number < choice.skip
                or not choice.fits(launch.kernel)
                or (choice.count is not None and kept >= choice.count)
            ):
                continue
            place = f"{launch.frame.file}:{launch.frame.line}" if launch.frame else ""
            yield (
                Launched(number, launch.kernel, launch.chip, launch.device, 0, cores_of(launch), place, (), kept),
                rows,
            )
            kept += 1

    return _profiled(chosen(), model)


def from_dumps(folder: Path, chip: Chip | None, cores: Collection[int] = ()) -> Iterator[Profiled]:
    """The launches whose simulator logs are in a folder or below it; `chip` is the one that was simulated (None: found
    out), `cores` those to read (empty: all). Raises UserError where nothing can be read."""
    from npuscope.profiler.ingest import read_dumps

    orders = Counter[str]()
    for number, timeline in enumerate(read_dumps(folder, chip, cores or None)):
        launch = timeline.launch
        launched = Launched(number, launch.kernel, timeline.chip, launch.device, 0, cores_of(launch), "", (), number)
        yield Profiled(launched, orders[launch.kernel], Profile(timeline, chip or load_chip(timeline.chip)))
        orders[launch.kernel] += 1


def _profiled(pairs: Iterable[tuple[Launched, LaunchRows | None]], model: Model) -> Iterator[Profiled]:
    timer, orders = Timer(model), Counter[tuple[int, str]]()
    for launched, rows in pairs:
        key = launched.device, launched.kernel
        found = Profiled(launched, orders[key])
        orders[key] += 1
        if rows is None:
            found.problem = "its process went away before anything of it was kept"
        elif rows.launch.of_programs:
            found.problem = "a Triton kernel has no pipes to time here; it was run, and is left out"
        else:
            try:
                found.profile = timer.profile(rows)
            except UserError as error:
                found.problem = str(error)
        yield found


def _stops(rows: LaunchRows) -> list[Loss]:
    """What a launch lacks that did not come to its end."""
    reasons = [
        str(fault.facts.get("error", fault.code)) for fault in rows.faults if fault.code in ("stopped", "deadlock")
    ]
    count = rows.instruction.shape[1]
    return [
        Loss(STOPPED, f"the launch did not come to its end ({reason}); its figures are of what ran", count=count)
        for reason in dict.fromkeys(reasons)
    ]
