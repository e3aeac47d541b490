"""Rules about how the work is spread over the cores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case
from npuscope.profiler.critical_path import Piece

MOST_OVERHEAD = 0.5
UNEVEN = 1.1


def tail_wave(case: Case) -> Iterator[Advice]:
    """OUR-B1: the number of blocks is no multiple of the number of cores."""
    cubes = int((~case.vector_cores).sum())
    mine, there = (cubes, case.chip.cores.aic) if cubes else (case.vector_cores.size, case.chip.cores.aiv)
    there = there or case.chip.cores.aic
    if not mine or mine % there == 0:
        return
    waves = -(-mine // there)
    running = float(case.path.cycles.sum()) - case.path.of(Piece.START)
    moved = case.traffic.memory if case.traffic.memory is not None else case.traffic.read + case.traffic.written
    floor = moved / (case.chip.bandwidth.gm * 1e9) * case.timeline.mhz * 1e6 if case.chip.bandwidth.gm else 0.0
    best = max(running * mine / (there * waves), floor)
    yield Advice(
        "OUR-B1", f"tail wave uses {mine % there} of {there} cores",
        {"blocks": float(mine), "cores": float(there), "waves": float(waves)}, "a multiple of the cores",
        gain=case.share(running - best), frames=(case.timeline.launch.frame,) if case.timeline.launch.frame else (),
        remedy="Split the work over all cores: as many blocks as there are, or a multiple.",
        estimate="the same work spread evenly over all cores, not below what GM can deliver",
    )  # fmt: skip


def uneven(case: Case) -> Iterator[Advice]:
    """OUR-B2: the slowest core of its kind takes a tenth longer than the mean."""
    for name, which in (("cube", ~case.vector_cores), ("vector", case.vector_cores)):
        spans = case.spans[which]
        if spans.size < 2 or spans.max() <= UNEVEN * spans.mean():
            continue
        slow = np.flatnonzero(which)[int(np.argmax(spans))]
        own = case.timeline.slice("core") == slow
        core = case.timeline.launch.cores[slow].name
        slowest, mean = float(spans.max()), float(spans.mean())
        yield Advice(
            "OUR-B2",
            f"{core} takes {slowest / mean:.2f} times as long as the mean {name} core",
            {"cycles of the slowest": slowest, "mean": mean},
            f"{UNEVEN:g} times the mean",
            gain=case.share(slowest - mean),
            frames=case.frames(own, case.on_path[own])[:3],
            remedy="Give every core the same number of tiles.",
            estimate="all cores of this kind take the mean",
        )


def launch_overhead(case: Case) -> Iterator[Advice]:
    """OUR-L1: launching takes longer than running. The gain depends on the other launches of the program."""
    share = case.share(case.timeline.overhead)
    if share > MOST_OVERHEAD:
        yield Advice(
            "OUR-L1", "launch overhead is most of the task: do more in one launch",
            {"overhead, cycles": float(case.timeline.overhead), "share of the task": share}, f"{MOST_OVERHEAD:g}",
            frames=(case.timeline.launch.frame,) if case.timeline.launch.frame else (),
            remedy="Fuse this kernel with its neighbours, or give one launch more data.",
        )  # fmt: skip
