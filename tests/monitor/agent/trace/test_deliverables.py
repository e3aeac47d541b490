"""What a trace's tables say, against PyTorch's own account of the very same recording."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import perfetto
import pytest
from agent.trace.bench import leftovers, metadata, output, run, table, traces

from npuscope.monitor.agent.trace.parsing.deliver import deliver

ACCOUNT = """
import collections
plain = torch.autograd.profiler.profile.__exit__
def leave(profiler, *why):
    plain(profiler, *why)
    os.makedirs(sys.argv[1], exist_ok=True)
    # Averages count an operator once that calls itself and nothing else: calls and whole times are of single events.
    own = {one.key: one.self_cpu_time_total for one in profiler.key_averages()}
    calls, whole = collections.Counter(), collections.Counter()
    for one in profiler.kineto_results.events():
        calls[one.name()] += 1
        whole[one.name()] += one.duration_ns() / 1000
    account = [[name, calls[name], own[name], whole[name]] for name in own if name in calls]
    json.dump(account, open(sys.argv[1] + "/account.json", "w"))
torch.autograd.profiler.profile.__exit__ = leave

# So that PyTorch keeps what it needs for its account.
from npuscope.monitor.agent.trace import capture
capture._settings = lambda torch, request: torch._C._profiler._ExperimentalConfig(profile_all_threads=False)

from npuscope import mstx
train(3)
by_steps(3, PROFILE_RECORD_SHAPES=True, PROFILE_PROFILE_MEMORY=True,
         PROFILE_GC_DETECT_THRESHOLD=0, PROFILE_HOST_SYS="cpu,mem", PROFILE_MSPROF_TX=True,
         PROFILE_MSTX_DOMAIN_EXCLUDE="hidden", PROFILE_ANALYSE=True)
train(2)
with mstx.annotate("load"):
    gc.collect()
mstx.mark("here", domain="mine")
mstx.mark("there", domain="hidden")
time.sleep(0.35)
train(4)
settle()
"""
EXACT_US = 0.0005 + 1e-9
"""Tables have three digits behind the point."""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, list[float]]]]:
    """A trace with everything on, and PyTorch's account: calls, own and whole time (us) by operator."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("traced")
    said = run(folder, ACCOUNT)
    (trace,) = traces(folder / "out")
    assert f"parsed {trace}" in said
    account = json.loads((folder / "out" / "account.json").read_text())
    yield trace, {name: figures for name, *figures in account}


def database(trace: Path) -> sqlite3.Connection:
    """The trace as a database; the text files are made again afterwards."""
    deliver(trace, "db")
    copy = sqlite3.connect(":memory:")
    with closing(sqlite3.connect(output(trace, "ascend_pytorch_profiler.db"))) as file:
        file.backup(copy)
    deliver(trace, "text")
    return copy


def test_operators_take_as_long_as_pytorch_says(traced: tuple[Path, dict[str, list[float]]]) -> None:
    trace, account = traced
    calls: Counter[str] = Counter()
    own: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    for row in table(trace, "operator_details.csv"):
        calls[row["Name"]] += 1
        own[row["Name"]] += float(row["Host Self Duration(us)"])
        whole[row["Name"]] += float(row["Host Total Duration(us)"])
    assert calls.keys() == account.keys() - {"[memory]"} and "aten::addmm" in calls
    for name, count in calls.items():
        assert count == account[name][0]
        assert own[name] == pytest.approx(account[name][1], abs=count * EXACT_US)
        assert whole[name] == pytest.approx(account[name][2], abs=count * EXACT_US)
    assert sum(own.values()) > 0
    assert sum(float(row["Ratio(%)"]) for row in table(trace, "op_statistic.csv")) == pytest.approx(100, abs=0.1)
    for row in table(trace, "op_statistic.csv"):
        assert int(row["Count"]) == account[row["OP Type"]][0]
        assert float(row["Total Time(us)"]) == pytest.approx(account[row["OP Type"]][1], abs=EXACT_US)


def test_the_database_says_the_same(traced: tuple[Path, dict[str, list[float]]]) -> None:
    trace, account = traced
    with closing(database(trace)) as found:
        rows = found.execute(
            "select s.value, count(*), sum(endNs - startNs) from PYTORCH_API a join STRING_IDS s on s.id = a.name "
            "where s.value not like 'ProfilerStep#%' group by a.name"
        ).fetchall()
        assert {name for name, _, _ in rows} == account.keys() - {"[memory]"}
        for name, count, nanoseconds in rows:
            assert count == account[name][0] and nanoseconds / 1000 == pytest.approx(account[name][2], abs=0.001)
        assert found.execute("select id from STEP_TIME order by startNs").fetchall() == [(4,), (5,), (6,)]
        shapes = "select distinct s.value from PYTORCH_API a join STRING_IDS n on n.id = a.name " \
                 "join STRING_IDS s on s.id = a.inputShapes where n.value = 'aten::addmm'"  # fmt: skip
        assert found.execute(shapes).fetchall() == [("32;4,32;32,32;;",)]
        # A linear layer's backward pass: its operator and the forward one share a connection.
        pairs = found.execute(
            "select f.value, b.value from CONNECTION_IDS c join CONNECTION_IDS d on c.connectionId = d.connectionId "
            "and c.id < d.id join PYTORCH_API x on x.connectionId = c.id join PYTORCH_API y on y.connectionId = d.id "
            "join STRING_IDS f on f.id = x.name join STRING_IDS b on b.id = y.name"
        ).fetchall()
        assert any("addmm" in one and "AddmmBackward0" in other for one, other in pairs)
        assert found.execute("select rankId, deviceId from RANK_DEVICE_MAP").fetchall() == [(-1, -1)]
        assert found.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_call_stacks(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run(tmp_path, "by_steps(2, PROFILE_WITH_STACK=True, PROFILE_ANALYSE=True)\ntrain(4)")
    (trace,) = traces(tmp_path / "out")
    stacks = {row["Call Stack"] for row in table(trace, "operator_details.csv") if row["Name"] == "aten::addmm"}
    assert stacks and all(
        "linear" in stack.split(";\n")[0] and any("traced.py" in frame for frame in stack.split(";\n"))
        for stack in stacks
    )
    # A step begins within one call of a function and ends within another: no reader may lose either.
    view = output(trace, "trace_view.json")
    events = Counter(event["ph"] for event in json.loads(view.read_text())["traceEvents"])
    assert perfetto.slices(view) == events["X"] + events["i"]
    with closing(database(trace)) as found:
        frames = found.execute(
            "select s.value from PYTORCH_CALLCHAINS c join STRING_IDS s on s.id = c.stack where c.id = "
            "(select callchainId from PYTORCH_API a join STRING_IDS n on n.id = a.name where n.value = 'aten::addmm' "
            "limit 1) order by stackDepth"
        ).fetchall()
        assert ";\n".join(frame for (frame,) in frames) in stacks


def test_no_table_is_without_rows(traced: tuple[Path, dict[str, list[float]]]) -> None:
    with closing(database(traced[0])) as found:
        names = {name for (name,) in found.execute("select name from sqlite_master")}
        assert all(found.execute(f"select count(*) from {name}").fetchone()[0] for name in names)
    assert {"OP_MEMORY", "MEMORY_RECORD", "MSTX_EVENTS", "GC_RECORD", "CPU_USAGE", "HOST_MEM_USAGE"} <= names
    assert not {"TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP", "CANN_API"} & names
    assert not output(traced[0], "kernel_details.csv").exists()


def test_steps_are_divided_without_a_rest(traced: tuple[Path, dict[str, list[float]]]) -> None:
    rows = table(traced[0], "step_trace_time.csv")
    assert [row["Step"] for row in rows] == ["4", "5", "6"]
    whole = dict(perfetto_steps(output(traced[0], "trace_view.json")))
    for row in rows:
        parts = (float(row[name]) for name in ("Computing", "Communication(Not Overlapped)", "Free"))
        assert sum(parts) == pytest.approx(whole[f"ProfilerStep#{row['Step']}"], abs=0.003)
        assert 0 < float(row["Computing"]) < whole[f"ProfilerStep#{row['Step']}"]


def perfetto_steps(trace: Path) -> list[tuple[str, float]]:
    rows = perfetto.query(trace, "select name, dur from slice where name glob 'ProfilerStep*'")
    return [(row["name"], int(row["dur"]) / 1000) for row in rows]


def test_memory_is_taken_by_operators_and_given_back(traced: tuple[Path, dict[str, list[float]]]) -> None:
    rows = table(traced[0], "operator_memory.csv")
    # The output of a layer: 4 x 32 floats are 0.5 KB.
    layers = [row for row in rows if row["Name"] == "aten::addmm"]
    assert len(layers) == 2 * 3 and {row["Size(KB)"] for row in layers} == {"0.5"}
    for row in rows:
        if row["Release Time(us)"]:
            length = float(row["Release Time(us)"][6:]) - float(row["Allocation Time(us)"][6:])
            assert float(row["Duration(us)"]) == pytest.approx(length, abs=0.01)
    times = [row["Timestamp(us)"] for row in table(traced[0], "memory_record.csv")]
    assert times == sorted(times) and len(times) >= 2 * len([row for row in rows if row["Release Time(us)"]])


def test_the_timeline_is_whole_and_has_what_was_recorded_beside(traced: tuple[Path, dict[str, list[float]]]) -> None:
    trace, account = traced
    view = output(trace, "trace_view.json")
    raw = json.loads((trace / "FRAMEWORK" / "torch_trace.json").read_text())["traceEvents"]
    complete = sum(1 for event in raw if event["ph"] == "X")
    found = json.loads(view.read_text())
    assert found["distributedInfo"] == {"backend": "", "rank": 0, "world_size": 1}
    gc_events = [event for event in found["traceEvents"] if event.get("cat") == "gc"]
    ranges = [event for event in found["traceEvents"] if event.get("cat") == "mstx"]
    assert gc_events and {event["name"] for event in ranges} == {"load", "here"}
    assert sum(1 for event in found["traceEvents"] if event["ph"] == "X") == complete + len(gc_events)
    # Whoever drops a slice that overlaps another one counts it as an error.
    assert perfetto.slices(view) >= complete + len(gc_events)
    assert account["aten::addmm"][0] == int(
        perfetto.query(view, "select count(*) as n from slice where name = 'aten::addmm'")[0]["n"]
    )
    load = next(event for event in ranges if event["name"] == "load" and event["ph"] == "b")
    end = next(event for event in ranges if event["name"] == "load" and event["ph"] == "e")
    assert any(load["ts"] <= one["ts"] and one["ts"] + one["dur"] <= end["ts"] for one in gc_events)
    assert float(table(trace, "host_mem_usage.csv")[0]["Usage(MB)"]) > 50
    assert float(table(trace, "host_cpu_usage.csv")[0]["Usage(%)"]) >= 0


def test_files_are_nobody_elses_and_nothing_is_left_over(traced: tuple[Path, dict[str, list[float]]]) -> None:
    trace, _ = traced
    assert leftovers(trace.parent) == []
    assert all(path.stat().st_mode & 0o027 == 0 for path in trace.rglob("*"))
    about = metadata(trace)
    assert about["rank"] == -1 and about["partial"] == "" and about["options"]["PROFILE_RECORD_SHAPES"] == "True"
    assert about["start_ns"] < about["end_ns"] and set(about["stopped_ms"]) == {"stop", "write"}
