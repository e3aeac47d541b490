"""What registered processes use, and to whom they belong."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npuscope.monitor.daemon.process import Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.metrics.attribution import belongings
from npuscope.monitor.metrics.own import Own
from npuscope.monitor.metrics.process import Processes, Subject, Usage, process_values, subjects
from npuscope.monitor.protocol.fabric import Dialect, Poll, Types

MIB = 1024 * 1024
CHILD = f"""
import sys, threading, time
kept = bytearray(b"x" * {64 * MIB})
stop = threading.Event()
threads = [threading.Thread(target=stop.wait, daemon=True) for _ in range(3)]
for thread in threads: thread.start()
with open(sys.argv[1], "wb") as file: file.write(b"y" * {MIB})
opened = [open("/dev/null") for _ in range(7)]
begin = time.process_time()
while time.process_time() - begin < 0.3: pass
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(**variables: str) -> subprocess.Popen[str]:
        bare = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "file")],
            env=bare | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def source(*found: Subject, from_environment: bool = True) -> Processes:
    return Processes(lambda: found, from_environment, rest=lambda seconds: None)


def test_by_hand() -> None:
    before = Usage(10, 5, 2, 1000, 100, 4, 10, 20, 3, 7, 8)
    after = Usage(12, 6, 2.5, 1100, 110, 5, 11, 22, 4, 9, 10)
    assert process_values(before, after) == {
        "cpu_percent": 75.0, "cpu_user_seconds": 6, "cpu_system_seconds": 2.5, "rss_bytes": 1100, "shared_bytes": 110,
        "threads": 5, "read_bytes": 11, "write_bytes": 22, "open_files": 4, "voluntary_switches": 9,
        "involuntary_switches": 10,
    }  # fmt: skip
    assert "cpu_percent" not in process_values(None, after)
    assert "open_files" not in process_values(None, Usage(1, 1, 1, 1, 1, 1))


def test_a_real_process(child: Callable[..., subprocess.Popen[str]]) -> None:
    process = child(RANK="3", LOCAL_RANK="1", WORLD_SIZE="8")
    looked = source(Subject(process.pid, os.getuid(), "kineto", 42))
    (record,) = looked.sample()
    statm = [int(word) * os.sysconf("SC_PAGE_SIZE") for word in Path(f"/proc/{process.pid}/statm").read_text().split()]
    values = {name: float(value) for name, value in record.values.items()}
    assert values["rss_bytes"] == pytest.approx(statm[1], rel=0.05) and values["rss_bytes"] > 64 * MIB
    assert values["threads"] == 4
    assert values["cpu_user_seconds"] + values["cpu_system_seconds"] >= 0.29
    assert values["open_files"] == len(os.listdir(f"/proc/{process.pid}/fd")) >= 10
    io = dict(line.split(": ") for line in Path(f"/proc/{process.pid}/io").read_text().splitlines())
    assert values["write_bytes"] == int(io["write_bytes"])
    assert record.labels["pid"] == record.labels["host_pid"] == str(process.pid)
    assert [record.labels[name] for name in ("rank", "local_rank", "world_size", "job")] == ["3", "1", "8", "42"]
    assert record.labels["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert record.labels["command"].startswith(sys.executable[:60]) and record.entity == "process"


def test_a_busy_and_an_idle_process(child: Callable[..., subprocess.Popen[str]]) -> None:
    idle = child()
    looked = source(Subject(idle.pid, 0, "kineto"), Subject(os.getpid(), 0, "kineto"))
    list(looked.sample())
    begin, burnt = time.monotonic(), time.process_time()
    while time.process_time() - burnt < 0.5:
        sum(range(10_000))
    percent = [float(record.values["cpu_percent"]) for record in looked.sample()]
    expected = 100 * (time.process_time() - burnt) / (time.monotonic() - begin)
    assert percent[1] == pytest.approx(expected, rel=0.3) and percent[0] < expected / 5


def test_processes_that_vanish_cost_nothing(child: Callable[..., subprocess.Popen[str]]) -> None:
    process = child()
    looked = source(Subject(2**22 + 1, 0, "kineto"), Subject(process.pid, 0, "kineto"), Subject(os.getpid(), 0, "data"))
    assert len(list(looked.sample())) == 2
    process.kill()
    process.wait()
    (record,) = looked.sample()
    assert record.labels["pid"] == str(os.getpid())


def test_what_the_batch_system_says(child: Callable[..., subprocess.Popen[str]]) -> None:
    slurm = {"SLURM_JOB_ID": "77", "SLURM_JOB_ACCOUNT": "physics", "SLURM_JOB_PARTITION": "long", "USER": "ada"}
    process = child(**slurm)
    found = belongings(process.pid).owner
    command = found.pop("command")
    assert found == {"job_id": "77", "slurm_account": "physics", "slurm_partition": "long", "username": "ada"}
    assert belongings(process.pid, from_environment=False).owner == {"command": command}
    (record,) = source(Subject(process.pid, 0, "kineto"), from_environment=False).sample()
    assert not {"job_id", "username", "slurm_account"} & set(record.labels)


def test_a_rank_as_mindspore_names_it(child: Callable[..., subprocess.Popen[str]]) -> None:
    assert belongings(child(RANK_ID="5", RANK_SIZE="6").pid).process["rank"] == "5"
    assert "rank" not in belongings(child(RANK="x").pid).process


def test_registered_processes_are_looked_at_once() -> None:
    registry = Registry()
    for dialect in Dialect:
        registry.poll(Poll(Types.ACTIVITIES, 7, (5, 4)), Sender(dialect, 500, 1000, b"a"), 0.0)
    registry.poll(Poll(Types.ACTIVITIES, 8, (5, 4)), Sender(Dialect.KINETO, 501, 1001, b"b"), 0.0)
    assert subjects(registry) == [Subject(500, 1000, "kineto", 7), Subject(501, 1001, "kineto", 8)]


def test_the_daemon_itself() -> None:
    (record,) = Own(lambda: {"polls": 3}).sample()
    assert record.entity == "daemon" and record.values["polls"] == 3
    assert float(record.values["rss_bytes"]) > MIB
