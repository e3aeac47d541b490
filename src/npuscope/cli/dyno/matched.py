"""Which processes a request to trace met, and what came of each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from npuscope.cli.dyno.errand import Reply, Verdict
from npuscope.cli.dyno.voice import Voice
from npuscope.monitor.protocol.config import snapshot_file

NOBODY = "No processes were matched, please check --job-id or --pids flags"
OUTCOMES = {
    "triggered": "is traced",
    "busy": "is busy, not traced",
    "skipped": "is over --process-limit, not traced",
}
STATES = {
    "waiting": "an earlier request waits for its poll",
    "delivered": "an earlier request is about to start",
    "tracing": "it is being traced",
    "busy": "its profiler is in use",
}


@dataclass(frozen=True)
class Matched:
    """A process that a request met."""

    pid: int
    outcome: str
    command: str = ""
    rank: int | None = None
    state: str = ""
    launcher: bool = False
    trace_file: str | None = None
    host_pid: int | None = None
    """Its number on the daemon's host; None when the daemon does not see it."""

    @property
    def what(self) -> str:
        """What came of it, in words."""
        words = OUTCOMES.get(self.outcome, self.outcome)
        if self.outcome == "busy" and self.state in STATES:
            words += f" ({STATES[self.state]})"
        return words + (" (a launcher)" if self.launcher else "")


def matched(reply: Reply) -> list[Matched]:
    """The processes of a reply; a stock daemon tells their numbers only."""
    found = reply.get("processes")
    if isinstance(found, list):
        return [_ours(process) for process in found if isinstance(process, dict) and "pid" in process]
    pids, triggered = numbers(reply, "processesMatched"), set(numbers(reply, "activityProfilersTriggered"))
    return [
        Matched(pid, "triggered" if pid in triggered else "busy or over --process-limit", host_pid=pid) for pid in pids
    ]


def _ours(process: Reply) -> Matched:
    pid = process["pid"]
    return Matched(
        pid=pid,
        outcome=str(process.get("outcome", "")),
        command=str(process.get("command", "")),
        rank=process.get("rank"),
        state=str(process.get("state", "")),
        launcher=bool(process.get("launcher")),
        trace_file=process.get("traceFile"),
        host_pid=process.get("hostPid", None if process.get("container") else pid),
    )


def numbers(reply: Reply, key: str) -> list[int]:
    """A list of process numbers in a reply, empty when there is none."""
    found = reply.get(key)
    return [pid for pid in found if isinstance(pid, int)] if isinstance(found, list) else []


def tell_matched(reply: Reply, log_file: str, voice: Voice, *, memory: bool = False) -> None:
    """The lines of the stock command, then what it does not say: who is traced and who is left out."""
    pids = numbers(reply, "processesMatched")
    if not pids:
        voice.tell(NOBODY)
        return
    voice.tell(f"Matched {len(pids)} processes")
    voice.tell("Trace output files will be written to:")
    for pid in pids:
        voice.tell(f"    {log_file.replace('.json', f'_{pid}.json')}")
        if memory:
            voice.tell(f"      Or {snapshot_file(pid)}")
    if memory:
        voice.tell("A process that takes a memory snapshot writes no trace.")
        voice.tell("Exporting the snapshot can take 4 to 5 minutes.")
        voice.tell("Look at it with https://pytorch.org/memory_viz")
    if not voice.as_json:
        _show(matched(reply))


def _show(processes: Sequence[Matched]) -> None:
    if sys.stdout.isatty():
        table = Table("rank", "pid", "command", "outcome")
        for one in processes:
            rank = "" if one.rank is None else str(one.rank)
            table.add_row(rank, str(one.pid), escape(one.command), escape(one.what))
        Console().print(table)
        return
    for one in processes:
        rank = "" if one.rank is None else f" rank {one.rank}"
        print(f"  process {one.pid}{rank} {one.what}" + (f": {one.command}" if one.command else ""))


def judge(reply: Reply, *, match: bool, trace: bool, verb: str = "traced") -> Verdict:
    """What a reply to a request to trace amounts to, where a match, or even a trace, is demanded."""
    reason = reply.get("reason")
    if reply.get("refused"):
        return Verdict(False, "refused", reason or "the daemon gives no reason")
    processes = matched(reply)
    if not processes:
        return Verdict(not (match or trace), "no process matched", reason or _stock_reason(reply))
    traced = sum(one.outcome == "triggered" for one in processes)
    summary = f"{len(processes)} matched, {traced} {verb}"
    return Verdict(bool(traced) or not trace, summary, reason or (None if traced else "none of them is free"))


def _stock_reason(reply: Reply) -> str | None:
    status = reply.get("commandStatus")
    if isinstance(reply.get("processesMatched"), list) and status is None:
        return None  # a stock daemon knows no more
    if status is None:
        return "the reply does not say which processes matched"
    return f"the daemon calls the command {status}: no plug-in is registered, or its trace or monitor is in the way"
