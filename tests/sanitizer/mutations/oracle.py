"""A brute-force model of what orders what, written from hardware.md 3.1 to 3.4 and independent of the sanitizer.

For each row of a launch's trace it keeps, as the bits of one integer, every earlier row that is certainly done when
this one starts. Two accesses that share a byte, at least one of them a write, are a *hazard* when the earlier row is
not among those bits of the later. Nothing is indexed or merged: a few hundred rows at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Buffer, CoreType, Origin, Pipe, Role, Space

V, S, M, ALL = Pipe.V, Pipe.S, Pipe.M, Pipe.ALL
HARD_EVENTS = ["MTE2_MTE1", "MTE1_MTE2", "MTE1_M", "M_MTE1", "MTE2_V", "V_MTE2", "MTE3_V", "V_MTE3", "M_V", "V_M", "V_V", "MTE3_MTE1", "MTE1_MTE3", "MTE1_V", "MTE2_M", "M_MTE2", "V_MTE1", "M_FIX", "FIX_M", "MTE3_MTE2", "MTE2_MTE3", "S_V", "V_S", "S_MTE2", "MTE2_S", "S_MTE3", "MTE3_S", "MTE2_FIX", "FIX_MTE2", "FIX_S", "M_S", "FIX_MTE3", "MTE1_FIX", "FIX_MTE1", "FIX_FIX"]
AUTO = ({V}, {S, V}, {S, Pipe.MTE2}, {S, Pipe.MTE3})
"""Pipes between which the device compiler adds what is missing on a vector core (hardware.md 3.2, sanitizer.md 3.8.2)."""
SYNC_SITES = ("sync_all", "ib_set", "ib_wait", "notify_next_block", "wait_pre_block")
MODE_4 = 64
"""Mode 4 has counters of its own; an AIC's from 16 on belong to its second AIV."""
FEW_FRACTALS = 10
"""Mmads into fewer fractals of one result need a barrier between them (hardware.md 3.2)."""


@dataclass(frozen=True)
class Touch:
    """One access: its role, where, and the bytes."""

    role: Role
    buffer: Buffer
    place: tuple[Space, int]  # the memory: space, and the core unless it is shared
    bytes: frozenset[int]
    low: int
    high: int  # one past the last byte
    same: bool  # a write of what was there
    spoils: bool  # a write whose bytes the device leaves undefined

    def meets(self, other: Touch) -> bool:
        """Whether both touch a byte."""
        apart = self.place != other.place or self.high <= other.low or other.high <= self.low
        return not apart and not self.bytes.isdisjoint(other.bytes)


@dataclass(frozen=True)
class Row:
    """One instruction of the trace."""

    number: int
    core: int
    pipe: Pipe
    name: str
    site: int
    origin: int
    a: int
    b: int
    c: int
    d: int
    stub: bool  # the inside of a library call that orders cores through global memory
    touches: tuple[Touch, ...]


@dataclass(frozen=True)
class Hazard:
    """Two rows that nothing orders. `auto` says that the device compiler would order them."""

    kind: str
    auto: bool
    earlier: Row
    later: Row
    buffer: Buffer


# -- reading the trace -----------------------------------------------------------------------------------------------


def rows_of(batches: Sequence[Batch]) -> list[Row]:
    """The rows of one launch with their bytes spelled out."""
    touches: dict[int, list[Touch]] = defaultdict(list)
    for batch in batches:
        cores = {batch.first + at: int(core) for at, core in enumerate(batch.column("core"))}
        for number, role, buffer, address, shape in batch.access.T.tolist():
            owner = batch.buffers[buffer]
            place = (owner.space, -1 if owner.space == Space.GM else cores[number])
            spelled = _spelled(FOOTPRINTS[shape] if shape >= 0 else batch.explicit[-shape - 1], address)
            if spelled:
                kind = Role.WRITE if role in (Role.SPOIL, Role.REWRITE) else Role(role)
                ends = (min(spelled), max(spelled) + 1)
                touch = Touch(kind, owner, place, spelled, *ends, role == Role.REWRITE, role == Role.SPOIL)
                touches[number].append(touch)
    rows = []
    for batch in batches:
        for at, (core, pipe, opcode, site, origin, a, b, c, d, _) in enumerate(batch.instruction.T.tolist()):
            number = batch.first + at
            name = OPCODES.names[opcode]
            stub = _is_stub(batch, site, origin)
            rows.append(Row(number, core, Pipe(pipe), name, site, origin, a, b, c, d, stub, tuple(touches[number])))
    return rows


def _spelled(shape: Footprint | Explicit, address: int) -> frozenset[int]:
    """Every byte of an access."""
    if isinstance(shape, Explicit):
        return frozenset((shape.offsets() + address).tolist())
    return _of_footprint(shape, address)


@lru_cache(maxsize=512)
def _of_footprint(shape: Footprint, address: int) -> frozenset[int]:
    return frozenset((shape.offsets() + address).tolist())


def _is_stub(batch: Batch, site: int, origin: int) -> bool:
    """Whether the library made a row inside one of those calls."""
    return origin == Origin.FRAMEWORK and batch.sites[site].name.split(".")[-1].startswith(SYNC_SITES)


# -- the order -------------------------------------------------------------------------------------------------------


class Order:
    """`done[row]` has bit e set when row e is done before `row` starts. `extra` are pairs to
    order besides, each by a flag after the earlier row that the later one waits for."""

    def __init__(self, rows: Sequence[Row], batch: Batch, extra: Iterable[tuple[int, int]] = ()) -> None:
        self.cores = batch.launch.cores
        self.done: list[int] = []
        self._through: list[int] = []  # what a flag set right after a row would cover of its pipe
        self._on_pipe: dict[tuple[int, Pipe], int] = defaultdict(int)  # rows issued to a pipe so far, as bits
        self._start: dict[tuple[int, Pipe], int] = defaultdict(int)  # done when anything more on the pipe starts
        self._issue: dict[int, int] = defaultdict(int)  # done when the scalar unit issues the next row
        self._flags: dict[tuple[int, ...], list[int]] = defaultdict(list)
        self._counters: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._arrivals: dict[tuple[int, ...], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._meeting: dict[tuple[int, ...], int] = defaultdict(int)
        self._slots: dict[tuple[str, int, int], int] = defaultdict(int)
        self._unit: dict[tuple[int, Pipe], list[Row]] = defaultdict(list)
        self._stores: dict[frozenset[int], list[Row]] = defaultdict(list)  # scalar stores to global memory
        self._loads: set[tuple[int, int, frozenset[int]]] = set()  # (core, site, bytes) that were loaded before
        self._extra: dict[int, list[int]] = defaultdict(list)
        for earlier, later in extra:
            self._extra[later].append(earlier)
        for row in rows:
            self._take(row)

    def before(self, earlier: int, later: int) -> bool:
        """Whether row `earlier` is done when `later` starts."""
        return bool(self.done[later] >> earlier & 1)

    def _take(self, row: Row) -> None:
        lane = (row.core, row.pipe)
        start = self._issue[row.core] | self._start[lane]
        for earlier in self._extra[row.number]:
            start |= self._through[earlier] | self.done[earlier]
        start |= self._by_unit_flag(row)
        start |= getattr(self, f"_{row.name}", self._nothing)(row, start)
        self._start[lane] = start
        if row.pipe in (S, ALL):
            self._issue[row.core] |= start
        # Scalar accesses keep their order, but run behind the scalar unit, which issues and waits (sanitizer.md 3.8.1).
        self.done.append(start | self._on_pipe[lane] if row.pipe == S else start)
        self._on_pipe[lane] |= 1 << row.number
        self._through.append(self._on_pipe[lane])

    def _nothing(self, row: Row, start: int) -> int:
        return 0

    def _drained(self, core: int, *pipes: Pipe) -> int:
        """Everything issued so far to these pipes of a core, and what was done before it."""
        chosen = pipes or tuple(Pipe)
        return self._union((self._on_pipe[core, pipe] | self._start[core, pipe]) for pipe in chosen)

    @staticmethod
    def _union(sets: Iterable[int]) -> int:
        total = 0
        for one in sets:
            total |= one
        return total

    # -- inside a core

    def _set_flag(self, row: Row, start: int) -> int:
        source = Pipe[HARD_EVENTS[row.a].split("_")[0]]
        self._flags[row.core, row.a, row.b, row.c, row.d].append(start | self._drained(row.core, source))
        return 0

    def _wait_flag(self, row: Row, start: int) -> int:
        raised = self._flags[row.core, row.a, row.b, row.c, row.d]
        return raised.pop() if raised else 0  # a flag is one bit: a second set says what a first one said, and more

    def _pipe_barrier(self, row: Row, start: int) -> int:
        if row.pipe == ALL:
            return self._drained(row.core)
        return self._drained(row.core, row.pipe)

    def _by_unit_flag(self, row: Row) -> int:
        """Mmad and Fixpipe with unit flag 2 or 3 take turns on the blocks of L0C that both touch."""
        if row.name not in ("mmad", "fixpipe") or row.d not in (2, 3):
            return 0
        other = Pipe.FIX if row.pipe == M else M
        mine = self._unit[row.core, row.pipe]
        mine.append(row)
        here = _result_bytes(row)
        return self._union(
            1 << one.number | self.done[one.number]
            for one in chain(self._unit[row.core, other]) if here & _result_bytes(one)
        )

    # -- between cores

    def _group(self, core: int) -> tuple[list[int], list[int]]:
        """(AICs, AIVs) of the AI core that a core belongs to."""
        kinds = [info.type for info in self.cores]
        aics, aivs = kinds.count(CoreType.AIC), kinds.count(CoreType.AIV)
        share = aivs // aics if aics else 2
        mine = self._block(core, share)
        members = [one for one in range(len(kinds)) if self._block(one, share) == mine]
        return ([one for one in members if kinds[one] == CoreType.AIC],
                [one for one in members if kinds[one] == CoreType.AIV])

    def _block(self, core: int, share: int) -> int:
        info = self.cores[core]
        return info.block if info.type == CoreType.AIC else info.block // share

    def _sides(self, core: int, mode: int, number: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Who must set, and whose counters rise then (the table of hardware.md 3.4)."""
        kind = self.cores[core].type
        alike = [one for one, info in enumerate(self.cores) if info.type == kind]
        aics, aivs = self._group(core)
        if mode == 0:
            return alike, [(one, number) for one in alike]
        if mode == 1:
            return aivs, [(one, number) for one in aivs]
        if mode == 2:
            return (aics, [(one, number) for one in aivs]) if kind == CoreType.AIC else (aivs, [(aics[0], number)])
        if kind == CoreType.AIC:
            return [core], [(aivs[number // 16], MODE_4 + number % 16)]
        return [core], [(aics[0], MODE_4 + number + 16 * aivs.index(core))]

    def _cross_core_set(self, row: Row, start: int) -> int:
        senders, receivers = self._sides(row.core, row.b, row.a)
        arrived = self._arrivals[row.b, row.a, *senders]
        here = self._drained(row.core, row.pipe)
        arrived[row.core].append(start | here)
        if senders and all(arrived[one] for one in senders):
            known = self._union(arrived[one].pop(0) for one in senders)
            for receiver, number in receivers:
                self._counters[receiver, number].append(known)
        return here  # it is a barrier of its own pipe, too (sanitizer.md 3.8.1)

    def _cross_core_wait(self, row: Row, start: int) -> int:
        counter = self._counters[row.core, row.a + (MODE_4 if row.b == 4 else 0)]
        return counter.pop(0) if counter else 0

    def _sync_all(self, row: Row, start: int) -> int:
        kind = row.b
        here = (kind, row.c) if kind else (kind, row.c, self.cores[row.core].type)
        if row.a == 0:
            self._meeting[here] |= start | self._drained(row.core)
            return self._drained(row.core)
        return self._meeting[here]

    def _ib_set(self, row: Row, start: int) -> int:
        known = self._drained(row.core)
        self._slots["set", row.a, row.b] = start | known | 1 << row.number
        return known | self._slots["wait", row.a, row.b]

    def _ib_wait(self, row: Row, start: int) -> int:
        known = self._slots["set", row.a, row.b]
        self._slots["wait", row.a, row.b] = start | known | self._drained(row.core)
        return known | self._drained(row.core)

    def _scalar_store(self, row: Row, start: int) -> int:
        if row.touches and not row.stub:
            self._stores[row.touches[0].bytes].append(row)
        return 0

    def _scalar_load(self, row: Row, start: int) -> int:
        """A hand-made flag: a word in global memory that is loaded again and again until another core has stored it."""
        if row.stub or not _on_gm(row):
            return 0
        key = (row.core, row.site, row.touches[0].bytes)
        again, _ = key in self._loads, self._loads.add(key)
        if not again:
            return 0
        others = [store for store in self._stores[key[2]] if store.core != row.core]
        return self._union(1 << store.number | self.done[store.number] for store in others)

    def _notify_next_block(self, row: Row, start: int) -> int:
        self._slots["turn", 0, 0] |= start | self._drained(row.core)
        return self._drained(row.core)

    def _wait_pre_block(self, row: Row, start: int) -> int:
        return self._slots["turn", 0, 0] | self._drained(row.core)


def _result_bytes(row: Row) -> frozenset[int]:
    return frozenset().union(*(touch.bytes for touch in row.touches if touch.place[0] == Space.L0C))


# -- hazards ---------------------------------------------------------------------------------------------------------


def hazards(batches: Sequence[Batch], rows: Sequence[Row] = ()) -> list[Hazard]:
    """Every pair of accesses of one launch that may take place in either order. `rows` are its rows where they have
    been read before."""
    rows = rows or rows_of(batches)
    plain = Order(rows, batches[-1])
    polls = _polls(rows)
    serial = {V} if batches[-1].launch.arch == "3510" else set()  # pipes whose instructions wait for each other
    conflicts = [one for one in _conflicts(rows) if not _is_flag(one, polls) and not _is_serial(one, serial)]
    found = [one for one in conflicts if not plain.before(one.earlier.number, one.later.number)]
    automatic = batches[-1].launch.options.get("auto_sync", "True") == "True"
    added = [one for one in found if automatic and _auto(one, batches[-1])]
    helped = Order(rows, batches[-1], [(one.earlier.number, one.later.number) for one in added])
    return [
        Hazard(one.kind, helped.before(one.earlier.number, one.later.number), one.earlier, one.later, one.buffer)
        for one in found
    ]


def _polls(rows: Sequence[Row]) -> set[tuple[int, int]]:
    """(core, site) of scalar loads of global memory that took place more than once."""
    loads = [(row.core, row.site) for row in rows if row.name == "scalar_load" and _on_gm(row) and not row.stub]
    return {key for key in loads if loads.count(key) > 1}


def _on_gm(row: Row) -> bool:
    return any(touch.place[0] == Space.GM for touch in row.touches)


def _is_flag(hazard: Hazard, polls: set[tuple[int, int]]) -> bool:
    """The store and the polling load of a hand-made flag, which are meant to meet."""
    sides = (hazard.earlier, hazard.later)
    return hazard.earlier.pipe == hazard.later.pipe == S and any((row.core, row.site) in polls for row in sides)


def _is_serial(hazard: Hazard, pipes: set[Pipe]) -> bool:
    return hazard.earlier.core == hazard.later.core and hazard.earlier.pipe == hazard.later.pipe and (
        hazard.later.pipe in pipes
    )


def _auto(hazard: Hazard, batch: Batch) -> bool:
    first, second = hazard.earlier, hazard.later
    vector = batch.launch.cores[first.core].type == CoreType.AIV
    return vector and first.core == second.core and {first.pipe, second.pipe} in AUTO


def _conflicts(rows: Sequence[Row]) -> Iterator[Hazard]:
    """Pairs that share a byte of which one is written, whether ordered or not."""
    touching = [row for row in rows if row.touches and not row.stub]
    for at, later in enumerate(touching):
        for earlier in touching[:at]:
            if _exempt(earlier, later):
                continue
            for one in earlier.touches:
                for two in later.touches:
                    kind = _kind(one, two)
                    if kind and one.meets(two):
                        yield Hazard(kind, False, earlier, later, two.buffer)


def _kind(one: Touch, two: Touch) -> str:
    if one.role == two.role and one.role != Role.WRITE:
        return ""
    first, second = one.role != Role.READ, two.role != Role.READ
    if first and two.same:
        return "race-same-value"
    return {(True, False): "race-raw", (False, True): "race-war", (True, True): "race-waw"}[first, second]


def _exempt(earlier: Row, later: Row) -> bool:
    """The scalar unit's own order, results of Mmad large enough to follow each other, and cache maintenance."""
    if "dcci" in (earlier.name, later.name) or "dcache_preload" in (earlier.name, later.name):
        return True
    if earlier.core != later.core or earlier.pipe != later.pipe:
        return False
    if earlier.pipe == S:
        return True
    return earlier.pipe == M and -(-later.a // 16) * -(-later.b // 16) >= FEW_FRACTALS
