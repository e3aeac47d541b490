"""Running daemons that have a page."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon_process import Daemon, environment

FORESEEN = Path(__file__).resolve().parent / "page_daemon.py"


@dataclass(frozen=True)
class Paged:
    """A running daemon and the address of its page."""

    daemon: Daemon
    url: str

    @property
    def port(self) -> int:
        """The port of the page."""
        return int(self.url.rstrip("/").rpartition(":")[2])


@contextmanager
def running(*nodes: str) -> Iterator[Paged]:
    """A daemon with foreseen figures, in a folder of its own; `nodes` are those that its page is to show."""
    folder = Path(tempfile.mkdtemp(prefix="npuscope-", dir="/tmp"))  # short enough for a socket's name
    log = folder / "daemon.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, str(FORESEEN), *nodes], env=environment(folder), stderr=stream, text=True
        )
    daemon = Daemon(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        found = re.search(r"page at (\S+)", log.read_text())
        assert found
        yield Paged(daemon, found[1])
    finally:
        process.terminate()
        process.wait(10)
        for endpoint in daemon.clients:
            endpoint.close()
        shutil.rmtree(folder)


def get(port: int, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    """A response of the page on that port, and its body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def state(port: int) -> Any:
    """What the page knows of now."""
    return json.loads(get(port, "/state.json")[1])


def wait_until(holds: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something to become true; fails when it takes too long."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "not within the time allowed"
        time.sleep(0.1)
