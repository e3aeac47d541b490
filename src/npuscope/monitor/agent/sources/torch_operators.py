"""What PyTorch's recorder noted, as columns: operators, allocations, and collectives that C++ code issued.

A list holds the entries of one thread in order of time: an operator begins (`push`), one ends (`pop`), memory is taken
or given back (`memory_alloc`), the recorder begins or ends (`mark`). An end tells which beginning it belongs to by the
operator's number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.numbered import Numbered

SLICE = 4096
PAUSE_SECONDS = 0.0005
"""Between two slices of a column the job gets the interpreter."""
PUSH, POP, MEMORY, MARK = 1, 2, 3, 4
ENTRIES = {"push": PUSH, "pop": POP, "memory_alloc": MEMORY, "mark": MARK}
USER_SCOPE = 7
"""PyTorch's number of ranges that are not operators."""
ALLOCATION, RELEASE = 0, 1
UNKNOWN, DEVICE = 0, 1
"""Operations and kinds of memory as the vendor's header numbers them; it has no number for the host's memory."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Notes:
    """The entries of one thread as columns; all of one length but those of `beginnings`."""

    events: Sequence[Any]
    own: bool
    """Whether they are of the thread that began the recording."""
    entry: NDArray[np.int8]
    number: Ints
    """Of the operator, for beginnings and ends."""
    time: Ints
    """Nanoseconds of the wall clock."""
    beginnings: Ints
    """Where operators and ranges begin, as indices."""
    scope: Ints
    """Of those."""


@dataclass(frozen=True)
class Operators:
    """Operators that began and ended in a window on one thread: all columns of one length, in order of beginnings."""

    at: Ints
    """Where they begin among the notes."""
    start: Ints
    end: Ints
    number: Ints
    names: Sequence[str]


def notes(lists: Sequence[list[Any]]) -> list[Notes]:
    """The columns of each thread's entries."""
    marked = next((events[0] for events in lists if events and events[0].name() == "__start_profile"), None)
    if marked is None:
        return []
    base = round(marked.start_us() * 1e3)
    return [_noted(events, marked, base) for events in lists if events]


def _noted(events: list[Any], marked: Any, base: int) -> Notes:
    event = type(marked)
    entry = _column(event.kind, events, np.int8, ENTRIES.__getitem__)
    elapsed = _column(marked.cpu_elapsed_us, events, np.float64)  # the mark's own time is exact to 250 ns only
    beginnings = np.flatnonzero(entry == PUSH)
    return Notes(
        events, events[0] is marked, entry, _column(event.handle, events, np.int64),
        base + np.rint(elapsed * 1e3).astype(np.int64), beginnings,
        _column(event.scope, [events[at] for at in beginnings], np.int64),
    )  # fmt: skip


def operators(found: Notes) -> tuple[Operators, set[int], set[int]]:
    """The operators, the numbers of those that began and did not end, and of those that ended and did not begin; ends
    of ranges are among the latter."""
    begin = found.beginnings[found.scope != USER_SCOPE]
    end = np.flatnonzero(found.entry == POP)
    _, first, last = np.intersect1d(found.number[begin], found.number[end], return_indices=True)
    order = np.argsort(begin[first], kind="stable")
    at, ends = begin[first][order], end[last][order]
    chosen = [found.events[one] for one in at]
    names = list(map(type(found.events[0]).name, chosen))
    begun = np.setdiff1d(found.number[begin], found.number[at])
    ended = np.setdiff1d(found.number[end], found.number[at])
    return Operators(at, found.time[at], found.time[ends], found.number[at], names), set(begun), set(ended)


def calls(found: Notes, done: Operators, thread: int, strings: Strings) -> Batch:
    """Operators as API. Of threads that worked for the recorded one PyTorch does not tell the system's number."""
    size = len(done.at)
    return batch(
        Kind.API,
        {
            "start": done.start, "end": done.end, "process": np.full(size, os.getpid()),
            "thread": np.full(size, thread if found.own else -1), "correlation": done.number.astype(np.uint64),
            "name": Numbered(strings).of(done.names),
        },
    )  # fmt: skip


def allocations(found: Notes) -> Batch | None:
    """One record for each allocation and release: an instant, because PyTorch does not tell how long it took, nor the
    address, nor which device it is where it is not the host's memory."""
    at = np.flatnonzero(found.entry == MEMORY)
    if not at.size:
        return None
    chosen = [found.events[one] for one in at]
    event = type(chosen[0])
    host, other = _column(event.cpu_memory_usage, chosen, np.int64), _column(event.cuda_memory_usage, chosen, np.int64)
    sizes, on_host = host + other, other == 0
    return batch(
        Kind.MEMORY,
        {
            "operation": np.where(sizes < 0, RELEASE, ALLOCATION), "memory": np.where(on_host, UNKNOWN, DEVICE),
            "correlation": _around(found, at), "start": found.time[at], "end": found.time[at],
            "address": np.zeros(len(at)), "bytes": np.abs(sizes), "process": np.full(len(at), os.getpid()),
            "device": np.full(len(at), -1), "stream": np.full(len(at), -1),
        },
    )  # fmt: skip


def depths(found: Notes) -> Ints:
    """In how many operators each entry lies, a beginning or an end in its own operator not counted."""
    change = np.zeros(len(found.entry), np.int64)
    begin = found.beginnings[found.scope != USER_SCOPE]
    change[begin] = 1
    change[(found.entry == POP) & np.isin(found.number, found.number[begin])] = -1
    after = np.cumsum(change)
    return after - (change == 1)


def _around(found: Notes, at: Ints) -> NDArray[np.uint64]:
    """The number of the operator in which each entry lies, 0 for none."""
    depth = depths(found)
    begin = found.beginnings[found.scope != USER_SCOPE]
    numbers = np.zeros(len(at), np.uint64)
    for level in np.unique(depth[at]):
        outer = begin[depth[begin] == level - 1]
        rows = np.flatnonzero(depth[at] == level)
        before = np.searchsorted(outer, at[rows]) - 1
        known = before >= 0
        numbers[rows[known]] = found.number[outer[before[known]]]
    return numbers


def let_go(lists: list[list[Any]]) -> None:
    """Free the entries, little by little: to free a whole list holds the interpreter."""
    for events in lists:
        while events:
            del events[-SLICE:]
            time.sleep(PAUSE_SECONDS)


def _column(
    method: Callable[[Any], Any], events: Sequence[Any], dtype: type, number: Callable[[str], int] | None = None
) -> NDArray[Any]:
    """What a method says of each event, or the number of that; the passes run in C."""
    column: NDArray[Any] = np.empty(len(events), dtype)
    for first in range(0, len(events), SLICE):
        part = events[first : first + SLICE]
        told = map(method, part)
        column[first : first + SLICE] = np.fromiter(map(number, told) if number else told, dtype, len(part))
        time.sleep(PAUSE_SECONDS if first else 0)
    return column
