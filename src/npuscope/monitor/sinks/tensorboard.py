"""Measurements of the plug-in as TensorBoard scalars: a folder for each device, a chart for each kind."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from npuscope.errors import UserError
from npuscope.monitor.metrics.record import DEVICE, Record

MOST_FOLDERS = 256
"""More devices than a host has: a sender's mistake must not use up the files."""
MARKER, DEFAULT_DOMAIN = "Marker", "default"


class TensorBoard:
    """Writes event files, one for each device and run of the daemon."""

    def __init__(self, folder: Path, note: Callable[[str], None]) -> None:
        """Raises UserError when the folder cannot be used, or tensorboardX is missing."""
        self.name = f"TensorBoard in {folder}"
        self._folder = folder.absolute()
        self._note = note
        self._left_out = False
        self._library = _library()
        self._writers: dict[str, Any] = {}
        self._steps: dict[tuple[str, str], int] = {}
        self._number = itertools.count()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            raise UserError(f"Unable to record logs in the target folder {folder}") from None
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise UserError(f"Unable to record logs in the target folder {folder}")

    def write(self, records: Sequence[Record]) -> None:
        """Write the durations, in nanoseconds. A step is how many there were before of the same device and kind."""
        steps = dict(self._steps)
        touched = {}
        try:
            for record in records:
                if record.entity == DEVICE and (writer := self._writer(record.labels["device"])):
                    key = record.labels["device"], record.labels["kind"]
                    writer.write_event(self._event(record, steps.get(key, 0)))
                    steps[key] = steps.get(key, 0) + 1
                    touched[id(writer)] = writer
            for writer in touched.values():
                writer.flush()
        except Exception:
            # What is in the files now may be torn; the same records come again, and go to new ones.
            self.close()
            raise
        self._steps = steps

    def _event(self, record: Record, step: int) -> Any:
        kind = record.labels["kind"]
        tag = f"{kind}/{record.labels.get('domain', DEFAULT_DOMAIN)}" if kind == MARKER else kind
        summary = self._library.scalar(tag, float(record.values["duration"]))
        return self._library.Event(wall_time=record.time, step=step, summary=summary)

    def _writer(self, device: str) -> Any:
        writer = self._writers.get(device)
        if writer is None and len(self._writers) >= MOST_FOLDERS:
            if not self._left_out:
                self._note(f"no TensorBoard files for device {device} and others: {MOST_FOLDERS} devices are enough")
            self._left_out = True
        elif writer is None:
            folder = self._folder / f"device_{device}"
            folder.mkdir(exist_ok=True)
            # The library's own name has the second only: two files of one second would be one.
            ending = f".{os.getpid()}.{next(self._number)}"
            writer = self._writers[device] = self._library.EventsWriter(str(folder / "events"), ending)
        return writer

    def close(self) -> None:
        """Close the files."""
        for writer in self._writers.values():
            with contextlib.suppress(Exception):
                writer.close()
        self._writers = {}


def _library() -> Any:
    try:
        from npuscope.monitor.sinks import tensorboard_library
    except ImportError:
        raise UserError("TensorBoard files need tensorboardX: pip install 'npuscope[tensorboard]'") from None
    return tensorboard_library
