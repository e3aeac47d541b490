"""Finds out whether anything that programs write depends on memory without content that they read.

Programs are run again, without writing, with one content and with another in the place of none: a tile that is loaded
as a whole and whose other half `tl.where` drops comes to the same; a product of zero and a NaN does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from npuscope.tile.affine import Affine
from npuscope.tile.machine import Machine
from npuscope.tile.overdue import Overdue
from npuscope.tile.pointer import Pointer
from npuscope.tile.ready import Ready
from npuscope.tile.rerun import Rerun
from npuscope.tile.shapes import whole
from npuscope.tile.storage import Argument
from npuscope.trace.recorder import Recorder

SECONDS = 2.0
"""What the question about one load may take; after that the answer is that it matters."""
MOST_PROGRAMS = 3
"""Programs that are asked, spread over those that read such memory."""
MOST_READS = 64
"""Reads of one line that are looked at."""
FILLS = {"f": (1.0, np.nan), "i": (0, 77)}
"""Two contents for floats and for integers."""

Spans = np.ndarray
"""(n, 2) addresses, sorted and apart."""


@dataclass(slots=True)
class Reads:
    """Which programs read memory that had no content when the launch began, by line and argument."""

    hollow: frozenset[int] = frozenset()  # the arguments (by id) that have such memory
    found: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = field(default_factory=dict)

    def note(self, site: int, argument: Argument, programs: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Programs read between the addresses `low` and `high`, one pair each."""
        if id(argument) in self.hollow:
            known = self.found.setdefault((site, argument.number), [])
            if len(known) < MOST_READS:
                shape = programs.shape
                known.append((programs, np.broadcast_to(low, shape), np.broadcast_to(high, shape)))

    def programs(self, site: int, number: int, spans: Spans) -> list[int]:
        """Some of the programs that may have read in `spans`."""
        chosen: list[int] = []
        for programs, low, high in self.found.get((site, number), ()):
            first = np.searchsorted(spans[:, 1], low, "right")
            last = np.searchsorted(spans[:, 0], high, "left")
            chosen += programs[first < last].tolist()
        numbers = sorted(set(chosen))
        picked = np.linspace(0, len(numbers) - 1, min(MOST_PROGRAMS, len(numbers))).astype(int)
        return [numbers[place] for place in picked]


class Filled(Machine):
    """A machine that reads the one content where there is none, and the other at the line `site`; it keeps what would
    be written, and at which lines there was no content (`seen`)."""

    spans: dict[int, Spans]
    site: int
    seen: set[int]
    log: list[tuple[int, np.ndarray, np.ndarray]]

    def load(self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], *others: Any) -> np.ndarray:
        """As ever, but for memory without content."""
        result = super().load(site, dtype, shape, *others)
        pointer: Pointer = others[1]
        argument = pointer.argument
        spans = self.spans.get(argument.number) if argument is not None else None
        if spans is None or dtype.kind == "b":
            return result
        address, touched = self.lanes(pointer, others[2] if len(others) > 2 else None)
        place = np.searchsorted(spans[:, 0], address, "right") - 1
        lanes = touched & (place >= 0) & (address < spans[np.maximum(place, 0), 1])
        if not lanes.any():
            return result
        contents = FILLS["i" if dtype.kind == "i" else "f"]
        self.seen.add(site)
        content = contents[site == self.site]
        return np.where(lanes, np.array(content).astype(dtype), whole(shape, result))

    def store(self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, *others: Any) -> None:
        """Keep it only."""
        value = others[0] if isinstance(others[0], np.ndarray) else others[0].dense()
        address, touched = self.lanes(pointer, others[1] if len(others) > 1 else None)
        self._keep(site, address, value, np.broadcast_to(touched, (1, *shape)))

    def _exchange(
        self, site: int, name: str, semantics: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer,
        mask: Any, change: Any,
    ) -> np.ndarray:  # fmt: skip
        """Change a copy."""
        before = Machine.load(self, site, dtype, shape, False, pointer, mask)
        address, touched = self.lanes(pointer, mask)
        good = np.broadcast_to(touched, (1, *shape))
        after = np.array(np.broadcast_to(before, (1, *shape))[good])
        change(after, np.arange(after.size), good)
        where = np.broadcast_to(address, (1, *shape))[good]
        self.log.append((site, where, after))
        return before

    def _keep(self, site: int, address: np.ndarray, value: np.ndarray, touched: np.ndarray) -> None:
        shape = np.broadcast_shapes(address.shape, value.shape, touched.shape)
        chosen = np.broadcast_to(touched, shape)
        self.log.append((site, *(np.broadcast_to(part, shape)[chosen] for part in (address, value))))


@dataclass(slots=True)
class Matter:
    """Asks the question for the loads of one launch. `spans` are what has no content, by the number of the buffer."""

    launch: Ready
    spans: dict[int, Spans] = field(default_factory=dict)
    _plain: dict[int, Filled | None] = field(default_factory=dict)  # runs with the one content everywhere

    def harmless(self, site: int, programs: Sequence[int]) -> bool:
        """Whether nothing that these programs write depends on what the load at `site` finds there."""
        end = monotonic() + SECONDS
        for program in programs:
            if program not in self._plain:
                self._plain[program] = self._run(program, -1, end)
            plain = self._plain[program]
            if plain is None or site not in plain.seen:
                return False
            other = self._run(program, site, end)
            if other is None or not _alike(plain.log, other.log):
                return False
        return bool(programs)

    def _run(self, program: int, site: int, end: float) -> Filled | None:
        """One program with the other content at one line; None when it does not come to its end."""
        machine = Filled(self.launch.grid, self.launch.arguments, Rerun(Recorder(), target=-1))
        machine.spans, machine.site, machine.seen, machine.log = self.spans, site, set(), []
        try:
            self.launch.run_alone(machine, program, end)
            machine.look_at_clock()
        except (Overdue, ArithmeticError, ValueError, IndexError):
            return None
        return machine


def _alike(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        left[0] == right[0] and np.array_equal(left[1], right[1]) and _same_values(left[2], right[2])
        for left, right in zip(one, other, strict=True)
    )


def _same_values(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape:
        return False
    same = one == other
    if one.dtype.kind not in "iub":
        same = same | (np.isnan(one) & np.isnan(other))
    return bool(same.all())


def bounds(address: Affine | np.ndarray, good: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which programs touch anything, counted from the first, and their lowest and one past their highest byte."""
    array = address.wide() if isinstance(address, Affine) else address
    shape = np.broadcast_shapes(array.shape, good.shape)
    flat = np.broadcast_to(array, shape).reshape(shape[0], -1)
    chosen = np.broadcast_to(good, shape).reshape(shape[0], -1)
    rows = np.flatnonzero(chosen.any(axis=1))
    far = np.iinfo(np.int64)
    low = np.where(chosen, flat, far.max).min(axis=1)[rows]
    high = np.where(chosen, flat, far.min).max(axis=1)[rows] + size
    return rows, low, high
