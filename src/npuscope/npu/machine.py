"""The simulated device: makes the cores of a launch and runs them as coroutines, one at a time, in a fixed order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import FrameType
from typing import Any, overload

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.core import PIPE_NAMES, Core
from npuscope.npu.cross_core import CrossCore
from npuscope.npu.memory import GlobalMemory
from npuscope.npu.sync import Stuck, Wait
from npuscope.npu.tensor import Pointer, Tensor
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import CoreInfo, CoreType, Fault, Site, Space

Routine = Generator[Wait | int, None, None]
"""A core at work. It yields a Wait when it cannot go on, or the address of a memory cell that it polls."""
Kernel = Callable[..., Routine]

POLL_ROUNDS = 500
"""Rounds in which every core polls the same memory from the same state, and nobody changes it, before the launch is
called dead."""


class CoreExit(Exception):
    """A core leaves its kernel here: the rest of it is not for this core (an AIC that serves Matmul clients)."""


class Trapped(Exception):  # noqa: N818 - it ends the launch, the fault says why
    """The kernel stopped the device with Trap."""


class Deadlock(RuntimeError):
    """Every unfinished core waits for something that can no longer happen."""

    def __init__(self, waits: list[Wait], lines: list[str]) -> None:
        super().__init__("the kernel can never finish: " + "; ".join(lines))
        self.waits = waits


class Cores(Sequence[Core]):
    """The cores of a launch by number, each made when it is first asked for and forgotten when it has finished, so
    that a launch of thousands of blocks holds only those at work."""

    def __init__(self, machine: Machine, infos: tuple[CoreInfo, ...], sizes: dict[Space, int]) -> None:
        self._machine = machine
        self._infos = infos
        self._sizes = sizes
        self._made: dict[int, Core] = {}
        mixed = machine.mixed
        self._blocks = sum(info.type is CoreType.AIC for info in infos) if mixed else len(infos)

    def __len__(self) -> int:
        return len(self._infos)

    @overload
    def __getitem__(self, index: int) -> Core: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Core]: ...
    def __getitem__(self, index: int | slice) -> Core | Sequence[Core]:
        if isinstance(index, slice):
            return _Part(self, range(*index.indices(len(self))))
        number = range(len(self))[index]
        core = self._made.get(number)
        if core is None:
            core = self._made[number] = Core(self._machine, number, self._infos[number], self._sizes)
            core.block_count = self._blocks
        return core

    def made(self, index: int) -> Core | None:
        """A core that is at work, None for one that has not started or has finished."""
        return self._made.get(index)

    def forget(self, index: int) -> None:
        """Drop a core that has finished."""
        self._made.pop(index, None)


class _Part(Sequence[Core]):
    """A slice of the cores, no less lazy than they are."""

    def __init__(self, cores: Cores, numbers: range) -> None:
        self._cores = cores
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _Part(self._cores, self._numbers[index])
        return self._cores[self._numbers[index]]


class State(Enum):
    """How a core stands after a step."""

    RUNNING = 0
    ENDED = 1
    SERVING = 2  # its own kernel is over, its memories and pipes serve the other cores of its block to their end
    STUCK = 3


@dataclass(slots=True)
class Unit:
    """What is started together: the cores of one block of a mixed launch, else one core."""

    cores: tuple[int, ...]
    at_work: int = 0
    serving: list[Core] = field(default_factory=list)


@dataclass(slots=True)
class Running:
    """A core at work: its coroutine, what it yielded last, and its state then if it polls."""

    core: Core
    unit: Unit
    routine: Routine
    wait: Wait | int | None = None
    state: tuple[object, ...] = ()


class Machine:
    """One device for one launch. `changes` counts writes to global memory and cross-core signals."""

    def __init__(self, chip: Chip, recorder: Recorder, memory: GlobalMemory) -> None:
        self.chip = chip
        self.recorder = recorder
        self.global_memory = memory
        self.infos: tuple[CoreInfo, ...] = ()
        self.changes = 0
        self.mixed = False
        self.cores = Cores(self, (), {})
        self.cross_core = CrossCore(self, ())
        self.shared: dict[str, Any] = {}  # state that cores share
        self.output: list[str] = []  # lines the kernel printed
        self._stuck: list[Wait] = []  # of cores that can never go on

    def build(self, infos: tuple[CoreInfo, ...]) -> None:
        """Provide one core per entry of `infos`."""
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
        self.infos = infos
        self.mixed = len({info.type for info in infos}) > 1
        self.cores = Cores(self, infos, sizes)
        self.cross_core = CrossCore(self, infos)

    def run(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        """Run `kernel` on every core to its end. Raises Deadlock when no core can go on.

        As many blocks are at work as the chip has cores; the next one starts when one ends. Blocks that wait for one
        that has not started wait for ever, as on the device (SYNC: the number of blocks must not exceed the cores).
        """
        with np.errstate(all="ignore"):
            try:
                self._schedule(kernel, arguments)
            except Trapped:
                return
        for core, number, count, source in self.cross_core.left():
            facts = {"id": number % 64, "count": count, "set_row": source.row}
            self.recorder.add_fault(Fault("cross_core_left_set", source.row, core, source.site, facts))

    # -- scheduling ----------------------------------------------------------------------------------------------

    def _schedule(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        pending = deque(self._units())
        free = self._room()
        live: list[Running] = []
        idle_rounds = 0
        while live or (pending and free):
            while pending and free:
                free -= 1
                unit = pending.popleft()
                unit.at_work = len(unit.cores)
                cores = [self.cores[number] for number in unit.cores]
                live.extend(Running(core, unit, kernel(core, *arguments)) for core in cores)
            changes, before = self.changes, len(live)
            still = []
            for running in live:
                state = self._step(running)
                if state is State.RUNNING:
                    still.append(running)
                elif state is not State.STUCK:
                    free += self._leave(running, state)
            live = still
            if len(live) < before or self.changes != changes:
                idle_rounds = 0
                continue
            if any([self._moved(running) for running in live]):  # a list: the state of each is noted
                idle_rounds = 0
                continue
            idle_rounds += 1
            if all(isinstance(running.wait, Wait) for running in live) or idle_rounds >= POLL_ROUNDS:
                self._dead(live, pending)
        if self._stuck:
            self._dead([], pending)

    def _units(self) -> Iterator[Unit]:
        """Every unit of the launch, in order."""
        if not self.mixed:
            return (Unit((core,)) for core in range(len(self.infos)))
        starts = [core for core, info in enumerate(self.infos) if info.type is CoreType.AIC] + [len(self.infos)]
        return (Unit(tuple(range(start, end))) for start, end in zip(starts, starts[1:], strict=False))

    def _room(self) -> int:
        """How many units the chip has cores for."""
        cores = self.chip.cores
        if not self.chip.split:
            return max(cores.aic + cores.aiv, 1)
        vector_only = all(info.type is CoreType.AIV for info in self.infos)
        return max(cores.aiv if vector_only else cores.aic, 1)

    def _step(self, running: Running) -> State:
        """Let one core run to its next yield."""
        core = running.core
        try:
            running.wait = next(running.routine)
        except StopIteration:
            if core.stalled:  # its scalar unit is done, its pipes are not
                running.routine = _drained(core)
                running.wait = next(running.routine)
                return State.RUNNING
            return State.ENDED
        except CoreExit:
            return State.SERVING
        except Stuck as stuck:
            self._stuck.extend(stuck.waits)
            return State.STUCK
        return State.RUNNING

    def _leave(self, running: Running, state: State) -> int:
        """Take note of a core whose kernel is over; 1 when its whole unit is, so that another can start."""
        unit = running.unit
        unit.at_work -= 1
        if state is State.SERVING:
            unit.serving.append(running.core)
        else:
            self._end(running.core)
        if unit.at_work:
            return 0
        for core in unit.serving:
            self._end(core)
        return 1

    def _end(self, core: Core) -> None:
        core.end()
        self.cores.forget(core.index)

    def _moved(self, running: Running) -> bool:
        """Whether a polling core is in another state than when it polled last."""
        if isinstance(running.wait, Wait):
            return False
        state = (running.wait, *_state(running.routine))
        moved = state != running.state
        running.state = state
        return moved

    # -- deadlock ------------------------------------------------------------------------------------------------

    def _dead(self, live: list[Running], pending: Iterable[Unit]) -> None:
        not_started = sum(len(unit.cores) for unit in pending)
        waits = list(self._stuck)
        for running in live:
            core = running.core
            waits.append(running.wait if isinstance(running.wait, Wait) else self._polling(core, running.wait or 0))
            waits.extend(wait for wait in core.stalled.waits(core.index) if wait not in waits)
        waits.sort(key=lambda wait: wait.core)
        lines = [self.describe(wait) for wait in waits]
        facts: dict[str, object] = {
            "waits": [(wait.core, wait.pipe, wait.what, wait.site) for wait in waits],
            "subjects": [wait.subject for wait in waits],
        }
        if not_started:
            facts["not_started"] = not_started
            lines.append(f"{not_started} blocks have not started, because these cores are taken")
        row = max(self.recorder.rows - 1, 0)
        self.recorder.add_fault(Fault("deadlock", row, waits[0].core, waits[0].site, facts))
        raise Deadlock(waits, lines)

    def _polling(self, core: Core, address: int) -> Wait:
        """A polling core as a wait, with the reason that can be seen."""
        what = "a change of the memory that it polls"
        region = self.global_memory.find(address)
        if region is not None:
            what = f"a change of GM 0x{address:x}, which it polls"
            if core.cache.is_stale(region, address):
                what = f"a change of GM 0x{address:x}, which its data cache hides (no DCCI before the read)"
        return Wait(core.index, 0, what, core.site, ("poll", address))

    def describe(self, wait: Wait) -> str:
        """One waiting core in words, with its line."""
        info = self.infos[wait.core]
        site: Site = self.recorder.sites[wait.site]
        where = f" at {site.frames[0].file}:{site.frames[0].line}" if site.frames else ""
        return f"{info.name} pipe {PIPE_NAMES.get(wait.pipe, '?')} waits for {wait.what}{where}"


def _drained(core: Core) -> Routine:
    """The pipes of a core whose kernel has ended, until all have done what was issued to them."""
    while core.stalled:
        yield core.stalled.waits(core.index)[0]


def _state(routine: Routine) -> tuple[object, ...]:
    """Everything that decides what a coroutine does next, apart from memory: its frames and their locals."""
    state: list[object] = []
    inner: Any = routine
    while inner is not None:
        frame: FrameType | None = getattr(inner, "gi_frame", None)
        if frame is not None:
            state.append(frame.f_lasti)
            state.extend(_plain(value) for value in frame.f_locals.values())
        inner = getattr(inner, "gi_yieldfrom", None)
    return tuple(state)


def _plain(value: object) -> object:
    """A local as something that compares by what it means."""
    if isinstance(value, (int, float, str, bool)):
        return value
    if isinstance(value, (Tensor, Pointer)):
        return value.address
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return type(value)


def vector_cores(count: int) -> tuple[CoreInfo, ...]:
    """The cores of a vector-only launch of `count` blocks."""
    return tuple(CoreInfo(CoreType.AIV, block) for block in range(count))


def cube_cores(count: int) -> tuple[CoreInfo, ...]:
    """The cores of a cube-only launch of `count` blocks."""
    return tuple(CoreInfo(CoreType.AIC, block) for block in range(count))


def mixed_cores(count: int, vectors: int = 2) -> tuple[CoreInfo, ...]:
    """The cores of a mixed launch: per block an AIC and `vectors` AIVs; an AIV's block counts AIVs (frontends.md 2)."""
    infos: list[CoreInfo] = []
    for block in range(count):
        infos.append(CoreInfo(CoreType.AIC, block))
        infos.extend(CoreInfo(CoreType.AIV, block * vectors + half, half) for half in range(vectors))
    return tuple(infos)
