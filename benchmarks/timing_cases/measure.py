"""Runs a kernel on the simulated chip, times its trace and reads the figures that measurements give."""

from __future__ import annotations

import runpy
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from npuscope.frontends import install_all
from npuscope.frontends.launch import Session
from npuscope.npu.chip import Chip, load_chip
from npuscope.npu.timing import time_launch
from npuscope.trace.recorder import Batch
from npuscope.trace.rows import LaunchRows, launches
from npuscope.trace.timeline import Lane, Timeline

LANES: Mapping[str, Lane] = {
    "vec": Lane.VECTOR,
    "mac": Lane.CUBE,
    "mte1": Lane.MTE1,
    "mte2": Lane.MTE2,
    "mte3": Lane.MTE3,
    "fix": Lane.FIXP,
    "scalar": Lane.SCALAR,
}
SYNCHRONISATION = ("SET_", "WAIT_", "BAR", "CROSS_CORE")
"""How the instructions begin that move no data and compute nothing."""


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds of a case: of its kernel's run and of the timing."""

    run: float
    timing: float


@cache
def session() -> Session:
    """The session whose front ends are installed in this process."""
    import asc.runtime.config as config

    started = Session()
    install_all(started)
    config.set_platform(config.Backend.Model)
    return started


def trace(run: Callable[[], None], chip: Chip) -> LaunchRows:
    """The trace of the one launch that `run` does on `chip`."""
    here = session()
    batches: list[Batch] = []
    here.chip = chip
    here.recorder.consumers[:] = [batches.append]
    run()
    (rows,) = launches(batches)
    return rows


def script(text: str) -> Callable[[], None]:
    """A launch by a script's text. The text goes to a file, because a kernel is compiled from its source."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernel.py"
            file.write_text(text)
            runpy.run_path(str(file))

    return run


def timed(run: Callable[[], None], chip: str, overrides: Mapping[str, float] | None = None) -> tuple[Timeline, Spent]:
    """The timeline of the launch that `run` does."""
    on = load_chip(chip, overrides) if overrides else load_chip(chip)
    begin = time.process_time()
    rows = trace(run, on)
    middle = time.process_time()
    timeline = time_launch(rows, on)
    return timeline, Spent(middle - begin, time.process_time() - middle)


def figure(timeline: Timeline, metric: str) -> float:
    """A figure in us: ``task`` of the whole task, ``core`` the mean time of its cores, a pipe's name its busy time, the
    mean over the cores that have such a pipe. ``cycles`` are cycles per instruction of the vector unit, ``products``
    cycles from the first to the last Mmad, ``vectors`` from the first to the last vector instruction."""
    match metric:
        case "task":
            return timeline.microseconds
        case "core":
            return float((timeline.core("end") - timeline.core("start")).mean()) / timeline.mhz
        case "cycles":
            return per_instruction(timeline)
        case "products" | "vectors":
            mine = work(timeline, Lane.CUBE if metric == "products" else Lane.VECTOR)
            return float(timeline.slice("end")[mine].max() - timeline.slice("start")[mine].min())
        case _:
            return busy(timeline, LANES[metric]) / timeline.mhz


def per_instruction(timeline: Timeline) -> float:
    """Cycles from one vector instruction's start to that of the next one, the mean of all after the first."""
    starts = np.sort(timeline.slice("start")[work(timeline, Lane.VECTOR)])
    return float(starts[-1] - starts[0]) / (starts.size - 1)


def work(timeline: Timeline, lane: Lane) -> np.ndarray:
    """Which slices do something on a lane, (slices,) of bool: neither set nor wait nor barrier."""
    idle = np.array([step.text.startswith(SYNCHRONISATION) for step in timeline.steps])
    return (timeline.slice("lane") == lane) & ~idle[timeline.slice("step")]


def busy(timeline: Timeline, lane: Lane) -> float:
    """Cycles in which a lane has work under way, the mean over the cores of its kind."""
    mine = work(timeline, lane)
    core, start, end = (timeline.slice(name)[mine] for name in ("core", "start", "end"))
    order = np.lexsort((start, core))
    core, start, end = core[order], start[order], end[order]
    if not core.size:
        return 0.0
    span = int(end.max()) + 1
    reach = np.maximum.accumulate(end + core * span) - core * span
    before = np.concatenate([[0], np.where(core[1:] == core[:-1], reach[:-1], 0)])
    total = np.clip(end - np.maximum(start, before), 0, None).sum()
    kind = timeline.launch.cores[int(core[0])].type
    return float(total) / sum(other.type is kind for other in timeline.launch.cores)
