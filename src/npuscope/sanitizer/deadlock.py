"""The wait graph of a launch that cannot go on: who waits for what, who could have brought it, and who waits for whom
in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from npuscope.sanitizer.findings import Finding, Severity, launched
from npuscope.sanitizer.partners import raised_by
from npuscope.sanitizer.tally import Entry, Tally
from npuscope.trace.events import HardEvent
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault, Pipe

MAX_NAMED = 8
"""Cores that a line names before it only counts them."""
MAX_LINES = 3
"""Source lines that a hint names."""
OWN_COUNTERS = 4
"""The mode whose flags have counters of their own."""
MODES = (0, 1, 2, OWN_COUNTERS)
INSTRUCTIONS = {"flag": "WAIT_FLAG", "cross": "WAIT_FLAG_DEV", "sync_all": "SYNC_ALL", "ib_wait": "IB_WAIT",
                "ib_set": "IB_SET", "wait_pre_block": "WAIT_PRE_BLOCK", "poll": "LOAD"}
"""What the vendor's report calls the instruction that waits."""

Node = tuple[int, int]
"""(core, pipe)"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One pipe that waits. `subject` says for what: a word and its particulars (see npu.sync)."""

    core: int
    pipe: int
    what: str
    site: int
    subject: tuple[Any, ...]


def deadlock_finding(batch: Batch, fault: Fault, tally: Tally) -> Finding:
    """The finding for a fault ``deadlock``."""
    return _Report(batch, fault, tally).finding()


class _Report:
    def __init__(self, batch: Batch, fault: Fault, tally: Tally) -> None:
        self.batch, self.fault, self.tally = batch, fault, tally
        waits = fault.facts.get("waits", ())
        subjects = fault.facts.get("subjects") or [()] * len(waits)
        self.waits = [
            Waiting(core, pipe, what, site, tuple(subject))
            for (core, pipe, what, site), subject in zip(waits, subjects, strict=True)
        ]
        self.nodes = {(wait.core, wait.pipe): wait for wait in self.waits}
        self.ended = {entry.core for entry in tally.entries("kernel_end")}
        self.missing: dict[Node, list[int]] = {}  # cores that a pipe waits for

    def finding(self) -> Finding:
        """What the wait graph says."""
        batch, launch = self.batch, self.batch.launch
        notes: list[str] = []
        for alike in _grouped(self.waits):
            first = alike[0]
            notes.append(f"{self._who(alike)} waits for {first.what} at {self._place(first.site)}")
            notes.extend(f"  {hint}" for hint in self._hints(first))
            for other in alike[1:]:
                self._hints(other)  # for what is missing
        cycle = self._cycle()
        if cycle:
            notes.append(f"In a circle, each waits for the next: {' -> '.join(cycle)}.")
        if self.fault.facts.get("not_started"):
            notes.append(f"{self.fault.facts['not_started']} blocks have not started, because these cores are taken")
        up = self._still_up()
        if up:
            notes.append(f"Set and not waited for so far: {up}.")
        site = batch.sites[self.fault.site]
        cores = tuple(dict.fromkeys(launch.cores[wait.core].name for wait in self.waits))
        facts = {"waits": [self._fact(wait) for wait in self.waits], "cycle": cycle}
        facts.update({key: value for key, value in self.fault.facts.items() if key not in ("waits", "subjects")})
        return Finding(
            "deadlock", Severity.ERROR, "no core can go on and the kernel never ends",
            "Give each wait a set that comes before it on every path, of the same pipes, id and cores.",
            launch.kernel, launch.index, cores, launched=launched(launch), launch_frame=launch.frame,
            notes=tuple(notes), facts=facts, frames=site.frames,
        )

    def _fact(self, wait: Waiting) -> dict[str, Any]:
        word = str(wait.subject[0]) if wait.subject else ""
        frames = [(frame.file, frame.line, frame.column) for frame in self.batch.sites[wait.site].frames]
        return {"core": self.batch.launch.cores[wait.core].name, "pipe": Pipe(wait.pipe).name, "what": wait.what,
                "instruction": INSTRUCTIONS.get(word, "PIPE_BARRIER"), "site": wait.site, "frames": frames}

    # -- words -----------------------------------------------------------------------------------------------------

    def _who(self, alike: list[Waiting]) -> str:
        return f"{self._names(wait.core for wait in alike)} pipe {Pipe(alike[0].pipe).name}"

    def _names(self, cores: Iterable[int]) -> str:
        names = [self.batch.launch.cores[core].name for core in cores]
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return ", ".join(names[:MAX_NAMED]) + more

    def _place(self, site: int) -> str:
        frames = self.batch.sites[site].frames
        return f"{frames[0].file}:{frames[0].line}" if frames else "?"

    def _lines(self, entries: Iterable[Entry]) -> str:
        places = list(dict.fromkeys(self._place(entry.site) for entry in entries))
        return ", ".join(places[:MAX_LINES]) + (", ..." if len(places) > MAX_LINES else "")

    # -- who could have brought it -----------------------------------------------------------------------------------

    def _hints(self, wait: Waiting) -> Iterator[str]:
        word = wait.subject[0] if wait.subject else ""
        if word == "flag":
            hints = self._flag(wait, int(wait.subject[1]), int(wait.subject[2]))
        elif word == "cross":
            hints = self._cross(wait, int(wait.subject[1]), int(wait.subject[2]))
        elif word == "sync_all":
            hints = self._sync_all(wait)
        elif word in ("ib_wait", "ib_set"):
            hints = self._slot(wait, str(word), int(wait.subject[1]), int(wait.subject[2]))
        elif word == "poll" and "DCCI" in wait.what:
            hints = ["The line stays in the cache until DataCacheCleanAndInvalid drops it: put one into the loop."]
        else:
            hints = []
        return iter(hints)

    def _flag(self, wait: Waiting, event: int, number: int) -> list[str]:
        name = HardEvent(event).name
        source, target = HardEvent(event).source, HardEvent(event).target
        if source is target:
            return [f"A pipe has no flag to itself: {name} never arrives."]
        core = wait.core
        sets = [entry for entry in self.tally.entries("set_flag") if entry.a == event and entry.b == number]
        own = [entry for entry in sets if entry.core == core]
        hints = []
        if own:
            times = sum(entry.count for entry in own)
            taken = self.tally.count("wait_flag", core, event, number)
            made = f"{name} id {number} was set {_times(times)} ({self._lines(own)})"
            hints.append(f"{made} and waited for {_times(taken)}.")
        elif (core, int(source)) not in self.nodes:
            hints.append(f"{name} id {number} has not been set on this core.")
        if (core, int(source)) in self.nodes:
            hints.append(f"Pipe {source.name}, which would set it, waits itself.")
        elsewhere = [entry for entry in sets if entry.core != core]
        if elsewhere and not own:
            cores = dict.fromkeys(entry.core for entry in elsewhere)
            hints.append(f"On {self._names(cores)} it is set at {self._lines(elsewhere)}.")
        up = [entry for entry in self._up(core) if (entry.a, entry.b) != (event, number)]
        hints.extend(
            f"id {entry.b} of {name} is up (set at {self._place(entry.site)}): is the id of the wait right?"
            for entry in up if entry.a == event
        )
        hints.extend(
            f"{HardEvent(entry.a).name} id {entry.b} is up (set at {self._place(entry.site)}): set and wait name the "
            "pipes in opposite order."
            for entry in up
            if HardEvent(entry.a).source is target and HardEvent(entry.a).target is source
        )
        return hints

    def _up(self, core: int) -> list[Entry]:
        """Sets of flags that are up on a core, one entry a flag."""
        taken: dict[tuple[int, int], int] = {}
        for entry in self.tally.entries("wait_flag"):
            if entry.core == core:
                taken[entry.a, entry.b] = taken.get((entry.a, entry.b), 0) + entry.count
        made: dict[tuple[int, int], tuple[int, Entry]] = {}
        for entry in self.tally.entries("set_flag"):
            event = HardEvent(entry.a)
            if entry.core == core and event.source is not event.target:
                total = made.get((entry.a, entry.b), (0, entry))[0] + entry.count
                made[entry.a, entry.b] = (total, entry)
        return [entry for key, (total, entry) in made.items() if total > taken.get(key, 0)]

    def _still_up(self) -> str:
        """Flags that are up on the cores that wait, with their lines."""
        texts = dict.fromkeys(
            f"{HardEvent(entry.a).name} id {entry.b} ({self._place(entry.site)})"
            for core in dict.fromkeys(wait.core for wait in self.waits) for entry in self._up(core)
        )
        return ", ".join(texts)

    def _cross(self, wait: Waiting, number: int, mode: int) -> list[str]:
        cores = self.batch.launch.cores
        used = {
            entry.b for entry in self.tally.entries("cross_core_set")
            if entry.a == number and (entry.b == OWN_COUNTERS) == (mode == OWN_COUNTERS)
        }
        hints = []
        for each in [item for item in MODES if item in used] or [mode]:
            part = raised_by(cores, wait.core, each, number)
            if part is None:
                continue
            made = {core: self.tally.count("cross_core_set", core, part.number, each) for core in part.senders}
            taken = sum(
                entry.count for entry in self.tally.entries("cross_core_wait")
                if entry.core == wait.core and entry.a == number
                and (entry.b == OWN_COUNTERS) == (mode == OWN_COUNTERS)
            )
            late = [core for core, count in made.items() if count <= taken]
            if not late:
                continue
            self.missing.setdefault((wait.core, wait.pipe), []).extend(late)
            done = [core for core in part.senders if core not in late]
            text = f"In mode {each} it rises for {_ordinal(taken + 1)} time when {self._names(part.senders)} set it"
            if done:
                text += f"; done: {self._names(done)}"
            hints.append(f"{text}; missing: {self._late(late)}.")
        if not used:
            others = sorted({entry.a for entry in self.tally.entries("cross_core_set")})
            hints.append(
                f"No core has set flag {number}"
                + (f"; set were {', '.join(map(str, others))}." if others else ".")
            )
        elif not hints:
            modes = ", ".join(map(str, sorted(used)))
            hints.append(f"Flag {number} was set in mode {modes}, which does not reach this core.")
        return hints

    def _late(self, late: list[int]) -> str:
        """Cores that have not done their part, and why."""
        parts = []
        for state, chosen in (
            ("has ended", [core for core in late if core in self.ended]),
            ("waits itself", [core for core in late if core not in self.ended and self._node(core) is not None]),
            ("has not", [core for core in late if core not in self.ended and self._node(core) is None]),
        ):
            if chosen:
                parts.append(f"{self._names(chosen)} ({state})")
        return ", ".join(parts)

    def _sync_all(self, wait: Waiting) -> list[str]:
        arrived: dict[int, int] = {}
        for entry in self.tally.entries("sync_all"):
            if entry.a == 0:
                arrived[entry.core] = arrived.get(entry.core, 0) + entry.count
        turn = arrived.get(wait.core, 0)
        own = self.batch.launch.cores[wait.core].type
        late = [
            core for core, info in enumerate(self.batch.launch.cores)
            if arrived.get(core, 0) < turn and (info.type is own or core in arrived)
        ]
        self.missing.setdefault((wait.core, wait.pipe), []).extend(late)
        if late:
            return [f"Not there for SyncAll number {turn}: {self._late(late)}."]
        return [f"All {len(arrived)} cores of the launch are there: the call waits for more."]

    def _slot(self, wait: Waiting, word: str, block: int, event: int) -> list[str]:
        partner = "ib_set" if word == "ib_wait" else "ib_wait"
        entries = [entry for entry in self.tally.entries(partner) if (entry.a, entry.b) == (block, event)]
        self.missing.setdefault((wait.core, wait.pipe), []).extend(
            core for core, info in enumerate(self.batch.launch.cores) if info.block == block and core != wait.core
        )
        name = "IBSet" if partner == "ib_set" else "IBWait"
        if entries:
            return [f"{name} of block {block}, event {event} was done {_times(sum(item.count for item in entries))} "
                    f"({self._lines(entries)})."]
        others = sorted({(entry.a, entry.b) for entry in self.tally.entries(partner)})
        done = ", ".join(f"block {one} event {two}" for one, two in others[:MAX_NAMED])
        return [f"No core has done {name} for block {block}, event {event}" + (f"; done were {done}." if done else ".")]

    # -- circles -----------------------------------------------------------------------------------------------------

    def _node(self, core: int) -> Node | None:
        """A waiting pipe of a core, its scalar unit first."""
        return next((node for node in sorted(self.nodes) if node[0] == core), None)

    def _next(self, node: Node) -> list[Node]:
        """Waiting pipes that `node` waits for."""
        wait = self.nodes[node]
        if wait.subject and wait.subject[0] == "flag":
            source = (wait.core, int(HardEvent(int(wait.subject[1])).source))
            found = [one for one in (source, (wait.core, int(Pipe.S))) if one in self.nodes and one != node]
            return found
        if not wait.subject:  # all pipes of its own core
            return [one for one in self.nodes if one[0] == node[0] and one != node]
        late = (self._node(core) for core in self.missing.get(node, ()))
        return [one for one in late if one is not None]

    def _cycle(self) -> list[str]:
        """The names of pipes in a circle, the first one again at the end; empty without one."""
        done: set[Node] = set()
        for start in sorted(self.nodes):
            path: list[Node] = []
            node: Node | None = start
            while node is not None and node not in done:
                if node in path:
                    circle = [*path[path.index(node) :], node]
                    return [f"{self.batch.launch.cores[core].name} {Pipe(pipe).name}" for core, pipe in circle]
                path.append(node)
                node = next((one for one in self._next(node) if one not in done), None)
            done.update(path)
        return []


def _grouped(waits: list[Waiting]) -> list[list[Waiting]]:
    """Waits that say the same of different cores, together."""
    alike: dict[tuple[Any, ...], list[Waiting]] = {}
    for wait in waits:
        alike.setdefault((wait.pipe, wait.what, wait.site), []).append(wait)
    return list(alike.values())


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _ordinal(number: int) -> str:
    return {1: "the first", 2: "the second", 3: "the third"}.get(number, f"the {number}th")
