"""What orders what on the device: event flags inside a core and the pipes that wait for them.

With :mod:`npuscope.npu.cross_core` (flags between cores) this is the only place that knows; race check, deadlock
report, debugger and timing ask it.

Effects happen in issue order. The one exception is a wait whose flag is down when it is issued on another pipe than S:
on the device only that pipe stops, the scalar unit goes on issuing, and a set_flag that comes later in the program may
release it (hardware.md 3.2). Such a pipe is *stalled*: what is issued to it queues up in `core.stalled` and runs, in
order, when the flag rises. Nothing of this costs anything while no pipe is stalled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from npuscope.trace.events import HardEvent as HardEvent
from npuscope.trace.schema import OPCODES, Origin, Pipe

if TYPE_CHECKING:
    from npuscope.npu.core import Core
    from npuscope.npu.registers import Registers

SET_FLAG, WAIT_FLAG = OPCODES.number("set_flag"), OPCODES.number("wait_flag")
S = int(Pipe.S)


SOURCE_PIPE = {int(event): int(event.source) for event in HardEvent}
TARGET_PIPE = {int(event): int(event.target) for event in HardEvent}

AIC_PIPES = frozenset({Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX})
AIV_PIPES = frozenset({Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3})
ALL_PIPES = AIC_PIPES | AIV_PIPES

USER_FLAGS = 16
"""Flag numbers below this are event ids that a program names; higher ones belong to the framework's queue buffers."""


def pipes_of(is_aic: bool, split: bool) -> frozenset[Pipe]:
    """The pipes of a core (hardware.md 3.1); a core of a chip that is not split has them all."""
    if not split:
        return ALL_PIPES
    return AIC_PIPES if is_aic else AIV_PIPES


@cache
def event_pipes(pipes: frozenset[Pipe]) -> dict[int, tuple[int, int]]:
    """(source, target) of each event that a core with `pipes` can use. Events of other pipes do nothing there (mixed
    kernels run one program on both core types), and a pipe has no event to itself."""
    return {
        int(event): (int(event.source), int(event.target))
        for event in HardEvent
        if event.source in pipes and event.target in pipes and event.source is not event.target
    }


def flag_name(event: int, number: int) -> str:
    """For people: ``flag MTE2_V id 0``."""
    name = HardEvent(event).name
    return f"flag {name} id {number}" if number < USER_FLAGS else f"flag {name} of a queue buffer"


Subject = tuple[str | int, ...]
"""What is waited for, for programs: ("flag", event, id), ("cross", number, mode), ("sync_all",), ("ib_wait", block,
event), ("poll", address); empty where there is no more to say than the words."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a core is waiting for, for the deadlock report."""

    core: int
    pipe: int
    what: str  # for people: "flag MTE2_V id 0", "cross-core flag 3 (mode 2)", "SyncAll"
    site: int
    subject: Subject = field(default=(), compare=False)


class Stuck(RuntimeError):
    """A core waits for something that only its own later instructions could bring: it can never go on."""

    def __init__(self, waits: list[Wait]) -> None:
        super().__init__("waits for " + ", ".join(wait.what for wait in waits))
        self.waits = waits


class Held(Exception):  # noqa: N818 - no error: the instruction is put off
    """An instruction was issued to a stalled pipe."""

    def __init__(self, pipe: int) -> None:
        super().__init__(pipe)
        self.pipe = pipe


class CoreFlags:
    """The binary event flags of one core: one per (event, id) (hardware.md 3.2). `refused` holds those of same-pipe
    events, which were reported and never rise."""

    __slots__ = ("set_rows", "refused")

    def __init__(self) -> None:
        self.set_rows: dict[tuple[int, int], int] = {}
        self.refused: set[tuple[int, int]] = set()

    def set(self, event: int, number: int, row: int) -> bool:
        """Raise a flag; False when it was already up (undefined on the device, saturates here)."""
        key = (event, number)
        fresh = key not in self.set_rows
        self.set_rows[key] = row
        return fresh

    def take(self, event: int, number: int) -> int:
        """Lower a flag that is up and return the row that set it; -1 when it is down."""
        return self.set_rows.pop((event, number), -1)

    @property
    def raised(self) -> list[tuple[int, int, int]]:
        """(event, id, row of the set) of the program's own flags that are up, in the order they were set."""
        return [(event, number, row) for (event, number), row in self.set_rows.items() if number < USER_FLAGS]


# -- stalled pipes ---------------------------------------------------------------------------------------------------


class Item(Protocol):
    """Something queued on a stalled pipe."""

    site: int

    def ready(self, core: Core) -> bool:
        """Whether it can run now."""

    def run(self, core: Core) -> None:
        """Run it: write its row and take effect."""

    @property
    def what(self) -> str:
        """What it waits for; empty when it waits for nothing but its turn."""

    @property
    def subject(self) -> Subject:
        """The same for programs."""


@dataclass(slots=True)
class FlagWait:
    """A wait_flag. `operands` are b, c, d of its row (a is the event)."""

    event: int
    number: int
    pipe: int
    site: int
    operands: tuple[int, int, int]
    origin: int

    def ready(self, core: Core) -> bool:
        """Whether the flag is up."""
        return (self.event, self.number) in core.flags.set_rows

    def run(self, core: Core) -> None:
        """Lower the flag."""
        core.flags.take(self.event, self.number)
        core.begin(self.site, self.pipe, WAIT_FLAG, self.event, *self.operands, origin=self.origin)

    @property
    def what(self) -> str:
        """The flag."""
        return flag_name(self.event, self.number)

    @property
    def subject(self) -> Subject:
        """The flag."""
        return ("flag", self.event, self.number)


@dataclass(slots=True)
class FlagSet:
    """A set_flag. `operands` are b, c, d of its row (a is the event)."""

    event: int
    number: int
    pipe: int
    site: int
    operands: tuple[int, int, int]
    origin: int
    what: str = ""
    subject: Subject = ()

    def ready(self, core: Core) -> bool:
        """Always: it never blocks."""
        return True

    def run(self, core: Core) -> None:
        """Raise the flag."""
        core.begin(self.site, self.pipe, SET_FLAG, self.event, *self.operands, origin=self.origin)
        first = core.flags.set_rows.get((self.event, self.number), -1)
        if not core.flags.set(self.event, self.number, core.row) and self.number < USER_FLAGS:
            core.fault("flag_set_twice", event=HardEvent(self.event).name, id=self.number, first=first)


@dataclass(slots=True)
class Deferred:
    """An instruction: the call that carries it out, with the registers that held when it was issued."""

    function: Callable[..., Any]
    site: int
    arguments: tuple[Any, ...]
    attributes: dict[str, Any]
    registers: Registers
    what: str = ""
    subject: Subject = ()

    def ready(self, core: Core) -> bool:
        """Always, once it is at the head of its pipe."""
        return True

    def run(self, core: Core) -> None:
        """Carry it out. Results it leaves in registers count from now on; modes it set took effect at its issue."""
        current, own = core.registers, self.registers
        before = dict(own.values)
        mask = own.compare_mask.copy()
        core.registers = own
        try:
            self.function(core, self.site, *self.arguments, **self.attributes)
        finally:
            core.registers = current
        for name, value in own.values.items():
            if name not in before or before[name] is not value:
                current.values[name] = value
        if (own.compare_mask != mask).any():
            current.compare_mask = own.compare_mask


class StalledPipes(dict[int, "deque[Item]"]):
    """The stalled pipes of a core, each with what is queued on it, head first. Empty, and so false, almost always."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        super().__init__()
        self.running = -1  # the pipe that is being drained

    def holds(self, pipe: int) -> bool:
        """Whether an instruction issued to `pipe` now has to wait."""
        return pipe in self and pipe != self.running

    def waits(self, core: int) -> list[Wait]:
        """What each stalled pipe of core number `core` waits for."""
        heads = ((pipe, queue[0]) for pipe, queue in self.items())
        return [Wait(core, pipe, head.what, head.site, head.subject) for pipe, head in heads]


def put_off(core: Core, pipe: int, item: Item) -> None:
    """Queue `item` on `pipe`, which stalls by that if it did not yet."""
    stalled = core.stalled
    if pipe not in stalled:
        stalled[pipe] = deque()
        core.watch_stalled()
    stalled[pipe].append(item)


def drain(core: Core) -> None:
    """Run everything on stalled pipes that can run by now, pipe by pipe, until nothing more can."""
    stalled = core.stalled
    if stalled.running >= 0:
        return  # called from an instruction that is being drained: the loop below goes on anyway
    moved = True
    while moved and stalled:
        moved = False
        for pipe, queue in list(stalled.items()):
            stalled.running = pipe
            try:
                while queue and queue[0].ready(core):
                    queue.popleft().run(core)
                    moved = True
            finally:
                stalled.running = -1
            if not queue:
                del stalled[pipe]
    if not stalled:
        core.watch_stalled()


def issued_to(core: Core, function: Callable[..., Any], has_result: bool = False) -> Callable[..., Any]:
    """`function` for use while pipes of `core` are stalled: called like it, it puts itself off when its first
    instruction is for a stalled pipe. One with a result cannot be put off: the scalar unit would wait for it for ever,
    which raises Stuck."""

    def call(core: Core, site: int, *arguments: Any, **attributes: Any) -> Any:
        registers = copy(core.registers)
        registers.values = dict(registers.values)
        registers.compare_mask = registers.compare_mask.copy()
        core.may_put_off = True
        try:
            return function(core, site, *arguments, **attributes)
        except Held as held:
            if has_result:
                what = f"the result of {function.__name__} on pipe {Pipe(held.pipe).name}"
                raise Stuck([Wait(core.index, S, what, site), *core.stalled.waits(core.index)]) from None
            frozen = tuple(_by_value(argument) for argument in arguments)
            put_off(core, held.pipe, Deferred(function, site, frozen, attributes, registers))
            return None
        finally:
            core.may_put_off = False

    return call


def _by_value(argument: Any) -> Any:
    """An argument as it is now: handles, records and lists may be rebound before the instruction runs."""
    if isinstance(argument, list):
        return [_by_value(item) for item in argument]
    if isinstance(argument, (int, float, str, bytes, type(None))):
        return argument
    return argument.copy() if hasattr(argument, "copy") else copy(argument)


# -- flags -----------------------------------------------------------------------------------------------------------


def raise_flag(
    core: Core, site: int, event: int, number: int, operands: tuple[int, int, int], origin: int = Origin.USER
) -> None:
    """set_flag: raise flag `number` of `event` once the source pipe comes to it."""
    source = SOURCE_PIPE[event]
    item = FlagSet(event, number, source, site, operands, origin)
    if core.stalled.holds(source):
        put_off(core, source, item)
        return
    item.run(core)
    if core.stalled:
        drain(core)


def await_flag(
    core: Core, site: int, event: int, number: int, operands: tuple[int, int, int], origin: int = Origin.USER
) -> None:
    """wait_flag: lower the flag, or stall the target pipe until it rises.

    Raises Stuck when the scalar unit itself waits: only instructions after this one could raise the flag.
    """
    target = TARGET_PIPE[event]
    item = FlagWait(event, number, target, site, operands, origin)
    if not core.stalled.holds(target):
        if item.ready(core):
            item.run(core)
            return
        if target == S:
            raise Stuck([Wait(core.index, S, item.what, site, item.subject), *core.stalled.waits(core.index)])
    put_off(core, target, item)


def finish_pipes(core: Core, site: int, what: str) -> None:
    """The scalar unit waits for all pipes. Raises Stuck when one is stalled: nothing could release it any more."""
    if core.stalled:
        raise Stuck([Wait(core.index, S, what, site), *core.stalled.waits(core.index)])
