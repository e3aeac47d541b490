"""Obeys requests for traces in this process: plans, records, writes, and has the data parsed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from npuscope.monitor.agent.rank import rank
from npuscope.monitor.agent.trace import naming
from npuscope.monitor.agent.trace.job import Job
from npuscope.monitor.agent.trace.parser import Parser
from npuscope.monitor.agent.trace.request import NEXT_STEP, Refused, Request, read_request
from npuscope.monitor.protocol.fabric import Channel, Status

IDLE, RUNNING, READY = 0, 1, 2
"""The vendor's numbers for the state of a trace."""
WAIT_VARIABLE = "NPUSCOPE_TRACE_STEP_WAIT"
WAIT_SECONDS = 30.0
"""For so long a process that has never taken a step is waited for; then the trace is taken by time."""
PATIENCE_SECONDS = 2.0
"""For so long the next step of a program is waited for that has taken some."""
NAME = "npuscope-trace"
CLOCK_SECONDS = 0.5
"""How often the wall clock is looked at while its time is awaited: it may be set meanwhile."""


class Log(Protocol):
    """Where sentences go."""

    def info(self, text: str) -> None:
        """Something that happened as it should."""

    def warning(self, text: str) -> None:
        """Something that a person may want to change."""


class Tracer:
    """Takes one trace at a time; `step` may be called on any thread, and costs an addition while none is planned."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._job: Job | None = None
        self._step = 0
        self._parsers: dict[int, Path] = {}
        self._failed = 0
        self.problem = ""
        """What went wrong last, in words."""

    @property
    def status(self) -> Status:
        """Idle, running or ready; the current step, and the first and the one after the last of the trace. While it is
        idle, the two count the parsers at work and those that failed; a daemon of the vendor's passes over them."""
        job = self._job
        if job is None:
            return Status(Channel.TRACE, IDLE, self._step, len(self._parsers), self._failed)
        return Status(Channel.TRACE, RUNNING if job.running else READY, self._step, job.first, job.end)

    @property
    def parsing(self) -> tuple[int, ...]:
        """The processes that parse traces of this one."""
        return tuple(self._parsers)

    def obey(self, pairs: Mapping[str, str]) -> None:
        """Plan the trace that a configuration asks for. What is not done is logged, with the reason."""
        try:
            request, notes = read_request(pairs)
            for note in notes:
                self._log.warning(note)
            self._plan(request)
        except Refused as reason:
            self._refuse(str(reason))
        except OSError as error:
            self._refuse(f"{error.filename or pairs.get('ACTIVITIES_LOG_FILE')}: {error.strerror}")

    def step(self) -> None:
        """The program begins its next step."""
        self._step += 1
        if self._job is not None:
            with self._lock:
                if self._job is not None:
                    self._guarded(self._job, lambda job: job.step(self._step))

    def close(self) -> None:
        """The process ends: what was recorded is written."""
        with self._lock:
            if self._job is not None:
                self._guarded(self._job, lambda job: job.close())

    def abandon(self) -> None:
        """In a fork: all that is going on is the parent's."""
        self._job, self._parsers = None, {}

    def _plan(self, request: Request) -> None:
        own = rank()
        if request.ranks is not None and own not in request.ranks:
            listed = ",".join(map(str, sorted(request.ranks))) or "nobody"
            self._log.info(f"no trace here: this is rank {own}, and the trace is of {listed}")
            return
        folder = naming.require_folder(request.folder)
        for name in naming.sweep(folder):
            self._log.info(f"removed {folder / name}, which a process left that died")
        with self._lock:
            self._require_possible(request)
            if self._job is not None:
                self._log.warning("a later request takes the place of one that has not begun")
                self._job.cancel()
                self._job.done.set()
            parser = self._parser() if request.asynchronous else None
            self._job = Job(request, folder, parser, self._log, self._preempted)
        self._log.info(f"a trace is planned: {_when(request)}, into {folder}")
        threading.Thread(target=self._attend, args=(self._job,), name=NAME, daemon=True).start()

    def _require_possible(self, request: Request) -> None:
        if self._job is not None and self._job.running:
            raise Refused("a trace is being taken already")
        start = request.start_step
        if start not in (None, NEXT_STEP) and start is not None and start <= self._step:
            raise Refused(f"step {start} has passed: the process is at step {self._step}")
        late = time.time() * 1000 - request.start_ms
        if request.start_ms and late > request.duration_ms:
            raise Refused(f"the start time is {late / 1000:.1f} s ago: the trace would be over")

    def _parser(self) -> Parser | None:
        try:
            return Parser()
        except OSError as error:
            self._fail(f"no process to parse in ({error.strerror}): the data stays raw")
            return None

    def _attend(self, job: Job) -> None:
        """What a trace needs that no step brings: the time to begin and to end, and a parser's end."""
        if job.request.start_step is None or self._never_steps(job):
            self._by_time(job)
        job.done.wait()
        if job.parser is not None and job.folder is not None:
            self._watch(job.parser, job.folder)

    def _never_steps(self, job: Job) -> bool:
        """Whether the process has not taken a single step in the time allowed. The trace is then one by time."""
        wait = _seconds(os.environ.get(WAIT_VARIABLE, ""))
        end = time.monotonic() + wait
        while not self._step and (left := end - time.monotonic()) > 0:
            if job.done.wait(min(left, CLOCK_SECONDS)):
                return False
        with self._lock:
            if self._step or self._job is not job:
                return False
            stepwise, memory = job.request.start_step is not None, job.request.memory
            job.by_time()
        if stepwise and memory:
            self._log.warning("no memory is recorded in a process that takes no steps")
        what = f"{job.request.duration_ms} ms are traced in place of steps" if stepwise else "no memory is recorded"
        self._log.warning(
            f"the process has taken no step in {wait:g} s: {what}. A loop without an optimizer of PyTorch's calls "
            "npuscope.monitor.agent.step()"
        )
        return True

    def _by_time(self, job: Job) -> None:
        """A trace by time begins and ends with steps of the program, where it takes any: on its own thread, in the
        midst of nothing. Only a program that takes none for a while is not waited for."""
        while (left := job.request.start_ms / 1000 - time.time()) > 0:
            if job.done.wait(min(left, CLOCK_SECONDS)):
                return
        if self._step or (job.request.memory and not self._never_steps(job)):
            job.due = True
            job.began.wait(None if job.request.memory else PATIENCE_SECONDS)
        self._act(job, lambda one: one.begin_by_time())
        if job.done.wait(job.request.duration_ms / 1000):
            return
        job.expired = True
        # Where memory is recorded, the thread that began is the only one that can end.
        if not job.done.wait(None if job.request.memory else PATIENCE_SECONDS if self._step else 0):
            self._act(job, lambda one: one.finish())

    def _act(self, job: Job, action: Callable[[Job], None]) -> None:
        with self._lock:
            if self._job is job:
                self._guarded(job, action)

    def _preempted(self) -> None:
        """The program starts a profiler of its own."""
        with self._lock:
            if self._job is not None:
                why = "the program started a profiler of its own, which ended this trace"
                self._log.warning(why)
                self._guarded(self._job, lambda job: job.finish(why))

    def _guarded(self, job: Job, action: Callable[[Job], None]) -> None:
        """Carry a trace on; it is over when it says so, and when it fails."""
        try:
            action(job)
        except Refused as reason:
            job.cancel()
            self._refuse(str(reason))
        except OSError as error:
            job.cancel()
            self._fail(f"the trace is lost: {error.filename or job.request.folder}: {error.strerror}")
        except Exception as error:
            job.cancel()
            self._fail(f"the trace is lost: {error!r}")
        if job.over:
            if job.problem:
                self._fail(job.problem)
            if self._job is job:
                self._job = None
            job.done.set()

    def _watch(self, parser: Parser, folder: Path) -> None:
        self._parsers[parser.pid] = folder
        parser.watch(folder, lambda problem: self._parsed(parser.pid, problem))

    def _parsed(self, pid: int, problem: str) -> None:
        folder = self._parsers.pop(pid, None)
        if problem:
            self._fail(problem)
        else:
            self._log.info(f"parsed {folder}")

    def _refuse(self, reason: str) -> None:
        self.problem = f"the trace is refused: {reason}"
        self._log.warning(self.problem)

    def _fail(self, problem: str) -> None:
        self.problem = problem
        self._failed += 1
        self._log.warning(problem)


def _when(request: Request) -> str:
    """In words, when a trace is to be taken."""
    if request.start_step is None:
        start = "now" if not request.start_ms else f"at {request.start_ms} ms"
        return f"{request.duration_ms} ms from {start}"
    first = "the next one" if request.start_step == NEXT_STEP else f"step {request.start_step}"
    return f"{request.steps} steps from {first}"


def _seconds(word: str) -> float:
    try:
        return max(float(word), 0.0) if word else WAIT_SECONDS
    except ValueError:
        return WAIT_SECONDS
