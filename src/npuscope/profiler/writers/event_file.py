"""The frame of a file of trace events: one JSON object with a list, written event by event."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

import orjson

from npuscope.profiler.writers.text_rows import Sheet


class Sink(Protocol):
    """What takes bytes: a file."""

    def write(self, data: bytes | memoryview, /) -> Any:
        """Take bytes, all of them."""


class EventFile:
    """Writes events into `file` as they come; nothing is kept. Use it as a context: leaving it closes the list, but not
    the file. `head` are the keys before the list.

    The viewer wants the words that tell an operator's trace before the first bracket, and the list within the first
    MiB (opprof.md 2.7, V7 and V10), so the head holds plain values only.
    """

    def __init__(self, file: Sink, head: Mapping[str, str | int | bool]) -> None:
        self.file = file
        self.count = 0
        self.file.write(orjson.dumps(dict(head))[:-1] + b',"traceEvents":[\n')

    def __enter__(self) -> EventFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.file.write(b"\n]}\n")

    def event(self, **event: Any) -> None:
        """Write one event."""
        self.file.write((b",\n" if self.count else b"") + orjson.dumps(event))
        self.count += 1

    def sheet(self, sheet: Sheet, each: int = 1) -> None:
        """Write rows of `each` events; every event begins with a comma and a line feed (`EVENT`)."""
        for number, chunk in enumerate(sheet.chunks()):
            self.file.write(chunk if self.count or number else chunk[len(EVENT) :])
        self.count += each * sheet.columns.shape[1]


EVENT = b",\n"
"""What every form of an event begins with."""
