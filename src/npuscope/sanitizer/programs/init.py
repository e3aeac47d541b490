"""The init check of tile kernels: reads of memory that nothing has written, and outputs that stay unwritten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npuscope.sanitizer.access import width_of
from npuscope.sanitizer.findings import Collector, Finding, Severity
from npuscope.sanitizer.programs.places import are, element, listed, number, span
from npuscope.sanitizer.programs.rows import Intervals, RowReader, Rows, TooMany, intervals
from npuscope.sanitizer.programs.sides import row_finding, view
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Buffer, Role

IDLE = "tile_idle"
"""The fault of launches that came to the same results with other values in place of those that nobody had written."""
MOST_SHOWN = 6
MOST_ELEMENTS = 1 << 26
"""Elements of an array that are looked at one by one."""


class ProgramInit:
    """Takes the batches of launches of programs."""

    name = "init"

    def __init__(self) -> None:
        self._reader = RowReader()
        self._idle = False  # nothing that the launch wrote depends on what it read too early
        self._collector = Collector()
        self.limits: tuple[str, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._collector.findings

    def check(self, batch: Batch) -> None:
        """Look at one batch; a launch is judged when its last one comes."""
        rows = self._reader.take(batch)
        if rows is None:
            return
        self._idle = any(fault.code == IDLE for fault in batch.faults)
        try:
            for number, buffer in enumerate(rows.buffers):
                if buffer.undefined:
                    self._buffer(rows, number, buffer)
        except TooMany:
            self.limits = tuple(dict.fromkeys((*self.limits, f"{batch.launch.kernel} touches too many places")))

    def _buffer(self, rows: Rows, number: int, buffer: Buffer) -> None:
        undefined = np.array(buffer.undefined, np.int64) + buffer.base
        alike = [
            other
            for other, that in enumerate(rows.buffers)
            if that.base < buffer.base + buffer.size and buffer.base < that.base + that.size
        ]
        here = np.isin(rows.buffer, alike)
        reads = intervals(rows, np.flatnonzero(here & (rows.role != Role.WRITE) & (rows.buffer == number)))
        reads = _clipped(reads, undefined)
        if reads.start.size:
            self._read(rows, buffer, reads, intervals(rows, np.flatnonzero(here & (rows.role == Role.WRITE))))
        writes = intervals(rows, np.flatnonzero(here & (rows.role != Role.READ)))
        if writes.start.size:
            self._unwritten(rows, number, buffer, undefined, writes)

    def _read(self, rows: Rows, buffer: Buffer, reads: Intervals, writes: Intervals) -> None:
        """Report the reads of bytes that no earlier row wrote."""
        width = width_of(buffer)
        low = int(reads.start.min())
        base = low - (low - buffer.base) % width
        count = -(-(int(reads.end.max()) - base) // width)
        if count > MOST_ELEMENTS:
            raise TooMany
        written = np.full(count, np.iinfo(np.int64).max)
        writes = writes.chosen((writes.end > base) & (writes.start < base + count * width))
        latest_first = np.argsort(-rows.serial[writes.row], kind="stable")
        writes = writes.chosen(latest_first)
        places, owner = _elements(writes, base, width, count)
        written[places] = rows.serial[writes.row[owner]]
        places, owner = _elements(reads, base, width, count)
        early = written[places] > rows.serial[reads.row[owner]]
        places, readers = places[early] + (base - buffer.base) // width, reads.row[owner[early]]
        for site in np.unique(rows.site[readers]).tolist():
            chosen = rows.site[readers] == site
            self._report_read(rows, np.unique(readers[chosen]), buffer, places[chosen])

    def _report_read(self, rows: Rows, readers: np.ndarray, buffer: Buffer, places: np.ndarray) -> None:
        access = view(rows, int(readers[0]))
        count = int(np.unique(places).size)
        first = int(places.min())
        words = f"{number(count, 'element')} of {buffer.name} {are(count)} read that nothing has written"
        summary = f"{words}, {element(buffer, first)} first" if count > 1 else f"{words}: {element(buffer, first)}"
        cure = "a value before the launch (torch.zeros instead of torch.empty)"
        advice = f"Give {buffer.name} {cure}, or mask the lanes."
        severity = Severity.ERROR
        if self._idle:
            severity = Severity.ADVISORY
            summary += "; nothing that the launch writes depends on it"
            advice = "Mask the lanes where the value is let go, so that a change here cannot let it in."
        finding = row_finding(access, "uninitialised-read", severity, summary, advice, count * width_of(buffer), first)
        key = (finding.kind, finding.kernel, access.site_number, buffer.name)
        programs = np.unique(rows.program[readers])
        cores = tuple(rows.batch.launch.cores[number].name for number in programs[:MOST_SHOWN].tolist())
        facts = {"in_programs": int(programs.size)}
        self._collector.add(key, replace(finding, count=int(readers.size), cores=cores, facts=facts))

    def _unwritten(self, rows: Rows, number: int, buffer: Buffer, undefined: np.ndarray, writes: Intervals) -> None:
        """Say which elements of an output without content the launch has left so."""
        width = width_of(buffer)
        holes = uncovered(undefined, np.stack((writes.start, writes.end), axis=1))
        first, last = (holes[:, 0] - buffer.base) // width, -((buffer.base - holes[:, 1]) // width)
        left = int((last - first).sum())
        if not left:
            return
        launch = rows.batch.launch
        row = int(np.flatnonzero((rows.buffer == number) & (rows.role != Role.READ))[:1].sum())
        finding = row_finding(
            view(rows, row), "unwritten-output", Severity.ADVISORY,
            f"{left:,} of {-(-buffer.size // width):,} elements of {buffer.name} are left unwritten: "
            f"{_listed(buffer, first, last)}",
            f"If {buffer.name} is read as a whole later, this launch of {launch.kernel} has to write them too.",
            left * width, int(first[0]),
        )  # fmt: skip
        self._collector.add((finding.kind, finding.kernel, buffer.name), replace(finding, cores=()))


def _clipped(pieces: Intervals, spans: np.ndarray) -> Intervals:
    """The parts of intervals that lie in sorted spans, (n, 2)."""
    first = np.searchsorted(spans[:, 1], pieces.start, "right")
    last = np.searchsorted(spans[:, 0], pieces.end, "left")
    counts = np.maximum(last - first, 0)
    which = np.repeat(np.arange(pieces.start.size), counts)
    span = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts) + first[which]
    part = pieces.chosen(which)
    return Intervals(
        np.maximum(part.start, spans[span, 0]), np.minimum(part.end, spans[span, 1]), part.program, part.row
    )


def _elements(pieces: Intervals, base: int, width: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(element, which interval) of every element that intervals touch. Raises TooMany when there are too many."""
    first = np.clip((pieces.start - base) // width, 0, count)
    last = np.clip(-((base - pieces.end) // width), 0, count)
    lengths = np.maximum(last - first, 0)
    if int(lengths.sum()) > MOST_ELEMENTS:
        raise TooMany
    owner = np.repeat(np.arange(first.size), lengths)
    return np.arange(owner.size) - np.repeat(np.cumsum(lengths) - lengths, lengths) + first[owner], owner


def uncovered(spans: np.ndarray, cover: np.ndarray) -> np.ndarray:
    """The parts of sorted disjoint `spans`, (n, 2), that `cover`, (m, 2) in any order, leaves open."""
    places = np.concatenate((spans[:, 0], spans[:, 1], cover[:, 0], cover[:, 1]))
    inside = np.zeros((2, places.size), np.int64)
    n, m = len(spans), len(cover)
    inside[0, :n], inside[0, n : 2 * n] = 1, -1
    inside[1, 2 * n : 2 * n + m], inside[1, 2 * n + m :] = 1, -1
    order = np.argsort(places, kind="stable")
    places = places[order]
    wanted, covered = np.cumsum(inside[:, order], axis=1)
    open_ = np.flatnonzero((wanted[:-1] > 0) & (covered[:-1] == 0) & (places[1:] > places[:-1]))
    return np.stack((places[open_], places[open_ + 1]), axis=1)


def _listed(buffer: Buffer, first: np.ndarray, last: np.ndarray) -> str:
    """``3, 5-9, ...``, or with an index for each axis."""
    lows, highs = (ends[: MOST_SHOWN + 1].tolist() for ends in (first, last))
    pairs = [(low, high - 1) for low, high in zip(lows, highs, strict=True)]
    if len(buffer.shape) < 2:
        return listed(pairs, MOST_SHOWN)
    words = [span(buffer, low, high + 1).removeprefix(buffer.name) for low, high in pairs[:MOST_SHOWN]]
    return ", ".join(words) + (", ..." if len(pairs) > MOST_SHOWN else "")
