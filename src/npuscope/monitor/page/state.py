"""What the page shows of now: the daemon's account, cut down to what its viewer may see, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from npuscope.monitor.daemon.identity import ROOT
from npuscope.monitor.page.problems import problems
from npuscope.monitor.proc import user_name

MOST_PROCESSES = 512
MOST_TRACES = 100
ORDER = {"tracing": 0, "delivered": 0, "waiting": 1}
PLUGIN = ("nputrace", "npumonitor", "current_step", "start_step", "stop_step")


def page_state(
    status: Mapping[str, Any],
    viewer: int | None,
    recent: Mapping[str, int],
    minutes: int,
    nodes: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The document behind the page."""
    processes = [process for process in status["processes"] if "command" in process]
    mine = {**status, "processes": processes}
    shown = sorted(processes, key=_urgency)[:MOST_PROCESSES]
    traces = status["traces"]
    return {
        "now": status["now"],
        "host": status["host"],
        "version": status["version"],
        "daemon": status["daemon"] | {"recent": dict(recent), "userName": user_name(status["daemon"]["user"])},
        "viewer": {"user": viewer, "name": None if viewer is None else user_name(viewer), "sees": _sees(viewer)},
        "summary": status["summary"],
        "plugin": {name: status[name] for name in PLUGIN if name in status},
        "processes": [_with_text_ids(process) for process in shown],
        "hidden": {"others": len(status["processes"]) - len(processes), "leftOut": len(processes) - len(shown)},
        "traces": [_with_text_ids(trace) for trace in traces[:MOST_TRACES]],
        "problems": [problem.shown() for problem in problems(mine, recent, minutes, nodes)],
        "nodes": list(nodes),
    }


def encode(state: Mapping[str, Any]) -> bytes:
    """The document as JSON, item by item: one long call would keep the interpreter from answering polls."""
    parts = []
    for name, value in state.items():
        text = b"[" + b",".join(map(_json, value)) + b"]" if isinstance(value, list) else _json(value)
        parts.append(_json(name) + b":" + text)
    return b"{" + b",".join(parts) + b"}"


_json: Callable[[Any], bytes] = orjson.dumps


def _sees(viewer: int | None) -> str:
    return "none" if viewer is None else "all" if viewer == ROOT else "own"


def _urgency(process: Mapping[str, Any]) -> tuple[Any, ...]:
    """Who is shown when there is no room for all, and in which order."""
    rank = process["rank"]
    return (
        process["launcher"],
        process.get("health") == "exited",
        process["job"],
        rank is None,
        rank if rank is not None else 0,
        ORDER.get(process["state"], 2),
        process["pid"],
    )


def _with_text_ids(item: Mapping[str, Any]) -> dict[str, Any]:
    """Trace ids have 64 bits, and numbers in a browser 53."""
    copied = dict(item)
    if "work" in copied:
        copied["work"] = _with_text_ids(copied["work"])
    if "traceId" in copied:
        copied["traceId"] = str(copied["traceId"])
    return copied
