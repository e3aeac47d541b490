"""Benches for the tests of the agent's parts, daemons and jobs for those of the whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from agent import jobs
from agent.parts import Bench, Counter
from daemon_process import Daemon, environment
from training import running


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A collector on its own."""
    return Bench(tmp_path)


@pytest.fixture
def counter(folder: Path) -> Iterator[Counter]:
    """A daemon by hand."""
    counter = Counter(folder)
    yield counter
    counter.close()


@contextmanager
def serving(folder: Path, name: str = "daemon", *more: str) -> Iterator[Daemon]:
    """A daemon for agents and for stock PyTorch, in a folder of its own."""
    command = [sys.executable, "-m", "npuscope", "monitor", "daemon", "--port", "0", "--no-http"]
    command += ["--ipc", "home", "--ipc", "directory", "--interval", "0", *more]
    log = folder / f"{name}.log"
    with log.open("w") as stream:
        env = environment(folder, NPUSCOPE_IPC_DIR=str(folder))
        process = subprocess.Popen(command, env=env, cwd=folder, stderr=stream, text=True)
    daemon = Daemon(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        yield daemon
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def agent_daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon that agents find."""
    with serving(folder) as daemon:
        yield daemon


@pytest.fixture
def start_daemon(folder: Path) -> Iterator[Callable[[str], Daemon]]:
    """Starts daemons in the folder, one after another."""
    open_ones = []

    def begin(name: str) -> Daemon:
        one = serving(folder, name)
        open_ones.append(one)
        return one.__enter__()

    yield begin
    for one in open_ones:
        one.__exit__(None, None, None)


@dataclass
class Job:
    """A job that trains, and its daemon."""

    daemon: Daemon
    pid: int
    folder: Path


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    """A PyTorch process that trains with an agent, for the tests of a file; each leaves its monitor stopped."""
    folder = Path(tempfile.mkdtemp(prefix="npuscope-", dir="/tmp"))
    try:
        with serving(folder) as daemon, running(folder, jobs.words(folder), jobs.agents(folder, RANK="3")) as process:
            jobs.known(daemon, [process.pid])
            yield Job(daemon, process.pid, folder)
    finally:
        shutil.rmtree(folder)
