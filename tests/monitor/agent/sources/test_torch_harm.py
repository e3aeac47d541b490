"""What the source for stock PyTorch must never do: harm a job. Real jobs under an allocator that ends a process whose
memory was written to out of turn, with recordings that begin and end all the time, in the midst of all that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from daemon_process import environment
from training import STRICT

SECONDS = 240

PARTS = """
import json, sys, threading, time
from collections import Counter
import numpy as np
import torch
import torch.distributed as dist
from torch.profiler import record_function
from npuscope.monitor.activity.batch import joined
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_recording
from npuscope.monitor.agent.sources.steps import StepSource
from npuscope.monitor.agent.sources.torch_profiler import TorchSource
from npuscope.monitor.agent.steps import install, listen

KINDS = frozenset({Kind.API, Kind.MEMORY, Kind.COMMUNICATION, Kind.MARKER})
torch.set_num_threads(1)
source, steps, strings, got, losses, taken = TorchSource(), StepSource(), Strings(), [], Counter(), [0]
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

def stepped():
    taken[0] += 1
    source.step(taken[0])
    steps.step(taken[0])

install()
listen(stepped)

def collect(rounds):
    for _ in range(rounds):
        source.start(KINDS, strings, got.append)
        steps.start(frozenset({Kind.MARKER}), strings, got.append)
        begin = taken[0]
        until = time.monotonic() + 60
        while taken[0] < begin + 12 and time.monotonic() < until:
            time.sleep(0.002)
        steps.stop()
        source.stop()
        losses.update(source.losses)

def loss():
    return model(torch.randn(8, 32)).square().mean()

def spans():
    marks = joined([one for one in got if one.kind is Kind.MARKER])
    mine = marks.where(np.array([strings.texts[name].startswith("step ") for name in marks["name"]]))
    return list(zip(mine["time"][::2], mine["time"][1::2]))

def by_step(kind, chosen):
    found = joined([one for one in got if one.kind is kind])
    starts = np.sort(found["start"][[chosen(strings.texts[name]) for name in found["name"]]])
    return [int(np.diff(np.searchsorted(starts, span))[0]) for span in spans()]
"""

ALONE = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaled = torch.amp.GradScaler("cpu", enabled=True)
torch_recording.FIRST = torch_recording.SHORTEST = torch_recording.LONGEST = 0.0 if sys.argv[1] == "each" else 0.05
torch_recording.MOST_WAITING = 10**6
thread = threading.Thread(target=collect, args=(12,))
thread.start()
epochs = 0
while thread.is_alive():
    with record_function("epoch"):
        for number in range(20):
            optimizer.zero_grad()
            for _ in range(2):
                scaled.scale(loss()).backward()
            waiting = torch.jit.fork(torch.relu, torch.ones(3))
            scaled.step(optimizer)
            scaled.update()
            torch.jit.wait(waiting)
            if number == 7:
                with torch.profiler.profile() as own:
                    loss().backward()
        epochs += 1
matmuls = Counter(event.name for event in own.events())["aten::addmm"]
counts = by_step(Kind.API, "aten::addmm".__eq__)
json.dump({"own": matmuls, "counts": counts, "losses": losses, "epochs": epochs}, open(sys.argv[2], "w"))
"""

TOGETHER = """
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=3)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
thread = threading.Thread(target=collect, args=(8,))
thread.start()
busy, epochs = torch.ones(1), 0
while busy.item():
    with record_function("epoch"):
        for _ in range(10):
            optimizer.zero_grad()
            with model.no_sync():
                loss().backward()
            loss().backward()
            going = dist.all_reduce(torch.ones(100, dtype=torch.float64), async_op=True)
            optimizer.step()
            going.wait()
    busy[0] = thread.is_alive()
    dist.all_reduce(busy)
    epochs += 1
communication = joined([one for one in got if one.kind is Kind.COMMUNICATION])
columns = [communication[name].tolist() for name in ("count", "data_type", "start", "end")]
names = [strings.texts[name] for name in communication["name"]]
starts = np.sort(communication["start"][communication["count"] == 1089])
json.dump({
    "addmm": by_step(Kind.API, "aten::addmm".__eq__),
    "inner": [int(np.diff(np.searchsorted(starts, span))[0]) for span in spans()],
    "rows": list(zip(names, *columns)), "losses": losses,
}, open(f"{folder}/rank_{rank}.json", "w"))
dist.barrier()
dist.destroy_process_group()
"""


def job(folder: Path, text: str, *words: str) -> subprocess.Popen[str]:
    """A job in a process of its own."""
    script = folder / "job.py"
    if not script.exists():
        script.write_text(PARTS + text)
    command = [sys.executable, str(script), *words]
    return subprocess.Popen(command, env=environment(folder, **STRICT), stderr=subprocess.PIPE, text=True)


def alone(folder: Path, ends: str) -> dict[str, Any]:
    """What a job of one process saw, which must have come through it."""
    one = job(folder, ALONE, ends, str(folder / "seen.json"))
    said = one.communicate(timeout=SECONDS)[1]
    assert one.returncode == 0, said[-2000:]
    seen: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return seen


def test_a_job_with_recordings_that_end_at_each_step(tmp_path: Path) -> None:
    seen = alone(tmp_path, "each")
    expect_all(seen)


def test_a_job_with_recordings_that_end_when_they_are_full(tmp_path: Path) -> None:
    expect_all(alone(tmp_path, "full"))


def expect_all(seen: dict[str, Any]) -> None:
    """Two passes through two layers in each step, but the one with a profiler of the job's own: ours makes way there,
    and comes back with the next step, or before, where that one is long in coming."""
    assert set(seen["counts"]) <= {0, 1, 2, 3, 4}
    assert len(seen["counts"]) > 60
    assert len(seen["counts"]) - seen["counts"].count(4) <= seen["epochs"]
    assert seen["own"] == 2
    assert seen["losses"].keys() <= {"pauses for another profiler"}


def test_three_processes_over_gloo_with_recordings_all_the_time(tmp_path: Path) -> None:
    jobs = [job(tmp_path, TOGETHER, str(rank), str(tmp_path)) for rank in range(3)]
    said = [one.communicate(timeout=SECONDS)[1] for one in jobs]
    assert [one.returncode for one in jobs] == [0, 0, 0], "\n".join(text[-1500:] for text in said)
    for rank in range(3):
        seen = json.loads((tmp_path / f"rank_{rank}.json").read_text())
        assert len(seen["addmm"]) > 50
        assert set(seen["addmm"]) == {4}
        # DistributedDataParallel sums the 32 * 32 + 32 + 32 + 1 gradients once a step.
        assert set(seen["inner"]) == {1}
        kinds = {(name, count, kind) for name, count, kind, _, _ in seen["rows"]}
        assert ("gloo:all_reduce", 1089, 4) in kinds  # FP32
        assert ("gloo:all_reduce", 100, 10) in kinds  # FP64
        assert all(start < end for _, _, _, start, end in seen["rows"])
        assert not seen["losses"].keys() - {"collectives whose end PyTorch did not tell"}
