"""Whether a timeline has anything to show (opprof.md 9, pains 4 and 13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.trace.timeline import Timeline


def complaints(timelines: Iterable[Timeline], launched: Sequence[str] | None = None) -> list[str]:
    """Sentences about what makes traces worthless: launches without a slice, cores without a slice, slices that end
    before they begin or lie outside their launch, and kernels of `launched` (a name for each launch, in order) that
    have no timeline."""
    found: list[str] = []
    seen: list[str] = []
    for timeline in timelines:
        seen.append(timeline.launch.kernel)
        found += _of_launch(timeline)
    missing = list(launched or ())
    for name in seen:
        if name in missing:
            missing.remove(name)
    found += [f"{name}: launched, but there is no timeline of it" for name in missing]
    return found


def _of_launch(timeline: Timeline) -> list[str]:
    kernel = timeline.launch.kernel
    if not timeline.slices.shape[1]:
        return [f"{kernel}: no instruction was timed"]
    found = []
    start, end = timeline.slice("start"), timeline.slice("end")
    used = np.bincount(timeline.slice("core"), minlength=len(timeline.launch.cores))
    if idle := [name for name, count in zip(core_names(timeline.launch), used.tolist(), strict=True) if not count]:
        found.append(f"{kernel}: no instruction was timed on {', '.join(idle)}")
    if bad := int((end < start).sum()):
        found.append(f"{kernel}: {bad} of {start.size} instructions end before they start")
    if late := int((end > timeline.cycles).sum()):
        found.append(f"{kernel}: {late} of {start.size} instructions end after the launch")
    if not int((end > start).sum()):
        found.append(f"{kernel}: no instruction takes any time")
    return found
