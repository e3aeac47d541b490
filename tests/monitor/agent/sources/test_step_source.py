"""Steps as ranges."""

from __future__ import annotations

import threading
import time

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Flag, Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.steps import StepSource


def test_whole_steps_only_and_each_begins_where_the_last_one_ended() -> None:
    source, strings, got = StepSource(), Strings(), list[Batch]()
    source.step(1)
    before = time.time_ns()
    source.start(frozenset({Kind.MARKER}), strings, got.append)
    for number in (2, 3, 4):
        source.step(number)
    source.flush()
    source.step(5)
    source.stop()
    source.stop()
    source.step(6)
    source.flush()
    marks = joined(got)
    names = [strings.texts[number] for number in marks["name"]]
    assert names == ["step 3", "step 3", "step 4", "step 4", "step 5", "step 5"]
    assert marks["flag"].tolist() == [Flag.START, Flag.END] * 3
    assert {strings.texts[number] for number in marks["domain"]} == {"step"}
    times = marks["time"].tolist()
    assert times == sorted(times)
    assert (times[1], times[3]) == (times[2], times[4])
    assert before <= times[0]
    assert marks["id"][0] == marks["id"][1] != marks["id"][2]
    assert set(marks["thread"]) == {threading.get_native_id()}
    assert not source.losses


def test_kinds_may_change() -> None:
    source, got = StepSource(), list[Batch]()
    source.start(frozenset({Kind.MARKER}), Strings(), got.append)
    source.step(1)
    source.change(frozenset())
    source.step(2)
    source.change(frozenset({Kind.MARKER}))
    source.step(3)
    source.step(4)
    source.stop()
    assert len(joined(got)) == 2
