"""The replies to a request to trace and to a question for measurements, as JSON has them."""

from __future__ import annotations

from typing import Any

from npuscope.monitor.daemon.details import numbers
from npuscope.monitor.daemon.order import Match, Outcome
from npuscope.monitor.metrics.record import Record
from npuscope.monitor.proc import command, environment, rank
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.config import output_file


def failed(reason: str) -> str:
    """The reply to what cannot be answered."""
    return rpc.compact({"status": f"failed with exception = {reason}" if reason else "failed"})


def outcome_reply(outcome: Outcome, pairs: dict[str, str], status: str = "") -> dict[str, Any]:
    """What came of a request to trace: the stock daemon's keys and its `commandStatus`, then what it does not tell."""
    reply: dict[str, Any] = {
        "activityProfilersBusy": len(outcome.pids("busy")),
        "activityProfilersTriggered": outcome.pids("triggered"),
        "eventProfilersBusy": 0,
        "eventProfilersTriggered": [],
        "processesMatched": outcome.pids(),
        "commandStatus": status or ("effective" if outcome.pids("triggered") else "ineffective"),
        "processes": [_shown(match, pairs) for match in outcome.matches],
    }
    if outcome.reason:
        reply["reason"] = outcome.reason
    return reply


def refusal(reason: str) -> dict[str, Any]:
    """The reply to a request that no process is asked to carry out."""
    return outcome_reply(Outcome((), reason), {}) | {"refused": True}


def _shown(match: Match, pairs: dict[str, str]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        **numbers(match.pid, match.sender_pid),
        "outcome": match.outcome,
        "command": command(match.sender_pid),
        "rank": rank(environment(match.sender_pid)),
        "launcher": match.launcher,
    }
    if match.outcome == "busy":
        shown["state"] = match.state
    if match.trace_id is not None:
        shown |= {"traceId": match.trace_id, "traceFile": output_file(pairs, match.pid)}
    return shown


def measured(record: Record) -> dict[str, Any]:
    """A measurement."""
    return {
        "time": record.time,
        "entity": record.entity,
        "labels": dict(record.labels),
        "values": dict(record.values),
    }
