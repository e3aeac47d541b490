"""Why nothing is traced: the daemon looks at what is registered, then at the processes themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import SOURCE, Daemon

from npuscope.monitor.daemon import absence
from npuscope.monitor.daemon.absence import explained, why_absent
from npuscope.monitor.daemon.order import Order, Outcome
from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.audience import audience
from npuscope.monitor.protocol.fabric import Dialect, Types

SLEEP = "import time; time.sleep(120)"
POLL_ONCE = """
import os, socket, sys, time
from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.audience import audience
endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
endpoint.bind(f"{sys.argv[1]}/launcher")
endpoint.sendto(fabric.encode_poll(fabric.Types(3), 0, (os.getpid(), os.getppid())), f"{sys.argv[1]}/dynolog")
endpoint.recv(100)
print("registered", flush=True)
time.sleep(120)
"""


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python processes with a given environment and no variable of the daemon besides."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, **variables: str) -> subprocess.Popen[str]:
        bare = {key: value for key, value in os.environ.items() if "_USE_DAEMON" not in key and "KINETO" not in key}
        command = [sys.executable, *words] if words else [sys.executable, "-c", SLEEP]
        process = subprocess.Popen(command, env=bare | variables, stdout=subprocess.PIPE, text=True)
        started.append(process)
        wait_for_image(process.pid, command[-1])
        return process

    yield begin
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert process.stdout
        process.stdout.close()


def wait_for_image(pid: int, word: str) -> None:
    """Until the new program has its own environment, and no longer that of this test."""
    deadline = time.monotonic() + 30
    while word.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reason(daemon: Daemon, *words: str) -> str:
    done = daemon.dyno("gputrace", "--log-file", f"{daemon.folder}/x.json", *words)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("dyno: "), done.stderr
    return lines[0]


def test_a_process_that_was_not_started_for_it(daemon: Daemon, child) -> None:
    pid = child().pid
    assert f"process {pid} runs, but was started without KINETO_USE_DAEMON=1" in reason(daemon, "--pids", str(pid))


def test_a_process_that_looks_elsewhere(daemon: Daemon, child) -> None:
    pid = child(KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR="/elsewhere").pid
    said = reason(daemon, "--pids", str(pid))
    assert f"process {pid} runs with KINETO_USE_DAEMON=1 and has not registered: " in said
    assert f"its KINETO_IPC_SOCKET_DIR is /elsewhere, the daemon's is {daemon.folder}" in said


def test_a_process_that_has_not_come_so_far(daemon: Daemon, child) -> None:
    pid = child(KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=str(daemon.folder)).pid
    assert "has not registered: it has not imported torch yet" in reason(daemon, "--pids", str(pid))


def test_a_process_that_is_not_there(daemon: Daemon, child) -> None:
    process = child()
    process.kill()
    process.wait(10)
    assert f"there is no process {process.pid} on the daemon's host" in reason(daemon, "--pids", str(process.pid))


def test_the_wrong_job(daemon: Daemon) -> None:
    client = daemon.client()
    daemon.exchange(client, fabric.encode_poll(Types(3), 7, (os.getpid(), os.getppid())))
    assert "no process has job id 5; registered: 7" in reason(daemon, "--job-id", "5")


def test_who_is_registered_under_another_job_or_for_another_command_is_not_said_to_be_missing(daemon: Daemon) -> None:
    daemon.exchange(daemon.client(), fabric.encode_poll(Types(3), 7, (os.getpid(), os.getppid())))
    assert reason(daemon, "--job-id", "5", "--pids", str(os.getpid())) == "dyno: no process has job id 5; registered: 7"
    words = ("--log-file", f"{daemon.folder}/npu", "--iterations", "1", "--start-step", "-1", "--pids", str(os.getpid()))
    said = daemon.dyno("nputrace", *words).stderr
    assert f"process {os.getpid()} is registered by stock PyTorch: `dyno gputrace` traces it" in said


def test_a_process_that_has_written_its_trace_takes_the_next_request_at_once(daemon: Daemon) -> None:
    client, poll = daemon.client(), fabric.encode_poll(Types(3), 0, (os.getpid(), os.getppid()))
    words = ("gputrace", "--log-file", f"{daemon.folder}/x.json", "--iterations", "3")
    file = daemon.folder / f"x_{os.getpid()}.json"
    file.write_text("{}")  # of an earlier request
    os.utime(file, (time.time() - 1, time.time() - 1))
    daemon.exchange(client, poll)
    assert "is traced" in daemon.dyno(*words).stdout
    daemon.exchange(client, poll)
    assert "is busy, not traced (an earlier request is about to start)" in daemon.dyno(*words).stdout
    file.write_text('{"traceEvents": [')
    assert "is busy" in daemon.dyno(*words).stdout
    file.write_text('{"traceEvents": []}')
    assert "is traced" in daemon.dyno(*words).stdout


def test_another_request_is_under_way(daemon: Daemon) -> None:
    client, poll = daemon.client(), fabric.encode_poll(Types(3), 0, (os.getpid(), os.getppid()))
    words = ("gputrace", "--log-file", f"{daemon.folder}/x.json")
    daemon.exchange(client, poll)
    assert "is traced" in daemon.dyno(*words).stdout
    again = daemon.dyno(*words)
    assert "is busy, not traced (an earlier request waits for its poll)" in again.stdout
    assert again.stderr == "dyno: every matching process is busy\n"
    daemon.exchange(client, poll)
    assert "is busy, not traced (an earlier request is about to start)" in daemon.dyno(*words).stdout
    busy = fabric.encode_poll(Types.EVENTS, 0, (os.getpid(), os.getppid()))
    daemon.exchange(client, busy)
    assert "is busy, not traced (it is being traced)" in daemon.dyno(*words).stdout


def test_only_the_launcher_is_there(daemon: Daemon, child) -> None:
    script = daemon.folder / "torchrun"
    script.write_text(POLL_ONCE)
    launcher = child(str(script), str(daemon.folder), PYTHONPATH=str(SOURCE))
    assert launcher.stdout and launcher.stdout.readline() == "registered\n"
    assert "only a launcher is traced, and its trace will hold no training step" in reason(daemon)


def test_no_plugin_is_registered(daemon: Daemon) -> None:
    done = daemon.dyno("nputrace", "--log-file", f"{daemon.folder}/npu", "--iterations", "1", "--start-step", "-1")
    assert done.returncode == 1 and "no process with the vendor's plug-in is registered" in done.stderr


def test_processes_that_were_started_for_it_are_named(child, monkeypatch: pytest.MonkeyPatch) -> None:
    meant, other = child(KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR="/elsewhere"), child()
    monkeypatch.setattr(absence.os, "listdir", lambda path: ["self", str(meant.pid), str(other.pid)])
    order = Order("", 0, (0,), 3, os.getuid(), Dialect.KINETO)
    said = explained(Outcome((), "nobody"), order, {}).reason or ""
    assert said.startswith(f"nobody; process {meant.pid} runs with KINETO_USE_DAEMON=1") and str(other.pid) not in said


def test_another_users_process_is_not_looked_into(child) -> None:
    pid = child(KINETO_USE_DAEMON="1").pid
    order = Order("", 0, (pid,), 3, os.getuid() + 1, Dialect.KINETO)
    assert why_absent(pid, order) == f"process {pid} belongs to another user"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ACTIVITIES_LOG_FILE=/x\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=5\nPROFILE_ACTIVITIES=CPU", True),
        ("ACTIVITIES_LOG_FILE=/x\nPROFILE_START_ITERATION=0\nPROFILE_START_STEP=5\nACTIVITIES_ITERATIONS=1", True),
        ("NPU_MONITOR_START=true", True),
        ("ACTIVITIES_LOG_FILE=/x.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_STACK=true", False),
        ("ACTIVITIES_LOG_FILE=/PROFILE_START_STEP/x.json", False),
    ],
)  # fmt: skip
def test_for_whom_a_configuration_is(text: str, expected: bool) -> None:
    assert (audience(text) is Dialect.MSMONITOR) == expected
