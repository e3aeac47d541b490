"""Traces that show nothing are told (opprof.md 9)."""

from npuscope.profiler.instruction_timeline.soundness import complaints
from npuscope.trace.schema import CoreInfo, CoreType
from npuscope.trace.timeline import Lane

TWO = (CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIV, 1))


def test_a_sound_timeline(hand) -> None:
    good = hand([{"text": "VADD", "lane": Lane.VECTOR, "start": 1, "end": 2}])
    assert complaints([good, good], ["kernel", "kernel"]) == []


def test_what_is_wrong_is_said(hand) -> None:
    assert complaints([hand([])]) == ["kernel: no instruction was timed"]
    assert complaints([hand([{"start": 1, "end": 2}], cores=TWO)]) == ["kernel: no instruction was timed on core1.veccore0"]
    found = complaints([hand([{"start": 5, "end": 2}, {"start": 3, "end": 9}], cycles=8)])
    assert found == ["kernel: 1 of 2 instructions end before they start", "kernel: 1 of 2 instructions end after the launch"]
    assert complaints([hand([{"start": 5, "end": 5}])]) == ["kernel: no instruction takes any time"]


def test_launches_without_a_timeline_are_named(hand) -> None:
    good = hand([{"start": 1, "end": 2}])
    assert complaints([good], ["kernel", "other", "kernel"]) == [
        "other: launched, but there is no timeline of it", "kernel: launched, but there is no timeline of it",
    ]  # fmt: skip
