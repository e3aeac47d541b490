"""Sums over a timeline's tables, core by core: what the rules of the events are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.busy import union_lengths
from npuscope.profiler.counters.vector_kind import (
    LANES_310P,
    LANES_A2,
    VectorKind,
    is_integer,
    is_special,
    vector_kind,
)
from npuscope.profiler.signals import is_signal
from npuscope.profiler.waits import is_wait
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN, Lane, Source, Step, Timeline

BEAT = 128
"""Bytes of one word on the way to and from L2: what main-memory counters count (hardware.md 6.9)."""
VECTOR_LANES = (Lane.VECTOR, Lane.RVECEX, Lane.RVECLD, Lane.RVECST, Lane.RVECLP, Lane.RVECSU)
"""The vector unit; all but the first exist in the vendor's logs of A5 only."""
SCALAR_LANES = (Lane.SCALAR, Lane.SCALARLDST)


class Reader:
    """Every method gives an array of (cores,) float64; NaN on a core where the timeline does not tell."""

    def __init__(self, timeline: Timeline, chip: Chip, columns: str) -> None:
        self.timeline = timeline
        self.chip = chip
        self.cores = len(timeline.launch.cores)
        self.vector_lanes = LANES_310P if columns == "310P" else LANES_A2

    # -- cycles ----------------------------------------------------------------------------------------------------

    @cached_property
    def total_cycles(self) -> np.ndarray:
        """From the first to the last cycle of each core; of its instructions where the cores' table does not tell."""
        start, end = self.timeline.core("start"), self.timeline.core("end")
        if start.size == self.cores and (start != UNKNOWN).all() and (end != UNKNOWN).all():
            return (end - start).astype(np.float64)
        first = np.full(self.cores, np.iinfo(np.int64).max)
        last = np.zeros(self.cores, np.int64)
        known = self._start >= 0
        np.minimum.at(first, self._core[known], self._start[known])
        np.maximum.at(last, self._core[known], self._end[known])
        return np.maximum(last - first, 0).astype(np.float64)

    def busy(self, *lanes: Lane) -> np.ndarray:
        """Cycles in which any of the lanes was at work; waits are no work."""
        if len(lanes) == 1:
            return self._covered[0][lanes[0]]
        return self._union(self._on(lanes) & ~self._waits)

    def waiting(self, *lanes: Lane) -> np.ndarray:
        """Cycles in which the lanes stood waiting."""
        if len(lanes) == 1:
            return self._covered[1][lanes[0]]
        return self._union(self._on(lanes) & self._waits)

    def busy_steps(self, lane: Lane, test: Callable[[Step], bool | None]) -> np.ndarray:
        """Cycles in which work of the lane's steps that pass the test was under way; NaN where a step of the core
        cannot be told."""
        verdict = [test(step) if step.lane is lane and not is_wait(step) else False for step in self.timeline.steps]
        unsure = np.array([answer is None for answer in verdict], bool)
        passed = np.array([bool(answer) for answer in verdict], bool)
        if not passed.size:
            return np.zeros(self.cores)
        found = self._union(passed[self._step])
        return np.where(self._any(unsure[self._step]), np.nan, found)

    def simt_busy(self) -> np.ndarray:
        """Cycles in which a SIMT instruction was under way."""
        return self._union(self.timeline.slice("warp") >= 0)

    def none_without_simt(self) -> np.ndarray:
        """0 on cores without SIMT instructions; what others did is not known."""
        return np.where(self._any(self.timeline.slice("warp") >= 0), np.nan, 0.0)

    def special_busy(self) -> np.ndarray:
        """Cycles of the special function unit."""
        return self.busy_steps(Lane.VECTOR, lambda step: is_special(step.text))

    def cube_busy(self, integer: bool) -> np.ndarray:
        """Cycles in which the cube multiplied integers, or floating-point numbers."""

        def fits(step: Step) -> bool | None:
            kind = is_integer(step.dtype)
            return None if kind is None and not is_signal(step) else kind is integer

        return self.busy_steps(Lane.CUBE, fits)

    def scalar(self, column: str) -> np.ndarray:
        """A column of the cores' table."""
        values = self.timeline.core(column)
        if values.size != self.cores:
            return np.full(self.cores, np.nan)
        return np.where(values == UNKNOWN, np.nan, values.astype(np.float64))

    def scalar_busy(self) -> np.ndarray:
        """Busy cycles of the scalar unit: those of the cores' table, else those that its instructions cover."""
        told = self.scalar("scalar_busy")
        return np.where(np.isnan(told), self.busy(*SCALAR_LANES), told)

    def scalar_wait(self) -> np.ndarray:
        """Cycles in which the scalar unit waited: those of the cores' table, else those of its wait instructions."""
        told = self.scalar("scalar_wait")
        return np.where(np.isnan(told), self.waiting(*SCALAR_LANES), told)

    def wait_for_event(self, number: int) -> np.ndarray:
        """Cycles in which the scalar unit waited for flag `number`; only waits that were let go have a number."""
        target = self.timeline.edge("target")
        mine = target[(self.timeline.edge("number") == number) & np.isin(self._lane[target], SCALAR_LANES)]
        return self._sum(self._core[mine], (self._end - self._start)[mine])

    def lost(self, column: str) -> np.ndarray:
        """Cycles lost to conflicts in UB, ``bank_group`` or ``bank``."""
        return self._known_sum(self._core, self.timeline.slice(column))

    def unmodelled(self) -> np.ndarray:
        """A cost that the model's device does not have: 0; not known of other sources."""
        return np.full(self.cores, 0.0 if self.timeline.source is Source.MODEL else np.nan)

    # -- instructions ----------------------------------------------------------------------------------------------

    def instructions(self, *lanes: Lane) -> np.ndarray:
        """Instructions that the lanes carried out; flags and waits are none."""
        return self._sum(self._core[self._on(lanes) & self._works])

    def vector_work(self, *kinds: VectorKind) -> np.ndarray:
        """Passes of the vector unit of these kinds: elements over the operations of one count, rounded up for each
        instruction. NaN on a core where the type or the size of some vector work is not known."""
        counts, unknown = self._vector_counts
        wanted = np.sum([counts[kind] for kind in kinds], axis=0)
        return np.where(unknown, np.nan, wanted)

    def multiplications(self, integer: bool) -> np.ndarray:
        """Passes of the cube over 8192 floating-point or 16384 integer operations: those of m, n and k as given, without
        the padding to whole fractals, rounded up for each instruction."""
        counts, unknown = self._cube_counts
        return np.where(unknown, np.nan, counts[int(integer)])

    def cube_fractals(self) -> np.ndarray:
        """Fractals of 512 bytes that the cube reads from L0A, and as many from L0B: one for each of its steps."""
        return self._unit_sum(Lane.CUBE, "steps", 1)

    def unit_requests(self, lane: Lane, column: str, size: int) -> np.ndarray:
        """Requests of `size` bytes of a unit to its own memory: those of the table of units, rounded up for each
        instruction. NaN where the timeline lacks one of them."""
        return self._unit_sum(lane, column, size)

    # -- memory ----------------------------------------------------------------------------------------------------

    def moved(self, source: Space | Collection[Space] | None, target: Space | Collection[Space] | None, size: int = 1,
              lane: Lane | None = None) -> np.ndarray:
        """Requests of `size` bytes between two memories (None: any), rounded up for each stretch of data; `lane`
        restricts it to the data of one pipe."""
        which = self._between(source, target)
        if lane is not None:
            which &= self._lane[self._transfer_slice] == lane
        requests = -(-self.timeline.transfer("bytes") // size)
        return self._transfer_sum(which, requests)

    def beats(self, source: Space | None, target: Space | None) -> np.ndarray:
        """Words of 128 bytes between a core and L2: bytes over 128, rounded up for each stretch of data."""
        return self.moved(source, target, BEAT)

    def lines(self, column: str, source: Space | None, target: Space | None) -> np.ndarray:
        """L2 lines by what became of them, ``hits``, ``misses`` or ``victims``."""
        return self._transfer_sum(self._between(source, target), self.timeline.transfer(column))

    def read_words(self, column: str) -> np.ndarray:
        """Words of 128 bytes read from L2 that were ``hits`` or ``misses``: the words of each stretch of data, divided
        as its lines are."""
        hits, misses = self.timeline.transfer("hits"), self.timeline.transfer("misses")
        words = -(-self.timeline.transfer("bytes") // BEAT)
        of_hits = np.rint(words * hits / np.maximum(hits + misses, 1)).astype(np.int64)
        values = np.where((hits + misses) > 0, of_hits if column == "hits" else words - of_hits, 0)
        values = np.where((hits == UNKNOWN) | (misses == UNKNOWN), UNKNOWN, values)
        return self._transfer_sum(self._between(Space.GM, None), values)

    def path_bytes(self) -> dict[str, np.ndarray]:
        """Bytes by way, ``GM_L1`` and so on: every pair of memories that some core moved data between, and those that
        formulas name."""
        pairs = {*((Space(a), Space(b)) for a, b in self._pairs), *NAMED_PATHS}
        return {f"{a.name}_{b.name}": self.moved(a, b) for a, b in sorted(pairs)}

    # -- the parts -------------------------------------------------------------------------------------------------

    @cached_property
    def _core(self) -> np.ndarray:
        return self.timeline.slice("core")

    @cached_property
    def _lane(self) -> np.ndarray:
        return self.timeline.slice("lane")

    @cached_property
    def _step(self) -> np.ndarray:
        return self.timeline.slice("step")

    @cached_property
    def _start(self) -> np.ndarray:
        return self.timeline.slice("start")

    @cached_property
    def _end(self) -> np.ndarray:
        return np.maximum(self.timeline.slice("end"), self._start)

    @cached_property
    def _waits(self) -> np.ndarray:
        return self._of_steps(is_wait)

    @cached_property
    def _works(self) -> np.ndarray:
        return self._of_steps(lambda step: not is_wait(step) and not is_signal(step))

    def _of_steps(self, test: Callable[[Step], bool]) -> np.ndarray:
        verdict = np.array([test(step) for step in self.timeline.steps], bool)
        return verdict[self._step] if verdict.size else np.zeros(self._step.size, bool)

    def _on(self, lanes: Collection[Lane]) -> np.ndarray:
        return np.asarray(self._lane == next(iter(lanes)) if len(lanes) == 1 else np.isin(self._lane, list(lanes)))

    @cached_property
    def _covered(self) -> tuple[np.ndarray, np.ndarray]:
        """Working and waiting cycles of every lane, (lanes, cores) each."""
        lanes = max(Lane) + 1
        group = self._lane * self.cores + self._core
        found = []
        for which in (~self._waits, self._waits):
            which = which & (self._start >= 0)
            lengths = union_lengths(group[which], self._start[which], self._end[which], lanes * self.cores)
            found.append(lengths.reshape(lanes, self.cores).astype(np.float64))
        return found[0], found[1]

    def _union(self, which: np.ndarray) -> np.ndarray:
        which = which & (self._start >= 0)
        lengths = union_lengths(self._core[which], self._start[which], self._end[which], self.cores)
        return lengths.astype(np.float64)

    def _sum(self, core: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(core, values, minlength=self.cores).astype(np.float64)

    def _any(self, which: np.ndarray) -> np.ndarray:
        return np.asarray(self._sum(self._core[which]) > 0)

    def _known_sum(self, core: np.ndarray, values: np.ndarray) -> np.ndarray:
        unknown = values == UNKNOWN
        if not unknown.any():
            return self._sum(core, values)
        return np.where(self._sum(core[unknown]) > 0, np.nan, self._sum(core, np.where(unknown, 0, values)))

    @cached_property
    def _vector_counts(self) -> tuple[dict[VectorKind, np.ndarray], np.ndarray]:
        """Passes by kind, and which cores have vector work that cannot be told."""
        steps, work = self.timeline.steps, self.timeline.slice("work")
        kinds = [vector_kind(step.text, step.dtype) for step in steps]
        number = {kind: index for index, kind in enumerate(VectorKind)}
        of_step = np.array([-1 if kind is None else number[kind] for kind in kinds], np.int64)
        mine = np.flatnonzero((self._lane == Lane.VECTOR) & self._works & (work != 0))
        core, work = self._core[mine], work[mine]
        kind = of_step[self._step[mine]]
        lanes = np.array([self.vector_lanes[one] for one in VectorKind])
        passes = -(-work // lanes[kind])
        unknown = (work == UNKNOWN) | (kind < 0)
        passes[unknown] = 0
        total = np.bincount(kind.clip(0) * self.cores + core, passes, minlength=len(VectorKind) * self.cores)
        table = total.reshape(len(VectorKind), self.cores)
        return {one: table[number[one]] for one in VectorKind}, self._sum(core[unknown]) > 0

    @cached_property
    def _cube_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Passes over 8192 floating-point and 16384 integer operations, (2, cores), and which cores have
        multiplications that cannot be told."""
        mine = np.flatnonzero((self._lane == Lane.CUBE) & self._works & (self.timeline.slice("work") != 0))
        verdict = [is_integer(step.dtype) for step in self.timeline.steps]
        of_step = np.array([-1 if kind is None else int(kind) for kind in verdict], np.int64)
        core, kind = self._core[mine], of_step[self._step[mine]] if mine.size else np.zeros(0, np.int64)
        macs = self.timeline.slice("work")[mine]
        passes = -(-macs // np.where(kind == 1, 8192, 4096))
        unknown = (macs == UNKNOWN) | (kind < 0)
        passes[unknown] = 0
        table = np.bincount(kind.clip(0) * self.cores + core, passes, minlength=2 * self.cores)
        return table.reshape(2, self.cores), self._sum(core[unknown]) > 0

    def _unit_sum(self, lane: Lane, column: str, size: int) -> np.ndarray:
        slices, values = self.timeline.unit("slice"), self.timeline.unit(column)
        mine = self._lane[slices] == lane
        core, values = self._core[slices[mine]], values[mine]
        found = self._known_sum(core, np.where(values == UNKNOWN, UNKNOWN, -(-values // size)))
        if self.timeline.units.shape[1]:
            return found
        worked = self._any((self._lane == lane) & self._works)  # the source has no such table
        return np.where(worked, np.nan, 0.0)

    @cached_property
    def _transfer_slice(self) -> np.ndarray:
        return self.timeline.transfer("slice")

    @cached_property
    def _transfer_core(self) -> np.ndarray:
        return self._core[self._transfer_slice]

    @cached_property
    def _pairs(self) -> set[tuple[int, int]]:
        ends = self.timeline.transfer("source") * 64 + self.timeline.transfer("target")
        return {divmod(int(pair), 64) for pair in np.unique(ends) if pair >= 0}

    def _between(
        self, source: Space | Collection[Space] | None, target: Space | Collection[Space] | None
    ) -> np.ndarray:
        which = np.ones(self._transfer_slice.size, bool)
        for name, wanted in (("source", source), ("target", target)):
            if wanted is not None:
                spaces = [wanted] if isinstance(wanted, Space) else list(wanted)
                which &= np.isin(self.timeline.transfer(name), spaces)
        return which

    def _transfer_sum(self, which: np.ndarray, values: np.ndarray) -> np.ndarray:
        if not self.timeline.transfers.shape[1] and self.timeline.source is not Source.MODEL:
            return np.full(self.cores, np.nan)  # a dump without the log of transfers
        return self._known_sum(self._transfer_core[which], values[which])


NAMED_PATHS = ((Space.GM, Space.L0A), (Space.GM, Space.L0B), (Space.GM, Space.L1), (Space.UB, Space.GM))
"""Ways that formulas name by themselves: counted by instrumentation on a device, not by a counter."""
