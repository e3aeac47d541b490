"""What a process leaves that is killed while it writes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import processor_child
import pytest

from npuscope.monitor.agent.processors.sqlite_schema import TABLES

KILLS = 24
WAIT_SECONDS = 60.0
REFERENCES = {
    "CANN_API": ("name",),
    "TASK": ("taskType",),
    "COMPUTE_TASK_INFO": ("name", "taskType", "opType", "hf32Eligible"),
    "COMMUNICATION_OP": ("opName", "groupName", "algType", "opType"),
    "MSTX_EVENTS": ("message", "domainId"),
}


class Victims:
    """Processes that write and are killed."""

    def __init__(self, what: str) -> None:
        words = [sys.executable, processor_child.__file__, what]
        paths = [str(Path(processor_child.__file__).parent), *sys.path]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        )  # fmt: skip

    def kill_one(self, folder: Path, suffix: str, after: float) -> None:
        """Have one write into a folder, and kill it some seconds after its first file is there."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        deadline = time.monotonic() + WAIT_SECONDS
        while not list(folder.glob(f"*{suffix}")) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        assert self.process.stdout.readline() == "dead\n"

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(WAIT_SECONDS)
        self.process.stdout.close()


@pytest.fixture
def victims(request: pytest.FixtureRequest) -> Iterator[Victims]:
    started = Victims(request.param)
    yield started
    started.close()


def assert_consistent(path: Path) -> int:
    """Whole, every id is a text, and every report is there whole or not at all; returns how many there are."""
    database = sqlite3.connect(path, timeout=60)
    try:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counts = {
            table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }
        assert counts.keys() == TABLES.keys() - {"STEP_TIME"}
        for table, columns in REFERENCES.items():
            for column in columns:
                query = f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM STRING_IDS)"
                assert database.execute(query).fetchone() == (0,), (table, column)
        rounds = counts["COMPUTE_TASK_INFO"] // processor_child.KERNELS
        assert counts["COMPUTE_TASK_INFO"] == rounds * processor_child.KERNELS
        assert counts["TASK"] == rounds * (processor_child.KERNELS + processor_child.RANGES)
        assert counts["CANN_API"] == rounds * processor_child.CALLS
        assert counts["COMMUNICATION_OP"] == rounds * processor_child.COLLECTIVES
        assert counts["MSTX_EVENTS"] == rounds * processor_child.RANGES
        assert (counts["META_DATA"], counts["HOST_INFO"], counts["SESSION_TIME_INFO"]) == (4, 1, 1)
        assert database.execute("SELECT * FROM RANK_DEVICE_MAP").fetchall() == [(3, 0), (3, 5)]
        return rounds
    finally:
        database.close()


@pytest.mark.parametrize("victims", ["db"], indirect=True)
def test_a_database_is_consistent_at_any_moment(victims: Victims, tmp_path: Path) -> None:
    chance = random.Random(7)
    rounds = []
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        victims.kill_one(folder, ".db", chance.random() * 0.2)
        (path,) = folder.glob("*.db")
        journal = path.with_name(f"{path.name}-journal")
        names = {path.name, journal.name}
        assert {one.name for one in folder.iterdir()} <= names
        if not journal.exists():  # nothing was under way: the database alone is what people copy
            copied = tmp_path / "copy.db"
            shutil.copy(path, copied)
            assert_consistent(copied)
        rounds.append(assert_consistent(path))
    assert min(rounds) >= 1 and max(rounds) > 1


@pytest.mark.parametrize("victims", ["jsonl"], indirect=True)
def test_lines_are_whole_but_for_the_last(victims: Victims, tmp_path: Path) -> None:
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        victims.kill_one(folder, ".jsonl", 0.02 * number)
        newest = max(folder.iterdir())
        for path in folder.iterdir():
            *lines, rest = path.read_bytes().split(b"\n")
            assert all(json.loads(line)["kind"] for line in lines)
            assert rest == b"" or path == newest
        assert len(list(folder.iterdir())) <= 3
