"""One trace, from its plan to its data."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from npuscope.monitor.agent.trace import naming
from npuscope.monitor.agent.trace.capture import Capture
from npuscope.monitor.agent.trace.parser import Parser
from npuscope.monitor.agent.trace.request import NEXT_STEP, Refused, Request

if TYPE_CHECKING:
    from npuscope.monitor.agent.trace.tracer import Log


class Job:
    """A planned trace. Its owner calls it under a lock, one call at a time, and looks at `over` after each."""

    def __init__(
        self, request: Request, folder: Path, parser: Parser | None, log: Log, preempted: Callable[[], None]
    ) -> None:
        self.request = request
        self.parser = parser
        self.folder: Path | None = None
        """Where the data is, once it is."""
        self.over = False
        self.began = threading.Event()
        """Of a trace by time."""
        self.done = threading.Event()
        """Set by the owner when it is over."""
        self.problem = ""
        self.due = False
        """Of a trace by time: the next step begins it."""
        self.expired = False
        """Of a trace by time: the next step ends it, on the thread and at the place where it harms least."""
        self.first = -1
        """The first step; -1 while that is open, and for a trace by time."""
        self.end = -1
        """The step after the last one."""
        if request.start_step not in (None, NEXT_STEP) and request.start_step is not None:
            self._count_from(request.start_step)
        self._log = log
        self._output = folder
        self._preempted = preempted
        self._capture: Capture | None = None
        self._recording = False

    @property
    def running(self) -> bool:
        """Whether it has begun."""
        return self._capture is not None

    def by_time(self) -> None:
        """It is one by time from now on, in a process that takes no steps."""
        self.request = replace(self.request, start_step=None, memory=False)
        self.first = self.end = -1

    def step(self, number: int) -> None:
        """The program begins its step `number`. Raises Refused, OSError."""
        if self.request.start_step is None:
            self._step_by_time(number)
            return
        if self._capture is None:
            if self.request.start_step == NEXT_STEP:
                self._count_from(number)
            if number < self.first:
                return
            if number > self.first:
                raise Refused(f"step {self.first} has passed: the process is at step {number}")
            self._prepare()
        if number >= self.end:
            self.finish(at_step=True)
            return
        if not self._recording and number >= self.first + self.request.warmup:
            self._begin()
        if self._recording and self._capture:
            self._capture.step(number)

    def _step_by_time(self, number: int) -> None:
        if self.expired:
            self.finish(at_step=True)
            return
        if self.due:
            self.begin_by_time()
        if self._recording and self._capture:
            self._capture.step(number)

    def begin_by_time(self) -> None:
        """Start to record now, unless it has begun. Raises Refused."""
        if self.running:
            return
        self._prepare()
        self._begin()
        self.began.set()

    def finish(self, partial: str = "", at_step: bool = False) -> None:
        """End, write, and have the data parsed; `partial` is why it is shorter than asked for, `at_step` says that a
        step has just ended. Raises OSError."""
        capture, self._capture = self._capture, None
        self.over = True
        if capture is None or not self._recording:
            self._drop(capture)
            return
        try:
            self.folder = capture.finish(whole_step=at_step, partial=partial)
        finally:
            if self.parser:
                self.parser.release()
        self._log.info(f"the raw data of a trace is in {self.folder}")
        if self.request.analyse and not self.parser:
            self._parse(self.folder, inline=not partial)

    def close(self) -> None:
        """The process ends."""
        if self._recording:
            self._log.warning("the process ends during a trace, which is shorter than asked for")
        self.finish("the process ended")

    def cancel(self) -> None:
        """There will be no trace."""
        self.over = True
        self.began.set()  # nobody waits for it any more
        capture, self._capture = self._capture, None
        self._drop(capture)

    def _drop(self, capture: Capture | None) -> None:
        if capture is not None:
            capture.cancel()
        if self.parser:
            self.parser.release()

    def _count_from(self, number: int) -> None:
        self.first, self.end = number, number + self.request.warmup + self.request.steps

    def _prepare(self) -> None:
        now = time.time()
        folder = naming.trace_folder(self._output, now)
        capture = Capture(self.request, folder, self._preempted, self._log.warning)
        capture.prepare()
        self._capture = capture
        if self.parser:
            self.parser.tell(folder)
        if self.request.device and not capture.devices:
            self._log.info("there is no device in this process: the trace is of the processor")

    def _begin(self) -> None:
        assert self._capture is not None
        self._capture.begin()
        self._recording = True

    def _parse(self, folder: Path, inline: bool) -> None:
        """Parse here and now; a trace that was cut short because something waits is parsed by a process."""
        if not inline:
            with contextlib.suppress(OSError):
                parser = Parser()
                parser.tell(folder)
                parser.release()
                self.parser = parser
                return
        from npuscope.monitor.agent.trace.parsing.deliver import deliver

        try:
            deliver(folder)
            self._log.info(f"parsed {folder}")
        except Exception as error:
            self.problem = f"{folder} was not parsed: {error!r}; the raw data is there: npuscope monitor parse {folder}"
