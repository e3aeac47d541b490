"""When a trace begins and ends, and what stands in its way: in processes with a tracer of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent.trace.bench import metadata, output, run, table, traces
from training import wait_until

pytest.importorskip("torch")


def step_names(trace: Path) -> list[str]:
    events = json.loads((trace / "FRAMEWORK" / "torch_trace.json").read_text())["traceEvents"]
    return [event["name"] for event in events if event["name"].startswith("ProfilerStep#")]


def test_steps_begin_where_they_were_asked_for(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
train(2)
by_steps(3, start=5, WARMUP_ITERATIONS=1)
assert (tracer.status.status, tracer.status.start_step, tracer.status.stop_step) == (2, 5, 9)
train(3)
assert (tracer.status.status, tracer.status.current_step) == (1, 5)
train(4)
assert (tracer.status.status, tracer.status.current_step) == (0, 9)
by_steps(2, start=9)
by_steps(2, start=0)
assert tracer.status.status == 0
by_steps(2, start=20)
by_steps(1)  # takes its place
train(2)
print(tracer.problem)
""",
    )
    first, second = traces(tmp_path / "out")
    assert step_names(first) == ["ProfilerStep#6", "ProfilerStep#7", "ProfilerStep#8"]  # 5 warms up
    assert step_names(second) == ["ProfilerStep#10"]
    assert "step 9 has passed: the process is at step 9" in said and "step 0 has passed" in said
    assert "takes the place of one that has not begun" in said
    assert not output(first).exists()  # nobody asked for it


def test_a_trace_by_time_has_the_length_asked_for(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
train(2)
obey(ACTIVITIES_DURATION_MSECS=1, PROFILE_ANALYSE=True)
while tracer.status.status: train()
at = time.time() + 0.5
obey(ACTIVITIES_DURATION_MSECS=300, PROFILE_START_TIME=int(at * 1000))
while tracer.status.status: train()
obey(ACTIVITIES_DURATION_MSECS=200, PROFILE_PROFILE_MEMORY=True, PROFILE_ANALYSE=True)
while tracer.status.status: train()
obey(ACTIVITIES_DURATION_MSECS=10, PROFILE_START_TIME=int(at * 1000) - 60000)
print(tracer.problem)
open(sys.argv[1] + "/at", "w").write(str(int(at * 1000)))
""",
    )
    short, timed, memory = (metadata(trace) for trace in traces(tmp_path / "out"))
    assert short["end_ns"] - short["start_ns"] >= 1e6
    assert timed["start_ns"] / 1e6 >= int((tmp_path / "out" / "at").read_text())
    assert timed["end_ns"] - timed["start_ns"] >= 0.3e9
    assert memory["end_ns"] - memory["start_ns"] >= 0.2e9
    assert table(traces(tmp_path / "out")[2], "operator_memory.csv")
    # It begins and ends with a step, so that none is cut in two.
    assert timed["unfinished_step"] == -1 and len(step_names(traces(tmp_path / "out")[1])) > 1


def test_a_process_that_never_steps_is_traced_by_time(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
by_steps(3, PROFILE_PROFILE_MEMORY=True)
while tracer.status.status:
    torch.randn(8, 8) @ torch.randn(8, 8)
""",
        NPUSCOPE_TRACE_STEP_WAIT="1.5",
    )
    assert "has taken no step in 1.5 s: 500 ms are traced in place of steps" in said
    assert "no memory is recorded" in said
    (trace,) = traces(tmp_path / "out")
    assert "aten::mm" in (trace / "FRAMEWORK" / "torch_trace.json").read_text()
    assert metadata(trace)["end_ns"] - metadata(trace)["start_ns"] >= 0.5e9


def test_the_program_s_own_profiler_goes_first(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
with torch.profiler.profile() as own:
    by_steps(2)
    train(2)
assert tracer.status.status == 0
by_steps(100, PROFILE_ANALYSE=True, PROFILE_ASYNC_MODE=True)
train(3)
with torch.profiler.profile() as own:
    train(2)
assert sum(one.count for one in own.key_averages() if one.key == "aten::addmm") == 4, own.key_averages()
by_steps(1)
train(3)  # and afterwards everything is as before
settle()
""",
    )
    assert "the program runs torch.profiler itself" in said and "profiler of its own, which ended" in said
    cut, after = traces(tmp_path / "out")
    assert "profiler of its own" in metadata(cut)["partial"] and metadata(after)["partial"] == ""
    assert json.loads(output(cut, "trace_view.json").read_text())["partial"]
    assert "partial: " in (cut / "logs" / "parser.log").read_text()
    assert [row["Step"] for row in table(cut, "step_trace_time.csv")] == ["3", "4"]  # 5 was cut


def test_an_end_in_the_middle_keeps_what_there_is(tmp_path: Path) -> None:
    said = run(
        tmp_path, "by_steps(100, PROFILE_ANALYSE=True)\ntrain(4)\ntracer.close()\nassert tracer.status.status == 0"
    )
    (trace,) = traces(tmp_path / "out")
    assert "the process ends during a trace" in said and metadata(trace)["partial"] == "the process ended"
    wait_until(output(trace).exists, 120, "a process of its own did not parse it")
    assert [row["Step"] for row in table(trace, "step_trace_time.csv")] == ["1", "2", "3"]
