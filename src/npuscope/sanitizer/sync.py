"""The synchronisation check: flags without a partner, pairs that order nothing, deadlocks, counters that overflow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npuscope.sanitizer.deadlock import deadlock_finding
from npuscope.sanitizer.faults import form_finding
from npuscope.sanitizer.findings import Collector, Finding, Severity, launched
from npuscope.sanitizer.modes import Mixed, Modes
from npuscope.sanitizer.redundant import Redundancy, Repeat
from npuscope.sanitizer.sync_faults import form_of
from npuscope.sanitizer.tally import Entry, Tally
from npuscope.trace.events import HardEvent
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault

RESERVED = {6: "the device's own use", 7: "automatic synchronisation"}
"""Event ids that a program must not use (hardware.md 1.6)."""


class SyncCheck:
    """Takes batches in order (`check(batch)`) and keeps `findings`. `block` limits what is said of one core's flags to
    the cores of that block."""

    name = "sync"

    def __init__(self, block: int | None = None) -> None:
        self.collector = Collector()
        self._block = block
        self._start()

    def _start(self) -> None:
        self._tally = Tally()
        self._redundancy = Redundancy()
        self._modes = Modes()
        self._faults = 0

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self.collector.findings

    @property
    def limits(self) -> tuple[str, ...]:
        """Nothing is left out."""
        return ()

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        if batch.first == 0:
            self._start()
        self._tally.add(batch)
        self._modes.add(batch)
        for fault in batch.faults[self._faults :]:
            self._fault(batch, fault)
        self._faults = len(batch.faults)
        self._redundancy.add(batch)
        if batch.last:
            self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        """What only the whole launch shows."""
        for repeat in self._redundancy.repeats():
            self._repeat(batch, repeat)
        for mixed in self._modes.mixed(batch.launch.cores):
            self._mixed(batch, mixed)
        if batch.launch.options.get("auto_sync") == "True":
            for entry in self._tally.entries("set_flag"):
                if entry.b in RESERVED:
                    self._reserved(batch, entry)

    def _looks_at(self, batch: Batch, core: int) -> bool:
        return self._block is None or not 0 <= core < len(batch.launch.cores) or (
            batch.launch.cores[core].block == self._block
        )

    # -- faults --------------------------------------------------------------------------------------------------

    def _fault(self, batch: Batch, fault: Fault) -> None:
        kernel = batch.launch.kernel
        if fault.code == "deadlock":
            self.collector.add((kernel, "deadlock", fault.site), deadlock_finding(batch, fault, self._tally))
            return
        form = form_of(fault)
        if form is None or not self._looks_at(batch, fault.core):
            return
        facts = fault.facts
        site = fault.site
        notes: tuple[str, ...] = ()
        if fault.code == "flag_left_set":
            site = self._site_of(batch, fault, int(facts["set_row"]))
        elif fault.code == "flag_set_twice":
            first = self._site_of(batch, fault, int(facts["first"]))
            notes = (f"It was set before at {_place(batch, first)}, and nothing has waited for it since.",)
        key = (kernel, fault.code, site, facts.get("event"), facts.get("id"), facts.get("what"))
        found = form_finding(batch, fault, form, notes=notes, site=site)
        place = {"site": site, "row": int(facts.get("set_row", fault.instruction))}
        self.collector.add(key, replace(found, facts={**found.facts, **place}))

    def _site_of(self, batch: Batch, fault: Fault, row: int) -> int:
        """The line of a set_flag by its row in the launch."""
        if row >= batch.first:
            return int(batch.column("site")[row - batch.first])
        known = self._redundancy.line_of(row)
        return fault.site if known is None else known

    # -- what the rows show ------------------------------------------------------------------------------------------

    def _reserved(self, batch: Batch, entry: Entry) -> None:
        """An event id that the device or automatic synchronisation takes for itself."""
        event = HardEvent(entry.a).name
        self._note(
            batch, ("reserved", entry.a, entry.b, entry.site), (entry.core,), "reserved-event-id", Severity.ADVISORY,
            f"flag {event} uses event id {entry.b}, which is reserved for {RESERVED[entry.b]} while auto_sync is on",
            "Use an id from 0 to 5.", {"event": event, "id": entry.b}, entry.site, count=entry.count,
        )

    def _mixed(self, batch: Batch, mixed: Mixed) -> None:
        before, line = mixed.before
        self._note(
            batch, ("mixed", mixed.number, mixed.mode, mixed.site, line), (mixed.core,), "cross-core-mode",
            Severity.WARNING,
            f"cross-core flag {mixed.number} is set in mode {mixed.mode} while a set of it in mode {before} has not "
            "been waited for",
            "Use another flag id for each mode, or wait for every set before the mode changes.",
            {"id": mixed.number, "mode": mixed.mode, "before": before}, mixed.site,
            (f"It was set in mode {before} at {_place(batch, line)}.",),
        )

    def _repeat(self, batch: Batch, repeat: Repeat) -> None:
        event = HardEvent(repeat.event)
        first_set, first_wait, second_set, second_wait = (_place(batch, site) for site in repeat.sites)
        self._note(
            batch, ("redundant", repeat.event, repeat.number, repeat.sites), repeat.cores, "redundant-flag",
            Severity.WARNING,
            f"set and wait of {event.name} id {repeat.number} come twice in a row: pipe {event.source.name} does "
            f"nothing between the sets, pipe {event.target.name} nothing between the waits",
            "Leave out one of the two pairs.",
            {"event": event.name, "id": repeat.number, "source": event.source.name, "target": event.target.name,
             "rows": repeat.rows, "places": [(line, _frames(batch, line)) for line in repeat.sites]},
            repeat.sites[2],
            (f"First pair: {first_set} and {first_wait}; second: {second_set} and {second_wait}.",), repeat.count,
        )

    def _note(
        self, batch: Batch, key: tuple[Any, ...], cores: tuple[int, ...], kind: str, severity: Severity, summary: str,
        advice: str, facts: dict[str, Any], site: int, notes: tuple[str, ...] = (), count: int = 1,
    ) -> None:
        """Add a finding about some cores' flags."""
        launch = batch.launch
        names = tuple(launch.cores[core].name for core in cores if self._looks_at(batch, core))
        if names:
            finding = Finding(
                kind, severity, summary, advice, launch.kernel, launch.index, names, count=count,
                launched=launched(launch), launch_frame=launch.frame, notes=notes, facts=facts,
                frames=batch.sites[site].frames,
            )
            self.collector.add((launch.kernel, *key), finding)


def _frames(batch: Batch, site: int) -> list[tuple[str, int, int]]:
    """The lines of a site as plain values."""
    return [(frame.file, frame.line, frame.column) for frame in batch.sites[site].frames]


def _place(batch: Batch, site: int) -> str:
    frames = batch.sites[site].frames
    return f"{frames[0].file}:{frames[0].line}" if frames else "?"
