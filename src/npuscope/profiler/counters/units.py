"""What the computing units did: passes by the type of the elements, and requests to their own memories."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from npuscope.profiler.counters.sums import Sums
from npuscope.profiler.counters.vector_kind import VectorKind, is_integer, vector_kind
from npuscope.trace.timeline import UNKNOWN, Lane

OPERATIONS = (8192, 16384)
"""Operations of the cube that one count stands for, floating point and integers (opprof.md 2.3); two of them are one
multiplication with its addition."""


class Units:
    """Every method gives an array of (cores,) float64; NaN on a core where the timeline does not tell. `lanes` are the
    elements that one pass of the vector unit handles by kind."""

    def __init__(self, sums: Sums, lanes: dict[VectorKind, int]) -> None:
        self._sums = sums
        self._lanes = lanes

    def vector_passes(self, *kinds: VectorKind) -> np.ndarray:
        """Passes of the vector unit of these kinds: elements over the operations of one count, rounded up for each
        instruction. NaN on a core where the type or the size of some vector work is not known."""
        counts, unknown = self._vector
        return np.where(unknown, np.nan, np.sum([counts[list(VectorKind).index(kind)] for kind in kinds], axis=0))

    def multiplications(self, integer: bool) -> np.ndarray:
        """Passes of the cube over 8192 floating-point or 16384 integer operations: those of m, n and k as given,
        without the padding to whole fractals, rounded up for each instruction."""
        counts, unknown = self._cube
        return np.where(unknown, np.nan, counts[int(integer)])

    def fractals(self) -> np.ndarray:
        """Fractals of 512 bytes that the cube reads from L0A, and as many from L0B: one for each of its steps."""
        return self.requests(Lane.CUBE, "steps", 1)

    def requests(self, lane: Lane, column: str, size: int) -> np.ndarray:
        """Requests of `size` bytes of a unit to its own memory: those of the table of units, rounded up for each
        instruction. NaN where the timeline lacks one of them."""
        sums, timeline = self._sums, self._sums.timeline
        if not timeline.units.shape[1]:  # the source has no such table
            return np.where(sums.some(sums.on((lane,)) & sums.works), np.nan, 0.0)
        slices, values = timeline.unit("slice"), timeline.unit(column)
        mine = sums.lane[slices] == lane
        values = values[mine]
        return sums.known_total(sums.core[slices[mine]], np.where(values == UNKNOWN, UNKNOWN, -(-values // size)))

    @cached_property
    def _vector(self) -> tuple[np.ndarray, np.ndarray]:
        """Passes by kind, (kinds, cores), and which cores have vector work that cannot be told."""
        number = {kind: index for index, kind in enumerate(VectorKind)}
        steps = self._sums.timeline.steps
        kinds = [vector_kind(step.text, step.dtype) for step in steps]
        of_step = np.array([-1 if kind is None else number[kind] for kind in kinds], np.int64)
        return self._passes(Lane.VECTOR, of_step, np.array([self._lanes[kind] for kind in VectorKind]))

    @cached_property
    def _cube(self) -> tuple[np.ndarray, np.ndarray]:
        """Passes over floating-point and integer operations, (2, cores), and which cores have multiplications that
        cannot be told."""
        verdict = [is_integer(step.dtype) for step in self._sums.timeline.steps]
        of_step = np.array([-1 if kind is None else int(kind) for kind in verdict], np.int64)
        return self._passes(Lane.CUBE, of_step, np.array(OPERATIONS) // 2)

    def _passes(self, lane: Lane, kind_of_step: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each kind and core the work of the lane's slices over the kind's size, rounded up for each slice; and
        which cores have a slice of no known kind or work."""
        sums = self._sums
        work = sums.timeline.slice("work")
        mine = np.flatnonzero((sums.lane == lane) & sums.works & (work != 0))
        if not mine.size:
            return np.zeros((size.size, sums.cores)), np.zeros(sums.cores, bool)
        kind, core, work = kind_of_step[sums.step[mine]], sums.core[mine], work[mine]
        passes = -(-work // size[kind])
        unknown = (work == UNKNOWN) | (kind < 0)
        passes[unknown] = 0
        table = np.bincount(kind.clip(0) * sums.cores + core, passes, minlength=size.size * sums.cores)
        return table.reshape(size.size, sums.cores), sums.total(core[unknown]) > 0
