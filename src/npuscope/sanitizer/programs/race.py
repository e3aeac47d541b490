"""The race check of tile kernels: two programs touch the same bytes, one of them writes, and no atomic orders them."""

from __future__ import annotations

import numpy as np

from npuscope.sanitizer.findings import Collector, Finding
from npuscope.sanitizer.programs.lanes import unguarded
from npuscope.sanitizer.programs.meetings import conflicts, relevant
from npuscope.sanitizer.programs.order import AtomicOrder
from npuscope.sanitizer.programs.pairs import by_line
from npuscope.sanitizer.programs.results import Results
from npuscope.sanitizer.programs.rows import RowReader, Rows, TooMany
from npuscope.sanitizer.programs.sides import Pair, pair_finding
from npuscope.trace.recorder import Batch


class ProgramRace:
    """Takes the batches of launches of programs. `log` asks to look across launches as well."""

    name = "race"

    def __init__(self, log: bool = False) -> None:
        self._reader = RowReader()
        self._collector = Collector()
        self._results = Results() if log else None
        self.limits: tuple[str, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._collector.findings + (self._results.findings if self._results is not None else [])

    def check(self, batch: Batch) -> None:
        """Look at one batch; a launch is judged when its last one comes."""
        rows = self._reader.take(batch)
        if rows is None or not rows.role.size:
            return
        try:
            races = between(rows)
            told = {(rows.line(pair.earlier), rows.line(pair.later)) for pair in races}
            lanes = [pair for pair in unguarded(rows) if (rows.line(pair.earlier), rows.line(pair.later)) not in told]
            for pair in (*races, *lanes):
                finding = pair_finding(rows, pair)
                name = rows.buffers[int(rows.buffer[pair.later])].name
                key = finding.kind, finding.kernel, rows.line(pair.later), rows.line(pair.earlier), name
                self._collector.add(key, finding)
            if self._results is not None:
                self._results.add(rows)
        except TooMany:
            self.limits = tuple(dict.fromkeys((*self.limits, f"{batch.launch.kernel} touches too many places")))


def between(rows: Rows) -> list[Pair]:
    """What programs of a launch do to each other."""
    chosen = relevant(rows)
    if not chosen.size or np.unique(rows.program[chosen]).size < 2:
        return []
    meetings = conflicts(rows, chosen)
    order = AtomicOrder(rows)
    if meetings.shape[1] and not order.empty:
        meetings = meetings[:, ~order.ordered(meetings[0], meetings[1])]
    return by_line(rows, meetings)
