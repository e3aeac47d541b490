"""Databases when things go wrong: nothing is lost, nothing is half there, and the training never hears of it."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from full_disk import longest_file, small_disk, unprivileged
from processor_records import Maker, many_calls, many_kernels

from npuscope.monitor.agent.processors import sqlite_file
from npuscope.monitor.agent.processors.numbers import Numbers
from npuscope.monitor.agent.processors.sqlite import FULL, UNWRITTEN, Database

WAIT_SECONDS = 60.0
NOW = 1_700_000_000_000_000_000


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def database(tmp_path: Path, maker: Maker) -> Database:
    (tmp_path / "out").mkdir()
    return Database(tmp_path / "out", maker.run, numbers=Numbers())


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count(path: Path, table: str = "CANN_API") -> int:
    with sqlite3.connect(path, timeout=WAIT_SECONDS) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = plain.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    plain.close()
    return int(found)


def close(database: Database, maker: Maker) -> None:
    maker.run.ended = NOW + 10**9
    database.close()


def test_a_full_disk_costs_nothing_once_there_is_room(database: Database, maker: Maker) -> None:
    database.add(maker.kernel())
    database.report(NOW)
    path = database.path
    assert path
    size = path.stat().st_size
    for _ in range(3):
        database.add(many_calls(maker, 5000))
        with longest_file(size + 4096), pytest.raises((OSError, sqlite3.Error)):
            database.report(NOW)
        assert count(path, "COMPUTE_TASK_INFO") == 1
    database.report(NOW)
    assert count(path) == 15_000
    texts = sqlite3.connect(path).execute("SELECT count(DISTINCT id) FROM STRING_IDS WHERE value LIKE 'aclrtCall%'")
    assert texts.fetchone() == (300,)
    close(database, maker)
    assert database.counts == {"written": 15_001}
    assert count(path) == 15_000


def test_a_file_system_without_room(tmp_path: Path, maker: Maker) -> None:
    with small_disk(tmp_path / "small", "1m") as folder:
        database = Database(folder, maker.run, numbers=Numbers())
        database.add(many_calls(maker, 40_000))
        with pytest.raises((OSError, sqlite3.Error), match="full|No space"):
            database.report(NOW)
        assert list(folder.iterdir()) == [], "no file is half made"
        ballast = folder / "ballast"
        database = Database(folder, maker.run, numbers=Numbers())
        database.add(many_calls(maker, 100))
        database.report(NOW)
        ballast.write_bytes(bytes(800_000))
        database.add(many_calls(maker, 10_000))
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="full"):
                database.report(NOW)
        assert database.path and count(database.path) == 100
        ballast.unlink()
        database.report(NOW)
        assert count(database.path) == 10_100
        close(database, maker)


def test_what_cannot_be_written_at_the_end_is_counted(database: Database, maker: Maker) -> None:
    database.add(many_kernels(maker, 10))
    database.report(NOW)
    database.add(many_kernels(maker, 3000))
    path = database.path
    assert path
    with longest_file(path.stat().st_size + 4096), pytest.raises((OSError, sqlite3.Error)):
        close(database, maker)
    assert database.counts == {"written": 10, UNWRITTEN: 3000}
    assert count(path, "TASK") == 10


def test_what_waits_is_bounded(tmp_path: Path, maker: Maker) -> None:
    batch = many_calls(maker, 1000)
    size = sum(column.nbytes for column in batch.columns.values())
    database = Database(tmp_path / "missing", maker.run, numbers=Numbers(), most_bytes=5 * size)
    for _ in range(20):
        database.add(batch)
        with pytest.raises(OSError, match="No such file"):
            database.report(NOW)
    kept = 20_000 - database.counts[FULL]
    assert 4000 <= kept <= 6000
    (tmp_path / "missing").mkdir()
    database.report(NOW)
    assert database.path and count(database.path) == kept == database.counts["written"]
    database.add(batch)
    close(database, maker)
    assert database.counts["written"] == kept + 1000


def test_a_folder_that_may_not_be_written(folder: Path, maker: Maker) -> None:
    folder.chmod(0o555)
    database = Database(folder, maker.run, numbers=Numbers())
    database.add(maker.kernel())
    with unprivileged(), pytest.raises(PermissionError):
        database.report(NOW)
    folder.chmod(0o777)
    with unprivileged():
        database.report(NOW)
    assert database.path and count(database.path, "TASK") == 1
    close(database, maker)


def test_a_reader_who_holds_the_database_up(database: Database, maker: Maker) -> None:
    database.add(many_calls(maker, 10))
    database.report(NOW)
    assert database.path
    reader = sqlite3.connect(database.path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM CANN_API").fetchone() == (10,)
    database.add(many_calls(maker, 10))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        database.report(NOW)
    assert reader.execute("SELECT count(*) FROM CANN_API").fetchone() == (10,)
    reader.execute("COMMIT")
    database.report(NOW)
    assert reader.execute("SELECT count(*) FROM CANN_API").fetchone() == (20,)
    reader.close()
    close(database, maker)


def test_readers_see_whole_reports(database: Database, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", WAIT_SECONDS)
    database.add(many_kernels(maker, 500))
    database.report(NOW)
    assert database.path
    seen: list[tuple[int, int]] = []
    done = threading.Event()

    def read() -> None:
        query = (
            "SELECT (SELECT count(*) FROM TASK), (SELECT count(*) FROM COMPUTE_TASK_INFO JOIN STRING_IDS ON id = name)"
        )
        while not done.is_set():
            plain = sqlite3.connect(f"file:{database.path}?mode=ro", uri=True, timeout=WAIT_SECONDS)
            seen.append(plain.execute(query).fetchone())
            plain.close()

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        database.add(many_kernels(maker, 500))
        database.report(NOW)
    until(lambda: len(seen) > 5)
    done.set()
    reader.join()
    close(database, maker)
    assert all(tasks == named and tasks % 500 == 0 for tasks, named in seen)
    assert max(tasks for tasks, _ in seen) > 500


def test_much_is_written_without_waiting_for_a_report(tmp_path: Path, maker: Maker) -> None:
    database = Database(tmp_path, maker.run, numbers=Numbers(), early=1000)
    database.add(many_calls(maker, 999))
    database.add(many_calls(maker, 1))
    until(lambda: database.counts.get("written") == 1000)
    assert any(thread.name == "npuscope-database" and thread.daemon for thread in threading.enumerate())
    close(database, maker)
    assert not any(thread.name == "npuscope-database" for thread in threading.enumerate())


def test_after_a_failure_it_waits_for_the_next_report(tmp_path: Path, maker: Maker) -> None:
    database = Database(tmp_path / "later", maker.run, numbers=Numbers(), early=10)
    database.add(many_calls(maker, 10))
    until(lambda: database._between._resting)
    database.add(many_calls(maker, 10))
    (tmp_path / "later").mkdir()
    database.report(NOW)
    assert database.counts == {"written": 20}
    database.add(many_calls(maker, 10))
    until(lambda: database.counts == {"written": 30})
    close(database, maker)


def test_a_database_that_is_taken_away_is_begun_anew(database: Database, maker: Maker, tmp_path: Path) -> None:
    database.add(maker.kernel(name="first"))
    database.report(NOW)
    assert database.path
    database.path.unlink()
    database.add(maker.kernel(name="second"))
    database.add(maker.kernel(name="first"))
    database.report(NOW)
    assert "taken away" in maker.warnings[0]
    plain = sqlite3.connect(database.path)
    names = plain.execute("SELECT value FROM COMPUTE_TASK_INFO JOIN STRING_IDS ON name = id ORDER BY 1").fetchall()
    assert names == [("first",), ("second",)]
    assert plain.execute("SELECT count(*), count(DISTINCT id) FROM STRING_IDS").fetchone() == (4, 4)
    plain.close()
    close(database, maker)


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o640), (0o022, 0o640), (0o077, 0o600)])
def test_who_may_read_it(tmp_path: Path, maker: Maker, umask: int, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}
    fill = sqlite_file._fill

    def watched(*words: object) -> None:
        fill(*words)  # type: ignore[arg-type]
        seen.update({path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()})

    monkeypatch.setattr(sqlite_file, "_fill", watched)
    before = os.umask(umask)
    try:
        database = Database(tmp_path, maker.run)
        for _ in range(2):
            database.add(maker.kernel())
            database.report(NOW)
    finally:
        os.umask(before)
    assert database.path
    assert {name.removeprefix(database.path.name) for name in seen} >= {"", "-journal"}
    assert set(seen.values()) == {mode}, "from its first moment on, and its journal"
    close(database, maker)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_fork_leaves_the_database_alone(database: Database, maker: Maker) -> None:
    """A child that closed what it inherited would roll back what its parent is writing."""
    database.add(many_calls(maker, 10))
    database.report(NOW)
    path = database.path
    assert path
    connection = database._file._database
    assert connection
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM CANN_API")
    child = os.fork()
    if child == 0:
        database._file._database = None
        del connection, database
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert path.with_name(f"{path.name}-journal").exists()
    connection.execute("COMMIT")
    assert count(path) == 0
    close(database, maker)


def test_a_copy_is_a_database_too(database: Database, maker: Maker, tmp_path: Path) -> None:
    for _ in range(3):
        database.add(many_calls(maker, 2000))
        database.report(NOW)
        shutil.copy(database.path or "", tmp_path / "copy.db")
        assert count(tmp_path / "copy.db") % 2000 == 0
    assert count(tmp_path / "copy.db") == 6000
    close(database, maker)
