"""Why an order met no process, as far as the registered ones tell."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.process import MOST_PROCESSES, Process
from npuscope.monitor.protocol.fabric import Dialect

MOST_JOBS = 8
NOBODY = {
    Dialect.KINETO: "no PyTorch process is registered; start it with KINETO_USE_DAEMON=1 on this host, "
    "and in a container with the daemon's KINETO_IPC_SOCKET_DIR",
    Dialect.MSMONITOR: "no process with the vendor's plug-in is registered; start it with MSMONITOR_USE_DAEMON=1",
}


@dataclass
class Unanswered:
    """Polls that registered nobody: those turned away, and those from containers of which neither process nor user can
    be told."""

    refused: int = 0
    strangers: int = 0


def why_nothing(processes: Collection[Process], order: Order, unanswered: Unanswered) -> str:
    """The first condition that no process met, in words, and who may be missing."""
    return "; ".join([_unmet(processes, order), *_missing(processes, order, unanswered)])


def _unmet(processes: Collection[Process], order: Order) -> str:
    conditions: list[tuple[str, Callable[[Process], bool]]] = [
        (NOBODY[order.dialect], lambda process: process.sender.dialect is order.dialect),
        ("the registered processes belong to other users", lambda process: order.uid in (None, process.sender.uid)),
        (
            f"no process has job id {order.job}; registered: {_jobs(processes, order)}",
            lambda process: process.job == order.job,
        ),
        (
            f"none of the processes {', '.join(map(str, order.pids))} is registered or has a registered child",
            lambda process: order.everyone or process.named_by(order.pids),
        ),
    ]
    left = list(processes)
    for sentence, holds in conditions:
        left = [process for process in left if holds(process)]
        if not left:
            return sentence
    return "no process matched"


def _missing(processes: Collection[Process], order: Order, unanswered: Unanswered) -> list[str]:
    """Why a process that a person has in mind may be missing, or have another number than expected."""
    notes = []
    hidden = sum(process.sender.hidden for process in processes)
    if hidden and not order.everyone:
        notes.append(f"{hidden} in containers out of the daemon's sight go by the numbers they have in there")
    if unanswered.strangers:
        notes.append(
            f"{unanswered.strangers} polls came from containers whose processes and users the daemon cannot tell: "
            "share the pid namespace or the user namespace"
        )
    if unanswered.refused:
        notes.append(
            f"{unanswered.refused} polls were turned away: the daemon keeps at most {MOST_PROCESSES} processes"
        )
    return notes


def _jobs(processes: Collection[Process], order: Order) -> str:
    mine = (process for process in processes if order.uid in (None, process.sender.uid))
    jobs = sorted({process.job for process in mine if process.sender.dialect is order.dialect})
    return ", ".join(map(str, jobs[:MOST_JOBS])) + (", ..." if len(jobs) > MOST_JOBS else "")
