"""The trace for Perfetto, judged by Perfetto's own trace processor."""

import json
from io import BytesIO

import numpy as np
import pytest
from perfetto import PROBLEMS, query

from npuscope.profiler.writers.perfetto import write_perfetto
from npuscope.trace.schema import CoreInfo, CoreType, Space
from npuscope.trace.timeline import Lane, Loss

TIED = (
    "select s.name as a, s.ts as ats, d.name as b, d.ts as bts, d.ts + d.dur as bend from flow "
    "join slice s on flow.slice_out = s.id join slice d on flow.slice_in = d.id order by s.ts, d.ts"
)


@pytest.fixture
def judged(tmp_path):
    """A function that writes a timeline and asks the trace processor; it must have nothing to say against it."""

    def write(timeline):
        path = tmp_path / "trace.json"
        with path.open("wb") as file:
            count = write_perfetto(file, timeline)
        assert count == len(json.loads(path.read_text())["traceEvents"])
        assert query(path, PROBLEMS) == []
        return lambda sql: query(path, sql)

    return write


def one(rows):
    return int(next(iter(rows[0].values())))


def test_slices_arrows_and_counters_are_all_there(hand, judged) -> None:
    """At 1850 MHz a cycle is shorter than a nanosecond: sets without a length keep their arrows all the same."""
    rounds, given, edges = 400, [], []
    for turn in range(rounds):
        at = 7 * turn
        given += [
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": at, "end": at + 3, "bytes": 64},
            {"text": "SET_FLAG", "lane": Lane.MTE2, "start": at + 3, "end": at + 4},
            {"text": "WAIT_FLAG", "lane": Lane.VECTOR, "start": at, "end": at + 5},
            {"text": "VADD", "lane": Lane.VECTOR, "start": at + 5, "end": at + 7},
        ]
        edges.append((4 * turn + 1, 4 * turn + 2, 0, 0))
    transfers = [{"slice": 0, "source": Space.GM, "target": Space.UB, "bytes": 64, "start": 0, "end": 3}]
    ask = judged(hand(given, edges=edges, transfers=transfers, mhz=1850.0))
    assert one(ask("select count(*) as n from slice where category = 'instruction'")) == 4 * rounds
    tied = ask(TIED)
    assert len(tied) == rounds and {(row["a"], row["b"]) for row in tied} == {("SET_FLAG", "released")}
    for turn, row in enumerate(tied):  # each arrow leads from its own set to the end of its own wait
        assert int(row["ats"]) == int((7 * turn + 3) * 1000 / 1850)
        assert int(row["bend"]) == int((7 * turn + 5) * 1000 / 1850)
    counters = ask("select c.value as v from counter c join counter_track t on c.track_id = t.id where t.name = "
                   "'GM_TO_UB MB/s' or t.name = 'GM_TO_UB'")  # fmt: skip
    assert sum(float(row["v"]) for row in counters) == 64


def test_cores_are_processes_and_say_that_they_are_modelled(hand, judged) -> None:
    cores = (CoreInfo(CoreType.AIC, 0), CoreInfo(CoreType.AIV, 0, 0), CoreInfo(CoreType.AIV, 1, 1))
    ask = judged(hand(
        [
            {"text": "MMAD", "lane": Lane.CUBE, "core": 0, "start": 1, "end": 20},
            {"text": "FIX", "lane": Lane.FIXP, "core": 0, "start": 20, "end": 30},
            {"text": "CROSS_CORE_SET", "lane": Lane.FIXP, "core": 0, "start": 30, "end": 31},
            {"text": "CROSS_CORE_WAIT", "lane": Lane.MTE2, "core": 1, "start": 1, "end": 33},
            {"text": "CROSS_CORE_WAIT", "lane": Lane.MTE2, "core": 2, "start": 1, "end": 33},
        ],
        edges=[(2, 3, 1, 0), (2, 4, 1, 0)],
        cores=cores,
    ))  # fmt: skip
    rows = ask("select distinct process.name as p, thread.name as t from thread_track join thread using (utid) "
               "join process using (upid) join slice on slice.track_id = thread_track.id order by p, t")  # fmt: skip
    assert [(row["p"], row["t"]) for row in rows] == [
        ("core0.cubecore0 (modelled)", "CUBE"), ("core0.cubecore0 (modelled)", "FIXP"),
        ("core0.veccore0 (modelled)", "MTE2"), ("core0.veccore1 (modelled)", "MTE2"), ("launch (modelled)", "kernel"),
    ]  # fmt: skip
    assert [(row["a"], row["b"]) for row in ask(TIED)] == [("CROSS_CORE_SET", "released")] * 2


def test_an_arrow_against_time_is_left_out(hand, judged) -> None:
    ask = judged(hand([{"text": "SET_FLAG", "lane": Lane.MTE2, "start": 50, "end": 60},
                       {"text": "WAIT_FLAG", "lane": Lane.VECTOR, "start": 10, "end": 20}], edges=[(0, 1, 0, 0)]))  # fmt: skip
    assert ask(TIED) == [] and one(ask("select count(*) as n from slice where category = 'instruction'")) == 2


def test_overlapping_slices_lose_nothing(hand, judged) -> None:
    generator = np.random.default_rng(3)
    start = np.sort(generator.integers(0, 20_000, 500))
    length = generator.integers(1, 400, 500)
    given = [{"text": "MOV", "lane": Lane.MTE2, "start": int(at), "end": int(at + size), "detail": f"n{row}"}
             for row, (at, size) in enumerate(zip(start, length, strict=True))]  # fmt: skip
    ask = judged(hand(given, mhz=1650.0))
    rows = ask("select ts, dur, extract_arg(arg_set_id, 'args.detail') as detail from slice "
               "where category = 'instruction'")  # fmt: skip
    found = {row["detail"]: (int(row["ts"]), int(row["dur"])) for row in rows}
    assert len(found) == 500
    for row, (at, size) in enumerate(zip(start.tolist(), length.tolist(), strict=True)):
        first, last = at * 1000 // 1650, (at + size) * 1000 // 1650
        assert found[f"n{row}"] == (first, last - first)


def test_what_is_missing_is_a_slice_of_the_launch(hand, judged) -> None:
    loss = Loss("log", "Core 0: ccu log is missing", 0, None, 3, 9)
    ask = judged(hand([{"start": 1, "end": 3}, {"text": "METRICS_PROF_START", "start": 5, "end": 6},
                       {"text": "METRICS_PROF_STOP", "start": 9, "end": 10}], losses=(loss,)))  # fmt: skip
    names = [row["name"] for row in ask("select name from slice where category is null or category <> 'instruction'")]
    assert sorted(names) == ["Core 0: ccu log is missing", "METRICS_PROF", "kernel"]


def test_a_long_launch_is_exact(hand, judged) -> None:
    start = 40 * 10**9 + 12345
    ask = judged(hand([{"text": "VADD", "lane": Lane.VECTOR, "start": start + 10 * n, "end": start + 10 * n + 10}
                       for n in range(50)], mhz=1850.0))  # fmt: skip
    rows = ask("select ts, dur from slice where name = 'VADD' order by ts")
    assert [int(row["ts"]) for row in rows] == [(start + 10 * n) * 1000 // 1850 for n in range(50)]
    assert sum(int(row["dur"]) for row in rows) == (start + 500) * 1000 // 1850 - start * 1000 // 1850


def test_an_empty_launch_is_a_trace(hand) -> None:
    file = BytesIO()
    write_perfetto(file, hand([]))
    assert [event["name"] for event in json.loads(file.getvalue())["traceEvents"] if event["ph"] == "X"] == ["kernel"]
