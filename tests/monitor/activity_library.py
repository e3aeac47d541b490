"""The activity library that the tests build from C, and what its records must be: the rule of `activities.c` again."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import APIS, Kind
from npuscope.monitor.activity.strings import Strings

SOURCE = Path(__file__).parent / "agent" / "mspti" / "activities.c"
BASE = 1_700_000_000_000_000_000
CORRELATION, FUTURE = 8, 13
"""Kinds that no source offers: one of the header, and one that it does not have."""


def build(folder: Path, source: Path = SOURCE) -> Path:
    """`libmspti.so` in a folder, made with the machine's C compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed for the tests of the activity library: install gcc"
    made = folder / "libmspti.so"
    words = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o", str(made), str(source)]
    subprocess.run(words, check=True)
    return made


@functools.cache
def built() -> Path:
    """The library's file, the same for the whole process."""
    folder = tempfile.mkdtemp(prefix="activities-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build(Path(folder))


class Activities:
    """The library as the tests drive it; `hold` keeps the interpreter's lock during calls."""

    def __init__(self, path: Path, hold: bool = False) -> None:
        self.c: Any = (ctypes.PyDLL if hold else ctypes.CDLL)(str(path))
        kinds, number = ctypes.POINTER(ctypes.c_int), ctypes.c_uint64
        self.c.fake_emit.argtypes = (kinds, number, number)
        self.c.fake_start.argtypes = (kinds, number, number)
        self.c.fake_start.restype = number
        self.c.fake_join.argtypes = (number,)
        self.c.fake_rubbish.argtypes = (number, ctypes.c_int)
        self.c.fake_cut.argtypes = (number,)
        self.c.fake_base.argtypes = (number,)
        self.c.fake_kernel.argtypes = (ctypes.c_char_p,)
        self.c.fake_off_domain.restype = ctypes.c_char_p
        for name in ("fake_requests", "fake_dropped", "fake_most_lent", "fake_misaligned"):
            getattr(self.c, name).restype = ctypes.c_long

    def emit(self, kinds: Sequence[int], first: int, count: int) -> None:
        """Records `first` to `first + count - 1`, their kinds in turn, by this thread."""
        self.c.fake_emit(_kinds(kinds), first, count)

    def start(self, kinds: Sequence[int], first: int, count: int) -> int:
        """The same by a thread of the library's own; give the answer to `join`."""
        return int(self.c.fake_start(_kinds(kinds), first, count))

    def join(self, thread: int) -> None:
        self.c.fake_join(thread)


@functools.cache
def library() -> Activities:
    """The library in this process."""
    return Activities(built())


def _kinds(kinds: Sequence[int]) -> Any:
    return (ctypes.c_int * (len(kinds) + 1))(*kinds, 0)


def numbers(kinds: Sequence[int], kind: int, first: int, count: int) -> np.ndarray:
    """Which records are of a kind, when the kinds of a list take turns."""
    all_of_them = np.arange(first, first + count)
    return all_of_them[all_of_them % len(kinds) == list(kinds).index(kind)]


def expected(kind: Kind, i: np.ndarray, different: int = 100) -> Mapping[str, np.ndarray]:
    """The columns of records `i` of a kind, with names as texts."""

    def name(shift: int) -> np.ndarray:
        return np.array([f"name_{n}" for n in ((i + shift) % different).tolist()])

    start = BASE + 1000 * i
    end = start + 10 + i % 7
    device, stream = i % 8, np.where(i % 5, i % 3, -1)
    process, thread = 4_000_000_000 + i % 2, 100 + i % 4
    correlation = (1 << 40) + i
    times = {"start": start, "end": end}
    place = {"device": device, "stream": stream}
    move = {"bytes": 1 << i % 48, **times, **place, "correlation": correlation, "asynchronous": i % 2}
    if kind in APIS:
        return {**times, "process": process, "thread": thread, "correlation": correlation, "name": name(int(kind))}
    if kind is Kind.MARKER:
        host = i % 2 == 0
        return {
            "flag": 1 << i % 6, "side": i % 2, "time": start, "id": i // 4,
            "process": np.where(host, process, -1), "thread": np.where(host, thread, -1),
            "device": np.where(host, -1, device), "stream": np.where(host, -1, stream),
            "name": np.where(host, name(0), ""), "domain": np.where(i % 3, "", name(7)),
        }  # fmt: skip
    if kind is Kind.KERNEL:
        kinds = np.where(i % 2, "KERNEL_AIVEC", "KERNEL_AICORE")
        return {**times, **place, "correlation": correlation, "type": kinds, "name": name(0)}
    if kind is Kind.HCCL:
        return {**times, **place, "bandwidth": 0.5 * i, "name": name(0), "comm": name(1)}
    if kind is Kind.MEMORY:
        address = i.astype(np.uint64) + np.uint64(0xFFFF_8000_0000_0000)
        return {"operation": i % 2, "memory": np.ones_like(i), "correlation": correlation, **times, "address": address,
                "bytes": 64 * i, "process": process, **place}  # fmt: skip
    if kind is Kind.MEMSET:
        return {"value": i % 6, **move}
    if kind is Kind.MEMCPY:
        return {"direction": i % 6, **move}
    assert kind is Kind.COMMUNICATION
    algorithm = np.full(len(i), "HD")
    return {"data_type": np.where(i % 2, 65535, 4), "count": 3 * i, **place, **times, "algorithm": algorithm,
            "name": name(0), "comm": name(2), "correlation": correlation}  # fmt: skip


TEXTS = {"name", "domain", "type", "comm", "algorithm"}


def assert_records(batch: Batch, i: np.ndarray, strings: Strings, different: int = 100) -> None:
    """A batch is records `i`, every column of them, in this order."""
    columns = expected(batch.kind, i, different)
    assert set(batch.columns) == set(columns)
    for column, wanted in columns.items():
        found = batch[column]
        if column in TEXTS:
            found = np.array(strings.texts)[found]
        np.testing.assert_array_equal(found, wanted, f"{batch.kind.label} {column}")
