"""Processes of an example: started, asked, waited for and ended."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

START_SECONDS = 60.0


class Trouble(Exception):
    """What did not happen, in one line."""


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise Trouble(f"{what} within {START_SECONDS:g} s")
        time.sleep(0.1)


@contextlib.contextmanager
def started(words: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that writes to a log, and is ended afterwards."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *words], env=environment, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def show(title: str, command: str = "") -> None:
    """Say what comes."""
    print(f"\n{title}" + (f"\n  $ {command}" if command else ""), flush=True)


def listening(daemon: subprocess.Popen[bytes], log: Path) -> int:
    """The daemon's port, once it has one."""
    until(lambda: daemon.poll() is not None or "listening on port" in log.read_text(), "the daemon did not listen")
    found = re.search(r"listening on port (\d+)", log.read_text())
    if not found:
        raise Trouble(f"the daemon did not start: {log.read_text().strip()}")
    return int(found[1])


def dyno(environment: dict[str, str], port: int, *words: str) -> str:
    """What the real command prints."""
    command = [sys.executable, "-m", "npuscope.cli.dyno", "--port", str(port), *words]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    if done.returncode:
        raise Trouble(f"dyno {words[0]} ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def registered(environment: dict[str, str], port: int) -> dict[int, str]:
    """The processes that `dyno status` shows, and their states."""
    reply = json.loads(dyno(environment, port, "status").partition("response = ")[2])
    return {process["pid"]: process["state"] for process in reply["processes"]}


def tell_story(name: str, story: Callable[[Path], None]) -> int:
    """Run an example in a folder of its own, and leave nothing behind, also when interrupted; returns its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with tempfile.TemporaryDirectory(prefix="npuscope-", dir="/tmp") as folder:
            story(Path(folder))
    except Trouble as trouble:
        print(f"{name}: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
