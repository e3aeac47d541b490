"""Simulated launches as activities of a device: connects a session of the front ends to the monitor's agent."""

from __future__ import annotations

import sys
from time import time_ns

from npuscope.cli.compilation import tell_of_compilation
from npuscope.frontends import install_all
from npuscope.frontends.launch import Session
from npuscope.monitor.agent.sources import sim
from npuscope.monitor.agent.sources.sim import Launched
from npuscope.monitor.agent.sources.streams import STREAMS
from npuscope.npu.chip import DEFAULT_CHIP, load_chip
from npuscope.npu.timing import time_launch
from npuscope.npu.timing.least import least_time
from npuscope.trace.recorder import Batch, Recorder
from npuscope.trace.rows import LaunchRows, launches
from npuscope.trace.schema import CoreType, Launch

STREAM = 0
"""The simulated device has one stream."""
TYPES = {
    frozenset({CoreType.AIC}): "KERNEL_AICORE",
    frozenset({CoreType.AIV}): "KERNEL_AIVEC",
    frozenset({CoreType.AIC, CoreType.AIV}): "KERNEL_MIX_AIC",
}
"""What a card's records call a kernel that runs on these cores."""


class ReportingRecorder(Recorder):
    """A recorder that keeps a launch's trace only while somebody collects activities."""

    def begin(self, launch: Launch) -> None:
        """Start recording `launch`, or let it run unrecorded."""
        STREAMS.device = launch.device
        self.consumers[:] = [Report(time_ns())] if sim.wanted() else []
        Recorder.begin(self, launch)


class Report:
    """Takes the batches of one launch, and reports it at its end."""

    def __init__(self, began: int) -> None:
        self.began = began
        self.batches: list[Batch] = []

    def __call__(self, batch: Batch) -> None:
        """Take a batch. The launch has returned by the time of the last one; to work out its time is our business,
        not the script's."""
        self.batches.append(batch)
        if batch.last:
            returned, launch = time_ns(), batch.launch
            rows = next(launches(self.batches))
            sim.report(Launched(
                launch.kernel, kernel_type(launch), launch.device, STREAM, self.began, returned, duration_of(rows)
            ))  # fmt: skip


def simulate(chip: str | None) -> None:
    """From now on, kernels that this process launches run on the simulated device, and its agent hears of them.

    `chip` None: the one that the script names. Raises UserError for one that is none.
    """
    install_all(Session(
        reporting(), load_chip(chip) if chip else None, print_line=print,
        notice=lambda line: print(f"npuscope: {line}", file=sys.stderr),
    ))  # fmt: skip


def reporting() -> Recorder:
    """A recorder for a session whose launches this process's agent is to hear of."""
    tell_of_compilation("timing model")
    sim.connect()
    return ReportingRecorder()


def kernel_type(launch: Launch) -> str:
    """What a card's records call this kernel."""
    if launch.of_programs:
        return TYPES[frozenset({CoreType.AIV})]
    return TYPES.get(frozenset(core.type for core in launch.cores), "")


def duration_of(rows: LaunchRows) -> int | None:
    """Nanoseconds on the device: by the timing model; for a tile kernel, which it cannot time, the least that the
    memory allows. None where there is neither, as of a launch that stopped early."""
    if any(fault.code in ("stopped", "deadlock", "launch_too_large") for fault in rows.faults):
        return None
    try:
        chip = load_chip(rows.launch.chip or DEFAULT_CHIP)
        if rows.launch.of_programs:
            return least_time(rows, chip)
        timeline = time_launch(rows, chip)
    except Exception:  # whatever it is, the script is not to hear of it
        return None
    return round(timeline.cycles / timeline.mhz * 1000)
