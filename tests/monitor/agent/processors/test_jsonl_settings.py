"""What flags and the environment say about JSON lines (monitor formats, 5)."""

from __future__ import annotations

import pytest

from npuscope.monitor.agent.processors.jsonl_settings import Settings, read_settings

DEFAULT = Settings(lines=10_000, files=-1, capacity=524_288, interval=30_000)
LINES = "MSMONITOR_JSONL_ROTATE_LOG_LINES"
FILES = "MSMONITOR_JSONL_ROTATE_LOG_FILES"
CAPACITY = "MSMONITOR_JSONL_BUFFER_CAPACITY"
INTERVAL = "MSMONITOR_JSONL_MAX_DUMP_INTERVAL"


def read(lines: str = "", files: str = "", **environment: str) -> tuple[Settings, list[str]]:
    warnings: list[str] = []
    return read_settings(warnings.append, lines, files, environment), warnings


def test_the_defaults() -> None:
    assert read() == (DEFAULT, [])
    assert Settings() == DEFAULT


def test_a_flag_counts_before_the_environment() -> None:
    settings, warnings = read("200", "3", **{LINES: "300", FILES: "4", CAPACITY: "16384", INTERVAL: "1000"})
    assert (settings, warnings) == (Settings(200, 3, 16_384, 1000), [])
    settings, warnings = read(**{LINES: "300", FILES: "4"})
    assert (settings.lines, settings.files, warnings) == (300, 4, [])


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        (LINES, "99", 100), (LINES, "500001", 500_000), (LINES, "x", 10_000), (LINES, "-5", 10_000), (LINES, "1e3", 10_000),
        (LINES, "0", 100), (FILES, "1", -1), (FILES, "0", -1), (FILES, "-2", -1), (FILES, "two", -1),
        (CAPACITY, "4096", 8_192), (CAPACITY, "4194304", 2_097_152), (CAPACITY, "10000", 524_288), (CAPACITY, "-8", 524_288),
        (CAPACITY, "many", 524_288), (INTERVAL, "999", 30_000), (INTERVAL, "1 s", 30_000), (INTERVAL, "-1", 30_000),
    ],
)  # fmt: skip
def test_what_means_nothing_is_named(name: str, word: str, value: int) -> None:
    settings, warnings = read(**{name: word})
    fields = {LINES: "lines", FILES: "files", CAPACITY: "capacity", INTERVAL: "interval"}
    assert getattr(settings, fields[name]) == value
    (warning,) = warnings
    assert word in warning


@pytest.mark.parametrize(
    ("name", "word", "field", "value"),
    [
        (LINES, "100", "lines", 100), (LINES, "500000", "lines", 500_000), (FILES, "-1", "files", -1), (FILES, "2", "files", 2),
        (CAPACITY, "8192", "capacity", 8192), (CAPACITY, "2097152", "capacity", 2_097_152), (INTERVAL, "1000", "interval", 1000),
    ],
)  # fmt: skip
def test_the_ends_of_what_is_accepted(name: str, word: str, field: str, value: int) -> None:
    settings, warnings = read(**{name: word})
    assert (getattr(settings, field), warnings) == (value, [])
