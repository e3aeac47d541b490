"""Rooflines: how fast a kernel computes against what its memories and units allow (opprof.md 3.2)."""

from __future__ import annotations

from dataclasses import dataclass


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
