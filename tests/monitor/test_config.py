"""The configuration text against the published grammar."""

from __future__ import annotations

import pytest

from npuscope.monitor.protocol import config
from npuscope.monitor.protocol.config import BadConfig, Trace


def test_a_duration_trace() -> None:
    assert config.build(Trace("/tmp/x.json")) == (
        "ACTIVITIES_LOG_FILE=/tmp/x.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=500\n"
        "PROFILE_REPORT_INPUT_SHAPES=false\nPROFILE_WITH_STACK=false\nPROFILE_WITH_FLOPS=false\n"
        "PROFILE_WITH_MODULES=false"
    )


def test_an_iteration_trace() -> None:
    text = config.build(Trace("/tmp/x.json", iterations=3, roundup=10, with_stacks=True))
    assert text.split("\n")[1:4] == [
        "PROFILE_START_ITERATION=0",
        "PROFILE_START_ITERATION_ROUNDUP=10",
        "ACTIVITIES_ITERATIONS=3",
    ]
    assert "PROFILE_WITH_STACK=true" in text and "DURATION" not in text


def test_memory_is_asked_for_with_its_three_keys() -> None:
    pairs = config.read(config.build(Trace("/tmp/x.json", duration_ms=700, profile_memory=True)))
    assert pairs["PROFILE_PROFILE_MEMORY"] == pairs["PROFILE_MEMORY"] == "true"
    assert pairs["PROFILE_MEMORY_DURATION_MSECS"] == "700"


def test_the_trace_id_is_a_line_of_its_own() -> None:
    assert config.with_trace_id("A=1", 42) == "\n    A=1\n    REQUEST_TRACE_ID=42\n"
    assert config.read(config.with_trace_id("A=1\nB=2", 42, 12)) == {"A": "1", "B": "2", "REQUEST_TRACE_ID": "42"}


@pytest.mark.parametrize("text", ["A", "A=1=2", "LOG=/tmp/a=b.json", "=#\nB", "LOG=/tmp/x\nmore"])
def test_lines_at_which_a_process_stops_reading(text: str) -> None:
    with pytest.raises(BadConfig):
        config.read(text)


def test_comments_blank_lines_and_repetitions() -> None:
    assert config.read("  A = 1 # one\n\n#B=2\nA=3") == {"A": "3"}


@pytest.mark.parametrize(
    "text",
    [
        "ACTIVITIES_DURATION_MSECS=-1",
        "ACTIVITIES_DURATION_MSECS=2147483648",
        "ACTIVITIES_ITERATIONS=two",
        "PROFILE_WITH_STACK=perhaps",
        "PROFILE_START_TIME=989000",
        f"PROFILE_START_TIME={'9' * 5000}",
    ],
)
def test_values_that_a_process_refuses_without_a_word(text: str) -> None:
    with pytest.raises(BadConfig):
        config.validate(config.read(text), now=1000.0)


def test_when_a_trace_ends() -> None:
    assert config.expected_end({"ACTIVITIES_DURATION_MSECS": "500"}, 100.0) == 107.5
    assert config.expected_end({"ACTIVITIES_WARMUP_PERIOD_SECS": "0"}, 100.0) == 102.5
    assert config.expected_end({"PROFILE_START_TIME": "200000"}, 100.0) == 200.5
    assert config.expected_end({"ACTIVITIES_ITERATIONS": "3"}, 100.0) is None


def test_the_file_that_a_process_writes() -> None:
    assert config.trace_file("/d/x.json", 5) == "/d/x_5.json"
    assert config.trace_file("/d/x.pt.trace.json", 5) == "/d/x_5.pt.trace.json"
    assert config.trace_file("/d/noext", 5) == "/d/noext"
