"""Collectives that C++ code issues, such as those of DistributedDataParallel: found among the operators that were
recorded. Such a collective begins with an operator `c10d::...`; the thread has its result when it goes on with
something that is no part of the backward pass, because DistributedDataParallel waits at that pass's end.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from npuscope.monitor.agent.sources.torch_collectives import BINDINGS, ON_HOST, Collective
from npuscope.monitor.agent.sources.torch_operators import USER_SCOPE, Ints, Notes, Operators, depths
from npuscope.monitor.agent.sources.torch_types import INVALID_TYPE, number_of_type

ISSUE, OWN_WAIT = "c10d::", "_c10d_functional::"
"""How operators are called that issue collectives, and those around them whose result is waited for elsewhere."""
BACKWARD = "autograd::engine::"
RANGES = tuple(f"{backend}:" for backend in ON_HOST)
Told = dict[tuple[str, int], tuple[int, str]]
"""Type and group by name and count of elements."""


def inner_collectives(
    found: Notes, done: Operators, everything: Sequence[Notes], calls: Sequence[tuple[int, int]]
) -> tuple[list[Collective], int]:
    """Those of the recorded thread (`found`, `done`) that do not lie in `calls` of Python code (start and end, in
    order), without type and group, and the count of those whose end is not to be known."""
    issues = np.flatnonzero([name.startswith(ISSUE) for name in done.names])
    ranges = dict(_ranges(everything))
    if not issues.size or not ranges:
        return [], 0
    numbers = np.sort(np.array(list(ranges)))
    free = np.flatnonzero([name.startswith(OWN_WAIT) for name in done.names])
    goes_on = _goes_on(found)
    made, lost = [], 0
    for row in issues[~_within(done.start[issues], calls)]:
        range_ = _range_of(row, issues, done, numbers)
        if range_ is None:
            continue
        if ((done.start[free] <= done.start[row]) & (done.end[row] <= done.end[free])).any():
            lost += 1
            continue
        after = np.searchsorted(goes_on, done.at[row], "right")
        end = found.time[goes_on[after]] if after < len(goes_on) else found.time[-1]
        name, count = ranges[range_]
        made.append(Collective(name, "", INVALID_TYPE, count, int(done.start[row]), int(end)))
    return made, lost


def told() -> Told:
    """What PyTorch's flight recorder tells of the collectives so far, where that is one thing for each name and count.
    Holds the interpreter for up to 50 milliseconds."""
    bindings = sys.modules.get(BINDINGS)
    dump = getattr(bindings, "_dump_fr_trace", None)
    if dump is None:
        return {}
    found: dict[tuple[str, int], set[tuple[int, str]]] = {}
    for entry in pickle.loads(dump(True, False, False)).get("entries", ()):
        count = sum(map(math.prod, entry["input_sizes"]))
        types = [number_of_type(one) for one in entry["input_dtypes"][:1]]
        what = (types or [INVALID_TYPE])[0], str(entry["process_group"][0])
        found.setdefault((entry["profiling_name"], count), set()).add(what)
    return {key: kinds.pop() for key, kinds in found.items() if len(kinds) == 1}


def _ranges(everything: Sequence[Notes]) -> Iterator[tuple[int, tuple[str, int]]]:
    """Number, name and count of elements of the ranges that say which backend does the work."""
    for one in everything:
        for at in one.beginnings[one.scope == USER_SCOPE]:
            event = one.events[at]
            if event.name().startswith(RANGES):
                yield int(one.number[at]), (event.name(), sum(map(math.prod, event.shapes())))


def _range_of(row: int, issues: Ints, done: Operators, numbers: Ints) -> int | None:
    """The range of an operator that issues: PyTorch numbers it after the operator and before the next one's."""
    number = done.number[row]
    later = done.number[issues][done.number[issues] > number]
    at = np.searchsorted(numbers, number, "right")
    if at == len(numbers) or (later.size and numbers[at] > later.min()):
        return None
    return int(numbers[at])


def _goes_on(found: Notes) -> Ints:
    """Where the thread begins something that is no part of a backward pass and issues nothing."""
    depth = depths(found)[found.beginnings]
    outer = found.beginnings[(depth == 0) & (found.scope != USER_SCOPE)]
    names = [found.events[at].name() for at in outer]
    return outer[[not name.startswith((BACKWARD, ISSUE)) for name in names]] if len(outer) else outer


def _within(times: Ints, spans: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each time lies in one of the spans, which are in order and do not overlap."""
    if not spans:
        return np.zeros(len(times), bool)
    first, last = np.array(spans).T
    at = np.searchsorted(first, times, "right") - 1
    return (at >= 0) & (times <= last[np.maximum(at, 0)])
