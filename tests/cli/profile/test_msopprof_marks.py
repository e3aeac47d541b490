"""`msopprof` on kernels that mark their own time, and with the least that there is to write (opprof.md 7: T06, T35, T53)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from npuscope.profiler.writers.bin import BlockType, read_bin
from npuscope.profiler.writers.bin_check import trace_complaints, viewer_complaints

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]

MARKED = """
@asc.jit
def marked(x: asc.GlobalAddress, nested: asc.ConstExpr[bool]):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    for i in range(2):
        asc.metrics_prof_start()
        asc.print_time_stamp(65577)
        asc.data_copy(tile, source, 64)
        asc.print_time_stamp(65577)
        asc.metrics_prof_stop()
    if nested:
        asc.metrics_prof_start()
        asc.metrics_prof_start()
        asc.data_copy(tile, source, 64)
        asc.metrics_prof_stop()
        asc.metrics_prof_stop()

x = np.ones(64, np.float32)
"""


def drawn(path: Path, lane: str) -> list[dict[str, Any]]:
    """The slices of the lanes of that name, in a trace that the viewer takes."""
    data = path.read_bytes()
    assert trace_complaints(data, alone=True) == []
    return [
        event
        for event in json.loads(data)["traceEvents"]
        if event["ph"] == "X" and lane in (event["pid"], event["tid"])
    ]


def test_marks(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """T35: a slice for each stretch; where a mark lies within itself it is said, and what fits is drawn."""
    done = msopprof("simulator", sys.executable, script(MARKED + "marked[1](x, False)\n"))
    assert done.returncode == 0 and "userMark" not in done.stdout, done.stdout
    found = drawn(results.root / "simulator" / "trace.json", "USERMARK")
    assert len(found) == 2 and found[0]["ts"] + found[0]["dur"] <= found[1]["ts"]
    copies = [
        event for event in drawn(results.root / "simulator" / "trace.json", "MTE2") if event["name"].startswith("MOV")
    ]
    for mark, copy in zip(found, copies, strict=True):
        assert mark["ts"] <= copy["ts"]
    results.root.rename(tmp_path / "first")
    done = msopprof("simulator", sys.executable, script(MARKED + "marked[1](x, True)\n"))
    assert done.returncode == 0
    text = (
        "Failed to create userMark METRICS_PROF for core0.veccore0 because loop nesting exists or "
        "TraceStart is not equal to TraceStop."
    )
    assert done.stdout.count(text) == 1, done.stdout
    assert results.status["partial"] and len(drawn(results.root / "simulator" / "trace.json", "USERMARK")) >= 2


def test_time_stamps_with_names(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """T53: the first and second stamp of an id are a slice of the core's lane, with the name that the file gives it."""
    labels = tmp_path / "labels.json"
    labels.write_text(
        json.dumps({"mc2_trace_config": {"enable_block_time": True, "descid_display": {"65577": "load x"}}})
    )
    done = msopprof(
        f"--custom-input={labels}", "--aic-metrics=BasicInfo", sys.executable, script(MARKED + "marked[2](x, False)\n")
    )
    assert done.returncode == 0, done.stdout
    named = [event for event in drawn(results.root / "trace.json", "BLOCK") if event["name"] == "load x"]
    assert sorted(event["tid"] for event in named) == ["core0.veccore0"] * 2 + ["core1.veccore0"] * 2
    assert all(event["dur"] > 0 for event in named)
    results.root.rename(tmp_path / "first")
    names = {str(number): "x" for number in range(1025)}
    labels.write_text(json.dumps({"mc2_trace_config": {"descid_display": names}}))
    done = msopprof(f"--custom-input={labels}", sys.executable, tmp_path / "script.py")
    assert done.returncode == 2 and "at most 1024 entries, found 1025" in done.stdout
    assert not list(results.out.iterdir())


def test_basic_information_alone(msopprof: Run, script: Write, results: Any) -> None:
    """T06: one table, and one block beside it at most."""
    assert msopprof("--aic-metrics=BasicInfo", sys.executable, script("launch(64)\n")).returncode == 0
    assert [path.name for path in results.root.glob("*.csv")] == ["OpBasicInfo.csv"]
    file = results.root / "visualize_data.bin"
    assert viewer_complaints(file) == []
    assert [block.type for block in read_bin(file)] == [BlockType.OP_BASIC_INFO]
