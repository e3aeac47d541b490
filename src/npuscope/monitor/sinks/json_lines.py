"""Records as JSON: one object per line in a file, or two lines per record in the log as the stock daemon has it."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import orjson

from npuscope.errors import UserError
from npuscope.monitor.metrics.plugin import SPREAD
from npuscope.monitor.metrics.record import DEVICE, Record, Value

STOCK_LABELS = {"device": "deviceId", "kind": "kind", "domain": "domain"}
"""What the stock daemon writes of the plug-in's labels, and how it calls them."""


def timestamp(seconds: float) -> str:
    """A moment as RFC 3339 writes it, in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(record: Record) -> bytes:
    """A record as one line."""
    shown = {
        "time": timestamp(record.time),
        "entity": record.entity,
        "labels": dict(record.labels),
        "values": dict(record.values),
    }
    return orjson.dumps(shown) + b"\n"


class JsonLines:
    """Appends to a file, which may be moved away or deleted at any time. No line is ever half there."""

    def __init__(self, path: Path) -> None:
        """Raises UserError when the file cannot be written."""
        self.name = str(path)
        self._path = path.absolute()
        try:
            if not self._path.exists() or self._path.is_file():  # a pipe may have nobody at its other end yet
                os.close(self._open())
            elif self._path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        except OSError as error:
            raise UserError(f"cannot write the metrics log {path}: {error.strerror}") from None

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def write(self, records: Sequence[Record]) -> None:
        """Append a line for each."""
        text = b"".join(map(line, records))
        file = self._open()
        try:
            whole = stat.S_ISREG(os.fstat(file).st_mode)
            begin = os.lseek(file, 0, os.SEEK_END) if whole else 0
            try:
                _write_all(file, text)
            except OSError:
                if whole:
                    os.ftruncate(file, begin)
                raise
        finally:
            os.close(file)

    def close(self) -> None:
        """Nothing is open between writes."""


def _write_all(file: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(file, rest) :]


class StockJson:
    """Writes to the log what the stock daemon's `--use_JSON` does."""

    name = "the log"

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def write(self, records: Sequence[Record]) -> None:
        """Two lines for each."""
        for record in records:
            for text in stock_lines(record):
                self._log(text)

    def close(self) -> None:
        """The log is somebody else's."""


def sample(record: Record) -> dict[str, Value]:
    """Labels and values in one, under the stock daemon's names; it knows nothing of how durations spread."""
    if record.entity == DEVICE:
        found = {name: record.labels[label] for label, name in STOCK_LABELS.items() if label in record.labels}
    else:
        found = dict(record.labels)
    return found | {name: value for name, value in record.values.items() if name not in SPREAD}


def stock_lines(record: Record) -> tuple[str, str]:
    """How many values there are, and the values: sorted, numbers with a fraction as text with three decimals."""
    shown = {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in sample(record).items()}
    data = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"Logging : {len(shown)} values", f"time = {timestamp(record.time)} data = {data}"
