"""Results of one launch that a later launch writes over before any launch has read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npuscope.sanitizer.access import width_of
from npuscope.sanitizer.findings import Access, Collector, Finding, Severity
from npuscope.sanitizer.programs.init import uncovered
from npuscope.sanitizer.programs.places import are, element, number
from npuscope.sanitizer.programs.rows import Intervals, Rows, intervals
from npuscope.sanitizer.programs.sides import row_finding, side, view
from npuscope.trace.schema import Buffer, Role


@dataclass(frozen=True, slots=True)
class Unread:
    """What a line of a launch has written and nothing has read: (n, 2) bytes, sorted and apart."""

    spans: np.ndarray
    access: Access
    launch: int
    kernel: str
    launched_at: str


class Results:
    """Takes the rows of one launch after the other."""

    def __init__(self) -> None:
        self._unread: list[Unread] = []
        self._collector = Collector()

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._collector.findings

    def add(self, rows: Rows) -> None:
        """Look at a launch: what it reads is used, what it writes must not wait to be read."""
        self._forget(_fresh(rows.buffers))
        self._forget(_spans(intervals(rows, np.flatnonzero(rows.role != Role.WRITE))))
        written = np.flatnonzero(rows.role == Role.WRITE)
        found = []
        for site in np.unique(rows.site[written]).tolist():
            chosen = written[rows.site[written] == site]
            spans = _spans(intervals(rows, chosen))
            self._compare(rows, int(chosen[0]), spans)
            frame = rows.batch.launch.frame
            where = f", line {frame.line}" if frame is not None else ""
            launch = rows.batch.launch
            found.append(Unread(spans, side(view(rows, int(chosen[0]))), launch.index, launch.kernel, where))
        self._forget(np.concatenate([item.spans for item in found]) if found else np.zeros((0, 2), np.int64))
        self._unread += found

    def _forget(self, spans: np.ndarray) -> None:
        """What is in `spans` no longer waits to be read."""
        if spans.size:
            left = [replace(item, spans=uncovered(item.spans, spans)) for item in self._unread]
            self._unread = [item for item in left if item.spans.size]

    def _compare(self, rows: Rows, row: int, spans: np.ndarray) -> None:
        for item in self._unread:
            lost = common(item.spans, spans)
            if lost.size:
                self._report(rows, row, item, lost)

    def _report(self, rows: Rows, row: int, item: Unread, lost: np.ndarray) -> None:
        access = view(rows, row)
        owner = access.buffer
        width = width_of(owner)
        count = int((lost[:, 1] - lost[:, 0]).sum()) // width
        first = (int(lost[0, 0]) - owner.base) // width
        writer = f"launch {item.launch} ({item.kernel}{item.launched_at})"
        summary = (
            f"{number(count, 'element')} of {owner.name} that {writer} wrote to {item.access.buffer} {are(count)} "
            f"written over, {element(owner, first)} first, and no launch has read them"
        )
        advice = (
            "If the first result is wanted, give the second launch memory of its own. If only the host read it in "
            "between, there is no fault: reads of the host are not seen."
        )
        found = row_finding(access, "lost-result", Severity.WARNING, summary, advice, count * width, first)
        key = found.kernel, item.kernel, access.site_number, item.access.site
        self._collector.add(key, replace(found, other=item.access, cores=()))


def common(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The bytes in both of two sets of sorted disjoint spans."""
    return uncovered(one, uncovered(one, other)) if one.size and other.size else np.zeros((0, 2), np.int64)


def _spans(pieces: Intervals) -> np.ndarray:
    """Intervals of any programs as sorted disjoint spans."""
    if not pieces.start.size:
        return np.zeros((0, 2), np.int64)
    order = np.argsort(pieces.start, kind="stable")
    start, reach = pieces.start[order], np.maximum.accumulate(pieces.end[order])
    heads = np.flatnonzero(np.r_[True, start[1:] > reach[:-1]])
    return np.stack((start[heads], reach[np.r_[heads[1:] - 1, start.size - 1]]), axis=1)


def _fresh(buffers: list[Buffer]) -> np.ndarray:
    """Memory that was handed out anew since: it holds nothing yet."""
    spans = [(start + buffer.base, end + buffer.base) for buffer in buffers for start, end in buffer.undefined]
    return np.array(spans, np.int64).reshape(-1, 2)
