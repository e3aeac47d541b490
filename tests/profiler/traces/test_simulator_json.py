"""trace.json of all cores: what opprof.md 2.6 says of it, and what the viewer wants (V7, V8, V10)."""

import json
import re
from io import BytesIO

import pytest

from npuscope.npu.chip import load_chip
from npuscope.profiler.writers.trace_json import Shown, shown_of, write_simulator
from npuscope.trace.schema import CoreInfo, CoreType, Space
from npuscope.trace.timeline import Lane, Loss

MIX = (CoreInfo(CoreType.AIC, 0), CoreInfo(CoreType.AIV, 0, 0), CoreInfo(CoreType.AIV, 1, 1))
PLAIN = Shown(spans=False, throughput=False)


def named(document, name, phase=None):
    return [e for e in document["traceEvents"] if e["name"] == name and phase in (None, e["ph"])]


@pytest.fixture
def pipeline(hand):
    """A copy, a set at its end, a wait that begins before the slice ahead of it ends, and an addition."""
    return hand(
        [
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": 100, "end": 300, "bytes": 4096, "detail": "Dst:UB"},
            {"text": "VDUP", "lane": Lane.VECTOR, "start": 90, "end": 150},
            {"text": "SET_FLAG", "lane": Lane.MTE2, "start": 300, "end": 304},
            {"text": "WAIT_FLAG", "lane": Lane.VECTOR, "start": 120, "end": 305},
            {"text": "BAR", "lane": Lane.VECTOR, "start": 305, "end": 320},
            {"text": "SET_FLAG", "lane": Lane.MTE2, "start": 310, "end": 311},
        ],
        edges=[(2, 3, 0, 7)],
    )


def test_the_head_is_what_the_viewer_looks_for(pipeline, written) -> None:
    file = BytesIO()
    write_simulator(file, pipeline)
    text = file.getvalue()
    before = text[: text.index(b"[")]
    assert b'"profilingType":"op"' in before and b'"traceEvents":' in before and len(before) < 1 << 20  # V7, V10
    assert re.match(rb"\[\s*\{", text[text.index(b"[") :])
    document = json.loads(text)
    assert (document["schemaVersion"], document["displayTimeUnit"]) == (2, "ns")
    assert document["source"] == "modelled" and document["partial"] is False
    for event in document["traceEvents"]:
        assert event["ph"] in "XBEstMC"  # V8
        assert isinstance(event["pid"], str) and (event["ph"] == "E" or isinstance(event["tid"], str))


def test_a_slice_says_where_it_comes_from(pipeline, written) -> None:
    document = written(write_simulator, pipeline, PLAIN)
    (copy,) = named(document, "MOV_OUT_TO_UB")
    assert copy == {
        "name": "MOV_OUT_TO_UB", "cname": "good", "ph": "X", "ts": 0.1, "dur": 0.2, "pid": "core0.veccore0",
        "tid": "MTE2",
        "args": {"pc_addr": "0x1000", "code": "kernel.py:1\nhost.py:7", "detail": "Dst:UB", "process_bytes": 4096},
    }  # fmt: skip
    assert "process_bytes" not in named(document, "VDUP")[0]["args"]


def test_sets_waits_and_barriers_are_drawn_as_the_viewer_expects(pipeline, written) -> None:
    document = written(write_simulator, pipeline, PLAIN)
    begin, end = named(document, "SET_FLAG", "B")[0], named(document, "SET_FLAG", "E")[0]
    assert (begin["ts"], end["ts"]) == (0.303, 0.304)  # the last cycle only
    wait, waited = named(document, "WAIT_FLAG", "B")[0], named(document, "WAIT_FLAG", "E")[0]
    assert (wait["ts"], waited["ts"]) == (0.15, 0.305)  # from the end of the slice before it
    (barrier,) = named(document, "BAR")
    assert (barrier["ts"], barrier["dur"]) == (0.319, 0.001)
    # A pair shares its id with its arrow; the set that nobody waits for has one of its own.
    arrow = named(document, "flow")
    assert [(e["ph"], e["ts"], e["tid"]) for e in arrow] == [("s", 0.304, "MTE2"), ("t", 0.305, "VECTOR")]
    assert {e["cat"] for e in arrow} == {"MTE2ToVECTOR"}
    assert {e["id"] for e in (begin, end, wait, waited, *arrow)} == {"core0.veccore0_0"}
    assert [e["id"] for e in named(document, "SET_FLAG")[2:]] == ["core0.veccore0_1"] * 2


def test_a_run_with_pipe_utilization_alone_has_no_flags(pipeline, written) -> None:
    document = written(write_simulator, pipeline, Shown(flags=False))
    assert not named(document, "SET_FLAG") and not named(document, "WAIT_FLAG") and not named(document, "flow")
    assert named(document, "VDUP") and named(document, "BAR")


def test_order_of_cores_and_lanes(hand, written) -> None:
    timeline = hand(
        [
            {"text": "MMAD", "lane": Lane.CUBE, "core": 0, "start": 1, "end": 2},
            {"text": "VADD", "lane": Lane.VECTOR, "core": 1, "start": 1, "end": 2},
            {"text": "VADD", "lane": Lane.VECTOR, "core": 2, "start": 1, "end": 2, "warp": 5, "threads": 32},
        ],
        cores=MIX,
    )
    document = written(write_simulator, timeline, PLAIN)
    places = {(e["pid"], e["tid"]): e["args"]["sort_index"] for e in document["traceEvents"] if e["ph"] == "M"}
    assert places == {
        ("core0.cubecore0", "NA"): 1, ("core0.veccore0", "NA"): 2, ("core0.veccore1", "NA"): 3,
        ("core0.cubecore0", "CUBE"): 4, ("core0.veccore0", "VECTOR"): 7, ("core0.veccore1", "WARP_5"): 105,
    }  # fmt: skip


def test_simt_instructions_say_how_many_threads_work(hand, written) -> None:
    timeline = hand(
        [
            {"text": "SIMT_FADD", "lane": Lane.VECTOR, "start": 1, "end": 5, "warp": 0, "threads": 32, "detail": "R1,R2"},
            {"text": "SIMT_FADD", "lane": Lane.VECTOR, "start": 2, "end": 6, "warp": 1, "threads": 8, "detail": "R1,R2"},
        ]
    )
    found = named(written(write_simulator, timeline, PLAIN), "SIMT_FADD")
    assert [(e["tid"], e["args"]["detail"]) for e in found] == [
        ("WARP_0", "R1,R2, [threadNum:32]"), ("WARP_1", "R1,R2, [threadNum:8]"),
    ]  # fmt: skip


def test_scalar_spans_end_where_the_slice_starts(hand, written) -> None:
    timeline = hand(
        [
            {"text": "VADD", "lane": Lane.VECTOR, "fetch": 10, "control": 14, "issue": 15, "start": 20, "end": 30},
            {"text": "VSUB", "lane": Lane.VECTOR, "fetch": 11, "issue": 16, "start": 30, "end": 40},
            {"text": "SET_FLAG", "lane": Lane.VECTOR, "fetch": 12, "control": 17, "start": 40, "end": 41},
            {"text": "BAR", "lane": Lane.VECTOR, "fetch": 12, "control": 17, "start": 41, "end": 42},
            {"text": "VMUL", "lane": Lane.VECTOR, "start": 42, "end": 44},
        ]
    )
    document = written(write_simulator, timeline)
    spans = [(e["name"], e["ts"], round(e["ts"] + e["dur"], 6), e["group_id"])
             for e in document["traceEvents"] if e["name"] in ("cache_time", "ccu_time")]
    # without the control unit's log there is one span, up to the pop; sets, barriers and unknown fetches have none
    assert spans == [("cache_time", 0.01, 0.014, "0"), ("cache_time", 0.011, 0.03, "1"), ("ccu_time", 0.014, 0.02, "0")]
    assert [e.get("group_id") for name in ("VADD", "VSUB", "BAR", "VMUL") for e in named(document, name)] == [
        "0", "1", None, None,
    ]  # fmt: skip
    assert all(e["tid"] == "VECTOR" for e in named(document, "cache_time"))
    assert not named(written(write_simulator, timeline, Shown(spans=False)), "cache_time")


def test_spans_are_for_a2_and_a3() -> None:
    assert shown_of(load_chip("910B1")).spans and shown_of(load_chip("Ascend910_9391")).spans
    assert not shown_of(load_chip("Ascend950PR")).spans and not shown_of(load_chip("310P3")).spans


def test_counters_add_up_to_what_was_moved(hand, written) -> None:
    def transfer(source, target, size, start, end):
        return {"slice": 0, "source": source, "target": target, "bytes": size, "start": start, "end": end}

    timeline = hand(
        [{"text": "MOV", "lane": Lane.MTE2, "start": 0, "end": 9000}],
        transfers=[
            transfer(Space.GM, Space.UB, 3000, 500, 3500),  # 1000 bytes a microsecond
            transfer(Space.GM, Space.L1, 100, 5000, 5000),
            transfer(Space.UB, Space.GM, 700, 6100, 6200),
            transfer(Space.L1, Space.GM, 10, 6100, 6200),
            transfer(Space.L1, Space.L0A, 999, 1, 2),
        ],
    )
    document = written(write_simulator, timeline)
    counters = [e for e in document["traceEvents"] if e["ph"] == "C"]
    assert {e["pid"] for e in counters} == {"MTE Throughput"}
    values = {}
    for e in counters:
        values.setdefault(e["name"], []).append((e["ts"], e["args"]["throughput(MB/s)"]))
    assert values["GM_TO_UB"][:5] == [(0.001, 500), (1, 1000), (2, 1000), (3, 500), (4, 0)]  # not at 0: V8
    sums = {name: sum(value for _, value in row) for name, row in values.items()}
    assert sums == {"GM_TO_L1": 100, "GM_TO_UB": 3000, "GM_TO_TOTAL": 3100, "L1_TO_GM": 10, "UB_TO_GM": 700,
                    "TOTAL_TO_GM": 710}  # fmt: skip
    assert all(row[-1] == (7, 0) for row in values.values())


def test_no_traffic_is_no_counter(pipeline, written) -> None:
    assert not [e for e in written(write_simulator, pipeline)["traceEvents"] if e["ph"] == "C"]


def mark(text, start, core=0):
    return {"text": text, "lane": Lane.SCALAR, "core": core, "start": start, "end": start + 1, "line": start}


def test_marks_have_a_lane(hand, written) -> None:
    timeline = hand([mark("METRICS_PROF_START", 10), mark("METRICS_PROF_STOP", 20),
                     mark("METRICS_PROF_START", 30), mark("METRICS_PROF_STOP", 45)])
    found = [e for e in written(write_simulator, timeline)["traceEvents"] if e["tid"] == "USERMARK" and e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in found] == [(0.01, 0.011), (0.03, 0.016)]
    assert found[0]["args"] == {"trace_start": "kernel.py:10\nhost.py:7", "trace_stop": "kernel.py:20\nhost.py:7"}


def test_nested_marks_are_told_and_the_rest_is_drawn(hand, written) -> None:
    timeline = hand(
        [mark("TRACE_START", 1), mark("TRACE_START", 2), mark("TRACE_STOP", 3), mark("TRACE_STOP", 4),
         mark("TRACE_START", 11), mark("TRACE_STOP", 13), mark("TRACE_START", 5, 1), mark("TRACE_STOP", 6, 1)],
        marks=[(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 0), (7, 0)],
        cores=(CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIV, 1)),
    )  # fmt: skip
    document = written(write_simulator, timeline)
    text = ("Failed to create userMark USERMARK_0 for core0.veccore0 because loop nesting exists or TraceStart is not "
            "equal to TraceStop.")
    (banner,) = named(document, text)
    assert banner["pid"] == "NOTICE" and document["partial"] is True
    drawn = [(e["pid"], e["name"]) for e in document["traceEvents"] if e["tid"] == "USERMARK" and e["ph"] == "X"]
    assert ("core1.veccore0", "USERMARK_0") in drawn and ("core0.veccore0", "USERMARK_1") in drawn


def test_arrows_between_cores(hand, written) -> None:
    timeline = hand(
        [
            {"text": "SET_INTRA_BLOCK", "lane": Lane.FIXP, "core": 0, "start": 5, "end": 7},
            {"text": "WAIT_INTRA_BLOCK", "lane": Lane.MTE2, "core": 1, "start": 2, "end": 9},
        ],
        edges=[(0, 1, 1, 3)],
        cores=MIX,
    )
    document = written(write_simulator, timeline, PLAIN)
    assert named(document, "SET_INTRA_BLOCK", "X") and named(document, "WAIT_INTRA_BLOCK", "X")  # D14
    first, second = named(document, "flow")
    assert first["id"] == second["id"] == "intra_0"
    assert (first["ph"], first["pid"], first["ts"]) == ("s", "core0.cubecore0", 0.007)
    assert (second["ph"], second["pid"], second["ts"]) == ("t", "core0.veccore0", 0.009)


def test_single_cycles_survive_in_long_traces(hand, written) -> None:
    start = 60 * 10**9  # half a minute at 1.85 GHz
    timeline = hand([{"text": "VADD", "lane": Lane.VECTOR, "start": start, "end": start + 1}], mhz=1850.0)
    file = BytesIO()
    write_simulator(file, timeline, PLAIN)
    ts, dur = re.search(rb'"VADD".*?"ts":([\d.]+),"dur":([\d.]+)', file.getvalue()).groups()
    assert float(dur) == pytest.approx(1 / 1850, abs=1e-6) and float(ts) == pytest.approx(start / 1850, abs=1e-6)


def test_what_is_missing_has_a_banner(hand, written) -> None:
    loss = Loss("log", 'Core core0.veccore0: "ccu" log is missing', 0, None, 3, 10)
    document = written(write_simulator, hand([{"start": 1, "end": 2}], cycles=50, losses=(loss,)))
    (banner,) = named(document, loss.text)
    assert document["partial"] is True
    assert (banner["dur"], banner["args"]["count"], banner["args"]["core"]) == (0.05, 3, "core0.veccore0")


def test_text_of_any_kind_is_legal(hand, written) -> None:
    timeline = hand([{"text": 'A"B\\', "start": 1, "end": 2, "detail": 'tab\t"quote" \\ 核\n'}])
    (event,) = named(written(write_simulator, timeline, PLAIN), 'A"B\\')
    assert event["args"]["detail"] == 'tab\t"quote" \\ 核\n'


def test_a_launch_without_instructions(hand, written) -> None:
    assert written(write_simulator, hand([]))["traceEvents"] == []
