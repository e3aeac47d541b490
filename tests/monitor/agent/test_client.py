"""The agent's line against daemons made of a socket each: late, wrong and strange answers, and none."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.parts import Counter

from npuscope.monitor.agent.client import CONTROL, DATA, Client
from npuscope.monitor.agent.family import family
from npuscope.monitor.protocol.fabric import Channel, Context, Poll, Status, Types

START = "NPU_MONITOR_START=true\nNPU_MONITOR_STOP=false"


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    client = Client(str(folder))
    yield client
    client.close()


def test_it_introduces_itself_and_asks(counter: Counter, client: Client) -> None:
    assert not client.acquainted
    assert client.introduce(Status(Channel.TRACE, 0, pid=os.getpid()))
    assert counter.take() == Context(-1, os.getpid(), 0)
    assert counter.take() == Status(Channel.TRACE, 0, pid=os.getpid())
    assert client.acquainted
    assert client.ask()
    poll = counter.take()
    assert isinstance(poll, Poll) and poll.types == Types(3) and poll.job == 0
    assert poll.pids[:2] == (os.getpid(), os.getppid()) and len(poll.pids) <= 6
    # Whoever answers finds an abstract name of 52 characters between two NULs.
    assert (
        len(counter.source) == 54 and counter.source.startswith(b"\0dynoconfigclient") and counter.source[-1:] == b"\0"
    )
    counter.answer(START)
    assert client.receive(20) == [START]
    assert client.receive(0) == []


def test_a_late_answer_is_not_the_answer_to_the_next_question(counter: Counter, client: Client) -> None:
    client.ask()
    counter.take()
    assert client.receive(0.01) == []
    client.ask()
    counter.take()
    counter.answer(START)  # to the first
    counter.answer("")  # to the second
    assert client.receive(20) == [START]
    client.ask()
    counter.take()
    counter.answer("A=1")
    assert client.receive(20) == ["A=1"]  # not one behind


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        ("\1\0\0\0", b"ctxt", None),
        ("\1\0\0\0", b"req", None),
        ("", b"req", None),
        (START, b"req", 7),
        (START, b"data", None),
    ],
)
def test_what_is_no_configuration_is_passed_over(
    counter: Counter, client: Client, text: str, name: bytes, size: int | None
) -> None:
    client.ask()
    counter.take()
    counter.answer(text, name, size)
    counter.control.sendto(b"short", counter.source)
    counter.answer("A=1")
    assert client.receive(20) == ["A=1"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_gives_no_orders(counter: Counter, client: Client) -> None:
    client.ask()
    counter.take()
    if (child := os.fork()) == 0:
        try:
            os.setuid(65533)
            counter.answer(START)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    counter.answer("A=1")
    assert client.receive(20) == ["A=1"]


def test_a_long_configuration_arrives_whole(counter: Counter, client: Client) -> None:
    client.ask()
    counter.take()
    counter.answer("X=" + "y" * 100_000)
    (text,) = client.receive(20)
    assert len(text) == 100_002


def test_without_a_daemon_everything_fails_quietly(client: Client) -> None:
    assert not client.ask() and not client.introduce() and not client.measure(b"{}")
    assert not client.tell(Status(Channel.MONITOR, 0)) and client.receive(0) == [] and not client.acquainted


def test_the_tries_are_those_of_the_protocol() -> None:
    assert (CONTROL.first, CONTROL.tries) == (0.010, 10) and (DATA.first, DATA.tries) == (0.001, 5)
    assert sum(DATA.first * 2**number for number in range(DATA.tries)) == pytest.approx(0.031)


def test_a_dead_daemon_is_tried_again_until_it_is_back(folder: Path, client: Client) -> None:
    dead = Counter(folder)
    dead.close()  # the file stays: the connection is refused
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(client.ask()))
    thread.start()
    back = Counter(folder)
    assert isinstance(back.take(), Poll)
    thread.join(20)
    assert answers == [True]
    back.close()


def test_nothing_is_tried_again_once_the_process_ends(folder: Path, client: Client) -> None:
    Counter(folder).close()
    answers: list[float] = []

    def ask() -> None:
        client.ask()
        answers.append(time.monotonic())

    thread = threading.Thread(target=ask)
    thread.start()
    begin = time.monotonic()
    client.hang_up()
    thread.join(20)
    assert answers and answers[0] - begin < 4  # the tries alone would take longer
    assert not client.tell(Status(Channel.MONITOR, -1))


def test_another_daemon_is_a_stranger(folder: Path, counter: Counter, client: Client) -> None:
    client.introduce()
    assert client.acquainted
    other = Counter(folder)  # binds a file of its own
    assert not client.acquainted
    client.introduce()
    assert client.acquainted
    other.close()


def test_a_measurement_that_finds_no_room_is_given_up_soon(counter: Counter, client: Client) -> None:
    sent = 0
    while client.measure(b'{"kind":"API"}'):
        sent += 1
        assert sent < 100_000
    assert sent > 0
    begin = time.thread_time()
    assert not any(client.measure(b"{}") for _ in range(200))  # no more waiting for each of them
    assert time.thread_time() - begin < 2
    assert counter.data.recv(65536)[8:12] == b"data"


def test_a_process_that_may_open_nothing_goes_on(
    folder: Path, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    real = socket.socket
    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", none_left)
        client = Client(str(folder))
        assert not client.ask() and client.receive(0) == []
        client.wake()
    assert socket.socket is real and client.ask()
    client.close()


def test_a_family_ends_at_the_top() -> None:
    assert family()[0] == os.getpid() and 1 not in family()[1:] and family(2**22 + 1) == (2**22 + 1,)
