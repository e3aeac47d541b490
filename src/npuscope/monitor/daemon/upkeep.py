"""Bringing the registry up to date with what only a look at processes and files tells. Too slow for the thread that
answers polls: whoever has time looks, and hands over what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.proc import gone, running
from npuscope.monitor.protocol.config import loosely_read, output_file
from npuscope.monitor.trace_file import CLOCK_SECONDS, State, look

T = TypeVar("T")


class Registrar(Protocol):
    """Whoever calls a function with the registry."""

    def __call__(self, function: Callable[[Registry], T], /) -> T: ...


def bury(registrar: Registrar, note: Callable[[str], None]) -> None:
    """Have processes forgotten that have ended; `note` takes lines for the log."""
    hush(registrar)
    dead = [sender for sender in registrar(Registry.senders) if gone(sender.pid)]
    if dead:
        for process in registrar(lambda registry: registry.forget(dead)):
            note(f"forgot process {process.leaf} of job {process.job}: it has ended")


def hush(registrar: Registrar) -> None:
    """Have the reports of processes forgotten that have ended, even if nobody has waited for them yet."""
    reporters = registrar(lambda registry: registry.reports.senders())
    ended = [sender for sender in reporters if not sender.hidden and not running(sender.pid)]
    if ended:
        registrar(lambda registry: registry.reports.drop(ended))


def finish(registrar: Registrar, now: float) -> None:
    """Have processes known to be free whose trace is written. A short one is over between two polls, of which neither
    tells; those in containers may write where the daemon cannot look, and are free when their time is over."""
    written = []
    for task in registrar(Registry.tasks):
        path = output_file(loosely_read(task.work.config), task.leaf)
        # Nothing is written before the process was told, and an older trace of this name does not count.
        if look(path, task.told + CLOCK_SECONDS, now).state is State.WHOLE:
            written.append(task)
    if written:
        registrar(lambda registry: registry.finished(written))
