"""The simulated device: makes the cores of a launch and runs them as coroutines, one at a time, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.core import PIPE_NAMES, Core
from npuscope.npu.memory import GlobalMemory
from npuscope.npu.sync import Wait
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import CoreInfo, CoreType, Fault, Launch, Site, Space

Routine = Generator[Wait | int, None, None]
"""A core at work. It yields a Wait when it cannot go on, or the address of a memory cell that it polls."""
Kernel = Callable[..., Routine]

POLL_ROUNDS = 2000
"""Rounds in which every core only polls memory that nobody changes before the launch is called dead."""


class Deadlock(RuntimeError):
    """Every unfinished core waits for something that can no longer happen."""

    def __init__(self, waits: list[Wait], lines: list[str]) -> None:
        super().__init__("the kernel can never finish: " + "; ".join(lines))
        self.waits = waits


@dataclass(slots=True)
class Group:
    """The cores that share a block of a mixed kernel: one AIC and its AIVs (or a single core)."""

    aic: Core | None = None
    aivs: list[Core] = field(default_factory=list)


class Machine:
    """One device for one launch. `changes` counts writes to global memory and cross-core signals."""

    def __init__(self, chip: Chip, recorder: Recorder, memory: GlobalMemory) -> None:
        self.chip = chip
        self.recorder = recorder
        self.global_memory = memory
        self.cores: list[Core] = []
        self.changes = 0
        self.mixed = False
        self.shared: dict[str, Any] = {}  # state that cores share: cross-core flags, barriers
        self.output: list[str] = []  # lines the kernel printed

    def build(self, infos: tuple[CoreInfo, ...]) -> None:
        """Make one core per entry of `infos`."""
        memories = self.chip.memories
        sizes = {
            Space.UB: memories.ub.bytes,
            Space.L1: memories.l1.bytes,
            Space.L0A: memories.l0a.bytes,
            Space.L0B: memories.l0b.bytes,
            Space.L0C: memories.l0c.bytes,
            Space.BT: memories.bt.bytes,
            Space.FB: memories.fb.bytes,
        }
        self.cores = [Core(self, index, info, sizes) for index, info in enumerate(infos)]
        mixed = self.mixed = len({info.type for info in infos}) > 1
        blocks = sum(info.type is CoreType.AIC for info in infos) if mixed else len(infos)
        for core in self.cores:
            core.block_count = blocks

    def run(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        """Run `kernel` on every core to its end. Raises Deadlock when no core can go on."""
        with np.errstate(all="ignore"):
            self._schedule([(core, kernel(core, *arguments)) for core in self.cores])

    def _schedule(self, live: list[tuple[Core, Routine]]) -> None:
        polled: set[int] = set()  # cells read since something last changed
        idle_rounds = 0
        while live:
            changes, known = self.changes, len(polled)
            waits: list[Wait] = []
            still: list[tuple[Core, Routine]] = []
            for core, routine in live:
                try:
                    wait = next(routine)
                except StopIteration:
                    core.memories.release()
                    continue
                still.append((core, routine))
                if isinstance(wait, Wait):
                    waits.append(wait)
                else:
                    polled.add(wait)
            progress = len(still) < len(live) or self.changes != changes
            live = still
            if progress:
                polled.clear()
                idle_rounds = 0
            elif len(polled) == known:
                idle_rounds += 1
                if len(waits) == len(live) or idle_rounds >= POLL_ROUNDS:
                    self._dead(waits, [core for core, _ in live])

    def _dead(self, waits: list[Wait], cores: list[Core]) -> None:
        waiting = {wait.core for wait in waits}
        for core in cores:
            if core.index not in waiting:
                waits.append(Wait(core.index, 0, "polls global memory that nothing changes any more", core.site))
        waits.sort(key=lambda wait: wait.core)
        lines = [self.describe(wait) for wait in waits]
        facts = {"waits": [(wait.core, wait.pipe, wait.what, wait.site) for wait in waits]}
        row = max(self.recorder.rows - 1, 0)
        self.recorder.add_fault(Fault("deadlock", row, waits[0].core, waits[0].site, facts))
        raise Deadlock(waits, lines)

    def describe(self, wait: Wait) -> str:
        """One waiting core in words, with its line."""
        info = self.cores[wait.core].info
        site: Site = self.recorder.sites[wait.site]
        where = f" at {site.frames[0].file}:{site.frames[0].line}" if site.frames else ""
        return f"{info.name} pipe {PIPE_NAMES.get(wait.pipe, '?')} {wait.what}{where}"


def vector_cores(count: int) -> tuple[CoreInfo, ...]:
    """The cores of a vector-only launch of `count` blocks."""
    return tuple(CoreInfo(CoreType.AIV, block) for block in range(count))


def cube_cores(count: int) -> tuple[CoreInfo, ...]:
    """The cores of a cube-only launch of `count` blocks."""
    return tuple(CoreInfo(CoreType.AIC, block) for block in range(count))


def mixed_cores(count: int, vectors: int = 2) -> tuple[CoreInfo, ...]:
    """The cores of a mixed launch: per block one AIC and `vectors` AIVs; an AIV's block counts AIVs (frontends.md 2)."""
    infos: list[CoreInfo] = []
    for block in range(count):
        infos.append(CoreInfo(CoreType.AIC, block))
        infos.extend(CoreInfo(CoreType.AIV, block * vectors + half, half) for half in range(vectors))
    return tuple(infos)


def describe_launch(launch: Launch) -> str:
    """The launch as its user wrote it: ``kernel[8]``."""
    return f"{launch.kernel}[{', '.join(map(str, launch.grid))}]"
