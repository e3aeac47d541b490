"""Daemons for the tests of the monitor."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon, environment


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name is short enough for a socket's."""
    path = Path(tempfile.mkdtemp(prefix="npuscope-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts daemons; all are ended with the test."""
    started: list[Daemon] = []

    def begin(*words: str, wait: bool = True) -> Daemon:
        log = folder / f"daemon{len(started)}.log"
        page = [] if "--http" in words else ["--no-http"]
        fixed = ["monitor", "daemon", "--port", "0", "--ipc", "directory"]
        command = [sys.executable, "-m", "npuscope", *fixed, *page, *words]
        with log.open("w") as stream:
            process = subprocess.Popen(command, env=environment(folder), stderr=stream, text=True)
        daemon = Daemon(folder, process, log)
        started.append(daemon)
        if wait:
            daemon.wait_until_it_listens()
        return daemon

    yield begin
    for daemon in started:
        daemon.process.terminate()
        daemon.process.wait(10)
        for endpoint in daemon.clients:
            endpoint.close()


@pytest.fixture
def daemon(start: Callable[..., Daemon]) -> Daemon:
    """A daemon that listens."""
    return start()
