"""The monitor inside a process: started, changed and stopped by commands, ended by its own clock.

No thread and no socket: whoever owns it calls `handle` and `tick` from one thread, and sleeps as long as `tick` says.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.clock import Clock
from npuscope.monitor.agent.collection import Collection
from npuscope.monitor.agent.commands import Command, Refused
from npuscope.monitor.agent.crew import Crew
from npuscope.monitor.agent.filter import Filter
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.output import prepared
from npuscope.monitor.agent.processors.processor import Processor, Run
from npuscope.monitor.agent.rank import rank
from npuscope.monitor.agent.sources.source import Source
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.standing import Ending, Standing

DEFAULT_INTERVAL = 60
DEFAULT_KINDS = frozenset({Kind.MARKER})
Build = Callable[[Command, Run], Processor]
"""Makes the processor that a command asks for; `command.folder` is absolute and there. Raises OSError or Refused."""


class Collector:
    """What is collected at the moment, and the way from one command to the next."""

    def __init__(
        self,
        sources: Callable[[], Sequence[Source]],
        build: Build,
        log: Log,
        tell: Callable[[Standing], None],
        busy: Callable[[], str] = str,
        groups: Callable[[], str] = str,
        clock: Clock | None = None,
    ) -> None:
        """`sources` is asked once, at the first start; `tell` takes each new standing; `busy` says, if anything, what
        excludes a monitor now; `groups` gives the process groups as JSON at a stop."""
        self._build = build
        self._log = log
        self._tell = tell
        self._busy = busy
        self._groups = groups
        self._clock = clock or Clock()
        self._crew = Crew(sources, log)
        self._collection: Collection | None = None
        self._interval = DEFAULT_INTERVAL
        self._deadline: float | None = None
        self._next_report = 0.0
        self._code = Code.SUC
        self._ending = Ending.NONE
        self._lost = 0

    @property
    def running(self) -> bool:
        """Whether it collects."""
        return self._collection is not None

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        return Standing(self.running, self._lost, self._code, self._ending)

    @property
    def losses(self) -> Mapping[str, int]:
        """Records and buffers lost since the last start, by reason."""
        found = Counter(self._crew.losses())
        if self._collection:
            found.update(self._collection.losses())
        return +found

    def handle(self, command: Command) -> Code:
        """Carry a command out and report where that leads. Never raises."""
        self._expire_if_due()
        try:
            self._obey(command)
            self._code = Code.SUC
        except Refused as refusal:
            self._refused(refusal)
        except Exception as error:  # a fault of ours or of a source's; the job goes on
            self._refused(Refused(Code.INTERNAL, f"the command failed: {error!r}"))
        self._tell(self.standing)
        return self._code

    def refuse(self, refusal: Refused) -> None:
        """Report that a command could not even be read."""
        self._refused(refusal)
        self._tell(self.standing)

    def _refused(self, refusal: Refused) -> None:
        self._code = refusal.code
        self._log.error(refusal.code, str(refusal))

    def tick(self) -> float | None:
        """Do what is due; returns in how many seconds something will be, None when nothing is planned."""
        self._expire_if_due()
        if self._collection is None:
            return None
        if self._clock.monotonic() >= self._next_report:
            self._report(self._collection)
        due = min(self._next_report, self._deadline) if self._deadline is not None else self._next_report
        return max(0.0, due - self._clock.monotonic())

    def close(self) -> None:
        """Stop, for the process ends; what was collected is kept."""
        if self._collection:
            self._finish(Ending.STOPPED, self._clock.wall(), "the process ends")

    def step(self, number: int) -> None:
        """The job has taken a step; on the job's thread."""
        self._crew.step(number)

    def leave(self) -> None:
        """The job is about to end the agent; on the job's thread."""
        self._crew.leave()

    def abandon(self) -> None:
        """Forget a collection that is another process's, for this one is its fork. Nothing is written or waited for."""
        if self._collection:
            # What it holds must not be closed in here either, not even when this process ends: a database, closed in a
            # fork, would disturb the one that the parent goes on writing.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._collection))
        self._collection = None
        self._crew.abandon()

    def _obey(self, command: Command) -> None:
        if command.stop:
            self._stop()
        elif self._collection is not None:
            if command.start:
                self._log.warning(
                    "a monitor runs already: its filter, kinds and interval are taken from this command; its output "
                    "and its end stay as they are"
                )
            self._change(self._collection, command)
        elif command.start:
            self._start(command)
        else:
            self._log.warning("no monitor runs, so there is nothing to change")

    def _stop(self) -> None:
        if self._collection is None:
            self._log.warning("no monitor runs, so there is nothing to stop")
            return
        self._finish(Ending.STOPPED, self._clock.wall(), "stopped")

    def _start(self, command: Command) -> None:
        if reason := self._busy():
            raise Refused(Code.UNAVAIL, reason)
        folder = prepared(command.folder) if command.folder else ""
        command = replace(command, folder=folder)
        run = Run(Strings(), os.getpid(), rank(), self._clock.wall(), self._log.warning)
        collection = Collection(self._processor(command, run), self._filter(command), run, self._log)
        self._crew.start(command.kinds or DEFAULT_KINDS, run.strings, collection.deliver)
        run.started, now = self._clock.wall(), self._clock.monotonic()  # in this order a pause makes it no shorter
        self._collection, self._lost = collection, 0
        self._interval = command.interval or self._interval
        self._next_report = now + self._interval
        self._deadline = deadline = now + command.duration if command.duration else None
        if deadline is not None:
            collection.over = lambda: self._over(deadline)
        length = f"for {command.duration:g} s" if command.duration else "until told to stop"
        kinds = ", ".join(sorted(kind.label for kind in self._crew.kinds))
        self._log.info(f"the monitor collects {kinds} {length}, to {folder or 'the daemon'}")

    def _processor(self, command: Command, run: Run) -> Processor:
        try:
            return self._build(command, run)
        except OSError as error:
            text = f"nothing can be written to {command.folder}: {error.strerror or error}"
            raise Refused(Code.PERMISSION, text) from None

    def _filter(self, command: Command) -> Filter:
        rules, faults = Filter.parse(command.filter)
        for fault in faults:
            self._log.warning(fault)
        return rules

    def _change(self, collection: Collection, command: Command) -> None:
        self._crew.flush()  # what came before the change passes the old filter
        collection.rules = self._filter(command)
        if command.kinds:
            self._crew.change(command.kinds, collection.run.strings, collection.deliver)
        if command.interval:
            self._interval = command.interval
            self._report(collection)

    def _report(self, collection: Collection) -> None:
        self._crew.flush()
        collection.report(self._clock.wall())
        # From now, not from when it was due: after a pause there is one report and not many.
        self._next_report = self._clock.monotonic() + self._interval
        lost = sum(self.losses.values())
        if lost != self._lost:
            self._log.warning(f"lost so far: {_listed(self.losses)}")
            self._lost = lost
            self._tell(self.standing)

    def _over(self, deadline: float) -> int | None:
        """When a deadline was by the wall clock, or None while it is still to come. A pause while this is found out
        makes it seem earlier and never later."""
        wall = self._clock.wall()
        late = self._clock.monotonic() - deadline
        return wall - int(late * 1e9) if late >= 0 else None

    def _expire_if_due(self) -> None:
        if self._deadline is None or self._collection is None:
            return
        late = self._clock.monotonic() - self._deadline
        if late < 0:
            return
        # The wall clock may have been set since the start; how late it is tells where the end was.
        self._finish(Ending.EXPIRED, self._clock.wall() - int(late * 1e9), "its time is over")
        self._tell(self.standing)

    def _finish(self, ending: Ending, at: int, why: str) -> None:
        collection = self._collection
        assert collection is not None
        self._deadline = None
        collection.end(at)
        try:
            collection.run.groups = self._groups()
        except Exception as error:
            self._log.warning(f"the process groups are not known: {error!r}")
        self._crew.stop()
        collection.close()
        losses = self.losses
        self._collection = None
        self._interval = DEFAULT_INTERVAL
        self._ending, self._lost = ending, sum(losses.values())
        taken = {kind.label: count for kind, count in collection.taken.items()}
        self._log.info(f"the monitor has ended ({why}): {_listed(taken) or 'no record'} collected")
        if losses:
            self._log.warning(f"lost: {_listed(losses)}")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
