"""An agent and a daemon that the test plays by hand: what is said in which order, and who excludes whom."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from agent.parts import Counter, OwnProcessor, OwnSource

from npuscope.monitor.agent.agent import Agent
from npuscope.monitor.agent.client import Client
from npuscope.monitor.agent.log import Log
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.fabric import Channel, Context, Poll, Status
from npuscope.monitor.protocol.standing import Ending, Standing, standing

START = "NPU_MONITOR_START=true\nMSPTI_ACTIVITY_KIND=Kernel\nREQUEST_TRACE_ID=1\n"
STOP = "NPU_MONITOR_START=false\nNPU_MONITOR_STOP=true"
TRACE = "ACTIVITIES_LOG_FILE=/tmp/x\nPROFILE_START_STEP=-1"
PID = os.getpid()


class OwnTracer:
    """Stands where the test puts it."""

    def __init__(self) -> None:
        self.status = Status(Channel.TRACE, 0)
        self.obeyed: list[Mapping[str, str]] = []
        self.steps = 0
        self.closed = False

    def obey(self, pairs: Mapping[str, str]) -> None:
        self.obeyed.append(pairs)
        self.status = Status(Channel.TRACE, 2, 5, 7, 9)

    def step(self) -> None:
        self.steps += 1

    def close(self) -> None:
        self.closed = True


class Played:
    """An agent at the seams of which the test sits."""

    def __init__(self, folder: Path, awaited: bool | None = None) -> None:
        self.tracer, self.source = OwnTracer(), OwnSource()
        self.made: list[OwnProcessor] = []
        self.trains = not awaited
        self.agent = Agent(
            Client(str(folder)), Log(str(folder)), lambda: [self.source], lambda client: self._build,
            lambda: self.tracer, period=0.2, awaited=None if awaited is None else lambda: self.trains,
        )  # fmt: skip

    def _build(self, *what: object) -> OwnProcessor:
        self.made.append(OwnProcessor(*what))  # type: ignore[arg-type]
        return self.made[-1]


@pytest.fixture
def played(folder: Path, counter: Counter) -> Iterator[Played]:
    played = Played(folder)
    played.agent.begin()
    yield played
    played.agent.close()


def test_the_first_words(played: Played, counter: Counter) -> None:
    assert counter.take() == Context(-1, PID, 0)
    assert counter.take() == Status(Channel.TRACE, 0, -1, -1, -1, PID)
    assert counter.take() == Standing().status(PID)
    assert isinstance(counter.take(), Poll)


def test_a_monitor_from_start_to_end_and_a_trace_in_between(played: Played, counter: Counter) -> None:
    assert standing(counter.status(Channel.MONITOR)) == Standing()
    counter.order(START)
    assert standing(counter.status(Channel.MONITOR)) == Standing(True)
    counter.order(TRACE)  # whatever made the daemon hand it out
    counter.order("")
    assert played.tracer.obeyed == []
    counter.order(STOP)
    assert standing(counter.status(Channel.MONITOR)) == Standing(ending=Ending.STOPPED)
    assert played.made[0].closed == 1
    counter.order(TRACE)
    assert counter.status(Channel.TRACE) == Status(Channel.TRACE, 2, 5, 7, 9, PID)
    assert played.tracer.obeyed[0]["PROFILE_START_STEP"] == "-1"
    played.tracer.status = Status(Channel.TRACE, 1, 7, 7, 9)
    assert counter.status(Channel.TRACE).status == 1
    counter.order(START)
    assert standing(counter.status(Channel.MONITOR)) == Standing(code=Code.UNAVAIL, ending=Ending.STOPPED)


def test_several_orders_are_fetched_one_after_another(played: Played, counter: Counter) -> None:
    for number in range(5):
        counter.order(START if number % 2 == 0 else STOP)
    while len(played.made) < 3 or played.agent.standing != Standing(True, ending=Ending.STOPPED):
        counter.order("")
    assert [made.closed for made in played.made] == [1, 1, 0]


def test_the_last_words(played: Played, counter: Counter) -> None:
    counter.order(START)
    counter.status(Channel.MONITOR)
    played.agent.close()
    assert played.tracer.closed and played.made[0].closed == 1
    assert counter.status(Channel.TRACE) == Status(Channel.TRACE, -1, pid=PID)
    assert counter.status(Channel.MONITOR) == Status(Channel.MONITOR, -1, pid=PID)
    played.agent.close()  # again: nothing


def test_steps_are_counted_and_told(played: Played, counter: Counter) -> None:
    counter.order("")
    for _ in range(3):
        played.agent.step()
    assert played.agent.steps == 3 and played.tracer.steps == 3


def test_who_may_not_train_is_not_heard_of_until_it_does(folder: Path, counter: Counter) -> None:
    played = Played(folder, awaited=True)
    played.agent.begin()
    counter.control.settimeout(1)
    with pytest.raises(TimeoutError):
        counter.take()
    counter.control.settimeout(20)
    played.agent.step()
    assert counter.take() == Context(-1, PID, 0)
    played.agent.close()


def test_a_daemon_that_takes_the_place_of_another_hears_all(folder: Path, played: Played, counter: Counter) -> None:
    counter.order(START)
    assert standing(counter.status(Channel.MONITOR)) == Standing(True)
    other = Counter(folder)
    assert other.take() == Context(-1, PID, 0)
    assert standing(other.status(Channel.MONITOR)) == Standing(True)
    other.close()
