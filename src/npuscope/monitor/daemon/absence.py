"""Why a process that a person has in mind is not among those that the daemon knows. Reads /proc, so it is not for the
thread that answers polls."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from npuscope.monitor.daemon.addresses import DIRECTORY
from npuscope.monitor.daemon.order import Order, Outcome
from npuscope.monitor.proc import PROC, command, environment, user_of
from npuscope.monitor.protocol.fabric import Dialect

SWITCHES = {
    Dialect.KINETO: ("KINETO_USE_DAEMON",),
    Dialect.MSMONITOR: ("MSMONITOR_USE_DAEMON", "KINETO_USE_DAEMON", "NPUSCOPE_AGENT"),
}
OTHER_CLIENT = {
    Dialect.KINETO: "process {} is registered by stock PyTorch: `dyno gputrace` traces it",
    Dialect.MSMONITOR: "process {} is registered by the vendor's plug-in: `dyno nputrace` traces it",
}
LAUNCHER = re.compile(r"torchrun|torch\.distributed\.(run|launch)|accelerate[^ ]* launch|deepspeed( |$)|mpirun|srun")
MOST_NAMED = 3
MOST_LOOKED_AT = 8192


def explained(outcome: Outcome, order: Order, registered: Mapping[int, Collection[Dialect]]) -> Outcome:
    """The outcome, its reason completed by what /proc tells; `registered` are the processes that the daemon knows."""
    if outcome.matches:
        return _only_launchers(outcome)
    meant = _switched_on(order) if order.everyone else (pid for pid in order.pids if pid > 0)
    missing = (pid for pid in meant if order.dialect not in registered.get(pid, ()))
    notes = [
        OTHER_CLIENT[next(iter(registered[pid]))].format(pid) if pid in registered else why_absent(pid, order)
        for pid in islice(missing, MOST_NAMED)
    ]
    return replace(outcome, reason="; ".join(note for note in (outcome.reason, *notes) if note))


def _only_launchers(outcome: Outcome) -> Outcome:
    traced = [match for match in outcome.matches if match.outcome == "triggered"]
    if not traced or not all(LAUNCHER.search(command(match.sender_pid)) for match in traced):
        return outcome
    reason = "only a launcher is traced, and its trace will hold no training step: no worker of it has registered"
    return replace(outcome, reason=reason)


def why_absent(pid: int, order: Order) -> str:
    """What keeps a process from being known, in words."""
    user = user_of(pid)
    if user is None:
        return f"there is no process {pid} on the daemon's host"
    if order.uid not in (None, user):
        return f"process {pid} belongs to another user"
    variables = environment(pid)
    if variables is None:
        return f"process {pid} runs, but the daemon may not see its environment"
    switches = SWITCHES[order.dialect]
    switch = next((name for name in switches if name in variables), None)
    if switch is None:
        return f"process {pid} runs, but was started without {switches[0]}=1"
    return f"process {pid} runs with {switch}=1 and has not registered: {_obstacle(pid, variables, order)}"


def _obstacle(pid: int, variables: dict[str, str], order: Order) -> str:
    if order.dialect is Dialect.MSMONITOR:
        return "it has not imported torch_npu (or, with npuscope's agent, torch) yet, or runs in a container"
    theirs, ours = variables.get(DIRECTORY, ""), os.environ.get(DIRECTORY, "")
    if theirs and theirs != ours:
        return f"its {DIRECTORY} is {theirs}, the daemon's is {ours or 'not set'}"
    if not theirs and _elsewhere(pid, "net"):
        return f"it runs in a container; share a folder with it and set {DIRECTORY} on both sides"
    return "it has not imported torch yet, or another daemon answers it"


def _elsewhere(pid: int, kind: str) -> bool:
    try:
        return os.readlink(PROC / str(pid) / "ns" / kind) != os.readlink(PROC / "self" / "ns" / kind)
    except OSError:
        return False


def _switched_on(order: Order) -> Iterator[int]:
    """Processes of the requester that were started to be traced, the youngest first."""
    pids = sorted((int(name) for name in os.listdir(PROC) if name.isdigit()), reverse=True)
    for pid in pids[:MOST_LOOKED_AT]:
        if pid != os.getpid() and _is_switched_on(pid, order):
            yield pid


def _is_switched_on(pid: int, order: Order) -> bool:
    user = user_of(pid)
    if user is None or order.uid not in (None, user):
        return False
    variables = environment(pid) or {}
    # Shells and launchers hand the variable on; only what looks like Python can register.
    return any(name in variables for name in SWITCHES[order.dialect]) and "python" in command(pid)
