"""The agent of one process: polls the daemon and hands what it is told to the monitor or to the tracer.

Its thread is a daemon thread and sleeps but for a datagram each way a second. Nothing here raises into the job.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from npuscope.monitor.agent import occupancy
from npuscope.monitor.agent.client import Client
from npuscope.monitor.agent.collector import Build, Collector
from npuscope.monitor.agent.commands import Refused, read_command
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.settings import PERIOD
from npuscope.monitor.agent.sources.source import Source
from npuscope.monitor.agent.steps import install, listen
from npuscope.monitor.agent.tracing import Tracer
from npuscope.monitor.agent.worker import Worker
from npuscope.monitor.protocol.audience import MONITOR_KEY
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.config import loosely_read
from npuscope.monitor.protocol.fabric import Channel, Status
from npuscope.monitor.protocol.standing import Standing

NAME = "npuscope-agent"
IDLE, RUNNING, GONE = 0, 1, -1
"""What the vendor's plug-in reports; `GONE` when it leaves."""
JOIN_SECONDS = 2.0
TRACE_RUNS = "a trace is running in this process, and the two exclude each other"
MONITOR_RUNS = "the monitor is running in this process, and the two exclude each other"


class Agent:
    """One process's agent. `begin` starts it, `step` tells it of the job's steps, `close` ends it."""

    def __init__(
        self,
        client: Client,
        log: Log,
        sources: Callable[[], Sequence[Source]],
        build: Callable[[Client], Build],
        tracer: Callable[[], Tracer] | None = None,
        groups: Callable[[], str] = str,
        period: float = PERIOD,
        awaited: Callable[[], bool] | None = None,
    ) -> None:
        """`build` makes, for a client to send by, what makes processors. `tracer` is called on the agent's thread.
        `awaited` says whether the process trains by now; until it does, or steps, nobody hears of it."""
        self.pid = os.getpid()
        self.log = log
        self.client = client
        self.steps = 0
        self._counted_by_the_job = False
        self._period = period
        self._awaited = awaited
        self._make_tracer = tracer
        self._tracer: Tracer | None = None
        self._collector = Collector(sources, build(client), log, self._stands, self._trace_in_the_way, groups)
        self._worker = Worker(self._collector)
        self._reports: deque[Standing] = deque()
        self._standing = Standing()
        self._told_trace = Status(Channel.TRACE)
        self._stopping = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    @property
    def standing(self) -> Standing:
        """Where its monitor stands."""
        return self._standing

    def begin(self) -> None:
        """Start to poll. Returns at once."""
        occupancy.enter(self, self._occupies)
        listen(self._stepped)
        self._safely("steps are not counted", install)
        self._thread.start()

    def appear(self) -> None:
        """Do not wait for the process to train."""
        self._awaited = None

    def step(self) -> None:
        """The job has taken a step: for loops without an optimizer of PyTorch's. Once it has been called, optimizers
        are not counted any more."""
        if not self._counted_by_the_job:
            self._counted_by_the_job = True
            listen(None)
        self._stepped()

    def step_taken(self) -> None:
        """An optimizer has taken a step of which the agent has not heard."""
        self._stepped()

    def _stepped(self) -> None:
        self.steps += 1
        self._awaited = None
        self._safely("a source did not take a step", partial(self._collector.step, self.steps))
        tracer = self._tracer
        if tracer is None:
            return
        try:
            tracer.step()
            if tracer.status.status != self._told_trace.status:  # a trace begins or ends
                self.client.wake()
        except Exception as error:
            self.log.warn_once(f"the trace did not take a step: {error!r}")

    def close(self) -> None:
        """End: what was collected is kept, the daemon is told, and it is quick where there is no daemon."""
        if self._closed or os.getpid() != self.pid:
            return
        self._closed = True
        self._stopping.set()
        self.client.hang_up()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(JOIN_SECONDS)
        if self._tracer:
            self._safely("the trace was not ended", self._tracer.close)
        self._collector.leave()
        self._safely("the monitor was not ended", self._worker.close)
        occupancy.leave(self)
        listen(None)
        for channel in Channel:
            self.client.tell(Status(channel, GONE, pid=self.pid))
        self.log.close()

    def abandon(self) -> None:
        """In a fork: its threads are the parent's."""
        self._closed = True
        self._collector.abandon()
        if self._tracer:
            getattr(self._tracer, "abandon", lambda: None)()
        self.client.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round()
            except Exception as error:  # whatever it was, the next poll may go well
                self.log.warn_once(f"a poll failed: {error!r}")
                self._stopping.wait(self._period)

    def _round(self) -> None:
        """Everything between one question and the next."""
        install(from_elsewhere=True)
        if self._awaited is not None and not self._awaited():
            self._stopping.wait(self._period)
            return
        self._awaited = None
        self._equip()
        end = time.monotonic() + self._period
        if not self.client.acquainted:
            self._introduce()
        asked = self.client.ask()
        while not self._stopping.is_set():
            texts = self.client.receive(end - time.monotonic())
            for text in texts:
                self._obey(text)
            self._report()
            # Whoever was told something asks again at once: more may wait.
            if (asked and texts) or time.monotonic() >= end:
                return

    def _equip(self) -> None:
        """Get the tracer, which counts steps from the first one on."""
        make, self._make_tracer = self._make_tracer, None
        if make is None:
            return
        try:
            tracer = make()
            for _ in range(self.steps):
                tracer.step()
            self._tracer = tracer
        except Exception as error:
            self.log.warn_once(f"this process takes no traces: {error!r}")

    def _introduce(self) -> None:
        self._reports.clear()
        self._told_trace = self._trace_status()
        self.client.introduce(self._told_trace, self._standing.status(self.pid))

    def _stands(self, standing: Standing) -> None:
        """The collector's word, on its own thread; the agent's thread passes it on."""
        self._standing = standing
        self._reports.append(standing)
        self.client.wake()

    def _report(self) -> None:
        while self._reports:
            self.client.tell(self._reports.popleft().status(self.pid))
        status = self._trace_status()
        if status != self._told_trace:
            self._told_trace = status
            self.client.tell(status)

    def _trace_status(self) -> Status:
        if self._tracer is None:
            return Status(Channel.TRACE, IDLE, self.steps, pid=self.pid)
        said = self._tracer.status
        return Status(Channel.TRACE, said.status, said.current_step, said.start_step, said.stop_step, self.pid)

    def _trace_in_the_way(self) -> str:
        return TRACE_RUNS if self._traces else occupancy.in_the_way_of(self)

    @property
    def _traces(self) -> bool:
        return self._tracer is not None and self._tracer.status.status == RUNNING

    def _occupies(self) -> str:
        if self._traces:
            return TRACE_RUNS
        return MONITOR_RUNS if self._collector.running else ""

    def _obey(self, text: str) -> None:
        pairs = loosely_read(text)
        if MONITOR_KEY in pairs:
            self._monitor(pairs)
        else:
            self._trace(pairs)

    def _monitor(self, pairs: Mapping[str, str]) -> None:
        try:
            command, skipped = read_command(pairs)
        except Refused as refusal:
            self._worker.call(partial(self._collector.refuse, refusal))
            return
        for sentence in skipped:
            self.log.warning(sentence)
        self._worker.submit(command)

    def _trace(self, pairs: Mapping[str, str]) -> None:
        if self._tracer is None:
            self.log.error(Code.NOT_SUPPORT, "this process takes no traces")
        elif reason := MONITOR_RUNS if self._collector.running else occupancy.in_the_way_of(self):
            self.log.error(Code.UNAVAIL, f"the trace is refused: {reason}")
        else:
            self._safely("the trace was not planned", partial(self._tracer.obey, pairs))

    def _safely(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            self.log.error(Code.INTERNAL, f"{what}: {error!r}")
