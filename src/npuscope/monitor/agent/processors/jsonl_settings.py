"""What the environment and the command say about JSON lines (monitor formats, 5)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LINES = "MSMONITOR_JSONL_ROTATE_LOG_LINES"
FILES = "MSMONITOR_JSONL_ROTATE_LOG_FILES"
CAPACITY = "MSMONITOR_JSONL_BUFFER_CAPACITY"
INTERVAL = "MSMONITOR_JSONL_MAX_DUMP_INTERVAL"
DEFAULT_LINES, LEAST_LINES, MOST_LINES = 10_000, 100, 500_000
ALL_FILES, LEAST_FILES = -1, 2
DEFAULT_CAPACITY, LEAST_CAPACITY, MOST_CAPACITY = 524_288, 8_192, 2_097_152
DEFAULT_INTERVAL, LEAST_INTERVAL = 30_000, 1_000
NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How lines are kept."""

    lines: int = DEFAULT_LINES
    """Of a file."""
    files: int = ALL_FILES
    """That are kept; -1: all."""
    capacity: int = DEFAULT_CAPACITY
    """Records that wait at most."""
    interval: int = DEFAULT_INTERVAL
    """Milliseconds that a record waits at most."""


def read_settings(
    warn: Warn, lines: str = "", files: str = "", environment: Mapping[str, str] = os.environ
) -> Settings:
    """The settings; a flag counts before the environment. What means nothing is named, and the default taken."""
    return Settings(
        _lines(lines or environment.get(LINES, ""), warn),
        _files(files or environment.get(FILES, ""), warn),
        _capacity(environment.get(CAPACITY, ""), warn),
        _interval(environment.get(INTERVAL, ""), warn),
    )


def _number(word: str) -> int | None:
    return int(word) if NUMBER.fullmatch(word) else None


def _lines(word: str, warn: Warn) -> int:
    if not word:
        return DEFAULT_LINES
    number = _number(word)
    if number is None or number < 0:
        warn(f"'{word}' is no number of lines of a file: {DEFAULT_LINES} are taken")
        return DEFAULT_LINES
    return _clamped("lines of a file", number, LEAST_LINES, MOST_LINES, warn)


def _files(word: str, warn: Warn) -> int:
    number = _number(word) if word else ALL_FILES
    if number == ALL_FILES or number is not None and number >= LEAST_FILES:
        return number
    warn(f"'{word}' is no number of files to keep: it is -1, or {LEAST_FILES} or more; all are kept")
    return ALL_FILES


def _capacity(word: str, warn: Warn) -> int:
    if not word:
        return DEFAULT_CAPACITY
    number = _number(word)
    if number is None or number < 0 or number & (number - 1):
        warn(f"{CAPACITY} is a power of two, not '{word}': {DEFAULT_CAPACITY} is taken")
        return DEFAULT_CAPACITY
    return _clamped("records that wait", number, LEAST_CAPACITY, MOST_CAPACITY, warn)


def _interval(word: str, warn: Warn) -> int:
    number = _number(word) if word else DEFAULT_INTERVAL
    if number is not None and number >= LEAST_INTERVAL:
        return number
    warn(f"{INTERVAL} is a number of milliseconds from {LEAST_INTERVAL} on, not '{word}': {DEFAULT_INTERVAL} is taken")
    return DEFAULT_INTERVAL


def _clamped(what: str, number: int, least: int, most: int, warn: Warn) -> int:
    taken = min(max(number, least), most)
    if taken != number:
        warn(f"{number} {what} are out of {least} to {most}: {taken} are taken")
    return taken
