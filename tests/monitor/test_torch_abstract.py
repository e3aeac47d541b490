"""Stock PyTorch on the abstract socket. Its name is fixed, so daemon and job get a network namespace of their own: in
the machine's, another daemon could hold the name, or another user's job could come by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon, environment
from training import operators, running, script, training, wait_until, written

APART = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
JOIN = ["--net"] if os.getuid() == 0 else ["--user", "--preserve-credentials", "--net"]
WITH_LOOPBACK = """
import fcntl, os, socket, struct, sys
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def possible() -> bool:
    try:
        return subprocess.run([*APART, "nsenter", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


class Apart(Daemon):
    """A daemon in a network namespace of its own."""

    def inside(self, *words: str) -> list[str]:
        return ["nsenter", "--target", str(self.process.pid), *JOIN, sys.executable, *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = self.inside("-m", "npuscope.cli.dyno", "--port", str(self.port), *words)
        return subprocess.run(command, env=environment(self.folder), capture_output=True, text=True, timeout=120)

    def registered(self) -> list[int]:
        reply = self.run("status").stdout.partition("response = ")[2]
        return [process["pid"] for process in json.loads(reply)["processes"]] if reply else []


@pytest.fixture
def daemon(folder: Path) -> Iterator[Apart]:
    pytest.importorskip("torch")
    if not possible():
        pytest.skip("no network namespace can be made here")
    words = ["-m", "npuscope", "monitor", "daemon", "--port", "0", "--ipc", "abstract"]
    log = folder / "daemon.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*APART, sys.executable, "-c", WITH_LOOPBACK, *words], env=environment(folder), stderr=stream, text=True
        )
    daemon = Apart(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        yield daemon
    finally:
        process.terminate()
        process.wait(10)


def test_a_job_without_a_socket_folder_is_traced_through_the_abstract_socket(daemon: Apart) -> None:
    env = {name: value for name, value in training(daemon.folder).items() if name != "KINETO_IPC_SOCKET_DIR"}
    command = daemon.inside(str(script(daemon.folder)), str(daemon.folder))
    with running(daemon.folder, command, env) as job:
        wait_until(lambda: job.pid in daemon.registered(), 90, "the job did not register")
        wait_until((daemon.folder / f"steps_{job.pid}").exists, 90)
        done = daemon.run(
            "gputrace", "--log-file", f"{daemon.folder}/a.json", "--iterations", "2", "--wait", "60"
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert operators(written(daemon.folder / f"a_{job.pid}.json"))
    assert "@dynolog" in daemon.log.read_text()
    assert not list(daemon.folder.glob("dynoconfigclient*"))


def test_a_second_daemon_is_told_that_the_abstract_socket_is_taken(daemon: Apart) -> None:
    words = ["-m", "npuscope", "monitor", "daemon", "--port", "0", "--ipc", "abstract"]
    done = subprocess.run(
        daemon.inside(*words), env=environment(daemon.folder), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [done.stderr.strip()] and "@dynolog is in use: another daemon" in done.stderr
