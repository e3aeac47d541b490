"""What moved on each way of a core, told by its counters (opprof.md 2.3, 3.2, 5; sizes and peaks: 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.counters import Counters
from npuscope.profiler.counters.counters import columns_of
from npuscope.profiler.metrics import kernel_type
from npuscope.trace.timeline import Timeline

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Traffic:
    """A way's requests of `size` bytes are the sum of `terms` (event number, factor); the bytes of `path` (a way that
    counters know by name, ``GM_L0A``) are added, those of `less` taken off. `peak` is the most it carries: the name of
    one of the chip's widths or rates; None where nothing is published."""

    size: int
    terms: Mapping[int, int] = field(default_factory=dict)
    peak: str | None = None
    path: str = ""
    less: str = ""

    def bytes(self, counters: Counters) -> np.ndarray:
        """Bytes of each core, (cores,) float64; NaN where a counter is missing or the sum makes no sense."""
        total = np.zeros(counters.total_cycles.shape)
        for number, factor in self.terms.items():
            total = total + factor * counters[number] * self.size
        for name, sign in ((self.path, 1), (self.less, -1)):
            if name:
                total = total + sign * _path(counters, name)
        return np.where(total >= 0, total, np.nan)

    def requests(self, counters: Counters) -> np.ndarray:
        """Requests of each core, (cores,) float64."""
        return np.asarray(np.ceil(self.bytes(counters) / self.size))

    def ceiling(self, chip: Chip) -> float | None:
        """The most that one core carries, GB/s (2^30 where it follows from a port's width); None is not known."""
        if self.peak is None:
            return None
        width = chip.width(self.peak)
        return chip.peak_rates().get(self.peak) if width is None else width * chip.frequency_mhz * 1e6 / GIB


def _path(counters: Counters, name: str) -> np.ndarray:
    """Bytes that took a way; one that is not named carried nothing, where the counters know of ways at all."""
    found = counters.paths.get(name)
    return 0.0 * counters.paths.get("UB_GM", np.full(counters.total_cycles.shape, np.nan)) if found is None else found


A2: dict[str, Traffic] = {
    "gm_to_l2": Traffic(128, {1286: 1, 1290: 1}),
    "gm_to_l0a": Traffic(256, {}, "l1_to_l0a", path="GM_L0A"),
    "gm_to_l0b": Traffic(128, {}, "l1_to_l0b", path="GM_L0B"),
    "l1_to_l0a": Traffic(256, {28: 1}, "l1_to_l0a", less="GM_L0A"),
    "l1_to_l0b": Traffic(128, {34: 1}, "l1_to_l0b", less="GM_L0B"),
    "gm_to_l1": Traffic(256, {50: 1, 518: -1}, "gm_to_l1"),
    "l1_to_gm": Traffic(128, {19: 4, 518: 1, 524: -1}, "l1_to_gm"),
    "l0c_to_l1": Traffic(128, {518: 1}, "l0c_to_l1"),
    "l0c_to_gm": Traffic(128, {524: 1, 518: -1}, "l0c_to_gm"),
    "to_l0a": Traffic(256, {28: 1}, "l1_to_l0a"),
    "to_l0b": Traffic(128, {34: 1}, "l1_to_l0b"),
    "l0a_to_cube": Traffic(512, {27: 1}, "l0a_read"),
    "l0b_to_cube": Traffic(512, {33: 1}, "l0b_read"),
    "cube_to_l0c": Traffic(1024, {42: 1}, "cube_write"),
    "l0c_to_cube": Traffic(1024, {40: 1}, "cube_read"),
    "l1_read": Traffic(128, {49: 1}, "l1_read"),
    "l1_write": Traffic(256, {50: 1}, "l1_write"),
    "l0c_read": Traffic(128, {524: 1}, "l0c_read"),
    "gm_to_ub": Traffic(128, {62: 1}, "gm_to_ub"),
    "ub_to_gm": Traffic(128, {61: 1}, "ub_to_gm"),
    "ub_to_vec": Traffic(256, {67: 1}, "vector_read"),
    "vec_to_ub": Traffic(256, {68: 1}, "vector_write"),
}
A5: dict[str, Traffic] = {
    "gm_to_l2": Traffic(128, {1061: 1, 1062: 1, 1064: 1, 1065: 1}),
    "l2_to_gm": Traffic(128, {1062: 1, 1065: 1, 1068: 1, 1071: 1}),
    "gm_to_l1": Traffic(128, {1058: 1}, "gm_to_l1"),
    "l0c_to_l1": Traffic(128, {1806: 1}, "l0c_to_l1"),
    "l0c_to_gm": Traffic(128, {1059: 1}, "l0c_to_gm"),
    "l0c_to_ub": Traffic(128, {1804: 1}, "l0c_to_ub"),
    "l0c_to_ub_2": Traffic(128, {1815: 1}, "l0c_to_ub"),
    "to_l0a": Traffic(256, {1795: 1}, "l1_to_l0a"),
    "to_l0b": Traffic(256, {1797: 1}, "l1_to_l0b"),
    "l0a_to_cube": Traffic(64, {772: 1}),
    "l0b_to_cube": Traffic(256, {774: 1}),
    "cube_to_l0c": Traffic(1024, {776: 1}, "cube_write"),
    "l0c_to_cube": Traffic(1024, {778: 1}, "cube_read"),
    "l1_read": Traffic(256, {1799: 1}, "l1_read"),
    "l1_write": Traffic(128, {1801: 1}, "l1_write"),
    "l0c_read": Traffic(128, {1804: 1, 1806: 1, 1815: 1, 1059: 1}, "l0c_read"),
    "gm_to_ub": Traffic(128, {1058: 1, 1407: -1, 1408: -1}, "gm_to_ub"),
    "ub_to_gm": Traffic(128, {}, "ub_to_gm", path="UB_GM"),
    "ub_to_l1": Traffic(128, {}, "ub_to_l1", path="UB_L1"),
    "l1_to_ub": Traffic(128, {}, "l1_to_ub", path="L1_UB"),
    "ub_to_vec": Traffic(256, {1393: 1}, "vector_read"),
    "vec_to_ub": Traffic(256, {1394: 1}, "vector_write"),
    "l2_to_dcache": Traffic(128, {1407: 1, 1408: 1}),
    "vec_to_dcache": Traffic(128, {1397: 1, 1398: 1}),
    "dcache_to_vec": Traffic(128, {1395: 1, 1396: 1}),
    "simt": Traffic(128, {1407: 1, 1408: 1, 1397: 1, 1398: 1}, "simt"),
}
P310: dict[str, Traffic] = {
    "gm_to_l2": Traffic(512, {18: 1}),
    "l2_to_gm": Traffic(512, {19: 1}),
    "to_l1": Traffic(256, {50: 1}, "gm_to_l1"),
    "to_l0a": Traffic(512, {28: 1}, "l1_to_l0a"),
    "to_l0b": Traffic(128, {34: 1}, "l1_to_l0b"),
    "l0a_to_cube": Traffic(512, {27: 1}, "l0a_read"),
    "l0b_to_cube": Traffic(512, {33: 1}, "l0b_read"),
    "cube_to_l0c": Traffic(1024, {42: 1}, "cube_write"),
    "l0c_to_cube": Traffic(1024, {40: 1}, "cube_read"),
    "vec_to_l0c": Traffic(256, {41: 1}),
    "l0c_to_vec": Traffic(256, {39: 1}, "l0c_to_ub"),
    "l1_read": Traffic(512, {49: 1}, "l1_request"),
    "l1_write": Traffic(256, {50: 1}, "l1_write"),
    "to_ub": Traffic(16, {62: 1}, "gm_to_ub"),
    "ub_to_gm": Traffic(16, {61: 1}, "ub_to_gm"),
    "ub_to_vec": Traffic(32, {67: 1}, "vector_read"),
    "vec_to_ub": Traffic(32, {68: 1}, "vector_write"),
}

_SETS = {"A2": A2, "A5": A5, "310P": P310}


def ceiling_of(name: str, chip: Chip) -> float:
    """The most that one core carries on a way, GB/s; 0 where the chip has none or it is not known."""
    way = _SETS[columns_of(chip)].get(name)
    return (way.ceiling(chip) if way else None) or 0.0


@dataclass(frozen=True, slots=True)
class L2Events:
    """Which counters tell hits and misses of the L2 cache; a miss that allocates nothing is a miss."""

    hits: tuple[int, ...]
    misses: tuple[int, ...]


L2_EVENTS = {
    "A2": L2Events((1280, 1284, 1288), (1282, 1283, 1286, 1287, 1290, 1291)),
    "A5": L2Events((1060, 1063, 1066, 1069), (1061, 1062, 1064, 1065, 1067, 1068, 1070, 1071)),
}


@dataclass(slots=True)
class Ways:
    """The ways of one launch's cores, asked by name. `cycles` is what a rate is taken over, (cores,): each core's own
    cycles, or the whole task's where cube and vector cores work together (opprof.md 2.2)."""

    counters: Counters
    chip: Chip
    cycles: np.ndarray

    def traffic(self, name: str) -> Traffic | None:
        """What is known of a way of this chip; None where it has none."""
        return _SETS[self.counters.columns].get(name)

    def bytes(self, *names: str) -> np.ndarray:
        """Bytes on several ways together, (cores,); NaN where one is not known."""
        known = (self.traffic(name) for name in names)
        return np.asarray(sum(way.bytes(self.counters) if way else np.nan for way in known) + 0.0 * self.cycles)

    def l2(self) -> tuple[np.ndarray, np.ndarray]:
        """Hits and misses of the L2 cache, (cores,) float64; on 310P the cache counts hits and requests."""
        events = L2_EVENTS.get(self.counters.columns)
        if events is None:
            hits = self.counters[106]
            return hits, self.counters[120] + self.counters[121] - hits
        return (self._total(events.hits), self._total(events.misses))

    def _total(self, numbers: tuple[int, ...]) -> np.ndarray:
        """Sum of counters; those that are missing count nothing unless all are."""
        rows = np.stack([self.counters[number] for number in numbers])
        return np.where(np.isnan(rows).all(0), np.nan, np.nansum(rows, 0))

    def rate(self, amount: np.ndarray) -> np.ndarray:
        """Bytes of each core as GB/s (2^30), (cores,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = self.cycles / self.chip.frequency_mhz / 1e6
            return np.where(seconds > 0, amount / GIB / seconds, np.nan)


def ways(timeline: Timeline, chip: Chip, counters: Counters) -> Ways:
    """The ways of a launch. Where it has cube and vector cores, rates are over the whole task."""
    mixed = kernel_type(timeline, chip) == "mix"
    whole = np.full(counters.total_cycles.shape, float(timeline.cycles))
    return Ways(counters, chip, whole if mixed else counters.total_cycles)
