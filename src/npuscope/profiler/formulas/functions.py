"""The functions of formulas (opprof.md 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

GIB = 2.0**30

MEANING: Mapping[str, str] = {
    "US(e)": "time in us: e cycles over the clock in MHz; on 310P times ceil(blocks / cores) / blocks",
    "R(e)": "share of the total cycles of the row; in a mixed kernel of the cycles of the whole task, unless a region "
    "of the kernel was asked for",
    "BW(e, b)": "e requests of b bytes over the time of the row, in GB/s of 2^30 bytes; in a mixed kernel over that of "
    "the whole task, unless a region of the kernel was asked for; NA where e is below 0",
    "ACTIVE(e, b, t)": "e requests of b bytes over the time of t cycles, in GB/s of 2^30 bytes; NA where e is below 0",
    "KB(e, b)": "e requests of b bytes in KB of 1024 bytes; NA where e is below 0",
    "U(bw, path)": "bandwidth as a percentage of the peak of one core on the path, at most 100",
    "SHARE(a, b)": "a / b; 0 where both are 0: what did not run has no share",
    "PERCENT(a, b)": "100 a / b; NA where b is 0 or smaller than a",
}
"""What each function gives, for people."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What the functions refer to, one row each: `cycles` in total, `mhz` of the clock, `task` the cycles of the whole
    task where ratios are against those (a mixed kernel), else None; `scale` turns cycles of all cores into those of
    one (310P), else 1."""

    cycles: np.ndarray
    mhz: float
    task: float | None = None
    scale: float = 1.0

    def functions(self) -> dict[str, Callable[..., np.ndarray]]:
        """The functions by name."""
        return {
            "US": self.microseconds, "R": self.ratio, "BW": self.bandwidth, "ACTIVE": self.active, "KB": kilobytes,
            "U": usage, "SHARE": share, "PERCENT": percent,
        }  # fmt: skip

    def microseconds(self, cycles: np.ndarray) -> np.ndarray:
        """US(e)."""
        return np.asarray(cycles / self.mhz * self.scale)

    def ratio(self, cycles: np.ndarray) -> np.ndarray:
        """R(e)."""
        return np.asarray(cycles / (self.cycles if self.task is None else self.task))

    def bandwidth(self, requests: np.ndarray, size: float) -> np.ndarray:
        """BW(e, b)."""
        time = self.microseconds(self.cycles) if self.task is None else self.task / self.mhz
        return np.asarray(_positive(requests) * size / GIB / (time / 1e6))

    def active(self, requests: np.ndarray, size: float, cycles: np.ndarray) -> np.ndarray:
        """ACTIVE(e, b, t)."""
        return np.asarray(_positive(requests) * size / GIB / (self.microseconds(cycles) / 1e6))


def kilobytes(requests: np.ndarray, size: float) -> np.ndarray:
    """KB(e, b)."""
    return _positive(requests) * size / 1024


def usage(bandwidth: np.ndarray, peak: float) -> np.ndarray:
    """U(bw, path)."""
    return np.minimum(bandwidth, peak) / peak * 100


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """SHARE(a, b)."""
    return np.where((part == 0) & (whole == 0), 0.0, part / whole)


def percent(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """PERCENT(a, b)."""
    return np.where(part <= whole, 100.0 * part / whole, np.nan)


def _positive(values: np.ndarray) -> np.ndarray:
    return np.where(values >= 0, values, np.nan)
