"""Collectives of two real processes over gloo; NCCL's, and a GPU's other work, from stand-ins for PyTorch's records."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from daemon_process import environment

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.torch_records import batches

JOB = """
import json, sys, time
import torch
import torch.distributed as dist
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_recording
from npuscope.monitor.agent.sources.torch_profiler import TorchSource

torch_recording.FIRST = torch_recording.SHORTEST = torch_recording.LONGEST = 3600.0
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3, bias=False))
dist.all_reduce(torch.ones(1))
source, strings, got = TorchSource(), Strings(), []
before = time.time_ns()
source.start(frozenset({Kind.COMMUNICATION, Kind.API}), strings, got.append)
for _ in range(5):
    dist.all_reduce(torch.ones(10, 10))
if rank:
    time.sleep(0.3)
dist.all_reduce(torch.ones(7, dtype=torch.float64))
dist.broadcast(torch.ones(6, dtype=torch.bfloat16), 0)
parts = [torch.empty(3, dtype=torch.int64) for _ in range(2)]
dist.all_gather(parts, torch.ones(3, dtype=torch.int64))
dist.barrier()
model(torch.ones(2, 4)).sum().backward()
source.stop()
after = time.time_ns()
rows = []
for one in got:
    if one.kind is Kind.COMMUNICATION:
        text = lambda name: [strings.texts[number] for number in one[name]]
        numbers = [one[name].tolist() for name in ("count", "data_type", "device", "start", "end")]
        rows += zip(text("name"), text("comm"), *numbers)
json.dump({"rows": rows, "before": before, "after": after, "losses": dict(source.losses)},
          open(f"{folder}/rank_{rank}.json", "w"))
dist.barrier()
"""


def test_two_processes_over_gloo(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    env = environment(tmp_path, OMP_NUM_THREADS="1")
    jobs = [
        subprocess.Popen([sys.executable, str(script), str(rank), str(tmp_path)], env=env, stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for job in jobs:
        said = job.communicate(timeout=180)[1]
        assert job.returncode == 0, said.decode()
    seen = [json.loads((tmp_path / f"rank_{rank}.json").read_text()) for rank in range(2)]
    for one in seen:
        assert not one["losses"]
        rows = sorted(one["rows"], key=lambda row: row[5])
        # Counts of elements that go in, and the numbers of FP32, FP64, BFP16 and INT64; a barrier moves nothing.
        assert [(row[0], row[2], row[3]) for row in rows] == [
            *[("gloo:all_reduce", 100, 4)] * 5,
            ("gloo:all_reduce", 7, 10),
            ("gloo:broadcast", 6, 11),
            ("gloo:all_gather", 3, 5),
            ("gloo:barrier", 0, 65535),
            ("gloo:all_reduce", 12, 4),
        ]
        assert {(row[1], row[4]) for row in rows} == {("0", -1)}
        assert all(one["before"] <= row[5] <= row[6] <= one["after"] for row in rows)
    waited = [one["rows"] for one in seen]
    lasted = [next(row[6] - row[5] for row in rows if row[3] == 10) for rows in waited]
    assert lasted[0] > 0.25e9  # the first process waited for the second, which slept 0.3 s


@dataclass
class Event:
    """A record as PyTorch gives it, of a machine that this test does not have."""

    told: dict[str, object]
    metadata: str = ""

    def name(self) -> object:
        return self.told["name"]

    def activity_type(self) -> object:
        return self.told["type"]

    def start_ns(self) -> int:
        return 1000

    def end_ns(self) -> int:
        return 1500

    def device_index(self) -> int:
        return 3

    def device_resource_id(self) -> int:
        return 7

    def correlation_id(self) -> int:
        return 42

    def metadata_json(self) -> str:
        return self.metadata


def test_the_records_of_a_gpu() -> None:
    collective = '"Collective name": "allreduce", "In msg nelems": 4096, "dtype": "BFloat16", "Process Group Name": "5"'
    events = [
        Event({"name": "sgemm", "type": "kernel"}),
        Event({"name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "type": "kernel"}, collective),
        Event({"name": "Memcpy HtoD (Pinned -> Device)", "type": "gpu_memcpy"}, '"bytes": 512, "memory bandwidth": 2'),
        Event({"name": "Memset (Device)", "type": "gpu_memset"}, '"bytes": 64'),
        Event({"name": "cudaLaunchKernel", "type": "cuda_runtime"}),
        Event({"name": "nccl:all_reduce", "type": "user_annotation"}),
        Event({"name": "main.py(3): f", "type": "python_function"}),
    ]
    strings = Strings()
    found = {one.kind: one for one in batches(events, frozenset(Kind), strings)}
    assert found.keys() == {Kind.KERNEL, Kind.COMMUNICATION, Kind.MEMCPY, Kind.MEMSET, Kind.RUNTIME_API}
    assert all(len(one) == 1 for one in found.values())
    row = {kind: {name: column[0] for name, column in one.columns.items()} for kind, one in found.items()}
    assert strings.texts[row[Kind.KERNEL]["name"]] == "sgemm"
    for kind in found.keys() - {Kind.RUNTIME_API}:
        assert (row[kind]["device"], row[kind]["stream"], row[kind]["correlation"]) == (3, 7, 42)
        assert (row[kind]["start"], row[kind]["end"]) == (1000, 1500)
    moved = row[Kind.COMMUNICATION]
    assert (moved["count"], moved["data_type"], strings.texts[moved["comm"]]) == (4096, 11, "5")
    assert (row[Kind.MEMCPY]["bytes"], row[Kind.MEMCPY]["direction"]) == (512, 2)
    assert row[Kind.MEMSET]["bytes"] == 64
    assert strings.texts[row[Kind.RUNTIME_API]["name"]] == "cudaLaunchKernel"
