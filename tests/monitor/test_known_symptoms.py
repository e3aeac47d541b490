"""What users of other daemons have met: each symptom, and that it does not show here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from daemon_process import Daemon, environment

from npuscope.monitor.daemon.inbox import Inbox, Letter
from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.process import Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.replies import outcome_reply
from npuscope.monitor.metrics.intake import Intake
from npuscope.monitor.metrics.record import HOST, Record
from npuscope.monitor.metrics.sampler import Sampler
from npuscope.monitor.metrics.store import Store
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Dialect, Poll, Types

BOTH = Types.EVENTS | Types.ACTIVITIES
DIES_AT_IMPORT = """
import os, signal, socket, sys
from npuscope.monitor.protocol import fabric
endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
endpoint.bind(f"{sys.argv[1]}/dying")
endpoint.sendto(fabric.encode_poll(fabric.Types(3), 0, (os.getpid(), os.getppid())), f"{sys.argv[1]}/dynolog")
endpoint.close()
os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_process_that_polls_and_never_registers_is_known_and_traced(daemon: Daemon) -> None:
    """'No processes were matched' for PyTorch without a device: it sends polls, and no message to register."""
    client, poll = daemon.client(), fabric.encode_poll(BOTH, 0, (os.getpid(), os.getppid()))
    daemon.exchange(client, poll)
    (shown,) = daemon.ask(rpc.simple_request("getStatus"))["processes"]
    assert (shown["pid"], shown["state"]) == (os.getpid(), "idle")
    assert "Matched 1 processes" in daemon.dyno("gputrace", "--log-file", f"{daemon.folder}/x.json").stdout
    assert f"ACTIVITIES_LOG_FILE={daemon.folder}/x.json".encode() in daemon.exchange(client, poll)


def test_workers_come_before_their_launchers() -> None:
    """Only launchers get profiled and workers are missed: both register, and the limit was used up by the first."""
    registry = Registry()
    for launcher, worker in ((10, 11), (20, 21), (30, 31)):
        for pids in ((launcher, 1), (worker, launcher, 1)):
            registry.poll(Poll(BOTH, 0, pids), Sender(Dialect.KINETO, pids[0], 1000, b"a"), 0.0)
    outcome = registry.trigger(Order("A=1", 0, (0,), 3, 1000, Dialect.KINETO, 8.0), 1.0)
    reply = outcome_reply(outcome, {})
    assert reply["activityProfilersTriggered"] == [11, 21, 31]
    skipped = [process for process in reply["processes"] if process["outcome"] == "skipped"]
    assert [(process["pid"], process["launcher"]) for process in skipped] == [(10, True), (20, True), (30, True)]


def test_a_process_that_dies_at_its_first_message_is_gone_and_said_to_be(daemon: Daemon) -> None:
    """Training dies with a segmentation fault at import: the daemon lives on, and does not keep the dead."""
    words = [sys.executable, "-c", DIES_AT_IMPORT, str(daemon.folder)]
    child = subprocess.Popen(words, env=environment(daemon.folder))
    assert child.wait(60) == -signal.SIGSEGV
    assert daemon.ask(rpc.simple_request("getStatus"))["processes"] == []
    deadline = time.monotonic() + 20
    while f"forgot process {child.pid} of job 0: it has ended" not in daemon.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client = daemon.client()
    answer = daemon.exchange(client, fabric.encode_poll(BOTH, 0, (os.getpid(), os.getppid())))
    assert answer == bytes(8) + b"req" + bytes(29)


class Forbidden:
    """A source that the system does not let us read."""

    name = "processor counters"

    def sample(self) -> Iterator[Record]:
        raise PermissionError(1, "Operation not permitted", "/sys/counters")


class Allowed:
    name = "host"

    def sample(self) -> Iterator[Record]:
        yield Record(1.0, HOST, {}, {"uptime": 1})


def test_metrics_that_are_not_permitted_are_named_once_and_the_others_go_on(daemon: Daemon) -> None:
    """No metrics in a container, and not a word why: a counter may not be read, a folder for the log is missing."""
    taken, lines = list[Record](), list[str]()
    sampler = Sampler(0.01, [Forbidden(), Allowed()], taken.extend, lines.append)
    sampler.start()
    deadline = time.monotonic() + 20
    while len(taken) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    sampler.stop()
    assert lines == ["no metrics of the processor counters: [Errno 1] Operation not permitted: '/sys/counters'"]
    words = ["monitor", "daemon", "--port", "0", "--no-http", "--ipc", "directory", "--metrics-log"]
    place = daemon.folder / "missing" / "log"
    done = subprocess.run(
        [sys.executable, "-m", "npuscope", *words, str(place)],
        env=environment(daemon.folder) | {"KINETO_IPC_SOCKET_DIR": ""}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"cannot write the metrics log {place}: No such file or directory" in done.stderr


def measurement(duration: int) -> bytes:
    return json.dumps({"timestamp": 10**9, "duration": duration, "deviceId": 3, "kind": "Kernel"}).encode()


@pytest.fixture
def pair() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes of a job, which have a rank each."""
    words = [sys.executable, "-c", "print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [subprocess.Popen(words, env=os.environ | {"RANK": rank}, **pipes) for rank in "01"]  # type: ignore[call-overload]
    for process in started:
        assert process.stdout.read(1) == b"\n"  # its environment is its own by now
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_figures_of_a_shared_device_are_of_a_process_each(pair: list[subprocess.Popen[bytes]]) -> None:
    """Labels are missing, and every process has the whole device's figures: two share it, and one of them ends."""
    inbox, store, first, second = Inbox(), Store(), *pair
    intake = Intake(inbox, store.put, lambda line: None)
    inbox.put(Letter(first.pid, 0, measurement(100)))
    inbox.put(Letter(second.pid, 0, measurement(30)))
    intake.start()
    deadline = time.monotonic() + 20
    while len(store.latest()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    second.kill()
    second.wait(20)
    inbox.put(Letter(first.pid, 0, measurement(70)))
    inbox.put(Letter(second.pid, 0, measurement(5)))  # sent before its end, read after
    intake.stop()
    found = {(record.labels["pid"], record.labels["rank"]): record for record in store.latest()}
    assert {key: record.values["duration"] for key, record in found.items()} == {
        (str(first.pid), "0"): 70, (str(second.pid), "1"): 5,
    }  # fmt: skip
    assert {record.labels["device"] for record in found.values()} == {"3"}
