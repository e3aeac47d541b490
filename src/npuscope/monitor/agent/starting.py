"""The one agent of a process: how it starts, what becomes of it in a fork, and its end."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable

from npuscope.monitor.agent import equipment
from npuscope.monitor.agent.agent import Agent
from npuscope.monitor.agent.client import Client
from npuscope.monitor.agent.groups import parallel_groups
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.rank import initialised
from npuscope.monitor.agent.settings import period
from npuscope.monitor.agent.steps import install, listen


class _Seat:
    """Holds the agent of this process."""

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self.lock = threading.Lock()
        self.prepared = False
        self.waits = False
        """Whether this is a fork that gets an agent with its first step."""


_seat = _Seat()


def torch_is_there() -> None:
    """PyTorch has been imported, on this thread."""
    install()


def current() -> Agent | None:
    """The agent of this process, if it has one."""
    return _seat.agent


def start() -> Agent:
    """Start the agent, or return the one that runs."""
    return _start(None)


def start_when_training() -> Agent:
    """The same for a process that may not train at all: nobody hears of it before its first step, or before its
    process group is there."""
    return _start(lambda: initialised() is not None)


def _start(awaited: Callable[[], bool] | None) -> Agent:
    with _seat.lock:
        if _seat.agent is not None:
            if awaited is None:
                _seat.agent.appear()
            return _seat.agent
        _prepare()
        log = Log()
        equipment.supply_vendor_names(log)
        _seat.agent = Agent(
            Client(), log, lambda: equipment.sources(log), lambda client: equipment.builder(client.measure),
            lambda: equipment.tracer(log), parallel_groups, period(), awaited,
        )  # fmt: skip
        _seat.agent.begin()
        return _seat.agent


def step() -> None:
    """The job has taken a step; a fork that waited for one gets its agent now."""
    if _seat.waits:
        _seat.waits = False
        start()
    if _seat.agent is not None:
        _seat.agent.step()


def stop() -> None:
    """End the agent; another may be started afterwards."""
    with _seat.lock:
        agent, _seat.agent = _seat.agent, None
    if agent is not None:
        agent.close()


def _prepare() -> None:
    if not _seat.prepared:
        _seat.prepared = True
        atexit.register(stop)
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    """A fork has the agent's memory and none of its threads. One that trains gets an agent of its own, with its first
    step; most forks load data and need none."""
    global _seat
    before, _seat = _seat, _Seat()  # its lock may be held by a thread that is not here
    _seat.prepared = True
    if before.agent is None and not before.waits:
        return
    if before.agent is not None:
        before.agent.abandon()
    _seat.waits = True
    listen(_inherit)


def _inherit() -> None:
    _seat.waits = False
    start().step_taken()
