"""What the plug-in's trace and its monitor do to each other: only one of the two can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.process import Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.unmatched import why_nothing
from npuscope.monitor.protocol.audience import is_for_monitor
from npuscope.monitor.protocol.fabric import Channel
from npuscope.monitor.protocol.standing import standing

UNSAID, IDLE, RUNNING, READY = -1, 0, 1, 2
"""What the plug-in reports; `UNSAID` stands where it has reported nothing."""
NAMES = {Channel.TRACE: "trace", Channel.MONITOR: "monitor"}
HARMLESS = {Channel.TRACE: (IDLE, READY), Channel.MONITOR: (IDLE,)}
"""Where the other one may stand: a trace that is only planned does not keep a monitor from starting."""


class Conflict(NamedTuple):
    """Why an order is not handed on: the word for programs, and the reason for people."""

    status: str
    reason: str


def conflict(registry: Registry, order: Order) -> Conflict | None:
    """What stands in the way of an order to the plug-in; None when it may pass."""
    own, other = Channel.TRACE, Channel.MONITOR
    if is_for_monitor(order.config):
        own, other = other, own
    senders = _speakers(registry, order)
    if _stands(registry, own, senders) == UNSAID:
        return Conflict("ineffective", _silence(registry, order, own))
    if _stands(registry, other, senders) == RUNNING:
        return Conflict("ineffective", f"a {NAMES[other]} is running, and the two exclude each other")
    if _stands(registry, other, senders) in HARMLESS[other]:
        return None
    return Conflict("unknown", _silence(registry, order, other))


def _speakers(registry: Registry, order: Order) -> Sequence[Sender] | None:
    """Whose reports count: those of the processes meant where each of them speaks for itself, as npuscope's agents do.
    None for all: of the vendor's ranks only one registers, and others report."""
    chosen = registry.chosen(order)
    said = [registry.reports.of(sender).get(Channel.MONITOR) for sender in chosen]
    return chosen if chosen and all(status and standing(status) for status in said) else None


def _stands(registry: Registry, channel: Channel, senders: Sequence[Sender] | None) -> int:
    report = registry.reports.foremost(channel, senders)
    return report.status if report else UNSAID


def _silence(registry: Registry, order: Order, channel: Channel) -> str:
    """Why there is no report that helps: where no plug-in is registered at all, that is the reason."""
    if any(process.sender.dialect is order.dialect for process in registry.processes.values()):
        return f"the plug-in has not said yet where its {NAMES[channel]} stands"
    return why_nothing(registry.processes.values(), order, registry.unanswered)
