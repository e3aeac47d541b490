"""Rules about what could run at the same time and does not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case
from npuscope.profiler.busy import union_lengths
from npuscope.profiler.traffic import COMPUTE
from npuscope.profiler.waits import draining, is_wait, waiting
from npuscope.trace.timeline import Lane

LEAST_OVERLAP = 0.2
LEAST_PART = 0.05
"""Share of a core's time below which hiding the smaller part is not worth a sentence."""
MOST_WAITING = 0.1


def _hideable(case: Case) -> tuple[float, float, float]:
    """Of the core with most to hide: (cycles that could still be hidden, overlap as a share of the smaller part, the
    smaller part)."""
    copy, compute, both = case.profile.working.together((Lane.MTE2,), COMPUTE)
    smaller = np.minimum(copy, compute)
    worst = int(np.argmax(smaller - both))
    part = int(smaller[worst])
    return float(part - both[worst]), float(both[worst] / part) if part else 1.0, float(part)


def no_overlap(case: Case) -> Iterator[Advice]:
    """OUR-D1: copies in and computation overlap by less than a fifth of the smaller of them."""
    hideable, ratio, smaller = _hideable(case)
    if ratio >= LEAST_OVERLAP or smaller < LEAST_PART * float(case.spans.max()):
        return
    lanes = case.timeline.slice("lane")
    copies = (lanes == Lane.MTE2) & ~waiting(case.timeline) & ~draining(case.timeline)
    yield Advice(
        "OUR-D1", "no overlap of copy and compute: use double buffering",
        {"overlap of the smaller part": ratio, "cycles of the smaller part": smaller}, f"{LEAST_OVERLAP:g}",
        gain=case.share(hideable), frames=case.frames(copies, case.on_path[copies])[:5],
        remedy="Two buffers in the queue of each input, and several tiles for each core.",
        estimate="the smaller part, hidden behind the larger one, on the core with most to hide",
    )  # fmt: skip


def waits_for_buffers(case: Case) -> Iterator[Advice]:
    """OUR-Q1: copies in wait until the computation has freed a buffer."""
    timeline = case.timeline
    steps = np.array(
        [step.lane is Lane.MTE2 and is_wait(step) and "alloc" in step.site.name for step in timeline.steps] or [False]
    )
    mine = steps[timeline.slice("step")]
    length = timeline.slice("end") - timeline.slice("start")
    waits = np.bincount(timeline.slice("core")[mine], length[mine], minlength=len(timeline.launch.cores))
    worst = int(np.argmax(waits / case.spans))
    ratio = float(waits[worst] / case.spans[worst])
    hideable, overlap, smaller = _hideable(case)
    if ratio <= MOST_WAITING or hideable < LEAST_PART * float(case.spans.max()):
        return
    yield Advice(
        "OUR-Q1", "copies wait for a free buffer: give the queue one more",
        {"time of the core waited": ratio, "overlap of the smaller part": overlap}, f"{MOST_WAITING:g}",
        gain=case.share(min(hideable, float(waits[worst]))), frames=case.frames(mine, length[mine])[:5],
        remedy="A greater depth of the queue (init_buffer), as far as UB allows; smaller tiles where it does not.",
        estimate="these waits, at most what copy and computation could still overlap",
    )  # fmt: skip


def barriers(case: Case) -> Iterator[Advice]:
    """OUR-A1: a barrier over all pipes, run again and again, where flags would let the pipes overlap."""
    timeline = case.timeline
    steps = np.array([step.lane is Lane.ALL for step in timeline.steps] or [False])
    mine = steps[timeline.slice("step")]
    cores = len(timeline.launch.cores)
    count = np.bincount(timeline.slice("core")[mine], minlength=cores)
    if count.max(initial=0) < 2:
        return
    standing = union_lengths(
        timeline.slice("core")[mine], timeline.slice("start")[mine], timeline.slice("end")[mine], cores
    )
    busiest = case.busy.work[1:].max(0)  # lane 0 is the scalar unit, which stands at the barrier itself
    worst = int(np.argmax(standing))
    gain = min(float(standing[worst]), float(case.spans[worst] - busiest[worst]))
    yield Advice(
        "OUR-A1", f"{int(count[worst])} barriers over all pipes in one core: use flags",
        {"barriers": float(count[worst]), "cycles stood": float(standing[worst])}, "one barrier",
        gain=case.share(gain), frames=case.frames(mine)[:5],
        remedy="set_flag and wait_flag between the two pipes that depend on each other let all others go on.",
        estimate="the time stood at barriers, at most what lies above the busiest pipe",
    )  # fmt: skip
