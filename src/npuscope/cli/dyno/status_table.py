"""What a daemon knows, as a table for a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from npuscope.cli.dyno.errand import Reply

COLOURS = {"waiting": "yellow", "delivered": "yellow", "tracing": "green", "busy": "yellow"}
PLUGIN = {"nputrace": "trace", "npumonitor": "monitor"}
LONGEST_TABLE = 100
"""More rows than a person reads; `--json` has all."""


def show_status(reply: Reply) -> None:
    """Print the daemon, the plug-in where one has reported, and the processes that the asker may see."""
    console = Console()
    processes = [one for one in reply.get("processes", []) if isinstance(one, dict)]
    console.print(_heading(reply, len(processes)), highlight=False)
    if plugin := _plugin(reply):
        console.print(plugin, highlight=False)
    if not processes:
        console.print("No process is registered. Start jobs with KINETO_USE_DAEMON=1.", highlight=False)
        return
    console.print(_drawn(processes[:LONGEST_TABLE], reply.get("now")))
    if len(processes) > LONGEST_TABLE:
        console.print(f"and {len(processes) - LONGEST_TABLE} more; --json has all")


def _heading(reply: Reply, count: int) -> str:
    host, version = reply.get("host"), reply.get("version")
    many = f"{count} process" + ("" if count == 1 else "es")
    return escape(f"{host or 'the daemon'}: npuscope {version}, {many} registered")


def _plugin(reply: Reply) -> str:
    """What the vendor's plug-in reports; "" where it has reported nothing."""
    told = {word: reply.get(key) for key, word in PLUGIN.items()}
    if all(state == "Uninitialized" for state in told.values()):
        return ""
    words = ", ".join(f"{word} {str(state).lower()}" for word, state in told.items())
    steps = f", traces steps {reply['start_step']} to {reply.get('stop_step')}" if "start_step" in reply else ""
    return escape(f"plug-in: {words}, step {reply.get('current_step')}{steps}")


def _drawn(processes: list[dict[str, Any]], now: object) -> Table:
    table = Table("job", "rank", "pid", "state", "last poll", "command")
    for column in (0, 1, 2, 4):
        table.columns[column].justify = "right"
    for one in sorted(processes, key=_order):
        state, colour = _state(one)
        rank = "" if one.get("rank") is None else str(one["rank"])
        words = f"[{colour}]{escape(state)}[/{colour}]" if colour else escape(state)
        command = one.get("command", f"(user {one.get('user')})")
        table.add_row(str(one.get("job")), rank, _number(one), words, _age(one, now), escape(str(command)))
    return table


def _order(process: Mapping[str, Any]) -> tuple[Any, ...]:
    job, rank, pid = (process.get(name) for name in ("job", "rank", "pid"))
    return _whole(job), bool(process.get("launcher")), rank is None, _whole(rank), _whole(pid)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _state(process: Mapping[str, Any]) -> tuple[str, str]:
    """What it does, what is wrong with it, and in which colour."""
    state, health = str(process.get("state")), process.get("health")
    words = [state, *([str(health)] if health else []), *(["launcher"] if process.get("launcher") else [])]
    words += _agent(process)
    wrong = health or process.get("lost") or process.get("monitorError")
    return ", ".join(words), "red" if wrong else COLOURS.get(state, "")


def _agent(process: Mapping[str, Any]) -> list[str]:
    """What the agent in a process, or the vendor's plug-in, says of its monitor and its trace."""
    words = []
    if process.get("monitor") == "Running":
        words.append("monitor runs")
    elif ended := process.get("monitorEnded"):
        words.append(f"monitor {ended}")
    if process.get("trace") in ("Running", "Ready"):
        words.append(f"trace {str(process['trace']).lower()}")
    if lost := process.get("lost"):
        words.append(f"{lost} records lost")
    if error := process.get("monitorError"):
        words.append(f"last command: {error}")
    return words


def _number(process: Mapping[str, Any]) -> str:
    outside = process.get("hostPid")
    return f"{process.get('pid')}" + (f" (here {outside})" if outside else " (container)" * ("container" in process))


def _age(process: Mapping[str, Any], now: object) -> str:
    last = process.get("last")
    if not isinstance(last, int | float) or not isinstance(now, int | float):
        return ""
    return f"{max(0.0, now - last):.0f} s ago"
