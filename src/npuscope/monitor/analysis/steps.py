"""Where a rank's steps begin and end: as the program marked them, or as its collectives repeat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.intervals import step_of
from npuscope.monitor.analysis.records import Collectives, Marked, Records

NAME = re.compile(r"\s*step\W*(\d+)\s*", re.IGNORECASE)
"""How a step's range is called: `step 7`, `Step#7`."""
INFERRED = "inferred from collectives that repeat"
REPEATING = 0.98
"""Share of a sequence that has to come again a period later."""
LONGEST_PERIOD, MOST_COMPARED = 2000, 20_000
LIKE_GAPS, GAP_PERIODS = 0.5, 64
"""Where every collective looks alike: how well the pauses before them have to repeat, and the longest period tried."""


@dataclass(frozen=True)
class Steps:
    """Numbers and times of disjoint steps in the order of time, and for every collective its step, -1 for none."""

    label: Column
    start: Column
    end: Column
    of_collective: Column
    source: str
    """Empty when there are no steps."""


def labelled(strings: Mapping[int, str], names: Column) -> Column:
    """The step that each name names, -1 for other names."""
    numbers = {}
    for number in np.unique(names).tolist():
        found = NAME.fullmatch(strings.get(number, ""))
        numbers[number] = int(found[1]) if found else -1
    return np.fromiter((numbers[name] for name in names.tolist()), np.int64, len(names))


def marked(label: Column, start: Column, end: Column, source: str, *, on_device: bool) -> Marked:
    """Steps in the order of time. One that was marked twice counts the second time; its first run is another's."""
    order = np.argsort(start, kind="stable")
    label, start, end = label[order], start[order], end[order]
    _, last = np.unique(label[::-1], return_index=True)
    keep = np.sort(len(label) - 1 - last)
    return Marked(label[keep], start[keep], end[keep], source, on_device)


def steps_of(records: Records) -> Steps:
    """The steps of a rank.

    What happens between two steps in a row belongs to the first of them: fetching the next data is that rank's own
    time. Marks on the host run ahead of the device. Where the calls of the collectives are known, each belongs to the
    step in which it was called, and a step ends on the device with its last collective.
    """
    found, collectives = records.steps, records.collectives
    if not len(found):
        return _inferred(collectives, records.strings)
    start, end = found.start, _until_next(found)
    if not found.on_device and len(collectives) and np.all(collectives.launched > 0):
        of = step_of(collectives.launched, start, end)
        start, end = _on_device(start, end, of, collectives.end)
        return Steps(found.label, start, end, of, found.source + ", ended by their collectives")
    return Steps(found.label, start, end, step_of(collectives.start, start, end), found.source)


def _until_next(found: Marked) -> Column:
    """Ends, moved to the next step's start where that is the next number and no long pause lies between; a step that
    runs into the next one ends there."""
    end = found.end.copy()
    following, pause = found.start[1:], found.start[1:] - found.end[:-1]
    typical = np.median(found.end - found.start)
    joined = (np.diff(found.label) == 1) & (pause < max(typical, 1))
    end[:-1] = np.where(joined | (pause < 0), following, end[:-1])
    return end


def _on_device(start: Column, end: Column, of: Column, collective_end: Column) -> tuple[Column, Column]:
    last = np.zeros(len(start), np.int64)
    inside = of >= 0
    np.maximum.at(last, of[inside], collective_end[inside])
    # A step without a collective keeps the host's times, as long as they stay in order.
    ends = np.maximum.accumulate(np.where(last > 0, last, end))
    starts = np.concatenate([[min(start[0], ends[0])], ends[:-1]])
    apart = np.append(True, start[1:] != end[:-1])
    return np.where(apart, np.minimum(np.maximum(start, starts), ends), starts), ends


def _inferred(collectives: Collectives, strings: Mapping[int, str]) -> Steps:
    nothing = np.zeros(0, np.int64)
    none = Steps(nothing, nothing, nothing, np.full(len(collectives), -1), "")
    if len(collectives) < 3:
        return none
    numbers, counts = np.unique(collectives.comm, return_counts=True)
    chosen = np.flatnonzero(collectives.comm == numbers[np.argmax(counts)])
    one = collectives.where(chosen)
    period, first = _period(one, strings)
    # A step ends with the last collective of its period; the first, whose beginning was not seen, is left out.
    ends = one.end[first + period - 1 :: period]
    if len(ends) < 3:
        return none
    start, end = ends[:-1], ends[1:]
    # A collective belongs to the step in which it ends, so that the last one is inside.
    of = step_of(collectives.end - 1, start, end)
    source = f"{INFERRED}: {period} of one communicator make a step"
    return Steps(np.arange(len(start)), start, end, of, source)


def _period(one: Collectives, strings: Mapping[int, str]) -> tuple[int, int]:
    """How many collectives of one communicator make a step, and the first that begins one."""
    # Names by their texts: the numbers of texts differ from rank to rank, and all ranks have to cut alike.
    numbers, inverse = np.unique(one.name, return_inverse=True)
    by_text = np.argsort(np.argsort([strings.get(number, "") for number in numbers.tolist()]))
    _, alike = np.unique(np.stack([by_text[inverse], one.bytes], 1), axis=0, return_inverse=True)
    alike = alike.reshape(-1)[:MOST_COMPARED]
    for period in range(1, min(len(alike) // 3, LONGEST_PERIOD) + 1):
        if np.mean(alike[period:] == alike[:-period]) >= REPEATING:
            break
    else:
        return 1, 0
    return _by_gaps(one) if period == 1 else (period, _rotation(alike[:period]))


def _rotation(pattern: Column) -> int:
    """Where the smallest rotation of a pattern begins, so that all ranks cut at the same place."""
    rows = np.stack([np.roll(pattern, -shift) for shift in range(len(pattern))])
    return int(np.lexsort(rows.T[::-1])[0])


def _by_gaps(one: Collectives) -> tuple[int, int]:
    """Collectives that all look alike are told apart by the pauses before them."""
    pause = np.log(np.maximum(one.start[1:] - one.end[:-1], 0) / 1000 + 1)
    pause = pause - pause.mean()
    whole = float(pause @ pause)
    most = min(GAP_PERIODS, len(pause) // 4)
    if most < 2 or whole <= 0:
        return 1, 0
    likeness = np.array([pause[lag:] @ pause[:-lag] / whole for lag in range(1, most + 1)])
    best = likeness.max()
    if best < LIKE_GAPS:
        return 1, 0
    period = int(np.argmax(likeness >= 0.9 * best)) + 1
    if period == 1:
        return 1, 0
    phases = [np.median(pause[phase::period]) for phase in range(period)]
    return period, (int(np.argmax(phases)) + 1) % period
