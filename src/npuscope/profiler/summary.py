"""A launch in a few figures: how long it took, what bounded it, how near each unit came to what it can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from npuscope.profiler.busy import Busy
from npuscope.profiler.charts.traffic import ceiling_of
from npuscope.profiler.critical_path import CriticalPath, lane_shares, line_cycles
from npuscope.profiler.traffic import traffic
from npuscope.trace.schema import CoreType, SourceFrame
from npuscope.trace.timeline import Lane

if TYPE_CHECKING:
    from npuscope.profiler.profile import Profile

WORDS = {
    "MTE2": "copies into the core (MTE2)",
    "MTE3": "copies out of the core (MTE3)",
    "MTE1": "copies from L1 into L0A and L0B (MTE1)",
    "FIXP": "copies out of L0C (FIXP)",
    "VECTOR": "the vector unit",
    "CUBE": "the cube unit",
    "SCALAR": "the scalar unit",
    "issue": "the scalar unit, which issued too late",
    "start": "launch overhead",
    "signal": "signals and messages on their way between cores",
    "ALL": "barriers",
}
"""How a resource on the critical path is called for people."""

PIPE_CORES = {
    Lane.CUBE: CoreType.AIC, Lane.VECTOR: CoreType.AIV, Lane.MTE1: CoreType.AIC, Lane.FIXP: CoreType.AIC,
}  # fmt: skip
"""Pipes that only one kind of core has on a chip that splits them."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How near a unit came to its limit. `share` is 0..1, None where it is not known; `kind` is ``busy`` (share of the
    task's time in which the unit worked, mean over the cores that have it) or ``rate`` (share of the most that the
    whole chip moves or computes); `reached` and `limit` say the figures in words."""

    name: str
    kind: str
    share: float | None
    reached: str
    limit: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of source: `path` are its cycles on the critical path, `cycles` those of all its instructions on all
    cores."""

    frame: SourceFrame
    path: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Summary:
    """`path` are the cycles of the critical path by resource (names of lanes, ``issue``, ``start``, ``signal``), the
    most first; they sum to the time of the last instruction. `lines` are all lines, those with the most on the path
    first."""

    kernel: str
    index: int
    chip: str
    provenance: str
    cycles: int
    overhead: int
    mhz: float
    blocks: int
    cores_used: int
    cores_there: int
    bars: tuple[Bar, ...]
    path: dict[str, int]
    lines: tuple[Line, ...]

    @property
    def microseconds(self) -> float:
        """Length of the task."""
        return self.cycles / self.mhz

    @property
    def bound(self) -> str:
        """The resource with most of the critical path; ``nothing`` where nothing ran."""
        return next(iter(self.path), "nothing")

    @property
    def bound_text(self) -> str:
        """What bounds it, in one sentence."""
        whole = sum(self.path.values())
        if not whole:
            return "Nothing ran."
        name, cycles = next(iter(self.path.items()))
        return f"Bound by {WORDS.get(name, name)}: {100 * cycles / whole:.0f} % of the critical path."


def summarise(profile: Profile) -> Summary:
    """The summary of a launch."""
    timeline, path = profile.timeline, profile.critical_path
    launch = timeline.launch
    cubes = sum(core.type is CoreType.AIC for core in launch.cores)
    chip = profile.chip.cores
    there = (chip.aic if cubes else 0) + (chip.aiv if cubes < len(launch.cores) else 0)
    return Summary(
        launch.kernel, launch.index, timeline.chip, timeline.source.word, timeline.cycles, timeline.overhead,
        timeline.mhz, launch.grid[0] if launch.grid else len(launch.cores), len(launch.cores), there,
        tuple(_bars(profile, profile.busy)), lane_shares(timeline, path), _lines(profile, path),
    )  # fmt: skip


def _lines(profile: Profile, path: CriticalPath) -> tuple[Line, ...]:
    on_path = line_cycles(profile.timeline, path)
    lines = [
        Line(spot.frame, on_path.get((spot.frame.file, spot.frame.line), 0), int(spot.cycles.sum()))
        for spot in profile.hot_spots.lines
    ]
    return tuple(sorted(lines, key=lambda line: (-line.path, -line.cycles)))


def _bars(profile: Profile, busy: Busy) -> Iterator[Bar]:
    timeline, chip = profile.timeline, profile.chip
    types = [core.type for core in timeline.launch.cores]
    for lane in (Lane.CUBE, Lane.VECTOR, Lane.SCALAR, Lane.MTE1, Lane.MTE2, Lane.MTE3, Lane.FIXP):
        wanted = PIPE_CORES.get(lane) if chip.split else None
        has = np.array([wanted is None or wanted is kind for kind in types], bool)
        if has.any() and (busy.lane(lane)[has].any() or lane in (Lane.SCALAR, Lane.MTE2)):
            yield _busy_bar(lane, busy.lane(lane)[has], timeline.cycles)
    yield from _rate_bars(profile)


def _busy_bar(lane: Lane, cycles: np.ndarray, task: int) -> Bar:
    mean = float(cycles.mean())
    reached = f"{mean:,.0f} cycles busy, mean of {cycles.size} core{'s' * (cycles.size != 1)}"
    return Bar(lane.name, "busy", mean / task if task else None, reached, f"{task:,} cycles of the task")


def _rate_bars(profile: Profile) -> Iterator[Bar]:
    timeline, chip = profile.timeline, profile.chip
    seconds = timeline.cycles / (timeline.mhz * 1e6)
    moved = traffic(timeline, chip)
    macs = int(timeline.slice("work")[timeline.slice("lane") == Lane.CUBE].sum())
    if macs > 0:
        peak = chip.cube_operations("half") * chip.cores.aic * chip.frequency_mhz / 1e6
        where = f"of {chip.cores.aic} cube cores at fp16"
        yield _rate_bar("Cube rate", 2 * macs / 1e12, seconds, peak, "Tops/s", where)
    memory = None if moved.memory is None else moved.memory / 1e9
    yield _rate_bar("GM", memory, seconds, chip.bandwidth.gm, "GB/s", "of the chip's memory")
    yield _rate_bar("L2", (moved.read + moved.written) / 1e9, seconds, chip.bandwidth.l2, "GB/s", "of the chip's L2")
    yield from _ub_bar(profile)


def _rate_bar(name: str, amount: float | None, seconds: float, limit: float, unit: str, of_what: str) -> Bar:
    if amount is None or not seconds or not limit:
        return Bar(name, "rate", None, "not known", f"{limit:,.1f} {unit} {of_what}")
    rate = amount / seconds
    return Bar(name, "rate", rate / limit, f"{rate:,.1f} {unit}", f"{limit:,.1f} {unit} {of_what}")


def _ub_bar(profile: Profile) -> Iterator[Bar]:
    """The vector unit's traffic with UB, from the table of metrics: mean over the vector cores."""
    table = profile.tables.get("MemoryUB")
    if table is None:
        return
    rates = np.zeros(0)
    for name in table.columns:
        if "bw_vector" in name:
            cells = [cell for cell in table.column(name) if isinstance(cell, int | float)]
            rates = (
                np.array(cells) if not rates.size else rates + np.array(cells) if len(cells) == rates.size else rates
            )
    if rates.size:
        limit = ceiling_of("ub_to_vec", profile.chip)
        share = float(rates.mean()) / limit if limit else None
        yield Bar("UB", "rate", share, f"{rates.mean():,.1f} GB/s of a vector core", f"{limit:,.1f} GB/s of its UB")
