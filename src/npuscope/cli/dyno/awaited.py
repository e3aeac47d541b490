"""One trace that is awaited, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npuscope.cli.dyno.matched import Matched
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.proc import command, running
from npuscope.monitor.trace_file import Contents, Seen, State, count, look

SETTLE_SECONDS = 3.0
"""From the end of tracing to the file, or to the certainty that there will be none."""
STARTED = ("delivered", "tracing")
DOING = {
    "waiting": "waits for its poll",
    "delivered": "warms up",
    "tracing": "is being traced",
    "idle": "has finished, the file is being written",
    "busy": "its profiler is in use",
    "gone": "is no longer registered",
}
NOT_YET = "asked"


@dataclass
class Awaited:
    """A process that is to write a trace. Every method is told what has been seen; none looks at a clock."""

    process: Matched
    endpoint: Endpoint
    path: str
    began: float
    local: bool
    counts_steps: bool = False
    snapshot: bool = False
    seen_state: str = NOT_YET
    started: bool = False
    ended: float | None = None
    visible_process: bool = False
    doing: str = "is asked"
    result: str | None = None
    good: bool = False
    contents: Contents | None = None

    def __post_init__(self) -> None:
        # The number may by now be another process's; only one that looks as the daemon says is watched.
        pid = self.process.host_pid
        if self.local and pid is not None and running(pid):
            self.visible_process = command(pid).startswith(self.process.command)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.result is not None

    def hear(self, state: str | None, now: float) -> None:
        """Take note of the daemon's word for what the process does; None when it no longer knows the process."""
        if state in STARTED:
            self.started = True
        if state == "idle" and self.seen_state != "idle":
            self.ended = now
        self.seen_state = state or "gone"

    def watch(self, now: float) -> None:
        """Look at the file, and draw what conclusions can be drawn."""
        pid = self.process.host_pid
        alive = not self.visible_process or pid is None or running(pid)
        seen = look(self.path, self.began, now)
        if seen.state is State.WHOLE:
            self._written()
        elif not alive:
            self._fail("the process exited before it wrote its trace" + (" (a part is in .tmp)" if seen.size else ""))
        elif seen.state is State.WRITING:
            self.doing = f"is writing, {size(seen.size)}"
        else:
            self._without_file(seen, now)

    def _without_file(self, seen: Seen, now: float) -> None:
        self.doing = DOING.get(self.seen_state, self.doing)
        settled = self.ended is not None and now - self.ended > SETTLE_SECONDS
        if self.seen_state != "idle" or not settled or (self.counts_steps and not self.started):
            return
        if not self.local:
            if self.started:
                self._succeed(f"finished; the file is on {self.endpoint.host}: {self.path}")
        elif seen.state is State.EMPTY and seen.quiet > SETTLE_SECONDS and not self.counts_steps:
            self._fail(f"the process refused the request: {self.path}.tmp is empty")

    def _written(self) -> None:
        if self.snapshot:
            self._succeed(f"written: {self.path}")
            return
        try:
            self.contents = count(self.path)
        except OSError:
            return  # gone again; the next look tells
        extent = f"{size(self.contents.size)}, {self.contents.events} events"
        if self.contents.operators:
            self._succeed(f"written: {self.path} ({extent})")
        else:
            self._fail(f"written, but no operator ran while it was traced: {self.path} ({extent})")

    def give_up(self, seconds: float, now: float) -> None:
        """The time is over."""
        seen = look(self.path, self.began, now)
        hint = f", and {self.path}.tmp is empty: the request was refused, or has not begun" * (
            seen.state is State.EMPTY
        )
        self._fail(f"no trace after {seconds:g} s ({self.doing}{hint}): {self.path}")

    def _succeed(self, words: str) -> None:
        self.result, self.good = words, True

    def _fail(self, words: str) -> None:
        self.result = words

    def document(self) -> dict[str, Any]:
        """What a program is told of it."""
        found: dict[str, Any] = {"pid": self.process.pid, "path": self.path, "good": self.good, "result": self.result}
        if self.process.rank is not None:
            found["rank"] = self.process.rank
        if self.contents:
            found |= {"bytes": self.contents.size, "events": self.contents.events, "operators": self.contents.operators}
        return found


def size(count_of_bytes: int) -> str:
    """A size in the unit that fits."""
    amount, unit = float(count_of_bytes), "bytes"
    for larger in ("KB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
