"""Traces of two ranks that talk to each other, and what independent readers make of them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import perfetto
import pytest
from agent.trace.bench import PRELUDE, metadata, output, table, traces
from daemon_process import environment

pytest.importorskip("torch")
STEPS = 4
JOB = """
import torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/meeting", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(model)

def talk():
    train()
    dist.all_reduce(torch.ones(1000))
    if rank == 0:
        dist.send(torch.ones(3), 1)
    else:
        dist.recv(torch.ones(3), 0)

talk()
by_steps(4, PROFILE_RECORD_SHAPES=True, PROFILE_ANALYSE=True)
for _ in range(6):
    talk()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The traces of rank 0 and rank 1."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "out").mkdir()
    script = folder / "traced.py"
    script.write_text(PRELUDE + JOB)
    words = [sys.executable, str(script), str(folder / "out")]
    jobs = [subprocess.Popen(words, env=environment(folder, OMP_NUM_THREADS="1", RANK=str(rank))) for rank in (0, 1)]
    assert [job.wait(240) for job in jobs] == [0, 0]
    first, second = sorted(traces(folder / "out"), key=lambda trace: metadata(trace)["rank"])
    yield first, second


def test_metadata_name_the_rank_and_its_groups(ranks: tuple[Path, Path]) -> None:
    for rank, trace in enumerate(ranks):
        about = metadata(trace)
        assert (about["rank"], about["world_size"], about["backend"]) == (rank, 2, "gloo")
        (group,) = about["parallel_group_info"].values()
        assert group == {"group_name": "default_group", "group_rank": rank, "global_ranks": [0, 1]}
        assert (trace / f"profiler_info_{rank}.json").exists()
        view = json.loads(output(trace, "trace_view.json").read_text())
        assert view["distributedInfo"]["rank"] == rank and view["distributedInfo"]["world_size"] == 2


def test_communication_is_counted_by_step_and_size(ranks: tuple[Path, Path]) -> None:
    sizes = {"all_reduce": {str(1000 * 4), str(2 * (32 * 32 + 32) * 4)}, "send": {"12"}, "recv": {"12"}}
    for trace, direct in zip(ranks, ("send", "recv"), strict=True):
        rows = [row for row in table(trace, "communication.csv") if row["Step Id"]]
        assert Counter((row["Step Id"], row["Name"]) for row in rows) == {
            (str(step), name): count for step in range(2, 2 + STEPS) for name, count in (("all_reduce", 2), (direct, 1))
        }
        for name in ("all_reduce", direct):
            assert {row["Size(B)"] for row in rows if row["Name"] == name} == sizes[name]
        tree = json.loads(output(trace, "communication.json").read_text())
        assert tree.keys() == {f"step{step}" for step in range(2, 2 + STEPS)}
        lengths = {
            name.partition("__")[0]: figures["Communication Time Info"]["Elapse Time(ms)"]
            for name, figures in tree["step2"]["p2p"].items()
        }
        (row,) = (row for row in rows if row["Step Id"] == "2" and row["Name"] == direct)
        assert lengths == {direct: pytest.approx(float(row["Duration(us)"]) / 1000, abs=1e-6)}


def test_what_overlaps_is_not_lost(ranks: tuple[Path, Path]) -> None:
    for trace in ranks:
        view = output(trace, "trace_view.json")
        events = Counter(event["ph"] for event in json.loads(view.read_text())["traceEvents"])
        assert perfetto.slices(view) == events["X"] + events["i"]


def test_steps_tell_waiting_from_computing(ranks: tuple[Path, Path]) -> None:
    for trace in ranks:
        rows = table(trace, "step_trace_time.csv")
        assert [row["Step"] for row in rows] == [str(step) for step in range(2, 2 + STEPS)]
        for row in rows:
            number = {name: float(value) for name, value in row.items()}
            assert number["Overlapped"] == 0  # of the host, nobody computes while it waits
            assert number["Communication(Not Overlapped)"] == number["Communication"] > 0
            assert number["Bubble"] <= number["Communication"] + 0.001
            assert (number["Bubble"] > 0) == (trace == ranks[1])  # who receives


HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
found = TraceAnalysis(trace_dir=sys.argv[1])
for rank in sorted(found.t.traces):
    frame = found.t.get_trace(rank)
    names = found.t.symbol_table.get_sym_table()
    print(rank, sum(1 for name in frame["name"] if names[name] == "aten::addmm"))
"""


def test_hta_finds_ranks_and_operators(ranks: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("hta")
    for rank, trace in enumerate(ranks):
        os.link(output(trace, "trace_view.json"), tmp_path / f"rank{rank}.json")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HTA, str(tmp_path)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    # It drops the last step; two layers each.
    assert done.stdout.splitlines() == [f"{rank} {2 * (STEPS - 1)}" for rank in (0, 1)]


def test_msprof_analyze_reads_the_steps_of_both_ranks(ranks: tuple[Path, Path], tmp_path: Path) -> None:
    tool = Path(sys.executable).parent / "msprof-analyze"
    if not tool.exists():
        pytest.skip("msprof-analyze is not installed")
    words = [str(tool), "cluster", "-m", "all", "-d", str(ranks[0].parent), "-o", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    (found,) = tmp_path.rglob("cluster_step_trace_time.csv")
    rows = list(csv.DictReader(found.open()))
    ours = {
        (str(rank), row["Step"]): float(row["Computing"])
        for rank, trace in enumerate(ranks)
        for row in table(trace, "step_trace_time.csv")
    }
    theirs = {(row["Index"], row["Step"]): float(row["Computing"]) for row in rows if row["Type"] == "rank"}
    assert theirs == ours, done.stdout + done.stderr
