"""What is written is what is read (T36): our model's timelines, and one of random slices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.cores import core_names
from npuscope.profiler.ingest import read_dumps, write_dumps
from npuscope.trace.file import read_batches
from npuscope.trace.rows import launches
from npuscope.trace.schema import CoreInfo, CoreType, Launch, Site
from npuscope.trace.timeline import SLICE_COLUMNS, TRANSFER_COLUMNS, UNKNOWN, EdgeKind, Lane, Source, Step, Timeline

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pyasc"
KEPT = ("lane", "start", "end", "bytes", "warp", "threads")
MOVED = ("source", "target", "address", "bytes", "requests", "start", "end")


def named(timeline: Timeline, rows: np.ndarray) -> list[tuple[str, int, str, int]]:
    """(core, pc, text, start) of slices, which say which slice one is in either timeline."""
    names = core_names(timeline.launch)
    steps = [timeline.steps[step] for step in timeline.slice("step")[rows]]
    return [
        (names[core], step.address, step.text, start)
        for core, step, start in zip(
            timeline.slice("core")[rows].tolist(), steps, timeline.slice("start")[rows].tolist(), strict=True
        )
    ]


def slice_set(timeline: Timeline) -> list[tuple[object, ...]]:
    every = np.arange(timeline.slices.shape[1])
    return sorted(
        (*name, *values)
        for name, values in zip(
            named(timeline, every), zip(*(timeline.slice(c).tolist() for c in KEPT), strict=True), strict=True
        )
    )


def transfer_set(timeline: Timeline) -> list[tuple[object, ...]]:
    values = zip(*(timeline.transfer(column).tolist() for column in MOVED), strict=True)
    return sorted(
        (*name, *rest) for name, rest in zip(named(timeline, timeline.transfer("slice")), values, strict=True)
    )


def edge_set(timeline: Timeline) -> list[tuple[object, ...]]:
    rows = timeline.edge("kind") == EdgeKind.FLAG
    source, target = (named(timeline, timeline.edge(name)[rows]) for name in ("source", "target"))
    return sorted(zip(source, target, timeline.edge("number")[rows].tolist(), strict=True))


def step_set(timeline: Timeline) -> set[tuple[int, str, Lane]]:
    return {(step.address, step.text, step.lane) for step in timeline.steps}


@pytest.mark.parametrize("kernel", ["add_queues", "matmul_leaky_relu"])
@pytest.mark.parametrize("chip", ["Ascend910B1", "Ascend950PR"])
def test_timelines_of_the_model(tmp_path: Path, kernel: str, chip: str) -> None:
    trace = tmp_path / "trace"
    command = [sys.executable, "-m", "npuscope", "record", "-o", str(trace), str(EXAMPLES / f"{kernel}.py")]
    subprocess.run(command, check=True, capture_output=True)
    wrote = time_launch(next(launches(read_batches(trace))), load_chip(chip))
    write_dumps(wrote, tmp_path / "dumps")
    (read,) = read_dumps(tmp_path / "dumps", load_chip(chip))
    assert slice_set(read) == slice_set(wrote)
    assert transfer_set(read) == transfer_set(wrote)
    assert edge_set(read) == edge_set(wrote)
    assert step_set(read) == step_set(wrote)
    assert read.cycles == int(wrote.slice("end").max())
    control = read.slice("control")
    assert ((control == UNKNOWN) | (control <= read.slice("start"))).all()
    assert not read.partial


def random_timeline(seed: int, slices: int) -> Timeline:
    """Slices of all lanes on the cores of two mixed blocks; each step runs in order, as on a pipe."""
    random = np.random.default_rng(seed)
    lanes = [lane for lane in Lane if lane not in (Lane.CACHEMISS, Lane.USERMARK)]
    steps = [
        Step(0x10D00000 + 4 * place, f"OP_{place}.b16", lanes[place % len(lanes)], Site("x")) for place in range(40)
    ]
    misses = Step(0x10D00100, "0x10d00100", Lane.CACHEMISS, Site("x"))
    marks = Step(0x10D00200, "Mark 0x3", Lane.USERMARK, Site("x"))
    cores = [
        CoreInfo(CoreType.AIC, 0),
        CoreInfo(CoreType.AIV, 0),
        CoreInfo(CoreType.AIV, 1, 1),
        CoreInfo(CoreType.AIC, 1),
        CoreInfo(CoreType.AIV, 2),
        CoreInfo(CoreType.AIV, 3, 1),
    ]
    columns = {name: np.full(slices, UNKNOWN, np.int64) for name in SLICE_COLUMNS}
    columns["core"] = random.integers(0, len(cores), slices)
    columns["step"] = random.integers(0, 40, slices)
    columns["lane"] = np.array([step.lane for step in steps])[columns["step"]]
    columns["start"] = np.sort(random.choice(slices * 20, slices, replace=False))
    columns["end"] = columns["start"] + random.integers(0, 20, slices)
    for core in range(len(cores)):
        for step in range(40):
            mine = (columns["core"] == core) & (columns["step"] == step)
            columns["end"][mine] = np.maximum.accumulate(columns["end"][mine])
    columns["bytes"] = np.where(np.isin(columns["lane"], (Lane.MTE2, Lane.MTE3, Lane.FIXP)), 64 * columns["step"], 0)
    simt = columns["lane"] == Lane.RVECEX
    columns["warp"][simt] = random.integers(0, 64, simt.sum())
    columns["threads"][simt] = random.integers(0, 33, simt.sum())
    table = np.stack([columns[name] for name in SLICE_COLUMNS])
    others = np.full((len(SLICE_COLUMNS), 3), UNKNOWN, np.int64)
    for place, (lane, step, start, end) in enumerate(
        [(Lane.CACHEMISS, 40, 5, 6), (Lane.CACHEMISS, 40, 9, 10), (Lane.USERMARK, 41, 20, 90)]
    ):
        for name, value in (("core", 1), ("lane", lane), ("step", step), ("start", start), ("end", end), ("bytes", 0)):
            others[SLICE_COLUMNS.index(name), place] = value
    table = np.concatenate([table, others], axis=1)
    launch = Launch(0, "k", "Ascend950PR", cores, (2,), {}, {}, arch="3510")
    return Timeline(
        launch,
        "Ascend950PR",
        1650.0,
        Source.MODEL,
        int(table[SLICE_COLUMNS.index("end")].max()),
        0,
        [*steps, misses, marks],
        table,
        [f"n={place}" for place in range(table.shape[1])],
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_slices(tmp_path: Path, seed: int) -> None:
    wrote = random_timeline(seed, 2000)
    write_dumps(wrote, tmp_path)
    (read,) = read_dumps(tmp_path, load_chip("Ascend950PR"))
    assert slice_set(read) == slice_set(wrote)
    assert read.transfers.shape == (len(TRANSFER_COLUMNS), 0)
    details = {
        name: text for name, text in zip(named(wrote, np.arange(wrote.slices.shape[1])), wrote.details, strict=True)
    }
    plain = np.flatnonzero(
        (read.slice("lane") < Lane.RVECEX) & ~np.isin(read.slice("lane"), (Lane.CACHEMISS, Lane.USERMARK))
    )
    for row, name in zip(plain.tolist(), named(read, plain), strict=True):
        assert read.details[row].split(",")[0] == details[name]


def test_the_folder_is_made(tmp_path: Path) -> None:
    written = write_dumps(random_timeline(1, 50), tmp_path / "a" / "b")
    assert sorted(written) == sorted((tmp_path / "a" / "b").iterdir())
    assert {file.name for file in written} >= {"core0.cubecore0.instr_log.dump", "core1.veccore1.instr_popped_log.dump"}
