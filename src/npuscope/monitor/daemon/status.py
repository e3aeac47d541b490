"""The daemon's account of itself: what `getStatus` answers and what the page shows."""

from __future__ import annotations

import copy
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from npuscope import __version__
from npuscope.monitor.daemon.details import Lookups, health, numbers
from npuscope.monitor.daemon.identity import ROOT
from npuscope.monitor.daemon.ledger import Ledger, told
from npuscope.monitor.daemon.process import GRACE_SECONDS, Key, Process, Work, launchers
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.upkeep import Registrar, finish
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.config import loosely_read, output_file
from npuscope.monitor.protocol.fabric import Channel, Status
from npuscope.monitor.protocol.standing import Ending, standing

WORDS = {-1: "Uninitialized", 0: "Idle", 1: "Running", 2: "Ready"}
CHUNK = 128
"""Processes copied in one go: the thread that answers polls must not be kept longer."""


@dataclass
class Account:
    """Tells what the daemon knows. `counts` says what went by on the IPC sockets."""

    registrar: Registrar
    ledger: Ledger
    counts: Callable[[], dict[str, int]] = dict
    lookups: Lookups = field(default_factory=Lookups)
    started: float = field(default_factory=time.time)

    def status(self, viewer: int | None, *, remote: bool = False) -> dict[str, Any]:
        """The account for user `viewer`: details of the own processes, of none for None.

        Root sees everybody's, but not from another host, where anybody may say so.
        """
        sees = partial(_sees, viewer, everybody=viewer == ROOT and not remote)
        now = time.time()
        finish(self.registrar, now)
        processes = snapshot(self.registrar)
        reports = self.registrar(partial(_reports, processes))
        parents = launchers(processes)
        shown = [
            self._process(process, parents, now) | told_of(report)
            for process, report in zip(processes, reports, strict=True)
        ]
        return self.registrar(plugin) | {
            "status": 1,
            "version": __version__,
            "host": socket.gethostname(),
            "now": now,
            "daemon": {"pid": os.getpid(), "user": os.getuid(), "started": self.started, "counts": self.counts()},
            "summary": summary(shown),
            "processes": [process if sees(process["user"]) else _public(process) for process in shown],
            "traces": self._traces(processes, shown, sees, now),
        }

    def _process(self, process: Process, parents: frozenset[int], now: float) -> dict[str, Any]:
        details = self.lookups.of(process)
        shown: dict[str, Any] = {
            **numbers(process.leaf, process.sender.pid),
            "job": process.job,
            "client": process.sender.dialect.value,
            "state": process.state,
            "user": process.sender.uid,
            "rank": details.rank,
            "launcher": process.leaf in parents or process.sender.pid in parents,
            "command": details.command,
            "started": details.started,
            "first": process.first,
            "last": process.last,
            "polls": process.polls,
        }
        if wrong := health(process, now):
            shown["health"] = wrong
        if work := process.pending or process.running:
            shown["work"] = _work(process, work)
        return shown

    def _traces(
        self, processes: Sequence[Process], shown: Sequence[dict[str, Any]], sees: Callable[[int], bool], now: float
    ) -> list[dict[str, Any]]:
        living = [process for process, one in zip(processes, shown, strict=True) if "health" not in one]
        active = {work.trace_id for process in living if (work := process.pending or process.running)}
        alive = {process.sender.pid for process in living}
        return [
            told(asked, active, asked.host_pid in alive, now)
            for asked in self.ledger.newest_first()
            if sees(asked.user)
        ]


def snapshot(registrar: Registrar) -> list[Process]:
    """Copies of the registered processes, taken a few at a time."""

    def some(part: Sequence[Key]) -> Callable[[Registry], list[Process]]:
        return lambda registry: [copy.copy(registry.processes[key]) for key in part if key in registry.processes]

    keys = registrar(lambda registry: tuple(registry.processes))
    parts = (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))
    return [process for part in parts for process in registrar(some(part))]


def _reports(processes: Sequence[Process], registry: Registry) -> list[Mapping[Channel, Status]]:
    return [registry.reports.of(process.sender) for process in processes]


def told_of(report: Mapping[Channel, Status]) -> dict[str, Any]:
    """What one process says of its trace and its monitor; nothing where it has said nothing."""
    shown: dict[str, Any] = {}
    if trace := report.get(Channel.TRACE):
        shown |= {"trace": WORDS.get(trace.status, "unknown"), "step": trace.current_step}
        if trace.status == 0:  # an agent counts here the processes that parse its traces, and those that failed
            counts = {"parsing": trace.start_step, "tracesFailed": trace.stop_step}
            shown |= {name: count for name, count in counts.items() if count > 0}
    if monitor := report.get(Channel.MONITOR):
        shown["monitor"] = WORDS.get(monitor.status, "unknown")
        if agent := standing(monitor):
            shown["lost"] = agent.lost
            if agent.ending is not Ending.NONE:
                shown["monitorEnded"] = agent.ending.name.lower()
            if agent.code is not Code.SUC:
                shown["monitorError"] = agent.code.text
    return shown


def plugin(registry: Registry) -> dict[str, Any]:
    """Where the vendor's plug-in says that its trace and its monitor stand."""
    trace, monitor = registry.reports.foremost(Channel.TRACE), registry.reports.foremost(Channel.MONITOR)
    reply: dict[str, Any] = {
        "nputrace": WORDS.get(trace.status if trace else -1, "unknown"),
        "npumonitor": WORDS.get(monitor.status if monitor else -1, "unknown"),
        "current_step": trace.current_step if trace else -1,
    }
    if trace and trace.status in (1, 2):
        reply |= {"start_step": trace.start_step, "stop_step": trace.stop_step}
    return reply


def _sees(viewer: int | None, user: int, *, everybody: bool) -> bool:
    return everybody or viewer == user


def summary(processes: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many there are of everything, whoever's they are; a process that has exited is not counted as one."""
    there = [process for process in processes if process.get("health") != "exited"]
    return {
        "processes": _count(there),
        "launchers": sum(process["launcher"] for process in there),
        "ranks": len({(process["job"], process["rank"]) for process in there if process["rank"] is not None}),
        "users": len({process["user"] for process in there}),
        "waiting": sum(process["state"] == "waiting" for process in there),
        "tracing": sum(process["state"] in ("delivered", "tracing") for process in there),
        "busy": sum(process["state"] == "busy" for process in there),
        "silent": sum(process.get("health") in ("silent", "stopped") for process in there),
        "exited": len(processes) - len(there),
    }


def _count(shown: Sequence[dict[str, Any]]) -> int:
    """How many processes there are; one that speaks as stock PyTorch and as an agent is one."""
    seen = [
        process.get("hostPid", process["pid"])
        for process in shown
        if process.keys() & {"hostPid"} or not process.get("container")
    ]
    return len(set(seen)) + len(shown) - len(seen)


def _public(process: dict[str, Any]) -> dict[str, Any]:
    return {name: process[name] for name in ("pid", "job", "client", "state", "user")}


def _work(process: Process, work: Work) -> dict[str, Any]:
    ends = work.ends
    if ends is not None and process.pending is None:
        ends = process.until - GRACE_SECONDS  # counted from when the process was told
    return {
        "traceId": work.trace_id,
        "file": output_file(loosely_read(work.config), process.leaf),
        "asked": work.asked,
        "ends": ends,
    }
