"""Which files a profile becomes, and who writes each (opprof.md 1.10, 2.1)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from npuscope.cli.profile_folder import FILE_MODE, STATUS, Place, RunFolder
from npuscope.cli.profile_options import FORMATS
from npuscope.cli.profile_status import Status
from npuscope.errors import UserError
from npuscope.profiler.cores import core_names
from npuscope.profiler.counters import count
from npuscope.profiler.insight import Blocks, Mode, wanted_types
from npuscope.profiler.instruction_timeline.communication import communication
from npuscope.profiler.instruction_timeline.instructions import instr_timeline
from npuscope.profiler.instruction_timeline.labels import NO_LABELS, Labels
from npuscope.profiler.instruction_timeline.marks import user_marks
from npuscope.profiler.instruction_timeline.pipes import EVERY_PIPE, PipeChoice
from npuscope.profiler.instruction_timeline.soundness import complaints
from npuscope.profiler.instruction_timeline.states import pipe_timeline
from npuscope.profiler.instruction_timeline.warps import WarpFeature, is_simt, not_simt, warps
from npuscope.profiler.metrics import metric_tables
from npuscope.profiler.profile import Profile
from npuscope.profiler.region import marked_part
from npuscope.profiler.selection import Selection
from npuscope.profiler.some_cores import some_cores
from npuscope.profiler.writers.bin import BlockType, write_bin
from npuscope.profiler.writers.csv import table_text
from npuscope.profiler.writers.large_file import LargeFile, pieces_of
from npuscope.profiler.writers.perfetto import write_perfetto
from npuscope.profiler.writers.simulator_csv import simulator_tables
from npuscope.profiler.writers.trace_json import (
    CoreTraces,
    OnBoard,
    Shown,
    shown_of,
    write_on_board,
    write_simulator,
)
from npuscope.report.profile.document import profile_json
from npuscope.report.profile.page import page
from npuscope.trace.timeline import Loss, Timeline

TRACE = "trace.json"
SIMT_ARCH = "3510"
"""The architecture whose kernels can run in warps."""

REPORT = "report"
"""The folder of what the vendor's tool does not write."""

MOST_SLICES = 4_000_000
"""Instructions of all launches together that the page and the JSON document hold; the launches after that are left out
of them, and it is said."""


MOST_SPANS = 250_000
"""Instructions up to which the simulator's timeline has scalar spans: they take two of three of its bytes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written of each launch: the groups, the `formats`, the cores that the simulator's files are for
    (empty: all), the `pipes` of the on-board timeline, whether raw dumps are kept, names for time stamps,
    and the user's own rules."""

    selection: Selection
    formats: frozenset[str] = frozenset(FORMATS)
    cores: tuple[int, ...] = ()
    pipes: PipeChoice = EVERY_PIPE
    dump: bool = False
    labels: Labels = NO_LABELS
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
        self.warnings += complaints([self.profile.timeline])
        self._count()
        if not selection.simulator:
            self._on_board()
        if selection.simulated_timeline:
            self._simulated()
        if self.wanted.dump:
            self._dump()
        if "perfetto" in self.wanted.formats:
            self._perfetto()
        return self.warnings

    def _on_board(self) -> None:
        """What `msprof op` writes."""
        if "csv" in self.wanted.formats:
            self._tables()
        self._on_board_trace()
        if "bin" in self.wanted.formats:
            self._blocks(self.place, self.profile, Mode.OP, wanted_types(self.wanted.selection))

    def _on_board_trace(self) -> None:
        """The timeline as a card gives it, where there is something to show; what it lacks becomes a loss."""
        selection, timeline = self.wanted.selection, self.profile.timeline
        shown = OnBoard(
            instr_timeline(timeline, self.wanted.pipes) if selection.instructions else None,
            pipe_timeline(timeline) if selection.pipes else None,
            tuple(warps(timeline)) if self.profile.chip.arch == SIMT_ARCH else (),
            communication(timeline, self.wanted.labels) if timeline.marks.shape[1] else None,
        )
        if selection.stalls and not is_simt(timeline):
            self.warnings += not_simt(WarpFeature, timeline.launch.kernel)
        if not shown.empty and "trace" in self.wanted.formats:
            with _opened(self.place, TRACE) as file:
                write_on_board(file, timeline, shown)
        timeline.losses = (*timeline.losses, *shown.losses)

    def _dump(self) -> None:
        """The logs that a simulator would have written, and what the viewer's code tables hold."""
        from npuscope.profiler.ingest import write_dumps

        timeline = self._of_cores().timeline
        write_dumps(timeline, self.place.inside("dump").file(""))
        report = self.place.inside(REPORT)
        for block in Blocks(self.profile, frozenset((BlockType.FILE_API, BlockType.INSTR_API)), Mode.SIMULATOR):
            name = "api_files.json" if block.type is BlockType.FILE_API else "api_instr.json"
            report.write(name, block.text)

    def _blocks(self, place: Place, profile: Profile, mode: Mode, types: frozenset[BlockType]) -> None:
        """The file that MindStudio Insight loads, with the timeline of the same folder."""
        selection, trace = self.wanted.selection, place.file(TRACE)
        blocks = Blocks(
            profile, types, mode, selection.tables, selection.detail,
            trace=pieces_of(trace) if trace.exists() else None, advice=[advice.text for advice in self.profile.advice],
            device=profile.timeline.launch.device, pid=self.process or 0,
        )  # fmt: skip
        losses = write_bin(place.file("visualize_data.bin"), blocks)
        self.warnings += [loss.text for loss in (*blocks.losses, *losses)]

    def _tables(self) -> None:
        for name in self.wanted.selection.tables:
            if name in self.profile.tables:
                self.place.write_table(name, table_text(self.profile.tables[name]).encode())

    def _count(self) -> None:
        """Let the profile's tables be those that the groups ask for: with the columns of MemoryDetail, or of the part
        that the kernel marks."""
        profile, selection = self.profile, self.wanted.selection
        part = marked_part(profile.timeline) if selection.region else None
        if selection.region and part is None:
            self.warnings.append(
                f"{profile.timeline.launch.kernel}: KernelScale needs marks (metrics_prof_start, metrics_prof_stop) in "
                "the kernel, and there are none; the whole kernel counts"
            )
        counters = profile.counters if part is None else count(part, profile.chip)
        profile.tables = metric_tables(
            profile.timeline,
            profile.chip,
            counters,
            detail=selection.detail,
            region=part is not None,
            process=self.process,
            device=profile.timeline.launch.device,
        )

    def _simulated(self) -> None:
        """What `msprof op simulator` writes."""
        place, profile = self.place.inside("simulator"), self._of_cores()
        if "trace" in self.wanted.formats:
            self._simulator_traces(place, profile)
        if "csv" in self.wanted.formats:
            for name, by_line, by_instruction in simulator_tables(profile):
                place.inside(name).write_table(by_line.name, table_text(by_line).encode())
                place.inside(name).write_table(by_instruction.name, table_text(by_instruction, ("detail",)).encode())
        if "bin" in self.wanted.formats:
            self._blocks(place, profile, Mode.SIMULATOR, wanted_types(Selection(frozenset(), simulator=True)))

    def _simulator_traces(self, place: Place, profile: Profile) -> None:
        timeline = profile.timeline
        shown = self._shown(timeline)
        with _opened(place, TRACE) as file:
            write_simulator(file, timeline, shown, profile.placed)
        traces = CoreTraces(timeline, shown, profile.placed)
        for core, name in enumerate(core_names(timeline.launch)):
            with _opened(place.inside(name), TRACE) as file:
                traces.write(file, core)
        whole = self.profile.timeline
        whole.losses = (*whole.losses, *user_marks(timeline).losses)

    def _of_cores(self) -> Profile:
        """The profile of the cores that are wanted."""
        cores, profile = self.wanted.cores, self.profile
        return Profile(some_cores(profile.timeline, cores), profile.chip, profile.rules) if cores else profile

    def _shown(self, timeline: Timeline) -> Shown:
        """What the simulator's timeline shows; that spans are left out of a long one is a loss."""
        selection, count = self.wanted.selection, int(timeline.slices.shape[1])
        shown = replace(shown_of(self.profile.chip), flags=selection.waits, throughput=selection.throughput)
        if shown.spans and count > MOST_SPANS:
            text = (
                f"trace.json has no scalar spans: they are left out above {MOST_SPANS:,} instructions "
                f"(here {count:,}); choose fewer cores for them"
            )
            loss = Loss("spans", text, count=count, total=count, partial=False)
            for one in {id(one): one for one in (timeline, self.profile.timeline)}.values():
                one.losses = (*one.losses, loss)
            return replace(shown, spans=False)
        return shown

    def _perfetto(self) -> None:
        with _opened(self.place.inside(REPORT), "perfetto_trace.json") as file:
            write_perfetto(file, self.profile.timeline, self.profile.placed)


@contextmanager
def _opened(place: Place, name: str) -> Iterator[LargeFile]:
    """A file of a folder, to be written in pieces."""
    with LargeFile(os.open(place.file(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)) as file:
        yield file


def write_report(folder: RunFolder, profiles: Sequence[Profile], wanted: Wanted, status: Status) -> list[str]:
    """Write the files of a whole run; returns what people should be warned of. Raises UserError where not even
    ``status.json`` can be written."""
    shown, warnings = _bounded(profiles)
    report = folder.addition(REPORT)
    try:
        if "json" in wanted.formats:
            report.write("profile.json", profile_json(shown))
        if "html" in wanted.formats:
            report.write("index.html", page(shown))
        folder.add(report, REPORT)
    except UserError as error:
        warnings.append(f"{REPORT}/ is not complete: {error}")
        status.incomplete()
    for line in warnings:
        status.warned(line)
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
