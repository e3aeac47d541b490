"""The sources of a process as one: each gives the kinds that it has, and one that cannot run does not stop the rest."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.commands import Refused
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.sources.source import Deliver, Source, Unavailable
from npuscope.monitor.protocol.codes import Code


class Crew:
    """Starts, changes and stops sources; for the collector's thread. A source that fails is logged and goes on."""

    def __init__(self, sources: Callable[[], Sequence[Source]], log: Log) -> None:
        """`sources` is asked once, at the first start."""
        self._find = sources
        self._found: Sequence[Source] | None = None
        self._running: list[Source] = []
        self._steppers: Sequence[Callable[[int], None]] = ()
        self._log = log
        self.kinds: frozenset[Kind] = frozenset()
        """What the running ones give."""

    @property
    def _sources(self) -> Sequence[Source]:
        if self._found is None:
            self._found = self._find()
            self._steppers = tuple(source.step for source in self._found if hasattr(source, "step"))
        return self._found

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Start those that give any of the kinds. Raises Refused when none of them does."""
        reasons = self._start(self._sources, kinds, strings, deliver)
        self._settle(kinds)
        if not self._running:
            asked = ", ".join(sorted(kind.label for kind in kinds))
            why = "; ".join(reasons) or "no source knows any of them"
            raise Refused(Code.UNAVAIL, f"nothing in this process gives {asked}: {why}")

    def change(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Collect other kinds from now on: those missing are started, those not wanted any more are stopped."""
        for source in list(self._running):
            if wanted := source.kinds & kinds:
                self._call(source, "change", partial(source.change, wanted))
            else:
                self._call(source, "stop", source.stop)
                self._running.remove(source)
        self._start([one for one in self._sources if one not in self._running], kinds, strings, deliver)
        self._settle(kinds)

    def flush(self) -> None:
        """Have what is complete delivered."""
        for source in self._running:
            self._call(source, "flush", source.flush)

    def step(self, number: int) -> None:
        """The job has taken a step; on the job's thread. Told to those too that do not run."""
        for step in self._steppers:
            step(number)

    def leave(self) -> None:
        """The job is about to end all this, on its own thread."""
        for source in self._found or ():
            with contextlib.suppress(Exception):
                getattr(source, "leave", lambda: None)()

    def stop(self) -> None:
        """Have the rest delivered and end."""
        for source in self._running:
            self._call(source, "stop", source.stop)
        self._running, self.kinds = [], frozenset()

    def abandon(self) -> None:
        """In a fork: the threads that worked for the sources are the parent's. A source may have a way to let go."""
        running, self._running, self.kinds = self._running, [], frozenset()
        for source in running:
            with contextlib.suppress(Exception):
                getattr(source, "abandon", lambda: None)()

    def losses(self) -> Mapping[str, int]:
        """What the sources lost since the last start, by source and reason."""
        found: Counter[str] = Counter()
        for source in self._found or ():
            with contextlib.suppress(Exception):
                found.update({f"{source.name}: {reason}": count for reason, count in source.losses.items() if count})
        return found

    def _start(
        self, sources: Sequence[Source], kinds: frozenset[Kind], strings: Strings, deliver: Deliver
    ) -> list[str]:
        """Start sources; returns why some did not."""
        reasons = []
        for source in sources:
            if not source.kinds & kinds:
                continue
            try:
                source.start(source.kinds & kinds, strings, deliver)
                self._running.append(source)
            except Unavailable as reason:
                reasons.append(str(reason))
                self._log.warn_once(f"{source.name} gives nothing here: {reason}")
            except Exception as error:
                reasons.append(f"{source.name} failed: {error!r}")
                self._log.error(Code.INTERNAL, reasons[-1])
        return reasons

    def _settle(self, asked: frozenset[Kind]) -> None:
        given: set[Kind] = set()
        for source in self._running:
            refusals: Mapping[Kind, str] = getattr(source, "refusals", {})
            for why in dict.fromkeys(refusals.values()):
                self._log.warn_once(f"{source.name}: {why}")
            given |= source.kinds - refusals.keys()
        self.kinds = frozenset(given) & asked
        for kind in sorted(asked - self.kinds) if self._running else ():
            self._log.warning(f"nothing in this process gives {kind.label}")

    def _call(self, source: Source, what: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            self._log.error(Code.INTERNAL, f"{source.name} failed to {what}: {error!r}")
