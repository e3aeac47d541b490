"""``PyDynamicMonitorProxy``: the calls by which torch_npu and MindSpore drive the monitor inside a process, in place
of our own agent, which polls by itself.

The caller decides who does what: torch_npu registers and polls in a process of its own, and hands the monitor's
commands to every rank. So each call works without the others having been made before.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections import deque
from collections.abc import Mapping
from functools import partial

from npuscope.monitor.agent import equipment, occupancy, starting
from npuscope.monitor.agent.agent import GONE, IDLE, MONITOR_RUNS, RUNNING, TRACE_RUNS
from npuscope.monitor.agent.client import Client
from npuscope.monitor.agent.collector import Collector
from npuscope.monitor.agent.commands import Refused, read_command
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.worker import Worker
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.fabric import Channel, Status
from npuscope.monitor.protocol.standing import Standing

ANSWER_SECONDS = 0.09
"""How long an answer is waited for; the vendor's plug-in waits 0.05 s, Kineto 0.09 s. A later one comes with the next
poll."""
STEPS = ("current_step", "start_step", "stop_step")
UNSAID = -1


class _State:
    """What the one proxy of a process holds."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.log = Log()
        self.client = Client()
        self.registered = False
        self.texts: deque[str] = deque()
        self.trace = Status(Channel.TRACE, IDLE, pid=self.pid)
        self.collector = Collector(
            lambda: equipment.sources(self.log), equipment.builder(self._measure), self.log, self.told,
            self._in_the_way, equipment.parallel_groups,
        )  # fmt: skip
        self.worker = Worker(self.collector)
        occupancy.enter(PyDynamicMonitorProxy, self._occupies)

    def told(self, standing: Standing) -> None:
        """Where the monitor stands has changed."""
        self.client.tell(standing.status(self.pid))

    def register(self, device: int) -> bool:
        """Register as the process of that device. False when no daemon listens."""
        before, self.client = self.client, Client(device=device)
        before.close()
        self.registered = self.introduce()
        return self.registered

    def introduce(self) -> bool:
        """Register, and say where everything stands. False when no daemon listens."""
        return self.client.introduce(self.trace, self.collector.standing.status(self.pid))

    def close(self) -> None:
        """End the monitor, tell the daemon, let go."""
        self.client.hang_up()
        self.worker.close()
        for channel in Channel:
            self.client.tell(Status(channel, GONE, pid=self.pid))
        self.client.close()
        self.log.close()

    def _measure(self, payload: bytes) -> bool:
        return self.client.measure(payload)

    def _in_the_way(self) -> str:
        if self.trace.status == RUNNING:
            return TRACE_RUNS
        return occupancy.in_the_way_of(PyDynamicMonitorProxy)

    def _occupies(self) -> str:
        if self.trace.status == RUNNING:
            return TRACE_RUNS
        return MONITOR_RUNS if self.collector.running else ""


class PyDynamicMonitorProxy:
    """The process's proxy; there is one, however often it is called for. Nothing here raises."""

    _one: PyDynamicMonitorProxy | None = None
    _state: _State | None = None

    def __new__(cls) -> PyDynamicMonitorProxy:
        """The one."""
        cls._one = cls._one or super().__new__(cls)
        return cls._one

    @classmethod
    def init_dyno(cls, npu_id: int) -> bool:
        """Register with the daemon as the process of this device. False when there is none."""
        state = cls._own()
        if state.registered:
            state.log.warning("the proxy is registered already")
            return True
        starting.stop()  # the caller polls from now on
        return state.register(npu_id)

    @classmethod
    def poll_dyno(cls) -> str:
        """Ask the daemon once; the text of a configuration, "" where there is nothing to do."""
        state = cls._own()
        if state.registered and not state.client.acquainted:
            state.introduce()
        state.texts.extend(state.client.receive(0.0))  # what comes from now on answers this question
        asked = time.monotonic()
        if state.client.ask():
            while (left := asked + ANSWER_SECONDS - time.monotonic()) > 0 and state.client.heard < asked:
                state.texts.extend(state.client.receive(left))
        return state.texts.popleft() if state.texts else ""

    @classmethod
    def enable_dyno_npu_monitor(cls, config_map: Mapping[str, str]) -> None:
        """Have a command to the monitor carried out. Returns at once; what came of it goes to log and daemon."""
        state = cls._own()
        try:
            command, skipped = read_command({str(key): str(value) for key, value in config_map.items()})
        except Refused as refusal:
            state.worker.call(partial(state.collector.refuse, refusal))
            return
        except Exception as error:
            state.log.error(Code.TYPE, f"a command to the monitor is a dict of texts: {error!r}")
            return
        for sentence in skipped:
            state.log.warning(sentence)
        state.worker.submit(command)

    @classmethod
    def update_profiler_status(cls, status: Mapping[str, str]) -> None:
        """Report where the caller's profiler stands; that it is gone (-1) is said of the monitor too."""
        state = cls._own()
        try:
            said = int(status["profiler_status"])
            current, first, last = (int(status.get(key, UNSAID)) for key in STEPS)
        except Exception as error:
            state.log.error(Code.PARAM, f"a profiler's status needs profiler_status and whole numbers: {error!r}")
            return
        state.trace = Status(Channel.TRACE, said, current, first, last, state.pid)
        state.client.tell(state.trace)
        if said == GONE:
            state.client.tell(Status(Channel.MONITOR, GONE, pid=state.pid))

    @classmethod
    def finalize_dyno(cls) -> None:
        """Stop the monitor, keep what it has collected, and let go of everything."""
        state, cls._state = cls._state, None
        if state is not None and state.pid == os.getpid():
            occupancy.leave(cls)
            with contextlib.suppress(Exception):
                state.close()

    @classmethod
    def _own(cls) -> _State:
        """This process's state: a fork has not the threads of its parent, and no other process's name."""
        state = cls._state
        if state is None:
            atexit.register(cls.finalize_dyno)
        elif state.pid == os.getpid():
            return state
        else:
            with contextlib.suppress(Exception):
                state.collector.abandon()
                state.client.close()
        cls._state = _State()
        return cls._state
