"""A collection that is kept in memory, over the same sources as the monitor's."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.crew import Crew

MOST = 20_000_000
"""Records that are kept, some 1.5 GB; those beyond are counted and lost."""
FULL = "beyond what is kept in memory"


class Collected:
    """What the sources have delivered, by kind."""

    def __init__(self) -> None:
        self.strings = Strings()
        self.kinds: frozenset[Kind] = frozenset()
        self.lost = 0
        self._parts: dict[Kind, list[Batch]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def start(self, crew: Crew, kinds: frozenset[Kind]) -> None:
        """Collect with `crew`. Raises commands.Refused when none of its sources gives any of the kinds."""
        self.kinds = kinds
        crew.start(kinds, self.strings, self.deliver)

    def deliver(self, batch: Batch) -> None:
        """Take a batch, on any thread."""
        with self._lock:
            room = MOST - self._count
            if len(batch) > room:
                self.lost += len(batch) - room
                batch = batch.where(slice(0, room))  # type: ignore[arg-type]
            if len(batch):
                self._count += len(batch)
                self._parts.setdefault(batch.kind, []).append(batch)

    def of(self, kind: Kind) -> Batch | None:
        """The records of one kind, None where there are none."""
        with self._lock:
            parts = self._parts.get(kind)
            if not parts:
                return None
            if len(parts) > 1:
                parts[:] = [joined(parts)]
            return parts[0]

    def losses(self, crew: Crew) -> Mapping[str, int]:
        """What was lost since the start, by reason."""
        return {**crew.losses(), **({FULL: self.lost} if self.lost else {})}
