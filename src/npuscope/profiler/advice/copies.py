"""Rules about copies between GM and the core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case
from npuscope.profiler.traffic import COPY, ideal_cycles
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane
from npuscope.trace.values import among

LEAST_BANDWIDTH = 0.8
ALIGNED = 512
"""Address in GM whose multiples copies do best to start at, on all chips (opprof.md 6.3)."""
SMALL = 16 * 1024
"""Bytes of a copy that comes near to the peak rate (opprof.md 6.3)."""
MOST_RELOADED = 0.3


def bandwidth(case: Case) -> Iterator[Advice]:
    """P1 (opprof.md 3.1, D16): what a pipe moves while it works, against the peak of its ways."""
    timeline = case.timeline
    ideal, lanes = ideal_cycles(timeline, case.chip), case.lane_of(np.arange(timeline.transfers.shape[1]))
    cores = timeline.slice("core")[timeline.transfer("slice")]
    for kind, which in (("aic", ~case.vector_cores), ("aiv", case.vector_cores)):
        for lane in (Lane.MTE1, *COPY):
            mine = (lanes == lane) & which[cores] & np.isfinite(ideal)
            active = float(case.busy.lane(lane)[which].sum())
            if not mine.any() or not active:
                continue
            ratio = float(ideal[mine].sum()) / active
            if ratio < LEAST_BANDWIDTH:
                moving = np.unique(timeline.transfer("slice")[mine])
                spent = float(case.on_path[moving].sum())
                yield Advice(
                    "P1", f"{kind}_{lane.name.lower()} bandwidth utilization lower than 80% when active",
                    {"share of the peak while active": ratio, "cycles on the critical path": spent},
                    f"{LEAST_BANDWIDTH:g}", gain=case.share(spent * (1 - ratio)),
                    frames=case.frames(moving, case.on_path[moving])[:3],
                    remedy="Larger, 512-byte aligned copies with long contiguous rows.",
                    estimate="the pipe's cycles on the critical path at its peak rate",
                )  # fmt: skip


def unaligned(case: Case) -> Iterator[Advice]:
    """OUR-G1: copies whose address in GM is no multiple of 512, by what they touch beyond what they need."""
    timeline = case.timeline
    address, size = timeline.transfer("address"), timeline.transfer("bytes")
    odd = case.at_gm & (address >= 0) & (address % ALIGNED != 0) & (size > 0)
    if not odd.any():
        return
    touched = (address + size - 1) // ALIGNED - address // ALIGNED + 1
    needed = -(-size // ALIGNED)
    excess = np.where(odd, 1 - needed / np.maximum(touched, 1), 0.0)
    slices = timeline.transfer("slice")
    frames = case.frames(slices[odd])
    count = int(odd.sum())
    yield Advice(
        "OUR-G1", f"GM address of {case.place(frames)} is not 512 B aligned",
        {"copies": float(count), "of all copies": float(count / max(int(case.at_gm.sum()), 1))}, "none",
        gain=case.share(float((case.on_path[slices] * excess).sum())), frames=frames[:5],
        remedy="Start every core's part, and every row, at a multiple of 512 bytes.",
        estimate="the part of these copies' critical cycles that goes to the extra 512-byte line",
    )  # fmt: skip


def small(case: Case) -> Iterator[Advice]:
    """OUR-G2: the median copy is under 16 KB while a copying pipe works longest."""
    timeline = case.timeline
    if not case.at_gm.any():
        return
    slices = timeline.transfer("slice")[case.at_gm]
    size = np.bincount(slices, timeline.transfer("bytes")[case.at_gm])
    median = float(np.median(size[size > 0])) if (size > 0).any() else float(SMALL)
    work = {lane: float(case.busy.lane(lane).sum()) for lane in Lane if lane is not Lane.SCALAR}
    tallest = max(work, key=lambda lane: work[lane])
    if median >= SMALL or tallest not in (Lane.MTE2, Lane.MTE3):
        return
    ideal = np.bincount(
        timeline.transfer("slice"), np.nan_to_num(ideal_cycles(timeline, case.chip)), minlength=case.on_path.size
    )
    copying = among(timeline.slice("lane"), (Lane.MTE2, Lane.MTE3)) & (ideal > 0)
    saved = float(np.maximum(case.on_path - ideal, 0)[copying].sum())
    yield Advice(
        "OUR-G2", f"small GM transfers ({median:.0f} B median)",
        {"median, bytes": median, f"{tallest.name} busy, cycles": work[tallest]}, f"{SMALL} bytes",
        gain=case.share(saved), frames=case.frames(copying, case.on_path[copying])[:5],
        remedy="Copy larger tiles: 16 KB or more in one call; several rows in one strided copy.",
        estimate="critical cycles of the copies beyond their bytes at the peak rate",
    )  # fmt: skip


def reloads(case: Case) -> Iterator[Advice]:
    """OUR-R1: a core copies bytes in that it has copied in before."""
    timeline = case.timeline
    inward = np.flatnonzero((timeline.transfer("source") == Space.GM) & (timeline.transfer("address") >= 0))
    slices = timeline.transfer("slice")[inward]
    what = np.stack(
        [timeline.slice("core")[slices], timeline.transfer("address")[inward], timeline.transfer("bytes")[inward]]
    )
    if not inward.size:
        return
    order = np.lexsort((timeline.transfer("start")[inward], *what[::-1]))
    again = np.zeros(inward.size, bool)
    again[order[1:]] = (what[:, order[1:]] == what[:, order[:-1]]).all(0)
    share = float(what[2][again].sum() / max(int(what[2].sum()), 1))
    if share <= MOST_RELOADED:
        return
    repeated = np.unique(slices[again])
    yield Advice(
        "OUR-R1", f"the same data are copied in again: {100 * share:.0f}% of what the cores read",
        {"bytes copied in again": float(what[2][again].sum()), "share of all": share},
        f"{MOST_RELOADED:g} of the bytes",
        gain=case.share(float(case.on_path[repeated].sum())), frames=case.frames(repeated, case.on_path[repeated])[:5],
        remedy="Keep the tile in UB or L1 and reuse it: swap the loops, or copy it before the loop.",
        estimate="critical cycles of the repeated copies",
    )  # fmt: skip
