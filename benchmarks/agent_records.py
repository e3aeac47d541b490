"""The way of an activity record, from the library's buffer to where it is kept: records a second of one core.

    python benchmarks/agent_records.py [buffers]

The buffers are full ones of 8 MiB, filled by the tests' library with the vendor's interface: all kinds in turn, or
those that a file holds, with 1,000 different names. Times are processor time of the process, the best of several turns;
ratios are between things of one run.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "monitor"))

import activity_library
import numpy as np

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import UNFILTERED, Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.filter import Filter
from npuscope.monitor.agent.processors.jsonl import JsonLines
from npuscope.monitor.agent.processors.metric import Metric
from npuscope.monitor.agent.processors.processor import Processor, Run
from npuscope.monitor.agent.processors.sqlite import Database
from npuscope.monitor.agent.sources import mspti_abi as abi
from npuscope.monitor.agent.sources.mspti import MsptiSource
from npuscope.monitor.agent.sources.mspti_pool import SIZE, Pool
from npuscope.monitor.agent.sources.records import Decoder

ALL = [int(kind) for kind in Kind if kind is not Kind.HCCL]
"""All kinds that a filter may keep."""
STORED = [kind for kind in ALL if kind not in UNFILTERED]
"""What a database and JSON lines hold."""
FILTER_LENGTH = 1024
REPEATS = 7
Bytes = np.ndarray


def full_buffers(kinds: Sequence[int], count: int) -> tuple[abi.Library, list[Bytes]]:
    """The library, and the contents of buffers that it has filled."""
    fake = activity_library.library()
    fake.c.fake_reset()
    fake.c.fake_names(1000)
    library, pool = abi.Library(str(activity_library.built())), Pool()
    library.subscribe()
    library.register(pool.callbacks.request, pool.callbacks.completed)
    pool.open()
    for kind in kinds:
        library.enable(kind)
    buffers: list[Bytes] = []
    for first in itertools.count(0, 10_000):
        fake.emit(kinds, first, 10_000)
        while (item := pool.oldest()) is not None:
            index, address, valid = item
            buffers.append(np.frombuffer((ctypes.c_uint8 * valid).from_address(address), np.uint8).copy())
            pool.give_back(index)
        if len(buffers) >= count:
            return library, buffers[:count]
    raise AssertionError


def record_by_record(library: abi.Library, buffer: Bytes) -> int:
    """What a loop over the library's next-record call costs in Python, reading the kind alone."""
    address = buffer.ctypes.data
    library.rewind(address)
    return sum(1 for place in library.walk(address, len(buffer)) if ctypes.c_uint32.from_address(place).value)


def long_filter(kinds: Sequence[int]) -> Filter:
    """1,024 characters that keep everything: the last name of each kind is part of all names."""
    labels = [Kind(kind).label for kind in kinds if kind not in UNFILTERED]
    share = FILTER_LENGTH // len(labels)
    entries = []
    for label in labels:
        names = ",".join(f"MatMul{n}" for n in range(100))[: share - len(label) - len(":,name;")]
        entries.append(f"{label}:{names.rstrip(',')},name")
    rules, faults = Filter.parse(";".join(entries))
    assert not faults
    return rules


def cpu(*functions: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """The least processor time of each function in seconds; they take turns, so that drift hits all alike."""
    times = [float("inf")] * len(functions)
    for _ in range(repeats):
        for index, function in enumerate(functions):
            start = time.process_time()
            function()
            times[index] = min(times[index], time.process_time() - start)
    return times


def show(what: str, count: int, seconds: float, note: str) -> None:
    """A line: nanoseconds a record, records a second, and what that is to be compared with."""
    print(f"{what:<44} {seconds * 1e9 / count:8.1f} ns   {count / seconds / 1e6:7.2f} M/s   {note}".rstrip())


def new_run() -> Run:
    return Run(Strings(), os.getpid(), 0, 0, lambda line: print(f"warning: {line}"))


class Way:
    """From a buffer to a processor: decode, filter, add."""

    def __init__(self, library: abi.Library, rules: Filter | None = None) -> None:
        self.decoder = Decoder(library, SIZE)
        self.rules = rules

    def feed(self, buffer: Bytes, strings: Strings) -> Iterator[Batch]:
        """The batches that pass."""
        for batch in self.decoder.decode(buffer.ctypes.data, len(buffer), strings):
            yield batch if self.rules is None else self.rules.keep(batch, strings)

    def count(self, buffer: Bytes, strings: Strings) -> int:
        """How many records pass."""
        return sum(len(batch) for batch in self.feed(buffer, strings))

    def fill(self, processor: Processor, run: Run, buffers: Sequence[Bytes]) -> str:
        """All buffers, a report after each, and the end; what the processor says of it."""
        for buffer in buffers:
            for batch in self.feed(buffer, run.strings):
                processor.add(batch)
            processor.report(time.time_ns())
        run.ended = time.time_ns()
        processor.close()
        return ", ".join(f"{count} {what}" for what, count in processor.counts.items())


def decoding(buffers: int) -> None:
    """Decode alone, with filters, and to measurements."""
    library, filled = full_buffers(ALL, buffers)
    one, strings = filled[0], Strings()
    plain, filtered = Way(library), Way(library, long_filter(ALL))
    count = plain.count(one, strings)
    assert filtered.count(one, strings) == count
    [loop] = cpu(lambda: record_by_record(library, one), repeats=3)
    batches, rules = list(plain.feed(one, strings)), long_filter(ALL)
    alone, kept = cpu(
        lambda: plain.count(one, strings), lambda: [rules.keep(batch, strings) for batch in batches], repeats=21
    )
    show("one by one in Python, the kind alone", count, loop, "")
    show("decoded", count, alone, f"{loop / alone:.0f} times as fast")
    show("filtered by 1,024 characters", count, kept, f"{100 * kept / alone:.1f} % of decoding (target < 15 %)")
    total = count * len(filled)

    def measure() -> None:
        run = new_run()
        filtered.fill(Metric(lambda message: True, run), run, filled)

    [measured] = cpu(measure)
    show("decoded, filtered, to measurements", total, measured, "target >= 1 M/s")


def files(buffers: int) -> None:
    """To a database, beside bare executemany of the same rows, and to JSON lines."""
    library, filled = full_buffers(STORED, buffers)
    path = Way(library, long_filter(STORED))
    total = path.count(filled[0], Strings()) * len(filled)
    with tempfile.TemporaryDirectory() as folder:
        turns = itertools.count()

        def store() -> str:
            run = new_run()
            place = Path(folder, f"db{next(turns)}")
            place.mkdir()
            return path.fill(Database(str(place), run), run, filled)

        counts = store()
        written = next(Path(folder, "db0").glob("*.db"))
        rows(written)
        ours, bare = cpu(store, lambda: copied(written, Path(folder, f"bare{next(turns)}.db")), repeats=3)
        show("bare executemany of the database's rows", total, bare, f"records: {counts}")
        show("decoded, filtered, to a database", total, ours, f"{bare / ours:.2f} of it (target >= 0.8)")

        said = [""]

        def lines() -> None:
            run = new_run()
            place = Path(folder, f"lines{next(turns)}")
            place.mkdir()
            said[0] = path.fill(JsonLines(str(place), run, "", ""), run, filled)

        [to_lines] = cpu(lines, repeats=3)
        show("decoded, filtered, to JSON lines", total, to_lines, f"target >= 0.5 M/s; {said[0]}")


_ROWS: dict[Path, list[tuple[str, str, list[tuple[object, ...]]]]] = {}


def rows(file: Path) -> list[tuple[str, str, list[tuple[object, ...]]]]:
    """The tables of a database: name, definition, rows. Read once."""
    if file not in _ROWS:
        with closing(sqlite3.connect(file)) as database:
            tables = database.execute("select name, sql from sqlite_master where type = 'table'").fetchall()
            _ROWS[file] = [(name, sql, database.execute(f'select * from "{name}"').fetchall()) for name, sql in tables]
    return _ROWS[file]


def copied(file: Path, to: Path) -> None:
    """The same rows into an empty database, by executemany in one transaction."""
    tables = rows(file)
    with closing(sqlite3.connect(to)) as database, database:
        for name, sql, its_rows in tables:
            database.execute(sql)
            if its_rows:
                database.executemany(f'insert into "{name}" values ({", ".join("?" * len(its_rows[0]))})', its_rows)


def live(records: int) -> None:
    """The whole way while the library records: what our thread needs for it, and what recording costs."""
    fake = activity_library.library()
    fake.c.fake_reset()
    fake.c.fake_names(1000)
    os.environ["LD_LIBRARY_PATH"] = str(activity_library.built().parent)
    source, run, rules, spent = MsptiSource(), new_run(), long_filter(ALL), [0.0, 0]
    metric = Metric(lambda message: True, run)

    def deliver(batch: Batch) -> None:
        metric.add(rules.keep(batch, run.strings))
        spent[:] = time.thread_time(), spent[1] + len(batch)

    source.start(frozenset(Kind), run.strings, deliver)
    fake.join(fake.start(ALL, 0, records))
    source.stop()
    note = ", ".join(f"{reason}: {count}" for reason, count in source.losses.items()) or "nothing lost"
    show("live: the source's thread to measurements", int(spent[1]), spent[0], f"{note} (target >= 1 M/s)")


def main(buffers: int) -> None:
    decoding(buffers)
    files(buffers)
    live(3_000_000)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
