"""One database on disk: made whole or not at all, and changed by whole transactions.

Why a rollback journal and not a write-ahead log: with the log a process that is killed leaves its last rows in a second
file, so that the database alone, which is what people copy, lacks them; and the log needs memory shared between its
readers, which network file systems do not give. With the journal every committed row is in the database itself. Changed
pages stay in memory until the commit (`cache_spill`), so that the file is between two states only while they are
written, some milliseconds in a report; whoever finds it killed just then has the journal beside it, and SQLite rolls
back by itself when it may write.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from npuscope.monitor.agent.processors.file_name import MILLISECOND, MODE, free_path
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.processors.sqlite_rows import Rows
from npuscope.monitor.agent.processors.sqlite_schema import CONSTANT, DATA, TABLES, created

SUFFIX = ".db"
BUSY_SECONDS = 5.0
"""How long a reader may hold up a commit before it is left for the next cycle."""
CACHE_KIB = 64 * 1024
"""At most; more pages than that may be written before the commit."""
ROWS_A_STATEMENT = 32
"""Rows of one INSERT: half the time of a row each. Times the columns it must stay below 999 values."""
STATEMENTS_AT_ONCE = 128
"""Between two turns of Python code, so that no other thread waits long."""

Tables = Mapping[str, Sequence[tuple[object, ...]]]
"""Rows by table."""


class File:
    """The database of a run. For one thread at a time."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder = folder
        self._run = run
        self._path: Path | None = None
        self._inode = 0
        self._database: sqlite3.Connection | None = None

    @property
    def path(self) -> Path | None:
        """Where it is, once it is."""
        return self._path

    @property
    def missing(self) -> bool:
        """Whether somebody took away what was written."""
        if self._path is None:
            return False
        try:
            return os.stat(self._path).st_ino != self._inode
        except FileNotFoundError:
            return True

    def write(
        self, texts: Sequence[tuple[int, str]], rows: Sequence[Rows], state: Tables, host: Callable[[], Tables]
    ) -> None:
        """Add texts and rows, and put `state` in place of what its tables hold, all or nothing. `host` gives
        what is written when the file is made. Raises OSError or sqlite3.Error, and then nothing has changed."""
        if self._database is None:
            self._make(texts, rows, state, host)
        else:
            with _transaction(self._database):
                _fill(self._database, texts, rows, state)

    def _make(
        self, texts: Sequence[tuple[int, str]], rows: Sequence[Rows], state: Tables, host: Callable[[], Tables]
    ) -> None:
        """Under another name, until it holds what every reader needs."""
        path, _ = free_path(self._folder, self._run, time.time_ns() // MILLISECOND, SUFFIX)
        new = path.with_name(f".{path.name}.new")
        # The database's own permissions are what SQLite gives its journals.
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, MODE))
        try:
            with contextlib.closing(_opened(new)) as database, _transaction(database):
                for table in TABLES:
                    if table not in DATA:
                        database.execute(created(table))
                _put(database, CONSTANT)
                _put(database, host())
                _fill(database, texts, rows, state)
            inode = os.stat(new).st_ino
            os.rename(new, path)
        except BaseException:
            for left in (new, new.with_name(f"{new.name}-journal")):
                with contextlib.suppress(OSError):
                    left.unlink()
            raise
        self._path, self._inode = path, inode
        self._database = _opened(path)

    def close(self) -> None:
        """Nothing is open any more."""
        database, self._database, self._path = self._database, None, None
        if database is not None:
            database.close()


_OPEN: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()


def _let_go() -> None:
    """In a child process after a fork: closing what it inherited would roll back what its parent is writing, and may
    wait for locks of threads that the child does not have. The memory is given up for that."""
    for database in list(_OPEN):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
    _OPEN.clear()


os.register_at_fork(after_in_child=_let_go)


class _Connection(sqlite3.Connection):
    """Can be referred to weakly, which the library's own class cannot."""


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    _OPEN.add(database)
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("PRAGMA cache_spill = OFF")
    # Enough for a machine that loses power; a process that is killed needs none of it.
    database.execute("PRAGMA synchronous = NORMAL")
    return database


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # some errors have rolled back already
            with contextlib.suppress(sqlite3.Error):
                database.execute("ROLLBACK")
        raise


def _fill(database: sqlite3.Connection, texts: Sequence[tuple[int, str]], rows: Sequence[Rows], state: Tables) -> None:
    _insert_texts(database, texts)
    for table in dict.fromkeys(part.table for part in rows):
        database.execute(created(table))
    for part in rows:
        _insert(database, part)
    for table, (where, *parameters) in _DELETIONS.items():
        if table in state:
            database.execute(f"DELETE FROM {table} {where}", parameters)
    _put(database, state)


_DELETIONS: Mapping[str, tuple[str, ...]] = {
    "SESSION_TIME_INFO": ("",),
    "RANK_DEVICE_MAP": ("",),
    "NPU_INFO": ("",),
    "META_DATA": ("WHERE name = ?", "parallel_group_info"),
}
"""What of a table its new state replaces."""


def _put(database: sqlite3.Connection, tables: Tables) -> None:
    for table, rows in tables.items():
        for row in rows:
            database.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)


def _insert(database: sqlite3.Connection, rows: Rows) -> None:
    width = rows.values.shape[1]
    whole = len(rows.values) - len(rows.values) % ROWS_A_STATEMENT
    many = _statement(rows.table, rows.form, ROWS_A_STATEMENT)
    step = ROWS_A_STATEMENT * STATEMENTS_AT_ONCE
    for begin in range(0, whole, step):
        part = rows.values[begin : min(begin + step, whole)]
        database.executemany(many, part.reshape(-1, width * ROWS_A_STATEMENT).tolist())
    database.executemany(_statement(rows.table, rows.form, 1), rows.values[whole:].tolist())


def _insert_texts(database: sqlite3.Connection, texts: Sequence[tuple[int, str]]) -> None:
    whole = len(texts) - len(texts) % ROWS_A_STATEMENT
    many = _statement("STRING_IDS", "(?,?)", ROWS_A_STATEMENT)
    database.executemany(
        many, _flat(texts[begin : begin + ROWS_A_STATEMENT] for begin in range(0, whole, ROWS_A_STATEMENT))
    )
    database.executemany(_statement("STRING_IDS", "(?,?)", 1), texts[whole:])


def _flat(groups: Iterable[Sequence[tuple[int, str]]]) -> Iterator[list[object]]:
    return (list(chain.from_iterable(group)) for group in groups)


def _statement(table: str, form: str, rows: int) -> str:
    return f"INSERT INTO {table} VALUES {','.join([form] * rows)}"
