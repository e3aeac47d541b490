"""What goes wrong around a trace, and who has nothing to do with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent.trace.bench import PRELUDE, leftovers, lives, metadata, parsers, run, traces
from daemon_process import environment
from training import wait_until

pytest.importorskip("torch")


def test_folders_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
open(sys.argv[1], "w").close()
by_steps(2)
assert tracer.status.status == 0 and "Not a directory" in tracer.problem or "File exists" in tracer.problem
train(3)
os.remove(sys.argv[1])
by_steps(2, PROFILE_ANALYSE=True, PROFILE_ASYNC_MODE=True)
train(2)
import shutil; shutil.rmtree(sys.argv[1]); open(sys.argv[1], "w").close()  # while it is recorded
train(3)
assert tracer.status.status == 0 and tracer.status.stop_step == 1
print(tracer.problem)
os.remove(sys.argv[1])
by_steps(1)
train(3)
""",
    )
    assert "the trace is refused: " in said and "the trace is lost: " in said
    assert len(traces(tmp_path / "out")) == 1


def test_ranks_that_are_not_listed_do_nothing(tmp_path: Path) -> None:
    text = "by_steps(1, PROFILE_IS_RANK=True, PROFILE_RANK_LIST='0,2')\ntrain(3)"
    assert "this is rank 1, and the trace is of 0,2" in run(tmp_path, text, RANK="1")
    assert traces(tmp_path / "out") == []
    run(tmp_path, text, RANK="2")
    (trace,) = traces(tmp_path / "out")
    assert metadata(trace)["rank"] == 2 and (trace / "profiler_info_2.json").exists()


def test_a_process_that_dies_while_it_is_traced_leaves_nothing(tmp_path: Path) -> None:
    text = """
by_steps(10**6, PROFILE_ANALYSE=True, PROFILE_ASYNC_MODE=True)
train(3)
part = sys.argv[1] + "/" + "half_ascend_pt.part"
tell = tracer._job.folder, tracer._job._capture.folder
os.makedirs(str(tell[1]) + ".part/FRAMEWORK")  # as if it were writing
print("recording", flush=True)
train(10**9)
"""
    script = tmp_path / "traced.py"
    script.write_text(PRELUDE + text)
    env = environment(tmp_path, OMP_NUM_THREADS="1")
    words = [sys.executable, str(script), str(tmp_path / "out")]
    job = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)
    assert job.stdout
    while "recording" not in job.stdout.readline():
        assert job.poll() is None
    (parser,) = parsers(job.pid)
    assert leftovers(tmp_path) != []
    job.send_signal(signal.SIGKILL)
    job.wait(60)
    wait_until(lambda: not lives(parser), 60, "the parser waits for a dead process")
    assert leftovers(tmp_path) == [] and traces(tmp_path / "out") == []


def test_a_parser_that_is_late_hears_what_the_dead_has_said(tmp_path: Path) -> None:
    """The program is gone when the parser first looks, and a fork of it holds the parser's input open."""
    folder = tmp_path / "trace_ascend_pt"
    part = tmp_path / "trace_ascend_pt.part"
    part.mkdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    words = [sys.executable, "-m", "npuscope.monitor.agent.trace.parse", "--await", str(dead.pid)]
    parser = subprocess.Popen(words, env=environment(tmp_path), stdin=subprocess.PIPE, text=True)
    assert parser.stdin
    parser.stdin.write(f"{folder}\n")
    parser.stdin.flush()
    assert parser.wait(60) == 0 and not part.exists()
    parser.stdin.close()


def test_what_the_dead_left_is_removed_by_the_next(tmp_path: Path) -> None:
    import socket

    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    stale = tmp_path / "out" / f"{socket.gethostname()}_{int(dead.stdout)}_{'1' * 17}_ascend_pt.part"
    (stale / "FRAMEWORK").mkdir(parents=True)
    said = run(tmp_path, "by_steps(1)\ntrain(3)")
    assert f"removed {stale}" in said and leftovers(tmp_path) == []


def test_a_fork_has_nothing_to_do_with_it(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
os.register_at_fork(after_in_child=tracer.abandon)  # as the agent does
by_steps(4)
train(2)
child = os.fork()
if not child:
    tracer.step()
    os._exit(0 if tracer.status.status == 0 else 1)
assert os.waitpid(child, 0)[1] == 0
train(5)
""",
    )
    (trace,) = traces(tmp_path / "out")
    raw = (trace / "FRAMEWORK" / "torch_trace.json").read_text()
    assert raw.count("ProfilerStep#") == 4


def test_a_step_costs_nothing_while_no_trace_is_planned() -> None:
    from npuscope.monitor.agent.trace import Tracer

    class Silent:
        def info(self, text: str) -> None: ...

        warning = info

    tracer, times = Tracer(Silent()), []
    for _ in range(2000):
        began = time.perf_counter_ns()
        tracer.step()
        times.append(time.perf_counter_ns() - began)
    assert sorted(times)[len(times) // 2] < 100_000  # ns; a step of training takes a hundred times as long
