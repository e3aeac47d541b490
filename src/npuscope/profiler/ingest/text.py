"""The text of a log, whole or in parts, and what can be asked of its spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npuscope.profiler.ingest.scan import numbers_after, span_hashes
from npuscope.trace.timeline import UNKNOWN

NEWLINE = b"\n"
LONGEST_LINE = 1 << 20
"""A last line is looked for in so many bytes."""


@dataclass(frozen=True, eq=False)
class LogText:
    """The bytes of a log, (bytes,) uint8; they end with a newline. `cut` says that the file did not."""

    letters: np.ndarray
    cut: bool = False

    @property
    def last_line(self) -> int:
        """Where the last line begins."""
        breaks = np.flatnonzero(self.letters[-1 - LONGEST_LINE : -1] == NEWLINE[0])
        return int(breaks[-1]) + 1 + max(0, self.letters.size - 1 - LONGEST_LINE) if breaks.size else 0

    def spans_with(self, pattern: bytes, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Which of the spans hold `pattern`, which does not overlap itself, (spans,) bool."""
        found = np.zeros(starts.size, bool)
        if starts.size:
            begin, end = int(starts.min()), int(ends.max())
            part = self.letters.data[begin:end]
            places = np.array([begin + match.start() for match in re.finditer(re.escape(pattern), part)], np.int64)
            last = np.maximum(ends - len(pattern) + 1, starts)
            found[:] = np.searchsorted(places, last) > np.searchsorted(places, starts)
        return found

    def numbers(self, key: bytes, starts: np.ndarray, ends: np.ndarray, base: int = 10) -> np.ndarray:
        """The number after `key` in each span, UNKNOWN where there is none, (spans,) int64."""
        return numbers_after(self.letters, starts, ends, _bytes(key), base)

    def first_numbers(self, keys: Sequence[bytes], starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The same for the first of several spellings of a key that a span has."""
        found = self.numbers(keys[0], starts, ends)
        for key in keys[1:]:
            lacking = np.flatnonzero(found == UNKNOWN)
            if lacking.size:
                found[lacking] = self.numbers(key, starts[lacking], ends[lacking])
        return found

    def hashes(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """A number for the letters of each span, blanks left out; equal for equal spans."""
        return span_hashes(self.letters, starts, ends)

    def word(self, start: int, end: int) -> str:
        """The letters of one span."""
        return self.letters[start:end].tobytes().decode("utf-8", "replace")


def read_parts(parts: Sequence[Path]) -> LogText:
    """The text of a log that lies in one or several files, in this order. Raises OSError."""
    sizes = [part.stat().st_size for part in parts]
    letters = np.empty(sum(sizes) + len(parts) + 1, np.uint8)
    raw = letters.data
    place = 0
    ended = True
    for part, size in zip(parts, sizes, strict=True):
        if not ended and _begins_line(part):
            raw[place : place + 1] = NEWLINE
            place += 1
        with part.open("rb", buffering=0) as file:
            taken = 0
            while taken < size and (step := file.readinto(raw[place + taken : place + size])):
                taken += step
        place += taken
        ended = taken == 0 or raw[place - 1 : place] == NEWLINE
    if not ended or not place:
        raw[place : place + 1] = NEWLINE
        place += 1
    return LogText(letters[:place], cut=not ended)


def first_tick(part: Path) -> int:
    """The tick of the first line of a file that has one, UNKNOWN if none of its first lines does. A part may begin in
    the middle of a line, whose rest tells nothing."""
    with part.open("rb") as file:
        head = file.read(1 << 16)
    lines = head.split(NEWLINE)
    for line in lines if head.startswith(b"[") else lines[1:]:
        digits = bytes(line).removeprefix(b"[info]").strip().lstrip(b"[@")
        end = 0
        while end < len(digits) and 48 <= digits[end] <= 57:
            end += 1
        if end:
            return int(digits[:end])
    return UNKNOWN


def _begins_line(part: Path) -> bool:
    with part.open("rb") as file:
        return file.read(1) == b"["


def _bytes(pattern: bytes) -> np.ndarray:
    return np.frombuffer(pattern, np.uint8)
