"""Flags between cores: counters that rise when a whole group of cores has set them (hardware.md 3.4).

Each rise has a *ticket*, a number that is in d of the rows of the sets that made it and of the wait that used it up: so
the trace says which sets a wait comes after.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from npuscope.npu.sync import S, Subject, Wait, drain, put_off
from npuscope.trace.schema import OPCODES, CoreInfo, CoreType, Origin

if TYPE_CHECKING:
    from npuscope.npu.core import Core
    from npuscope.npu.machine import Machine

SET, WAIT = OPCODES.number("cross_core_set"), OPCODES.number("cross_core_wait")
MODE4 = 64
"""Mode 4 has counters of its own: number 3 of mode 4 is counter 67."""
HALVES = 16
"""An AIC's mode 4 numbers from here on belong to its second vector core."""


@dataclass(frozen=True, slots=True)
class Group:
    """The cores of one AI core in a launch, by their number: at most one AIC and its AIVs."""

    aic: int | None
    aivs: tuple[int, ...]


@dataclass(slots=True)
class Arrivals:
    """Sets that wait for the rest of their group: how many each core has made, how many cores have made any, and how
    often the whole group has."""

    counts: dict[int, int] = field(default_factory=dict)
    present: int = 0
    rises: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """The set that raised a counter last."""

    site: int
    row: int
    origin: int


class CrossCore:
    """The cross-core flags of a launch. Counters are keyed (core, number), those of mode 4 with MODE4 added."""

    def __init__(self, machine: Machine, infos: Sequence[CoreInfo]) -> None:
        self.machine = machine
        self.infos = infos
        self.counters: dict[tuple[int, int], int] = {}
        self.sources: dict[tuple[int, int], Source] = {}
        self._arrivals: dict[tuple[int, int, int], Arrivals] = {}
        self._tickets: dict[tuple[int, int, int, int], int] = {}  # of rises that are not complete: by group and turn
        self._ticketed = 0
        self._risen: dict[tuple[int, int], deque[int]] = {}  # tickets of each counter, oldest first
        self._rounds: dict[tuple[int, int, int], int] = {}
        self._groups: dict[int, Group] = {}
        self._of_type = {
            kind: tuple(index for index, info in enumerate(infos) if info.type is kind) for kind in CoreType
        }

    # -- who takes part ------------------------------------------------------------------------------------------

    def group(self, core: int) -> Group:
        """The AI core that core number `core` belongs to. Without AICs two neighbouring blocks share one."""
        if not self._groups:
            members: dict[int, list[int]] = {}
            per_core = self._vectors_per_core()
            for index, info in enumerate(self.infos):
                owner = info.block if info.type is CoreType.AIC else info.block // per_core
                members.setdefault(owner, []).append(index)
            for indices in members.values():
                aic = next((index for index in indices if self.infos[index].type is CoreType.AIC), None)
                group = Group(aic, tuple(index for index in indices if index != aic))
                self._groups.update(dict.fromkeys(indices, group))
        return self._groups[core]

    def _vectors_per_core(self) -> int:
        aics, aivs = (len(self._of_type[kind]) for kind in (CoreType.AIC, CoreType.AIV))
        if aics:
            return max(aivs // aics, 1)
        return max(self.machine.chip.cores.aiv_per_aic, 1)

    def participants(self, core: int, mode: int, number: int) -> tuple[tuple[int, ...], dict[int, int]]:
        """Who must set before anything rises, and what rises then: core -> counter number. Both empty where `mode`
        has no partner for this core."""
        info, group = self.infos[core], self.group(core)
        if mode == 0:
            everyone = self._of_type[info.type]
            return everyone, dict.fromkeys(everyone, number)
        if mode == 1:
            return (group.aivs, dict.fromkeys(group.aivs, number)) if core in group.aivs else ((), {})
        if group.aic is None or not group.aivs:
            return (), {}
        if mode == 2:
            if core == group.aic:
                return (core,), dict.fromkeys(group.aivs, number)
            return group.aivs, {group.aic: number}
        half, low = divmod(number, HALVES)
        if core == group.aic:
            return ((core,), {group.aivs[half]: MODE4 + low}) if half < len(group.aivs) else ((), {})
        return (core,), {group.aic: MODE4 + low + HALVES * group.aivs.index(core)}

    # -- setting and waiting -------------------------------------------------------------------------------------

    def set(self, core: Core, site: int, pipe: int, mode: int, number: int, origin: int = Origin.USER) -> None:
        """A core's part of a set. The counters of those that wait rise once the whole group has set."""
        senders, receivers = self.participants(core.index, mode, number)
        key = (core.index, mode, number)
        turn = self._rounds.get(key, 0) + 1
        rise = (mode, senders[0] if senders else -1, number, turn)
        core.begin(site, pipe, SET, number, mode, turn, self._ticket(rise), origin=origin)
        self._rounds[key] = turn
        if not senders:
            what = f"mode of cross-core flag {number}"
            core.fault("bad_operand", what=what, value=mode, limit="modes with a partner in this launch")
            return
        arrivals = self._arrivals.setdefault(rise[:3], Arrivals())
        counts = arrivals.counts
        counts[core.index] = counts.get(core.index, 0) + 1
        arrivals.present += counts[core.index] == 1
        self.machine.changes += 1
        if arrivals.present == len(senders):
            for sender in senders:
                counts[sender] -= 1
            arrivals.present = sum(count > 0 for count in counts.values())
            arrivals.rises += 1
            ticket = self._tickets.pop((*rise[:3], arrivals.rises))
            self._raise(core, receivers, Source(site, core.row, origin), ticket)

    def _ticket(self, rise: tuple[int, int, int, int]) -> int:
        """The ticket of a rise by its group and turn: the n-th rise is made of the n-th sets of the group."""
        known = self._tickets.get(rise)
        if known is None:
            self._ticketed += 1
            known = self._tickets[rise] = self._ticketed
        return known

    def _raise(self, core: Core, receivers: dict[int, int], source: Source, ticket: int) -> None:
        depth = self.machine.chip.identifiers.cross_core_depth
        for receiver, number in receivers.items():
            key = (receiver, number)
            count = self.counters.get(key, 0) + 1
            if count > depth:
                name = self.infos[receiver].name
                core.fault("cross_core_overflow", id=number % MODE4, core=name, count=count, limit=depth)
                count = depth
            else:
                self._risen.setdefault(key, deque()).append(ticket)
            self.counters[key] = count
            self.sources[key] = source
        for receiver in receivers:
            waiting = self.machine.cores.made(receiver)
            if waiting is not None and waiting.stalled:
                drain(waiting)

    def is_up(self, core: Core, number: int) -> bool:
        """Whether a wait for counter `number` would go on at once."""
        return self.counters.get((core.index, number), 0) > 0

    def take(self, core: Core, number: int) -> int:
        """Lower a counter by one; returns the ticket of the rise that is used up."""
        self.counters[core.index, number] -= 1
        return self._risen[core.index, number].popleft()

    def arrived(self, core: Core, mode: int, number: int) -> tuple[int, int]:
        """How many of a set's group have set it, and how many there are."""
        senders, _ = self.participants(core.index, mode, number)
        arrivals = self._arrivals.get((mode, senders[0], number)) if senders else None
        return (arrivals.present if arrivals else 0), len(senders)

    def wait(
        self, core: Core, site: int, mode: int, number: int, what: str = "", origin: int = Origin.USER
    ) -> Generator[Wait, None, None]:
        """Wait on the scalar pipe, so that the core issues nothing more, until the counter is up; lower it."""
        counter = number + MODE4 if mode == 4 else number
        subject: Subject = ("cross", number, mode) if origin == Origin.USER else ("sync_all",)
        while not self.is_up(core, counter):
            yield Wait(core.index, S, what or f"cross-core flag {number} (mode {mode})", site, subject)
        ticket = self.take(core, counter)
        core.begin(site, S, WAIT, number, mode, self.next_round(core, counter), ticket, origin=origin)

    def wait_on_pipe(self, core: Core, site: int, pipe: int, mode: int, number: int) -> None:
        """Wait on one pipe only (3510): it stalls until the counter is up."""
        item = CrossWait(self, mode, number, pipe, site)
        if not core.stalled.holds(pipe) and item.ready(core):
            item.run(core)
        else:
            put_off(core, pipe, item)

    def next_round(self, core: Core, counter: int) -> int:
        """Which increment of the counter a wait takes, from 1 on: the n-th is made of the n-th sets of the group."""
        key = (core.index, -1, counter)
        self._rounds[key] = self._rounds.get(key, 0) + 1
        return self._rounds[key]

    def left(self) -> list[tuple[int, int, int, Source]]:
        """(core, number, count, last set) of the program's own counters that are up, for the end of the launch."""
        return [
            (core, number, count, self.sources[core, number])
            for (core, number), count in sorted(self.counters.items())
            if count and self.sources[core, number].origin == Origin.USER
        ]


@dataclass(slots=True)
class CrossWait:
    """A cross-core wait queued on a stalled pipe."""

    flags: CrossCore
    mode: int
    number: int
    pipe: int
    site: int

    @property
    def counter(self) -> int:
        """The counter it lowers."""
        return self.number + MODE4 if self.mode == 4 else self.number

    @property
    def what(self) -> str:
        """The flag."""
        return f"cross-core flag {self.number} (mode {self.mode})"

    @property
    def subject(self) -> Subject:
        """The flag."""
        return ("cross", self.number, self.mode)

    def ready(self, core: Core) -> bool:
        """Whether the counter is up."""
        return self.flags.is_up(core, self.counter)

    def run(self, core: Core) -> None:
        """Lower the counter."""
        ticket = self.flags.take(core, self.counter)
        turn = self.flags.next_round(core, self.counter)
        core.begin(self.site, self.pipe, WAIT, self.number, self.mode, turn, ticket)
