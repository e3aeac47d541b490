"""What an operator has to look at, in sentences; nothing is said twice, and what is usual is not said at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RECENT_SECONDS = 1800.0
"""For how long a trace that went wrong is a matter of today."""
MOST_NAMED = 8

ERROR, WARNING, NOTE = "error", "warning", "note"
COUNTED = {
    "impostors": (WARNING, "message{s} came from a process that gave another process's number; not answered"),
    "unsent": (WARNING, "answer{s} could not be delivered: a training process did not read in time"),
    "faults": (ERROR, "message{s} met a fault in this daemon; see its log"),
    "malformed": (NOTE, "malformed datagram{s} came in; not answered"),
}
OUTCOMES = {
    "empty": "was refused by the process: it left an empty .tmp file",
    "exited": "is lost: the process exited before it was written",
    "missing": "has not appeared; the process's own log says why",
}


@dataclass(frozen=True)
class Problem:
    """One thing to look at."""

    severity: str
    text: str

    def shown(self) -> dict[str, str]:
        """Its JSON form."""
        return {"severity": self.severity, "text": self.text}


def problems(
    status: Mapping[str, Any], recent: Mapping[str, int], minutes: int, nodes: Sequence[Mapping[str, Any]]
) -> list[Problem]:
    """All there are, the worst first. `recent` counts what went by in the last `minutes`."""
    found = [*_unwell(status), *_traces(status), *_nodes(nodes), *_counted(recent, minutes), *_twice(status)]
    order = (ERROR, WARNING, NOTE)
    return sorted(found, key=lambda problem: order.index(problem.severity))


def _unwell(status: Mapping[str, Any]) -> list[Problem]:
    now, found = status["now"], []
    named = [process for process in status["processes"] if "health" in process]
    for process in named[:MOST_NAMED]:
        if process["health"] == "stopped":
            text = f"{name(process)} is stopped by a signal; it has not polled for {ago(now - process['last'])}"
            found.append(Problem(ERROR, text))
        elif process["health"] == "silent":
            text = f"{name(process)} runs but has not polled for {ago(now - process['last'])}: it may hang"
            found.append(Problem(ERROR, text))
    hidden = status["summary"]["silent"] - sum(process["health"] in ("stopped", "silent") for process in named)
    left = hidden + sum(process["health"] in ("stopped", "silent") for process in named[MOST_NAMED:])
    if left > 0:
        words = "process runs but does" if left == 1 else "processes run but do"
        found.append(Problem(ERROR, f"{left} more {words} not poll"))
    return found


def _traces(status: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(ERROR, f"the trace that {name(trace)} was asked for {ago(age)} ago {OUTCOMES[trace['outcome']]}")
        for trace in status.get("traces", [])
        if trace["outcome"] in OUTCOMES and (age := status["now"] - trace["asked"]) < RECENT_SECONDS
    ][:MOST_NAMED]


def _nodes(nodes: Sequence[Mapping[str, Any]]) -> list[Problem]:
    gone = [node["node"] for node in nodes if node["reachable"] is False]
    if not gone:
        return []
    names = ", ".join(gone[:MOST_NAMED]) + (", ..." if len(gone) > MOST_NAMED else "")
    verb = "does" if len(gone) == 1 else "do"
    return [Problem(ERROR, f"{len(gone)} of {len(nodes)} nodes {verb} not answer: {names}")]


def _counted(recent: Mapping[str, int], minutes: int) -> list[Problem]:
    return [
        Problem(severity, f"{count} {text.format(s='s' if count > 1 else '')} (last {minutes} minutes)")
        for key, (severity, text) in COUNTED.items()
        if (count := recent.get(key, 0)) > 0
    ]


def _twice(status: Mapping[str, Any]) -> list[Problem]:
    """Ranks that two living processes of a job claim: one of them is left over, or the job was started twice."""
    holders: dict[tuple[int, int], list[int]] = {}
    for process in status["processes"]:
        if process.get("rank") is not None and process.get("health") != "exited" and not process["launcher"]:
            holders.setdefault((process["job"], process["rank"]), []).append(process["pid"])
    return [
        Problem(WARNING, f"rank {rank} of job {job} is claimed by processes {', '.join(map(str, pids))}")
        for (job, rank), pids in sorted(holders.items())
        if len(pids) > 1
    ][:MOST_NAMED]


def name(process: Mapping[str, Any]) -> str:
    """A process as an operator speaks of it."""
    rank = process.get("rank")
    return f"process {process['pid']}" if rank is None else f"rank {rank} (process {process['pid']})"


def ago(seconds: float) -> str:
    """A time span, roughly."""
    if seconds < 120:
        return f"{max(0, round(seconds))} s"
    return f"{round(seconds / 60)} minutes" if seconds < 7200 else f"{round(seconds / 3600)} hours"
