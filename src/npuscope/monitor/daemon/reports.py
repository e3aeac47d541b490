"""What each process has reported of its trace and its monitor. One process's word does not hide another's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npuscope.monitor.daemon.process import Key, Sender
from npuscope.monitor.protocol.fabric import Channel, Status

MOST = 16384
WEIGHT = {1: 3, 2: 2, 0: 1}
"""Of the statuses running, ready and idle: the busiest process speaks for all."""


@dataclass(frozen=True)
class Report:
    """The last words of one process."""

    sender: Sender
    statuses: Mapping[Channel, Status] = field(default_factory=dict)


class Reports:
    """The reports of all processes; those of the vendor's ranks too, of which only one polls."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Report] = {}

    def note(self, status: Status, sender: Sender) -> None:
        """Take note of a status; when there are too many, who was first heard of longest ago is forgotten."""
        known = self._by_key.get(sender.key)
        if known is None and len(self._by_key) >= MOST:
            del self._by_key[next(iter(self._by_key))]
        before = known.statuses if known and known.sender == sender else {}
        self._by_key[sender.key] = Report(sender, {**before, status.channel: status})

    def of(self, sender: Sender) -> Mapping[Channel, Status]:
        """What a process has reported."""
        report = self._by_key.get(sender.key)
        return report.statuses if report else {}

    def foremost(self, channel: Channel, senders: Iterable[Sender] | None = None) -> Status | None:
        """The report that counts, of all processes or of some: a running one before a planned one before an idle one.
        Among equals the last one."""
        keys = self._by_key if senders is None else [sender.key for sender in senders if sender.key in self._by_key]
        found = [status for key in keys if (status := self._by_key[key].statuses.get(channel))]
        return max(reversed(found), key=lambda status: WEIGHT.get(status.status, 0), default=None)

    def senders(self) -> list[Sender]:
        """Who has reported."""
        return [report.sender for report in self._by_key.values()]

    def drop(self, senders: Iterable[Sender]) -> None:
        """Forget processes that are known to have ended."""
        for sender in senders:
            report = self._by_key.get(sender.key)
            if report is not None and report.sender == sender:
                del self._by_key[sender.key]
