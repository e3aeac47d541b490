"""What the cache check says: which side lacks its DCCI, where it goes, and what the machine saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from npuscope.sanitizer.access import AccessView
from npuscope.sanitizer.cache_lines import Ref
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault

NO_FLUSH = "PipeBarrier and flags do not clean the data cache."
MAX_BYTES = 8
"""Bytes of a lost write that a note shows."""


@dataclass(frozen=True, slots=True)
class Missing:
    """`reader` does not get what `writer` wrote: `unwritten` says that it is still in the writer's cache, `loaded` is
    the access since which the reader's own cache has held the line (None: it does not hold it). `ended`: the core of
    the writer had ended before the read in this run."""

    writer: Ref
    reader: Ref
    loaded: Ref | None
    unwritten: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class WriteBack:
    """The line dirtied by `store` went to memory over what `newer` had put there; `when` and `site` say what sent it,
    `size` counts the bytes, `line` is its address."""

    store: Ref
    newer: Ref
    when: str
    site: int
    size: int
    line: int


def missing_finding(batch: Batch, missing: Missing, seen: Fault | None) -> Finding:
    """The finding for a read that misses a write; `seen` is the machine's own report of the value."""
    writer, reader = missing.writer.view(batch), missing.reader.view(batch)
    cores = batch.launch.cores
    writes, reads = cores[writer.core].name, cores[reader.core].name
    name = reader.buffer.name or "global memory"
    if missing.unwritten:
        summary = f"{reads} reads {name} from memory while what {writes} wrote is still in the data cache of {writes}"
        if writer.core == reader.core:
            summary = f"{reads} copies {name} from memory while what its scalar unit wrote is still in its data cache"
    else:
        summary = f"{reads} reads {name} from its data cache, which does not have what {writes} wrote to memory"
    before = missing.loaded is not None
    return pair_finding(batch, writer, reader, summary, missing.unwritten, before, _notes(batch, missing, seen))


def pair_finding(
    batch: Batch, writer: AccessView, reader: AccessView, summary: str, after: bool, before: bool,
    notes: tuple[str, ...] = (),
) -> Finding:
    """A write and a read that lack a DCCI: `after` the store, `before` the load, or both."""
    cores = batch.launch.cores
    writes, reads = cores[writer.core].name, cores[reader.core].name
    advice, places = [], []
    if after:
        places.append("after the write")
        advice.append(f"after the store{_line(writer)} on {writes}, before the signal to {_other(writer, reader)}")
    if before:
        places.append("before the read")
        advice.append(f"before the load{_line(reader)} on {reads}, after the wait for {_other(reader, writer)}")
    finding = reader.finding(
        "dcci-missing", Severity.ERROR, summary,
        f"Put DataCacheCleanAndInvalid of that line {' and '.join(advice)}. {NO_FLUSH}",
        size=reader.touched_bytes(), notes=notes,
    )
    pair = tuple(dict.fromkeys((reads, writes)))
    return replace(finding, cores=pair, other=writer.side(), facts={"missing": places}, edge="DCCI")


def _notes(batch: Batch, missing: Missing, seen: Fault | None) -> tuple[str, ...]:
    notes = []
    if missing.loaded is not None and missing.loaded.row != missing.reader.row:
        loaded = missing.loaded.view(batch)
        notes.append(f"The line has been in the cache since{_line(loaded) or ' an earlier access'}.")
    if missing.ended:
        core = batch.launch.cores[missing.writer.core].name
        notes.append(f"In this run the end of {core} had written it to memory; on a device nothing waits for that.")
    if seen is not None:
        facts = seen.facts
        notes.append(f"Seen in this run: the load gave {facts['read']}, memory held {facts['memory']}.")
    return tuple(notes)


def write_back_finding(batch: Batch, event: WriteBack, seen: Fault | None) -> Finding:
    """The finding for a line that was written back over newer bytes."""
    store, newer = event.store.view(batch), event.newer.view(batch)
    cores = batch.launch.cores
    own, theirs = cores[store.core].name, cores[newer.core].name
    shared = event.newer.scalar
    kind = "false-sharing" if shared else "stale-write-back"
    name = store.buffer.name or "global memory"
    if shared:
        summary = (
            f"{own} and {theirs} write to one cache line of {name}: the line of {own} is written back whole and "
            f"destroys {event.size} bytes of {theirs}"
        )
        advice = ("Give each core lines of its own (64 bytes apart), or let one core write them all; a DCCI before and "
                  f"after each store helps only when the cores take turns. {NO_FLUSH}")
    else:
        summary = (
            f"the cache line that {own} has written to goes to memory whole and destroys {event.size} bytes of {name} "
            f"that {theirs} stored by {newer.pipe.name} meanwhile"
        )
        advice = (f"Put DataCacheCleanAndInvalid of that line after the store{_line(store)}, before the copy"
                  f"{_line(newer)}. {NO_FLUSH}")
    notes = [f"The line at {event.line:#x} is written back {event.when}{_place(batch, event.site)}."]
    if seen is not None and int(seen.facts["address"]) // 64 * 64 == event.line:
        facts = seen.facts
        notes.append(
            f"Seen in this run: {facts['bytes']} bytes from {int(facts['address']):#x} on went from "
            f"{_bytes(facts['newer'])} back to {_bytes(facts['older'])}."
        )
    later, earlier = (store, newer) if event.store.row > event.newer.row else (newer, store)
    finding = later.finding(kind, Severity.ERROR, summary, advice, size=event.size, notes=tuple(notes))
    pair = tuple(dict.fromkeys((own, theirs)))
    return replace(finding, cores=pair, other=earlier.side(), facts={"line": event.line}, edge="DCCI")


def _bytes(values: Any) -> str:
    shown = ", ".join(str(value) for value in list(values)[:MAX_BYTES])
    return f"[{shown}{', ...' if len(values) > MAX_BYTES else ''}]"


def _line(view: AccessView) -> str:
    frames = view.site.frames
    return f" on line {frames[0].line}" if frames else ""


def _place(batch: Batch, site: int) -> str:
    frames = batch.sites[site].frames
    return f" on line {frames[0].line}" if frames else ""


def _other(view: AccessView, partner: AccessView) -> str:
    """The partner's core in words; the pipe where both are on one core."""
    if view.core == partner.core:
        return f"pipe {partner.pipe.name}"
    return partner.batch.launch.cores[partner.core].name
