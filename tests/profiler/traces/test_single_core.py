"""trace.json of one core (opprof.md 2.6, schemaVersion 1)."""

import pytest

from npuscope.profiler.writers.trace_json import CoreTraces, Shown, write_core
from npuscope.trace.schema import CoreInfo, CoreType
from npuscope.trace.timeline import Lane, Source

TWO = (CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIV, 1))


def slices(document):
    return [(e["name"], e["pid"], e["tid"], e["ts"], e["dur"]) for e in document["traceEvents"] if e["ph"] == "X"]


def names(document, kind):
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"] if e["name"] == kind}


@pytest.fixture
def overlapping(hand):
    return hand(
        [
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": 0, "end": 100},
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": 50, "end": 150},
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": 60, "end": 70},
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": 100, "end": 160},
            {"text": "WAIT_FLAG", "lane": Lane.VECTOR, "start": 0, "end": 101},
            {"text": "VADD", "lane": Lane.VECTOR, "start": 101, "end": 110},
            {"text": "VADD", "lane": Lane.VECTOR, "core": 1, "start": 5, "end": 7},
            {"text": "SIMT_FADD", "lane": Lane.VECTOR, "core": 1, "start": 8, "end": 9, "warp": 3, "threads": 32},
        ],
        cores=TWO,
    )


def test_overlapping_slices_are_put_side_by_side(overlapping, written) -> None:
    document = written(write_core, overlapping, 0)
    assert document["schemaVersion"] == 1 and document["profilingType"] == "op"
    assert slices(document) == [
        ("MOV_OUT_TO_UB", 60, 1, 0.0, 0.1), ("MOV_OUT_TO_UB", 60, 2, 0.05, 0.1), ("MOV_OUT_TO_UB", 60, 3, 0.06, 0.01),
        ("MOV_OUT_TO_UB", 60, 1, 0.1, 0.06), ("WAIT_FLAG", 30, 1, 0.0, 0.101), ("VADD", 30, 1, 0.101, 0.009),
    ]  # fmt: skip
    assert names(document, "process_name") == {(60, 0): "MTE2", (30, 0): "VECTOR"}
    assert names(document, "thread_name") == {(60, 1): "MTE2_1", (60, 2): "MTE2_2", (60, 3): "MTE2_3",
                                              (30, 1): "VECTOR_1"}  # fmt: skip


def test_each_core_has_its_own_slices(overlapping, written) -> None:
    document = written(CoreTraces(overlapping).write, 1)
    assert slices(document) == [("VADD", 30, 1, 0.005, 0.002), ("SIMT_FADD", 203, 1, 0.008, 0.001)]


def test_flags_can_be_hidden(overlapping, written) -> None:
    assert "WAIT_FLAG" not in {event[0] for event in slices(written(write_core, overlapping, 0, Shown(flags=False)))}


def test_scalar_memory_has_a_lane_in_vendor_logs(hand, written) -> None:
    given = [{"text": "LD", "start": 0, "end": 5, "detail": "XD:X3=0x4"}, {"text": "ADD", "start": 5, "end": 6}]
    found = slices(written(write_core, hand(given, source=Source.SIMULATOR), 0))
    assert [event[:2] for event in found] == [("LD", 20), ("ADD", 10)]
    assert [event[1] for event in slices(written(write_core, hand(given), 0))] == [10, 10]


def test_marks_are_a_process(hand, written) -> None:
    timeline = hand([{"text": "METRICS_PROF_START", "start": 1, "end": 2}, {"text": "METRICS_PROF_STOP", "start": 8, "end": 9}])
    document = written(write_core, timeline, 0)
    assert ("METRICS_PROF", 120, 1, 0.001, 0.008) in slices(document)
    assert names(document, "process_name")[120, 0] == "USERMARK"
