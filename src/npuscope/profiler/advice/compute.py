"""Rules about the units that compute: how much they are used, and what slows them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case
from npuscope.profiler.critical_path import Piece
from npuscope.trace.timeline import Lane

LEAST_USAGE = 0.20
LEAST_FREQUENCY = 0.95
MOST_SCALAR = 0.5
MOST_CONFLICTS = 0.1
MOST_CACHE_MISSES = 0.05
REPEAT_BYTES = 256
"""What the vector unit works on in a cycle (opprof.md 6.4)."""
SIZES = {"64": 8, "32": 4, "16": 2, "8": 1, "4": 0.5}


def frequency(case: Case) -> Iterator[Advice]:
    """F1 (opprof.md 3.1)."""
    now, rated = case.timeline.mhz, float(case.chip.frequency_mhz)
    if now <= LEAST_FREQUENCY * rated:
        yield Advice(
            "F1", "The current frequency is lower than the rated frequency",
            {"frequency, MHz": now, "rated, MHz": rated}, f"{LEAST_FREQUENCY:g} of the rated frequency",
            gain=1 - now / rated, remedy="Warm the chip up before measuring, or lift the limit on its frequency.",
            estimate="every cycle at the rated frequency",
        )  # fmt: skip


def usage(case: Case) -> Iterator[Advice]:
    """U1 (opprof.md 3.1): a symptom, whose cure other rules name; so it has no gain of its own."""
    for lane, name, which in ((Lane.CUBE, "aicore", ~case.vector_cores), (Lane.VECTOR, "aivector", case.vector_cores)):
        if not which.any() or not case.busy.lane(lane)[which].any():
            continue
        ratio = float((case.busy.lane(lane)[which] / case.spans[which]).mean())
        if ratio < LEAST_USAGE:
            yield Advice(
                "U1", f"{name} compute usage lower than 20%", {f"{lane.name} ratio": ratio}, f"{LEAST_USAGE:g}",
                frames=case.frames(case.timeline.slice("lane") == lane)[:3],
                remedy="The unit that computes mostly stands still; see what it waits for on the critical path.",
            )  # fmt: skip


def scalar_bound(case: Case) -> Iterator[Advice]:
    """OUR-S1: the scalar unit works for more than half of a core's time."""
    known = case.column("scalar_busy")
    working = case.busy.lane(Lane.SCALAR) if known is None else known
    ratios = working / case.spans
    if float(ratios.mean()) <= MOST_SCALAR:
        return
    scalar = case.timeline.slice("lane") == Lane.SCALAR
    spent = float(case.on_path[scalar].sum()) + case.path.of(Piece.ISSUE)
    yield Advice(
        "OUR-S1",
        "scalar bound: hoist address computation / constants, check -O level",
        {"scalar ratio": float(ratios.mean()), "scalar and issue on the critical path, cycles": spent},
        f"{MOST_SCALAR:g}",
        gain=case.share(spent),
        frames=case.frames(scalar, case.on_path[scalar])[:5],
        remedy="Fewer, larger instructions for each tile; set queues and constants up once, outside the loop.",
        estimate="the scalar unit's share of the critical path",
    )


def bank_conflicts(case: Case) -> Iterator[Advice]:
    """OUR-K1: cycles lost to UB bank conflicts, of all cycles of the core that loses most."""
    timeline = case.timeline
    lost = np.maximum(timeline.slice("bank_group"), 0) + np.maximum(timeline.slice("bank"), 0)
    by_core = np.bincount(timeline.slice("core"), lost, minlength=len(timeline.launch.cores))
    ratio = float((by_core / case.spans).max())
    if ratio <= MOST_CONFLICTS:
        return
    length = np.maximum(timeline.slice("end") - timeline.slice("start"), 1)
    frames = case.frames(lost > 0, lost[lost > 0])
    lines = ", ".join(case.place((frame,)) for frame in frames[:3])
    yield Advice(
        "OUR-K1", f"UB bank conflicts: see lines {lines}",
        {"conflict ratio of the worst core": ratio, "cycles lost": float(lost.sum())}, f"{MOST_CONFLICTS:g}",
        gain=case.share(float((case.on_path * np.minimum(lost / length, 1)).sum())), frames=frames[:5],
        remedy="Pad the buffers so that operands start in different bank groups, and rows do not repeat a bank.",
        estimate="conflict cycles of the instructions on the critical path",
    )  # fmt: skip


def instruction_cache(case: Case) -> Iterator[Advice]:
    """OUR-I1: misses of the instruction cache."""
    requests, misses = case.column("icache_requests"), case.column("icache_misses")
    if requests is None or misses is None or not requests.sum():
        return
    rate = float(misses.sum() / requests.sum())
    if rate > MOST_CACHE_MISSES:
        yield Advice(
            "OUR-I1", "instruction cache misses: reduce unrolling / code size",
            {"miss rate": rate, "misses": float(misses.sum())}, f"{MOST_CACHE_MISSES:g}",
            remedy="Loop rather than unroll. A kernel that runs its code once always misses: then do more per launch.",
        )  # fmt: skip


def short_vectors(case: Case) -> Iterator[Advice]:
    """OUR-V1: vector instructions on the critical path that take more than twice the cycles that their data need."""
    timeline = case.timeline
    mine = (timeline.slice("lane") == Lane.VECTOR) & (timeline.slice("work") > 0)
    size = np.array([_size(step.dtype) for step in timeline.steps] or [0.0])
    ideal = timeline.slice("work") * size[timeline.slice("step")] / REPEAT_BYTES
    length = timeline.slice("end") - timeline.slice("start")
    mine &= (ideal > 0) & (length > 0)
    spent, needed = (
        float(case.on_path[mine].sum()),
        float((case.on_path[mine] * np.minimum(ideal[mine] / length[mine], 1)).sum()),
    )
    if spent < 0.1 * case.cycles or needed > 0.5 * spent:
        return
    median = float(np.median(timeline.slice("work")[mine]))
    frames = case.frames(mine, (case.on_path * (length - ideal))[mine])
    yield Advice(
        "OUR-V1", f"short vector instructions ({median:.0f} elements median)",
        {"vector cycles on the critical path": spent, "cycles that their data need": needed},
        "half of the cycles needed by the data", gain=case.share(spent - needed), frames=frames[:5],
        remedy="Work on more elements with each instruction: larger tiles, or several rows in one call with repeats.",
        estimate="vector cycles on the critical path beyond 256 bytes a cycle",
    )  # fmt: skip


def _size(dtype: str) -> float:
    digits = "".join(letter for letter in dtype.partition("_")[0] if letter.isdigit())
    return SIZES.get(digits, 0)
