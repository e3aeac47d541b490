"""docs/monitor.md: its commands are carried out, with a daemon and two processes, and print what the page shows; its
tables name every option, every command, and reasons that are given."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from terminal import at_a_terminal

from npuscope.cli.dyno.command import cli
from npuscope.cli.dynolog import HELP, HONOURED
from npuscope.cli.monitor import daemon as daemon_command

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "monitor.md").read_text()
SECONDS = 60.0
# Answers as a training process does, and writes the trace at the poll after the one that brought the request.
TRAIN = """
import os, re, socket, time
from npuscope.monitor.protocol import fabric
folder = os.environ["KINETO_IPC_SOCKET_DIR"]
endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
endpoint.bind(f"{folder}/client{os.getpid()}")
wanted = None
while True:
    endpoint.sendto(fabric.encode_poll(fabric.Types(3), 0, (os.getpid(), os.getppid())), f"{folder}/dynolog")
    if wanted:
        with open(wanted, "w") as file:
            file.write('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "%s"}]}' % ("x" * 300_000))
        wanted = None
    found = re.search("ACTIVITIES_LOG_FILE=(.*)[.]json", endpoint.recv(65536)[40:].decode())
    wanted = f"{found[1]}_{os.getpid()}.json" if found else None
    time.sleep(0.3)
"""


@dataclass
class Example:
    """A command of the page, and what the page says that it prints."""

    command: str
    output: list[str]


def examples() -> list[Example]:
    found: list[Example] = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Example(line[2:], []))
            else:
                found[-1].output.append(line)
    return found


@dataclass
class Scene:
    """A daemon, and two processes that train."""

    folder: Path
    port: str

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.folder) | {"COLUMNS": "100"}

    def here(self, text: str) -> str:
        """The page's folder and hosts, as they are here."""
        for there, here in (("/tmp/", f"{self.folder}/"), ("node3:1778", "localhost:1"), ("node3", "localhost:1")):
            text = text.replace(there, here)
        return text.replace("node1", "localhost").replace("node2", "127.0.0.1").replace(":1778", f":{self.port}")

    def run(self, command: str) -> str:
        """All that a command prints."""
        words = ["-m", "npuscope.cli.dyno", "--port", self.port, *shlex.split(self.here(command))[1:]]
        if command == "dyno status":
            return re.sub(r"\x1b\[[0-9;]*m", "", at_a_terminal(words, self.environment)[1])
        done = subprocess.run(
            [sys.executable, *words], env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stdout
        return done.stdout


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "KINETO_IPC_SOCKET_DIR": str(folder)}


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="npuscope-", dir="/tmp") as name:
        folder, started = Path(name), []
        (folder / "train.py").write_text(TRAIN)
        log = folder / "log"
        words = ["monitor", "daemon", "--port", "0", "--http", "0", "--ipc", "directory", "--interval", "1"]
        try:
            with log.open("w") as stream:
                command = [sys.executable, "-m", "npuscope", *words]
                started.append(subprocess.Popen(command, env=environment(folder), stderr=stream))
            wait_for(log, "listening on port")
            for rank in "01":
                variables = environment(folder) | {"RANK": rank, "KINETO_USE_DAEMON": "1"}
                started.append(
                    subprocess.Popen(["python", "train.py"], executable=sys.executable, cwd=folder, env=variables)
                )
            wait_for(log, "registered process", 2)
            found = re.search(
                r"page at http://127\.0\.0\.1:\d+/\n.*listening on port (\d+) of 127\.0\.0\.1", log.read_text()
            )
            assert found, log.read_text()
            time.sleep(2)  # the second measurement is the first with a share of time
            yield Scene(folder, found[1])
        finally:
            for process in reversed(started):
                process.kill()
                process.wait(10)


def wait_for(log: Path, text: str, times: int = 1) -> None:
    deadline = time.monotonic() + SECONDS
    while log.read_text().count(text) < times:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def plain(line: str) -> str:
    """A line without what differs from run to run: numbers, and how wide a table is."""
    return " ".join(re.sub(r"[0-9]+(\.[0-9]+)?", "N", re.sub(r"[┃│]", " ", line)).split())


def test_every_command_prints_what_the_page_shows(scene: Scene) -> None:
    found = [example for example in examples() if example.command.startswith("dyno ")]
    assert len(found) > 15
    for example in found:
        printed = scene.run(example.command)
        lines = [plain(line) for line in printed.splitlines()]
        for line in example.output:
            pieces = [
                re.escape(piece) for piece in plain(scene.here(line).replace("node7", os.uname().nodename)).split("...")
            ]
            # A reason goes on with whoever else on this machine has not registered.
            rest = "(; .*)?" if line.startswith("dyno: ") else ""
            assert any(re.fullmatch(".*".join(pieces) + rest, one) for one in lines), f"{example.command}: {line}\n{printed}"


def test_the_three_commands_are_there() -> None:
    first, second, third = examples()[:3]
    assert first.command == "npuscope monitor daemon" and second.command == "KINETO_USE_DAEMON=1 python train.py"
    assert third.command.startswith("dyno gputrace") and all(file.exists() for file in linked())


def linked() -> list[Path]:
    return [ROOT / "docs" / name for name in re.findall(r"\]\(([\w/.-]+)\)", PAGE)]


@pytest.mark.parametrize("name", [one for option in daemon_command.params for one in option.opts])
def test_every_option_of_the_daemon_is_told(name: str) -> None:
    assert f"`{name}" in PAGE


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_of_dyno_has_an_example(name: str) -> None:
    assert any(example.command.startswith(f"dyno {name}") for example in examples())


def test_the_stock_flags_that_work_are_in_the_help_of_dynolog() -> None:
    assert all(name in HELP for name in HONOURED)


def test_every_reason_is_one_that_is_given() -> None:
    sources = "".join(
        path.read_text() for room in ("monitor", "cli") for path in (ROOT / "src" / "npuscope" / room).rglob("*.py")
    )
    sources = re.sub(r'"\s*\n\s*f?"', "", sources)
    section = PAGE.split("\n## Nothing is traced\n")[1].split("\n## ")[0]
    reasons = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert len(reasons) > 12
    for reason in re.findall(r"`(.*?)`", "\n".join(reasons)):
        # What is filled in differs; every piece between is to be found.
        pieces = re.split(r"\.\.\.|[0-9]+|KINETO_\w+=?|\btrace\b|\bmonitor\b", reason)
        for piece in filter(None, (part.strip(" ,;:'") for part in pieces)):
            assert piece in sources, (reason, piece)
