"""The compiled walk behind npuscope.profiler.critical_path."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import inner, outer

SHORT = 16
"""Cycles between two issues that are the scalar unit's own; a longer gap may be a full queue."""
DEPTH = 64
"""How many places back an instruction can be that made room in a queue (no chip's queues are deeper)."""


@inner
def put(pieces: np.ndarray, count: int, at: int, since: int, until: int, kind: int) -> int:
    """Note a stretch of the path as row `count`; returns how many there are now."""
    pieces[count, 0], pieces[count, 1], pieces[count, 2], pieces[count, 3] = at, since, until, kind
    return count + 1


@outer
def walk(
    start: np.ndarray,
    end: np.ndarray,
    issue: np.ndarray,
    lane: np.ndarray,
    before_in_lane: np.ndarray,
    latest_in_lane: np.ndarray,
    before: np.ndarray,
    latest: np.ndarray,
    released: np.ndarray,
    crossing: np.ndarray,
    drains: np.ndarray,
    at: int,
    pieces: np.ndarray,
) -> int:
    """Fill `pieces` with rows (slice, from, to, piece) backwards from slice `at`, the last to end; returns how many. A
    path visits a slice at most a few times: where `pieces` has no more room it is given up."""
    work, queue, begin, signal, everything, scalar = 0, 1, 2, 3, 6, 0
    time = end[at]
    count = put(pieces, 0, at, time, time, work)
    while count + 3 < pieces.shape[0]:
        source = released[at]
        if source >= 0 and end[source] > start[at] and end[source] <= time and source != at:
            count = put(pieces, count, at, end[source], time, signal if crossing[at] else work)
            at, time = source, end[source]
            continue
        under_way = latest[at] if lane[at] == everything or drains[at] == 2 else latest_in_lane[at]
        if drains[at] and under_way >= 0 and start[at] < end[under_way] <= time:
            count = put(pieces, count, at, end[under_way], time, work)
            at, time = under_way, end[under_way]
            continue
        began = min(start[at], time)
        count = put(pieces, count, at, began, time, work)
        time = began
        previous = latest[at] if lane[at] == everything else before_in_lane[at]
        queued = issue[at]
        if previous >= 0 and (queued < 0 or min(end[previous], time) >= queued):
            done = min(end[previous], time)
            count = put(pieces, count, at, done, time, queue)
            at, time = previous, done
            continue
        # The scalar unit was late: back along what it issued.
        while count + 3 < pieces.shape[0]:
            issued = min(issue[at], time) if issue[at] >= 0 else time
            count = put(pieces, count, at, issued, time, queue)
            time = issued
            earlier = before[at]
            source = released[at]
            if source >= 0 and end[source] <= time and (earlier < 0 or end[source] >= issue[earlier]):
                count = put(pieces, count, at, end[source], time, signal)  # the scalar unit waited for a message
                at, time = source, end[source]
                break
            if earlier < 0:
                count = put(pieces, count, -1, 0, time, begin)
                return count
            if lane[earlier] == scalar or issue[earlier] < 0 or issue[at] < 0:
                done = min(end[earlier], time)
                count = put(pieces, count, at, done, time, queue)
                at, time = earlier, done
                break
            if time - issue[earlier] > SHORT:
                room = before_in_lane[at]
                for _step in range(DEPTH):
                    if room < 0 or start[room] <= time:
                        break
                    room = before_in_lane[room]
                if room >= 0 and start[room] > issue[earlier] and start[room] >= time - 2:
                    count = put(pieces, count, at, min(start[room], time), time, queue)
                    at, time = room, min(start[room], time)
                    break
            done = min(issue[earlier], time)
            count = put(pieces, count, at, done, time, queue)
            at, time = earlier, done
    return put(pieces, count, -1, 0, time, begin)
