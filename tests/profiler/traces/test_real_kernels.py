"""The traces of real kernels hold what their timelines hold."""

import sys
from collections import Counter
from io import BytesIO

import numpy as np
import pytest
from perfetto import PROBLEMS, query

from npuscope.cli.session import run_in_session
from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.cores import core_names
from npuscope.profiler.ingest import read_dumps, write_dumps
from npuscope.profiler.instruction_timeline.communication import communication
from npuscope.profiler.instruction_timeline.drawn import Kind, drawn
from npuscope.profiler.instruction_timeline.instructions import instr_timeline
from npuscope.profiler.instruction_timeline.labels import Labels
from npuscope.profiler.instruction_timeline.soundness import complaints
from npuscope.profiler.writers.perfetto import write_perfetto
from npuscope.profiler.writers.trace_json import CoreTraces, OnBoard, Shown, write_on_board, write_simulator
from npuscope.trace.rows import launches
from npuscope.trace.schema import Space
from npuscope.trace.timeline import distinct_details

KERNELS = ["add_flags", "matmul_leaky_relu"]


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_is_drawn_once(example_timeline, written, name) -> None:
    timeline = example_timeline(name, "Ascend910B1")
    assert complaints([timeline]) == []
    events = written(write_simulator, timeline)["traceEvents"]
    found = drawn(timeline)
    kinds = Counter(e["ph"] for e in events if e["name"] not in ("cache_time", "ccu_time"))
    assert kinds["X"] == (~found.flag).sum() and kinds["B"] == kinds["E"] == found.flag.sum()
    assert kinds["s"] == kinds["t"] == timeline.edges.shape[1]
    assert {e["pid"] for e in events if e["ph"] == "X"} == set(core_names(timeline.launch))
    # T31: the spans of an instruction end where its slice starts
    starts = {e["group_id"]: e["ts"] for e in events if "group_id" in e and e["name"] not in ("cache_time", "ccu_time")}
    ends = [(e["group_id"], e["ts"] + e["dur"]) for e in events if e["name"] == "ccu_time"]
    plain = {str(row) for row in np.flatnonzero(found.kind == Kind.PLAIN)}
    assert ends and all(abs(starts[group] - end) < 2e-6 for group, end in ends if group in plain)


@pytest.mark.parametrize("name", KERNELS)
def test_the_counters_hold_every_byte(example_timeline, written, name) -> None:
    timeline = example_timeline(name, "Ascend910B1")
    sums: Counter[str] = Counter()
    for event in written(write_simulator, timeline)["traceEvents"]:
        if event["ph"] == "C":
            sums[event["name"]] += event["args"]["throughput(MB/s)"]
    size, source, target = (timeline.transfer(name) for name in ("bytes", "source", "target"))
    assert sums["GM_TO_UB"] == pytest.approx(size[(source == Space.GM) & (target == Space.UB)].sum(), rel=0.01)  # T30
    assert sums["TOTAL_TO_GM"] == pytest.approx(size[(target == Space.GM) & (source != Space.GM)].sum(), rel=0.01)


def test_single_cores_add_up(example_timeline) -> None:
    timeline = example_timeline("matmul_leaky_relu", "Ascend910B1")
    traces = CoreTraces(timeline)
    text = b""
    for core in range(len(timeline.launch.cores)):
        file = BytesIO()
        traces.write(file, core)
        text += file.getvalue()
    assert text.count(b'"ph":"X"') == timeline.slices.shape[1]


@pytest.mark.parametrize("name", KERNELS)
def test_perfetto_reads_all_of_it(example_timeline, tmp_path, name) -> None:
    timeline = example_timeline(name, "Ascend910B1")
    path = tmp_path / "trace.json"
    with path.open("wb") as file:
        write_perfetto(file, timeline)
    assert query(path, PROBLEMS) == []
    (slices,) = query(path, "select count(*) as n from slice where category = 'instruction'")
    (flows,) = query(path, "select count(*) as n from flow")
    assert (int(slices["n"]), int(flows["n"])) == (timeline.slices.shape[1], timeline.edges.shape[1])
    assert int(flows["n"]) > 40


def test_the_on_board_view_of_a_kernel(example_timeline, written) -> None:
    timeline = example_timeline("add_flags", "Ascend950PR")
    shown = instr_timeline(timeline)
    assert not shown.losses
    events = written(write_on_board, timeline, OnBoard(instructions=shown))["traceEvents"]
    assert {e["tid"] for e in events} == {"MTE2", "VECTOR", "MTE3"}  # T43: no SCALAR lane
    assert all("add_flags.py:" in e["args"]["code"] for e in events)


KERNEL = """
import asc, numpy as np
import asc.lib.runtime as rt
import asc.runtime.config as config
config.set_platform(config.Backend.Model)
@asc.jit
def kernel(x: asc.GlobalAddress):
    asc.metrics_prof_start()
    asc.print_time_stamp(65577)
    gm = asc.GlobalTensor()
    gm.set_global_buffer(x)
    local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 1024)
    asc.data_copy(local, gm, 1024)
    asc.print_time_stamp(65577)
    asc.metrics_prof_stop()
kernel[2, rt.current_stream()](np.zeros(1024, np.float32))
"""


def test_marks_of_a_kernel(tmp_path, written, monkeypatch) -> None:
    pytest.importorskip("asc")
    script = tmp_path / "marked.py"
    script.write_text(KERNEL)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    batches = []
    assert run_in_session((batches.append,), None, str(script), (), False)[0] == 0
    timeline = time_launch(next(iter(launches(batches))), load_chip("910B1"))
    assert timeline.mark("number").tolist() == [65577] * 4
    found = communication(timeline, Labels({65577: "copy in"}))
    assert [(item.thread, item.name) for item in found.ranges if item.number >= 0] == [
        ("core0.veccore0", "copy in"), ("core1.veccore0", "copy in"),
    ]  # fmt: skip
    events = written(write_simulator, timeline)["traceEvents"]
    assert sum(e["ph"] == "X" and e["tid"] == "USERMARK" for e in events) == 2


def test_a_kernel_read_back_from_dumps_draws_the_same(example_timeline, written, tmp_path) -> None:
    """T36: the traces of a run and of its dumps have the same slices and arrows. Lengths are left to the dumps' own tests:
    where two copies of one pc overlap, a log does not tell which of them ended first."""
    timeline = example_timeline("matmul_leaky_relu", "Ascend910B1")
    write_dumps(timeline, tmp_path)
    (again,) = read_dumps(tmp_path, load_chip("910B1"))
    texts, place = distinct_details(again.details, np.arange(len(again.details)))
    assert [texts[number] for number in place] == list(again.details)

    def drawing(what):
        events = written(write_simulator, what, Shown(spans=False))["traceEvents"]
        slices = [(e["name"], e["ph"], e["ts"], e["pid"], e["tid"], e["args"]["pc_addr"]) for e in events
                  if e["ph"] in "XB" and e["tid"] not in ("USERMARK", "CACHEMISS") and e["pid"] != "NOTICE"]  # fmt: skip
        arrows = sorted((e["ph"], e["ts"], e["pid"], e["tid"], e["cat"]) for e in events if e["ph"] in "st")
        return sorted(map(str, slices)), arrows

    wrote, read = drawing(timeline), drawing(again)
    assert wrote[0] == read[0]
    assert len(read[1]) > 60 and set(read[1]) <= set(wrote[1])
