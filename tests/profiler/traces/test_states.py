"""The pipe timeline (opprof.md 3.6)."""

import numpy as np

from npuscope.profiler.instruction_timeline.instructions import record
from npuscope.profiler.instruction_timeline.records import decode
from npuscope.profiler.instruction_timeline.regions import number_regions
from npuscope.profiler.instruction_timeline.states import busy_intervals, pipe_timeline
from npuscope.profiler.writers.trace_json import OnBoard, write_on_board
from npuscope.trace.schema import CoreInfo, CoreType
from npuscope.trace.timeline import Lane


def rows(found):
    return list(zip(found.core.tolist(), found.lane.tolist(), found.start.tolist(), found.end.tolist(), strict=True))


GIVEN = [
    {"text": "MOV", "lane": Lane.MTE2, "start": 10, "end": 50, "control": 1, "issue": 3},
    {"text": "MOV", "lane": Lane.MTE2, "start": 40, "end": 90, "control": 2, "issue": 4},
    {"text": "MOV", "lane": Lane.MTE2, "start": 90, "end": 95, "control": 80, "issue": 90},
    {"text": "WAIT_FLAG", "lane": Lane.VECTOR, "start": 5, "end": 50, "control": 4, "issue": 5},
    {"text": "VADD", "lane": Lane.VECTOR, "start": 50, "end": 60, "control": 5, "issue": 6},
    {"text": "VADD", "lane": Lane.VECTOR, "start": 61, "end": 70, "control": 7, "issue": 61},
    {"text": "ADD", "lane": Lane.SCALAR, "start": 60, "end": 61},
]


def test_busy_is_the_union_of_what_a_pipe_does(hand) -> None:
    found = pipe_timeline(hand(GIVEN))
    assert rows(found.busy) == [
        (0, Lane.SCALAR, 60, 61), (0, Lane.VECTOR, 50, 60), (0, Lane.VECTOR, 61, 70), (0, Lane.MTE2, 10, 95),
    ]  # fmt: skip
    execute, status = found.states["execute"], found.states["status"]
    # bits: scalar 1, vector 2, mte2 16
    assert list(zip(execute.cycle.tolist(), execute.mask.tolist(), strict=True)) == [
        (10, 16), (50, 18), (60, 17), (61, 18), (70, 16), (95, 0),
    ]  # fmt: skip
    assert list(zip(status.cycle.tolist(), status.mask.tolist(), strict=True))[:2] == [(5, 2), (10, 18)]
    kickstart, dispatch = found.states["kickstart"], found.states["dispatch"]
    assert kickstart.cycle.tolist()[0] == 1 and dispatch.cycle.tolist()[0] == 3


def test_records_tell_the_same(hand) -> None:
    timeline = hand(GIVEN)
    records = decode(record(timeline, number_regions(timeline))[0])
    found = pipe_timeline(timeline).busy
    again = busy_intervals(records)
    assert sorted(rows(again)) == sorted(rows(found))


def test_a_pipe_that_never_ends_is_busy_until_the_last_record() -> None:
    import struct

    raw = struct.pack("<HHHHHH", 5, 0xF002, 10, 0xF003, 7, 0x1401)
    assert rows(busy_intervals(decode(raw), 2)) == [(2, Lane.SCALAR, 15, 22), (2, Lane.VECTOR, 5, 22)]


def test_at_most_six_cores_are_watched_and_that_is_said(hand, written) -> None:
    cores = tuple(CoreInfo(CoreType.AIV, number) for number in range(8))
    timeline = hand([{"text": "VADD", "lane": Lane.VECTOR, "core": n, "start": 1, "end": 9} for n in range(8)], cores=cores)
    found = pipe_timeline(timeline)
    assert np.unique(found.busy.core).tolist() == [0, 1, 2, 3, 4, 5]
    (loss,) = found.losses
    assert "6 of 8 cores" in loss.text and (loss.count, loss.total) == (2, 8)
    assert len(pipe_timeline(timeline, None).busy) == 8 and not pipe_timeline(timeline, None).losses
    document = written(write_on_board, timeline, OnBoard(pipes=found))
    assert document["schemaVersion"] == 1 and document["traceEvents"][0]["name"] == loss.text
    assert {(e["pid"], e["tid"], e["name"]) for e in document["traceEvents"][1:]} == {
        (f"core{n}.veccore0", "VECTOR", "VECTOR") for n in range(6)
    }


def test_mixed_cores_are_watched_with_both_their_vector_cores(hand) -> None:
    cores = tuple(info for n in range(7) for info in (
        CoreInfo(CoreType.AIC, n), CoreInfo(CoreType.AIV, 2 * n, 0), CoreInfo(CoreType.AIV, 2 * n + 1, 1)))  # fmt: skip
    timeline = hand([{"text": "X", "lane": Lane.MTE2, "core": n, "start": 1, "end": 9} for n in range(21)], cores=cores)
    assert np.unique(pipe_timeline(timeline).busy.core).tolist() == list(range(18))  # 18 channels
