"""A request to trace, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.monitor.protocol.fabric import Dialect


@dataclass(frozen=True)
class Order:
    """A request to trace. `uid` None stands for a requester who may trace everybody's processes."""

    config: str
    job: int
    pids: tuple[int, ...]
    limit: int
    uid: int | None
    dialect: Dialect
    ends: float | None = None

    @property
    def everyone(self) -> bool:
        """Whether it names no process in particular."""
        return self.pids in ((), (0,))


@dataclass(frozen=True)
class Match:
    """One process that an order met, and what came of it."""

    pid: int
    sender_pid: int
    outcome: str
    trace_id: int | None
    user: int
    state: str
    launcher: bool
    """Whether it started others of those that the order met."""


@dataclass(frozen=True)
class Outcome:
    """What came of an order; `reason` says why when nothing was triggered."""

    matches: tuple[Match, ...]
    reason: str | None = None

    def pids(self, outcome: str | None = None) -> list[int]:
        """The processes with this outcome, or all."""
        return [match.pid for match in self.matches if outcome in (None, match.outcome)]
