"""Which files a profile becomes, and who writes each (opprof.md 1.10, 2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, Any

from npuscope.cli.msopprof.inputs import Labels
from npuscope.cli.profile_folder import STATUS, Place, RunFolder
from npuscope.cli.profile_status import Status
from npuscope.profiler.profile import Profile
from npuscope.profiler.selection import Selection
from npuscope.profiler.some_cores import some_cores
from npuscope.trace.timeline import Timeline

FORMATS = ("csv", "bin", "trace", "json", "html", "perfetto")

REPORT = "report"
"""The folder of what the vendor's tool does not write."""

MOST_SLICES = 4_000_000
"""Instructions of all launches together that the page and the JSON document hold; the launches after that are left out
of them, and it is said."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written of each launch: the groups, the `formats`, the cores that the simulator's files are for
    (empty: all), the pipes of the on-board timeline (empty: all), whether raw dumps are kept, names for time stamps,
    and the user's own rules."""

    selection: Selection
    formats: frozenset[str] = frozenset(FORMATS)
    cores: tuple[int, ...] = ()
    pipes: tuple[str, ...] = ()
    dump: bool = False
    labels: Labels | None = None
    rules: tuple[Any, ...] = ()


def write_launch(place: Place, profile: Profile, wanted: Wanted, process: int | None = None) -> list[str]:
    """Write a launch's files; returns what people should be warned of. `process` is the one that launched it."""
    return LaunchFiles(place, profile, wanted, process).write()


@dataclass(slots=True)
class LaunchFiles:
    """The files of one launch in the making."""

    place: Place
    profile: Profile
    wanted: Wanted
    process: int | None = None
    warnings: list[str] = field(default_factory=list)

    def write(self) -> list[str]:
        """Write them; returns the warnings."""
        selection = self.wanted.selection
        self.profile.rules = self.wanted.rules
        self._count()
        if not selection.simulator:
            self._on_board()
        if selection.simulated_timeline:
            self._simulated()
        if "perfetto" in self.wanted.formats:
            self._perfetto()
        return self.warnings

    def _on_board(self) -> None:
        """What `msprof op` writes."""
        if "csv" in self.wanted.formats:
            self._tables()

    def _tables(self) -> None:
        from npuscope.profiler.writers.csv import table_text

        for name in self.wanted.selection.tables:
            if name in self.profile.tables:
                self.place.write_table(name, table_text(self.profile.tables[name]).encode())

    def _count(self) -> None:
        """Let the profile's tables be those that the groups ask for: with the columns of MemoryDetail, or of the part
        that the kernel marks."""
        from npuscope.profiler.counters import count
        from npuscope.profiler.metrics import metric_tables
        from npuscope.profiler.region import marked_part

        profile, selection = self.profile, self.wanted.selection
        part = marked_part(profile.timeline) if selection.region else None
        if selection.region and part is None:
            self.warnings.append(
                f"{profile.timeline.launch.kernel}: KernelScale needs marks (metrics_prof_start, metrics_prof_stop) in "
                "the kernel, and there are none; the whole kernel counts"
            )
        counters = profile.counters if part is None else count(part, profile.chip)
        profile.tables = metric_tables(
            profile.timeline, profile.chip, counters, detail=selection.detail, region=part is not None,
            process=self.process, device=profile.timeline.launch.device,
        )

    def _simulated(self) -> None:
        """What `msprof op simulator` writes."""
        place = self.place.inside("simulator")
        if "trace" in self.wanted.formats:
            self._simulator_traces(place)

    def _simulator_traces(self, place: Place) -> None:
        from npuscope.profiler.cores import core_names
        from npuscope.profiler.writers.trace_json import CoreTraces, write_simulator

        timeline, shown = self._drawn_timeline(), self._shown()
        with _opened(place, "trace.json") as file:
            write_simulator(file, timeline, shown)
        traces = CoreTraces(timeline, shown)
        for core, name in enumerate(core_names(timeline.launch)):
            with _opened(place.inside(name), "trace.json") as file:
                traces.write(file, core)

    def _drawn_timeline(self) -> Timeline:
        """The timeline of the cores that are wanted."""
        timeline = self.profile.timeline
        return some_cores(timeline, self.wanted.cores) if self.wanted.cores else timeline

    def _shown(self) -> Any:
        from npuscope.profiler.writers.trace_json import shown_of

        selection = self.wanted.selection
        shown = shown_of(self.profile.chip)
        return replace(shown, flags=selection.waits, throughput=selection.throughput)

    def _perfetto(self) -> None:
        from npuscope.profiler.writers.perfetto import write_perfetto

        with _opened(self.place.inside(REPORT), "perfetto_trace.json") as file:
            write_perfetto(file, self.profile.timeline)


@contextmanager
def _opened(place: Place, name: str) -> Iterator[IO[bytes]]:
    """A file of a folder, to be written in pieces."""
    with open(place.file(name), "wb", buffering=1 << 20) as file:
        yield file


def write_report(folder: RunFolder, profiles: Sequence[Profile], wanted: Wanted, status: Status) -> list[str]:
    """Write the files of a whole run; returns what people should be warned of."""
    from npuscope.report.profile.document import profile_json

    shown, warnings = _bounded(profiles)
    report = folder.addition(REPORT)
    if "json" in wanted.formats:
        report.write("profile.json", profile_json(shown))
    if "html" in wanted.formats:
        report.write("index.html", page_of(shown))
    for line in warnings:
        status.warned(line)
    folder.add(report, REPORT)
    summary = folder.addition("status")
    summary.write(STATUS, status.text(sorted((*folder.files(), STATUS))))
    folder.add(summary, ".")
    return warnings


def _bounded(profiles: Sequence[Profile]) -> tuple[list[Profile], list[str]]:
    """As many of the first launches as the page can hold, and the word for it where that is not all."""
    shown: list[Profile] = []
    slices = 0
    for profile in profiles:
        slices += int(profile.timeline.slices.shape[1])
        if shown and slices > MOST_SLICES:
            return shown, [f"report/ has the first {len(shown)} of {len(profiles)} launches; the folders have all"]
        shown.append(profile)
    return shown, []


def page_of(profiles: Sequence[Profile]) -> bytes:
    """The HTML page."""
    from npuscope.report.profile.page import page

    return page(profiles)
