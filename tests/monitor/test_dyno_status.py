"""`dyno status` for a person: a table on a terminal, and the stock command's lines everywhere else."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from daemon_process import SOURCE
from small_daemons import SmallDaemon
from terminal import at_a_terminal

IDLE: dict[str, Any] = {
    "pid": 31, "job": 7, "client": "kineto", "state": "idle", "user": 1000, "rank": 1, "launcher": False,
    "command": "python [b]train.py", "last": 96.0,
}  # fmt: skip
REPLY: dict[str, Any] = {
    "status": 1, "host": "node9", "version": "9.9", "now": 100.0, "nputrace": "Uninitialized",
    "npumonitor": "Uninitialized", "current_step": -1,
    "processes": [
        IDLE,
        IDLE | {"pid": 30, "rank": 0, "state": "tracing", "hostPid": 530, "container": True},
        IDLE | {"pid": 29, "rank": None, "launcher": True, "health": "stopped"},
        {"pid": 40, "job": 8, "client": "kineto", "state": "busy", "user": 1001},
    ],
}  # fmt: skip


def on_a_terminal(reply: dict[str, Any], *more: str) -> list[str]:
    """The lines that a person sees, without colours, frames and runs of spaces."""
    with SmallDaemon({"getStatus": json.dumps(reply)}).serving() as daemon:
        words = ["-m", "npuscope.cli.dyno", "--hostname", "127.0.0.1", "--port", str(daemon.port), "status", *more]
        code, shown = at_a_terminal(words, os.environ | {"PYTHONPATH": str(SOURCE), "COLUMNS": "120", "TERM": "xterm"})
        assert code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m|[━┏┳┓┃┡╇┩│└┴┘─]", " ", shown)
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


def test_a_table() -> None:
    assert on_a_terminal(REPLY) == [
        "node9: npuscope 9.9, 4 processes registered",
        "job rank pid state last poll command",
        "7 0 30 (here 530) tracing 4 s ago python [b]train.py",
        "7 1 31 idle 4 s ago python [b]train.py",
        "7 29 idle, stopped, launcher 4 s ago python [b]train.py",
        "8 40 busy (user 1001)",
    ]


def test_what_the_plugin_reports_is_told() -> None:
    running = {"nputrace": "Running", "npumonitor": "Idle", "current_step": 11, "start_step": 10, "stop_step": 12}
    assert on_a_terminal(REPLY | running | {"processes": []}) == [
        "node9: npuscope 9.9, 0 processes registered",
        "plug-in: trace running, monitor idle, step 11, traces steps 10 to 12",
        "No process is registered. Start jobs with KINETO_USE_DAEMON=1.",
    ]


def test_a_program_at_a_terminal_and_a_stock_daemon() -> None:
    (document,) = on_a_terminal(REPLY, "--json")
    assert json.loads(document)["host"] == "node9"
    assert on_a_terminal({"status": 1}) == ["response length = 13", 'response = {"status": 1}']
