"""Cycles by instruction and line, against sums done by hand and with sets of cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuscope.profiler.hot_spots import hit_rate, hot_spots
from npuscope.profiler.intervals import covered
from npuscope.trace.schema import Site, SourceFrame
from npuscope.trace.timeline import TRANSFER_COLUMNS, UNKNOWN, Lane, Step, Timeline

Make = Callable[..., Timeline]


def step(number: int, lane: Lane, *lines: int, dtype: str = "") -> Step:
    return Step(
        0x1000 + 4 * number, f"I{number}", lane, Site("x", tuple(SourceFrame("k.py", n) for n in lines)), dtype=dtype
    )


def row(step: int, core: int, lane: Lane, start: int, end: int, **more: int) -> dict[str, int]:
    return {"step": step, "core": core, "lane": lane, "start": start, "end": end, "bank_group": 0, "bank": 0, **more}


STEPS = (
    step(0, Lane.MTE2, 3, 10),
    step(1, Lane.VECTOR, 4, 10, dtype="float32"),
    step(2, Lane.SCALAR, 10),
    step(3, Lane.USERMARK, 10),
    step(4, Lane.VECTOR, 7, 7, dtype="float16"),  # a function that calls itself on one line
    step(5, Lane.SCALAR),
)
SLICES = (
    row(0, 0, Lane.MTE2, 0, 100, bytes=4096, fetch=-1, control=-1),
    row(0, 0, Lane.MTE2, 50, 120, bytes=2048),
    row(1, 0, Lane.VECTOR, 110, 140, bytes=0, work=1024, bank_group=3, bank=1, fetch=90, control=95),
    row(1, 0, Lane.VECTOR, 140, 150, bytes=0, work=16320, bank_group=9, bank=0, fetch=100, control=130),
    row(1, 1, Lane.VECTOR, 5, 25, bytes=0, work=64, bank_group=0, fetch=1, control=2),
    row(2, 1, Lane.SCALAR, 0, 10),
    row(3, 0, Lane.USERMARK, 0, 999),
    row(4, 1, Lane.VECTOR, 30, 40, work=32640 * 2),
    row(5, 1, Lane.SCALAR, 200, 201),
)


@pytest.fixture
def timeline(make: Make) -> Timeline:
    moves: list[dict[str, Any]] = [
        {"slice": 0, "hits": 2, "misses": 6}, {"slice": 1, "hits": 4, "misses": 0},
        {"slice": 2, "hits": UNKNOWN, "misses": UNKNOWN},
    ]  # fmt: skip
    transfers = np.array([[move.get(name, UNKNOWN) for name in TRANSFER_COLUMNS] for move in moves], np.int64).T
    return make(blocks=2, steps=STEPS, slices=SLICES, transfers=transfers)


def test_instructions(timeline: Timeline) -> None:
    spots = hot_spots(timeline)
    assert spots.executed.tolist() == [[2, 0], [2, 1], [0, 1], [0, 0], [0, 1], [0, 1]]
    assert spots.cycles[:3].tolist() == [[170, UNKNOWN], [40, 20], [UNKNOWN, 10]]
    assert spots.covered[:3].tolist() == [[120, 0], [40, 20], [0, 10]]  # 0-100 and 50-120 overlap
    assert spots.bytes[:3].tolist() == [[6144, UNKNOWN], [0, 0], [UNKNOWN, UNKNOWN]]
    assert spots.hits[0].tolist() == [6, UNKNOWN]
    assert spots.misses[0].tolist() == [6, UNKNOWN]
    assert spots.hits[1].tolist() == [UNKNOWN, UNKNOWN]


def test_a_mark_is_no_instruction(timeline: Timeline) -> None:
    spots = hot_spots(timeline)
    assert spots.cycles[3].tolist() == [UNKNOWN, UNKNOWN]
    assert max(line.cycles.max() for line in spots.frames) < 999


def test_the_worst_execution_stands_for_an_instruction(timeline: Timeline) -> None:
    spots = hot_spots(timeline)
    assert spots.read_conflict[1].tolist() == [9, 0]
    assert spots.write_conflict[1].tolist() == [1, 0]
    assert spots.read_conflict[0].tolist() == [UNKNOWN, UNKNOWN]  # a copy
    # 1024 floats are 4096 of 255 * 256 bytes, 16320 floats all of them; 64 are 256 bytes
    assert spots.utilisation[1].tolist() == pytest.approx([100 * 4096 / 65280, 100 * 256 / 65280])
    assert spots.utilisation[4][1] == 100.0  # more than one instruction holds counts as full
    assert np.isnan(spots.utilisation[0]).all()


def test_time_before_a_pipe_pops_an_instruction(timeline: Timeline) -> None:
    spots = hot_spots(timeline)
    assert spots.fetching[1].tolist() == [5 + 30, 1]
    assert spots.controlling[1].tolist() == [15 + 10, 3]
    assert spots.scalar[1].tolist() == [60, 4]
    assert spots.scalar[0].tolist() == [UNKNOWN, UNKNOWN]


def test_lines_have_what_is_written_on_them(timeline: Timeline) -> None:
    lines = {line.frame.line: line for line in hot_spots(timeline).lines}
    assert sorted(lines) == [3, 4, 7, 10]
    assert lines[3].steps == (0,)
    assert lines[10].steps == (2, 3)
    assert lines[10].cycles.tolist() == [0, 10]
    assert lines[4].executed.tolist() == [2, 1]


def test_a_frame_has_what_it_calls(timeline: Timeline) -> None:
    frames = {line.frame.line: line for line in hot_spots(timeline).frames}
    assert frames[10].steps == (0, 1, 2, 3)
    assert frames[10].cycles.tolist() == [170 + 40, 20 + 10]
    assert frames[10].covered.tolist() == [150, 25]  # 0-120 and 110-150; 0-10 and 5-25
    assert frames[10].bytes.tolist() == [6144, 0]
    assert frames[10].hits.tolist() == [6, UNKNOWN]
    assert frames[7].cycles.tolist() == [0, 10]  # once, though it is there twice


def test_the_slowest_line_comes_first(timeline: Timeline) -> None:
    spots = hot_spots(timeline)
    assert [line.frame.line for line in spots.lines] == [3, 4, 7, 10]
    assert [line.frame.line for line in spots.frames][0] == 10


def test_an_empty_launch(make: Make) -> None:
    spots = hot_spots(make())
    assert spots.executed.shape == (0, 1)
    assert spots.lines == [] == spots.frames


def test_rates() -> None:
    rates = hit_rate(np.array([3, 0, UNKNOWN, 0]), np.array([1, 5, UNKNOWN, 0]))
    assert rates[:2].tolist() == [75.0, 0.0]
    assert np.isnan(rates[2:]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(0, 2), st.integers(0, 1)), max_size=25))
def test_covered_cycles_are_those_of_a_set(intervals: list[tuple[int, int, int, int]]) -> None:
    owners = {0: [0], 1: [0, 1], 2: []}
    first, groups = np.array([0, 1, 3, 3]), np.array([0, 0, 1])
    start = np.array([interval[0] for interval in intervals], np.int64)
    end = start + np.array([interval[1] for interval in intervals], np.int64)
    kind, core = (np.array([interval[n] for interval in intervals], np.int64) for n in (2, 3))
    found = covered(np.argsort(start), start, end, kind, core, first, groups, (2, 2))
    for group in range(2):
        for one in range(2):
            cycles = {
                cycle
                for begin, length, which, where in intervals
                if where == one and group in owners[which]
                for cycle in range(begin, begin + length)
            }
            assert found[group, one] == len(cycles)
