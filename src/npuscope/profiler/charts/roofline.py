"""Rooflines: how fast a kernel computes against what its memories and units allow (opprof.md 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.heat_map import evicted
from npuscope.profiler.charts.operations import Operations, cube_operations, simt_operations, vector_operations
from npuscope.profiler.charts.pipes import busiest
from npuscope.profiler.charts.traffic import L2_EVENTS, Ways, ways
from npuscope.profiler.counters import Counters
from npuscope.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Roof:
    """One bent line and the kernel's point below it.

    `unit` names what computes (``Cube_FP(100%)``) and `peak` is its flat part in Tops/s; `path` names what moves data
    (``GM Read + Write``) and `bandwidth` is the slope in TB/s. The point is `x` operations a byte and `y` Tops/s.
    `ratio` is y over the roof above the point, 0..1; None where it cannot be told (nothing moves at a known rate, or
    the point lies on or above its roof).
    """

    unit: str
    peak: float
    path: str
    bandwidth: float
    x: float
    y: float
    ratio: float | None

    @property
    def ridge(self) -> float:
        """Operations a byte where the slope meets the flat part; infinite without a bandwidth."""
        return self.peak / self.bandwidth if self.bandwidth > 0 else float("inf")

    @property
    def bound(self) -> str:
        """Which part of the roof is above the point: ``compute`` or ``memory``."""
        return "compute" if self.x >= self.ridge else "memory"


@dataclass(frozen=True, slots=True)
class RooflineChart:
    """The lines drawn in one picture; `title` is one of the names that the viewer knows."""

    title: str
    lines: tuple[Roof, ...]


@dataclass(frozen=True, slots=True)
class Roofline:
    """Every picture that has a line, and the sentence on what bounds the kernel ("" where nothing was computed)."""

    charts: tuple[RooflineChart, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class Line:
    """What a line measures: its name, the ways whose bytes count, and the peak of one core: the name of one of the
    chip's widths or rates, or None for what the chip says of the ways themselves."""

    name: str
    ways: tuple[str, ...]
    peak: str | None = None


CUBE_UNIT = (
    Line("L1 Read + Write", ("l1_read", "l1_write"), "l1"), Line("Write to L1", ("l1_write",), "l1_write"),
    Line("Read from L1", ("l1_read",), "l1_read"), Line("Write to L0A", ("to_l0a",), "l0a_write"),
    Line("Write to L0B", ("to_l0b",), "l0b_write"), Line("Read from L0C", ("l0c_read",), "l0c_read"),
)  # fmt: skip
VECTOR_UNIT = {
    "A2": (
        Line("UB Read + Write", ("ub_to_gm", "gm_to_ub", "ub_to_vec", "vec_to_ub"), "ub"),
        Line("Read from UB", ("ub_to_gm",), "ub_read"), Line("Write to UB", ("gm_to_ub",), "ub_write"),
        Line("Vector Read UB", ("ub_to_vec",), "vector_read"), Line("Vector Write UB", ("vec_to_ub",), "vector_write"),
    ),
    "A5": (Line("SIMT VF", ("simt",), "simt"),),
}  # fmt: skip
UNITS_310P = (
    *CUBE_UNIT[:5],
    Line("UB Read + Write", ("ub_to_gm", "to_ub", "ub_to_vec", "vec_to_ub"), "ub"),
    Line("Read from UB", ("ub_to_gm",), "ub_read"), Line("Write to UB", ("to_ub",), "ub_write"),
    Line("Vector Read UB", ("ub_to_vec",), "vector_read"), Line("Vector Write UB", ("vec_to_ub",), "vector_write"),
)  # fmt: skip
"""Of the memories' lines, those of L0C are not counted on 310P."""
PIPES = {
    "A2": (
        Line("MTE1", ("to_l0a", "to_l0b")), Line("MTE2", ("gm_to_l1", "gm_to_l0a", "gm_to_l0b"), "mte2_write"),
        Line("MTE3", ("l1_to_gm",)),
        Line("FIXP", ("l0c_to_l1", "l0c_to_gm")),
    ),
    "A5": (
        Line("MTE1", ("to_l0a", "to_l0b")), Line("MTE2", ("gm_to_l1",)),
        Line("FIXP", ("l0c_to_l1", "l0c_to_gm", "l0c_to_ub", "l0c_to_ub_2")),
    ),
}  # fmt: skip
VECTOR_PIPES = (Line("MTE2 vector", ("gm_to_ub",)), Line("MTE3 vector", ("ub_to_gm",)))
TRANSFERS = {
    "A2": (
        Line("L1 to GM", ("l1_to_gm",)), Line("L0C to GM", ("l0c_to_gm",)), Line("L0C to L1", ("l0c_to_l1",)),
        Line("GM/L1 to L0A", ("to_l0a",)), Line("GM/L1 to L0B", ("to_l0b",)),
    ),
    "A5": (
        Line("L0C to GM", ("l0c_to_gm",)), Line("L0C to L1", ("l0c_to_l1",)), Line("GM/L1 to L0A", ("to_l0a",)),
        Line("GM/L1 to L0B", ("to_l0b",)),
    ),
}  # fmt: skip
VECTOR_TRANSFERS = (Line("UB to GM", ("ub_to_gm",)), Line("GM to UB", ("gm_to_ub",)))
"""The lines of each picture (opprof.md 3.2). A picture whose ways a chip does not count has no line there."""

GOOD = 0.8
"""Ratio above which the kernel uses what it has, and share of its cycles above which a pipe is busy (opprof.md 3.2)."""


def roofline(timeline: Timeline, chip: Chip, counters: Counters) -> Roofline:
    """The rooflines of a launch: no picture where nothing that computes was counted."""
    draw = _Drawing(timeline, ways(timeline, chip, counters))
    cube, simt = cube_operations(timeline, chip, counters), simt_operations(timeline, chip, counters)
    vector = simt if counters.columns == "A5" else vector_operations(chip, counters)
    charts = draw.coupled(cube + vector) if counters.columns == "310P" else draw.split(cube, vector)
    kept = tuple(chart for chart in charts if chart.lines)
    return Roofline(kept, advice(kept, busiest(timeline, chip, counters)) if kept else "")


def advice(charts: tuple[RooflineChart, ...], pipe: tuple[str, float] | None) -> str:
    """The sentence on what bounds a kernel; `pipe` is the busiest with its share of the cycles, 0..1."""
    lines = [line for chart in charts for line in chart.lines if line.ratio is not None]
    best = max(lines, key=lambda line: line.ratio or 0.0, default=None)
    if best is not None and (best.ratio or 0.0) > GOOD:
        return f"{best.bound} bound"
    if pipe is None or pipe[1] < GOOD:
        return "latency bound:pipeline caused"
    return f"latency bound:{'memory' if 'MTE' in pipe[0] else 'compute'} caused"


def ratio(x: float, y: float, bandwidth: float, peak: float) -> float | None:
    """Share of its roof that a point reaches, 0..1; None where it lies on or above a part of it."""
    if bandwidth <= 0 or y >= peak or y > bandwidth * x:
        return None
    return y / min(bandwidth * x, peak)


class _Drawing:
    """Draws lines for the cores of a launch, all of them together."""

    def __init__(self, timeline: Timeline, known: Ways) -> None:
        self.timeline, self.known, self.chip = timeline, known, known.chip
        self.columns = known.counters.columns
        self.cubes, self.vectors = known.chip.cores.aic, known.chip.cores.aiv

    def split(self, cube: list[Operations], vector: list[Operations]) -> list[RooflineChart]:
        """The pictures of a chip whose cube and vector cores are separate."""
        vector_too = vector if self.columns == "A2" else []
        sets: tuple[tuple[str, tuple[Line, ...], list[Operations], int], ...] = (
            ("Memory Unit(Cube)", CUBE_UNIT, cube, self.cubes),
            ("Memory Unit(Vector)", VECTOR_UNIT[self.columns], vector, self.vectors),
            ("Pipeline(Cube)", PIPES[self.columns], cube, self.cubes),
            ("Pipeline(Vector)", VECTOR_PIPES, vector_too, self.vectors),
            ("Memory Transfer(Cube)", TRANSFERS[self.columns], cube, self.cubes),
            ("Memory Transfer(Vector)", VECTOR_TRANSFERS, vector_too, self.vectors),
        )
        return [self.main_memory(cube, vector), *(self.chart(*parts) for parts in sets)]

    def coupled(self, operations: list[Operations]) -> list[RooflineChart]:
        """The picture of a chip whose cores do both."""
        return [self.chart("Memory Unit", UNITS_310P, operations, self.cubes)]

    def chart(self, title: str, lines: tuple[Line, ...], operations: list[Operations], cores: int) -> RooflineChart:
        """One picture: every line for every unit that computes."""
        found: list[Roof | None] = []
        for line in lines:
            amounts = [float(np.nansum(self.known.bytes(name))) for name in line.ways]
            rate = self.bandwidth(line, amounts, cores)
            found.extend(self.roof(unit, line.name, sum(amounts), rate) for unit in operations)
        return RooflineChart(title, tuple(roof for roof in found if roof is not None))

    def main_memory(self, cube: list[Operations], vector: list[Operations]) -> RooflineChart:
        """The picture of GM and L2, whose bytes are those of all cores."""
        gm, l2 = self.main_bytes()
        peaks = self.chip.peak_rates()
        rates = (("GM Read + Write", gm, peaks["gm"]), ("L2 Read + Write", l2, peaks["l2"]))
        named = [*(unit.prefixed("Cube") for unit in cube), *(unit.prefixed("SIMT") for unit in vector)]
        units = named if self.columns == "A5" else [*cube, *vector]
        found = [self.roof(unit, name, amount, rate / 1000) for name, amount, rate in rates for unit in units]
        return RooflineChart("GM/L2", tuple(roof for roof in found if roof is not None))

    def main_bytes(self) -> tuple[float, float]:
        """Bytes between GM and L2, and all that L2 moved (opprof.md 3.2)."""
        counters, read = self.known.counters, self.known.bytes("gm_to_l2")
        if self.columns == "A2":
            gm = np.nansum(read) + np.nansum(evicted(counters)) * self.chip.l2_line
            written, found = counters[1280], counters[1284] + counters[1288]
            return float(gm), float(gm + np.nansum(written) * self.chip.l2_line + np.nansum(found) * 128)
        gm = np.nansum(read) + np.nansum(self.known.bytes("l2_to_gm"))
        return float(gm), float(gm + 128 * sum(np.nansum(counters[n]) for n in L2_EVENTS["A5"].hits))

    def bandwidth(self, line: Line, amounts: list[float], cores: int) -> float:
        """TB/s of all cores on a line's ways; 0 where nothing is published. Ways of unequal peaks count as much as
        they were used."""
        rates = self.chip.peak_rates()
        if line.peak is not None:
            width = self.chip.width(line.peak)
            if width is not None:
                return width * self.chip.frequency_mhz * cores * 1e6 / 2**40
            return rates.get(line.peak, 0.0) * cores / 1024
        weighted, total = 0.0, 0.0
        for name, amount in zip(line.ways, amounts, strict=True):
            way = self.known.traffic(name)
            peak = way.ceiling(self.chip) if way else None
            if amount > 0:
                if peak is None:
                    return 0.0
                weighted, total = weighted + amount * peak, total + amount
        return weighted / total * cores / 1024 if total else 0.0

    def roof(self, unit: Operations, name: str, amount: float, bandwidth: float) -> Roof | None:
        """One line; None where nothing was moved."""
        microseconds = self.timeline.microseconds
        if not amount > 0 or not microseconds > 0:
            return None
        x, y = unit.count / amount, unit.count / microseconds / 1e6
        return Roof(unit.name, unit.peak, name, bandwidth, x, y, ratio(x, y, bandwidth, unit.peak))
