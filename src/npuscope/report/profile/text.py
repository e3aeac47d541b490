"""A profile in the terminal: plain text, one part for each thing that a person asks for.

Parts (:data:`PAGES`): ``summary`` (time, bound, speed of light, the lines to fix first, advice), ``details`` (every
advice with its evidence), ``source`` (all lines, with their instructions), ``memory`` (what moves between the
memories), ``pipe`` (every pipe of every core).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from npuscope.errors import UserError
from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.cores import core_names
from npuscope.profiler.profile import Profile
from npuscope.profiler.sources import source_line
from npuscope.profiler.table import Table
from npuscope.report.profile.figures import bar, figure, place, share, size, time
from npuscope.trace.timeline import Lane

TOP_LINES = 3
MOST_ADVICE = 5
MOST_LINES = 40
WIDTH = 100
ESTIMATED = "estimated gain"


def profile_text(profiles: Iterable[Profile], page: str = "summary") -> str:
    """One part for each launch, a newline at the end. Raises UserError for a page that there is not."""
    if page not in PAGES:
        raise UserError(f"no page {page!r}; there are {', '.join(PAGES)}")
    parts = ["\n".join(PAGES[page](profile)) for profile in profiles]
    return "\n\n".join(parts) + "\n" if parts else ""


def _head(profile: Profile) -> Iterator[str]:
    summary = profile.summary
    yield (
        f"{summary.kernel}: {time(summary.microseconds)} ({summary.provenance}), {summary.cycles:,} cycles at "
        f"{summary.mhz:g} MHz, {summary.blocks} blocks on {summary.cores_used} of {summary.cores_there} cores, "
        f"{summary.chip}"
    )
    for loss in profile.timeline.losses:
        yield f"  PARTIAL: {loss.text}"


def _summary(profile: Profile) -> Iterator[str]:
    yield from _head(profile)
    summary = profile.summary
    yield f"{summary.bound_text} ({_path(summary.path)})"
    yield ""
    yield f"Speed of light ({summary.provenance})"
    for one in summary.bars:
        yield f"  {one.name:<10} {bar(one.share)} {share(one.share):>6}  {one.reached}; {one.limit}"
    yield ""
    yield from _first(profile)
    yield ""
    yield "Performance Summary Report:"
    shown = profile.advice[:MOST_ADVICE]
    if not shown:
        yield "  no advice: no rule fires"
    for number, advice in enumerate(shown, 1):
        yield f"  {number}) {advice.text}{_gain(advice)}"
        yield f"     {_where(advice)}{advice.remedy}"
    if len(profile.advice) > len(shown):
        yield f"  {len(profile.advice) - len(shown)} more on the page details"


def _first(profile: Profile) -> Iterator[str]:
    """The lines with most of the critical path; the instructions, where no lines are known."""
    summary = profile.summary
    whole = max(sum(summary.path.values()), 1)
    what = "Lines" if summary.lines else "Instructions"
    yield f"{what} to fix first ({summary.provenance} cycles on the critical path)"
    for line in summary.lines[:TOP_LINES]:
        text = (source_line(line.frame.file, line.frame.line) or "").strip()
        yield f"  {place(line.frame):<24} {line.path:>12,} {share(line.path / whole):>6}  {text}"[: WIDTH + 20]
    if summary.lines:
        return
    timeline = profile.timeline
    by_slice = profile.critical_path.by_slice(timeline.slices.shape[1])
    by_step = np.bincount(timeline.slice("step"), by_slice, minlength=len(timeline.steps)).astype(np.int64)
    for number in np.argsort(-by_step, kind="stable")[:TOP_LINES].tolist():
        step = timeline.steps[number]
        name = f"{step.address:#x} {step.text}"
        yield f"  {name:<38} {by_step[number]:>12,} {share(by_step[number] / whole):>6}  {step.lane.name}"


def _path(path: dict[str, int]) -> str:
    whole = max(sum(path.values()), 1)
    return ", ".join(f"{name} {share(cycles / whole)}" for name, cycles in list(path.items())[:5])


def _gain(advice: Advice) -> str:
    return "" if advice.gain is None else f"  [{ESTIMATED} {share(advice.gain)} of the task]"


def _where(advice: Advice) -> str:
    return f"{', '.join(place(frame) for frame in advice.frames[:3])}: " if advice.frames else ""


def _details(profile: Profile) -> Iterator[str]:
    yield from _head(profile)
    yield profile.summary.bound_text
    for number, advice in enumerate(profile.advice, 1):
        yield ""
        yield f"{number}) [{advice.rule}] {advice.text}"
        if advice.remedy:
            yield f"   to do      {advice.remedy}"
        for name, value in advice.evidence.items():
            yield f"   evidence   {name}: {figure(value)}"
        if advice.threshold:
            yield f"   threshold  {advice.threshold}"
        gain = "not told" if advice.gain is None else f"{share(advice.gain)} of the task ({advice.estimate})"
        yield f"   {'gain':<10} {gain}"
        for frame in advice.frames:
            yield f"   line       {place(frame)}  {(source_line(frame.file, frame.line) or '').strip()}"
    yield from _tables(profile, ("OpBasicInfo",))


def _source(profile: Profile) -> Iterator[str]:
    yield from _head(profile)
    summary, spots = profile.summary, profile.hot_spots
    whole = max(sum(summary.path.values()), 1)
    by_place = {(spot.frame.file, spot.frame.line): spot for spot in spots.lines}
    yield f"Cycles of all cores and on the critical path ({summary.provenance})"
    yield f"  {'line':<24} {'cycles':>12} {'critical':>12} {'share':>6} {'executed':>9} {'moved':>10}"
    for line in summary.lines[:MOST_LINES]:
        spot = by_place[line.frame.file, line.frame.line]
        moved = spot.bytes[spot.bytes >= 0]
        yield (
            f"  {place(line.frame):<24} {line.cycles:>12,} {line.path:>12,} {share(line.path / whole):>6} "
            f"{int(spot.executed.sum()):>9,} {size(float(moved.sum()) if moved.size else None):>10}  "
            f"{(source_line(line.frame.file, line.frame.line) or '').strip()}"
        )
        for number in spot.steps:
            step = profile.timeline.steps[number]
            cycles = int(spots.cycles[number].clip(0).sum())
            runs = int(spots.executed[number].sum())
            yield f"    {step.address:#x} {step.lane.name:<7} {step.text:<22} {cycles:>12,} cycles in {runs:,} runs"
    if len(summary.lines) > MOST_LINES:
        yield f"  {len(summary.lines) - MOST_LINES} more lines"


def _memory(profile: Profile) -> Iterator[str]:
    yield from _head(profile)
    yield f"Ways between the memories ({profile.summary.provenance}), all blocks together"
    yield f"  {'from':<7} {'to':<7} {'bytes':>10} {'requests':>10} {'GB/s':>9} {'of peak':>8}"
    flows: dict[tuple[str, str], list[Any]] = {}
    for block in profile.heat_map.blocks:
        for flow in block.flows:
            flows.setdefault(flow.path.ends, []).append(flow)
    for (source, target), group in flows.items():
        moved, asked = _total([flow.bytes for flow in group]), _total([flow.requests for flow in group])
        if moved or asked:
            rate, peak = _mean([flow.bandwidth for flow in group]), _mean([flow.share for flow in group])
            yield (
                f"  {source:<7} {target:<7} {size(moved):>10} {'NA' if asked is None else f'{asked:,.0f}':>10} "
                f"{'NA' if rate is None else f'{rate:.1f}':>9} {share(None if peak is None else peak / 100):>8}"
            )
    yield from _tables(profile, ("L2Cache", "Memory", "MemoryL0", "MemoryUB"))


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) / len(known) if known else None


def _pipe(profile: Profile) -> Iterator[str]:
    yield from _head(profile)
    timeline, busy = profile.timeline, profile.busy
    names = core_names(timeline.launch)
    lanes = [lane for lane in Lane if busy.work[lane].any() or busy.wait[lane].any()]
    task = max(timeline.cycles, 1)
    yield f"Share of the task in which each pipe worked, and waited ({profile.summary.provenance})"
    yield "  " + f"{'core':<18}" + "".join(f"{lane.name:>14}" for lane in lanes)
    for core in range(min(len(names), MOST_LINES)):
        cells = (f"{share(busy.work[lane][core] / task)} +{share(busy.wait[lane][core] / task)}" for lane in lanes)
        yield "  " + f"{names[core]:<18}" + "".join(f"{cell:>14}" for cell in cells)
    if len(names) > MOST_LINES:
        yield f"  {len(names) - MOST_LINES} more cores"
    mean = np.array([busy.work[lane].mean() for lane in lanes]) / task
    yield "  " + f"{'mean':<18}" + "".join(f"{share(float(value)):>14}" for value in mean)
    yield from _tables(profile, ("PipeUtilization", "ResourceConflictRatio"))


def _tables(profile: Profile, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if table := profile.tables.get(name):
            yield ""
            yield from table_lines(table)


def table_lines(table: Table) -> Iterator[str]:
    """A table turned on its side, since it has more columns than a terminal: a line for each column that has a figure
    in some row, a column for each of the first rows."""
    rows = table.rows[:6]
    yield f"{table.name}{f' (first {len(rows)} of {len(table.rows)} rows)' if len(table.rows) > len(rows) else ''}"
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in rows]
        if any(cell is not None for cell in cells):
            yield f"  {column:<34}" + "".join(f"{_cell(cell):>14}" for cell in cells)


def _cell(cell: Any) -> str:
    if cell is None:
        return "NA"
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)


def rooflines(profile: Profile) -> Iterator[str]:
    """The lines under "RoofLine Summary Report:"."""
    for chart in profile.roofline.charts:
        for roof in chart.lines:
            yield (
                f"{chart.title}: {roof.path}: {roof.y:.4g} Tops/s of {min(roof.peak, roof.x * roof.bandwidth):.4g}, "
                f"{roof.x:.4g} operations a byte, {share(roof.ratio)} ({profile.summary.provenance})"
            )
    if profile.roofline.advice:
        yield f"advice: {profile.roofline.advice}"


def on_board_text(profile: Profile, roofline: bool = True, occupancy: bool = True) -> str:
    """The summary tables that follow a run of `msprof op` (opprof.md 1.8), for the parts that say anything; `roofline`
    and `occupancy` tell whether those two were asked for."""
    basic = profile.tables.get("OpBasicInfo")
    parts: dict[str, list[str]] = {
        "Operator Basic Information": list(table_lines(basic))[1:] if basic else [],
        "RoofLine Summary Report": [f"  {line}" for line in rooflines(profile)] if roofline else [],
        "Occupancy Summary Report": [f"  {line}" for line in profile.occupancy.advice] if occupancy else [],
        "Performance Summary Report": [f"  {n}. {one.text}{_gain(one)}" for n, one in enumerate(profile.advice, 1)],
    }
    lines = [line for title, body in parts.items() if body for line in (f"{title}:", *body)]
    return "\n".join([*lines, profile.timeline.source.sentence, ""])


COLUMN = 20
"""Width of a column of the simulator's table (opprof.md 1.8)."""


def simulator_text(profile: Profile) -> str:
    """The table that follows a run of `msprof op simulator` (opprof.md 1.8): for each core its whole time and the time
    in which any of its pipes worked."""
    timeline = profile.timeline
    lines = [
        "Core operator results run in simulator as follow:",
        "".join(f"{name:<{COLUMN}}" for name in ("core_name", "duration_time(us)", "running_time(us)")).rstrip(),
    ]
    for name, duration, running in zip(core_names(timeline.launch), *core_times(profile), strict=True):
        cells = (name, f"{duration / timeline.mhz:.2f}", f"{running / timeline.mhz:.2f}")
        lines.append("".join(f"{cell:<{COLUMN}}" for cell in cells).rstrip())
    return "\n".join([*lines, profile.timeline.source.sentence, ""])


def core_times(profile: Profile) -> tuple[list[int], list[int]]:
    """Cycles of each core from its first instruction to its last, and those in which some pipe worked."""
    timeline = profile.timeline
    running = profile.working.lengths(tuple(Lane))
    low = np.full(running.size, np.iinfo(np.int64).max)
    high = np.zeros(running.size, np.int64)
    np.minimum.at(low, timeline.slice("core"), timeline.slice("start"))
    np.maximum.at(high, timeline.slice("core"), timeline.slice("end"))
    return (high - np.minimum(low, high)).tolist(), running.tolist()


PAGES: dict[str, Callable[[Profile], Iterator[str]]] = {
    "summary": _summary, "details": _details, "source": _source, "memory": _memory, "pipe": _pipe,
}  # fmt: skip
