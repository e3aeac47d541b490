"""The init check of tile kernels: reads of memory that nothing has written, and outputs that stay unwritten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npuscope.sanitizer.access import width_of
from npuscope.sanitizer.findings import Collector, Finding, Severity
from npuscope.sanitizer.programs.rows import Intervals, RowReader, Rows, TooMany, intervals
from npuscope.sanitizer.programs.sides import view
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Buffer, Role

MOST_SHOWN = 6


class ProgramInit:
    """Takes the batches of launches of programs."""

    name = "init"

    def __init__(self) -> None:
        self._reader = RowReader()
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
        count = -(-buffer.size // width)
        written = np.full(count, np.iinfo(np.int64).max)
        latest_first = np.argsort(-rows.serial[writes.row], kind="stable")
        writes = writes.chosen(latest_first)
        places, owner = _elements(writes, buffer.base, width, count)
        written[places] = rows.serial[writes.row[owner]]
        places, owner = _elements(reads, buffer.base, width, count)
        early = written[places] > rows.serial[reads.row[owner]]
        places, owner = places[early], owner[early]
        for row in np.unique(reads.row[owner]):
            mine = places[reads.row[owner] == row]
            self._report_read(rows, int(row), buffer, mine)

    def _report_read(self, rows: Rows, row: int, buffer: Buffer, places: np.ndarray) -> None:
        access = view(rows, row)
        count = int(np.unique(places).size)
        first = int(places.min())
        summary = f"{count} element{'s' * (count > 1)} of {buffer.name} read that nothing has written, {buffer.name}[{first}] first"
        advice = f"Give {buffer.name} a value before the launch (torch.zeros instead of torch.empty), or mask the lanes."
        finding = access.finding("uninitialised-read", Severity.ERROR, summary, advice, count * width_of(buffer), first)
        self._collector.add((finding.kind, finding.kernel, access.site_number, buffer.name), finding)

    def _unwritten(self, rows: Rows, number: int, buffer: Buffer, undefined: np.ndarray, writes: Intervals) -> None:
        """Say which elements of an output without content the launch has left so."""
        width = width_of(buffer)
        count = -(-buffer.size // width)
        open_ = np.zeros(count, np.bool_)
        holes = Intervals(undefined[:, 0], undefined[:, 1], undefined[:, 0], undefined[:, 0])
        open_[_elements(holes, buffer.base, width, count)[0]] = True
        open_[_elements(writes, buffer.base, width, count)[0]] = False
        left = np.flatnonzero(open_)
        if not left.size:
            return
        launch = rows.batch.launch
        row = int(np.flatnonzero((rows.buffer == number) & (rows.role != Role.READ))[:1].sum())
        finding = view(rows, row).finding(
            "unwritten-output", Severity.ADVISORY,
            f"{left.size} of {count} elements of {buffer.name} are left unwritten: {_listed(left)}",
            f"If {buffer.name} is read as a whole later, this launch of {launch.kernel} has to write them too.",
            int(left.size) * width, int(left[0]),
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
    if int(lengths.sum()) > _MOST_ELEMENTS:
        raise TooMany
    owner = np.repeat(np.arange(first.size), lengths)
    return np.arange(owner.size) - np.repeat(np.cumsum(lengths) - lengths, lengths) + first[owner], owner


_MOST_ELEMENTS = 1 << 26


def _listed(places: np.ndarray) -> str:
    shown = ", ".join(map(str, places[:MOST_SHOWN].tolist()))
    return f"{shown}, ..." if places.size > MOST_SHOWN else shown
