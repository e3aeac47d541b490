"""What `msopprof` writes for each group, chip and mode (opprof.md 7: T06, T07, T19, T25, T27, T28, T32, T36 to T45, T50)."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from npuscope.profiler.writers.bin import BlockType, read_bin

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]
A5 = "--soc-version=Ascend950PR_9599"

MANY = """
@asc.jit
def many(x: asc.GlobalAddress, n: asc.ConstExpr[int]):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 128)
    asc.data_copy(tile, source, 64)
    for i in asc.static_range(n):
        asc.duplicate(tile, 1.0, 64)

@asc.jit
def long(x: asc.GlobalAddress, n: int):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 128)
    for i in range(n):
        asc.data_copy(tile, source, 64)

x = np.ones(64, np.float32)
"""


def tables(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.csv")}


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def blocks(path: Path) -> set[BlockType]:
    return {block.type for block in read_bin(path)}


def test_groups(msopprof: Run, script: Write, results: Any) -> None:
    """T07 and more: the tables that are named and OpBasicInfo; blocks of the groups; a simulated timeline beside."""
    groups = "MemoryUB,l2cache,Occupancy,Source,TimelineDetail"
    done = msopprof(f"--aic-metrics={groups}", "--dump=on", "--core-id=1", sys.executable, script("launch(64, 3)\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    root = results.root
    assert tables(root) == {"OpBasicInfo", "MemoryUB", "L2Cache"}
    found = blocks(root / "visualize_data.bin")
    assert {BlockType.OCCUPANCY_MAP, BlockType.CACHELINE_HEAT_MAP, BlockType.FILE_API, BlockType.OP_BASIC_INFO} <= found
    assert not found & {BlockType.ROOF_LINE, BlockType.TOP_STALL_REASON, BlockType.TRACE}
    assert [path.name for path in (root / "simulator").iterdir() if path.is_dir()] == ["core1.veccore0"]
    assert (root / "dump" / "core1.veccore0.instr_popped_log.dump").is_file()
    assert json.loads((root / "report" / "api_instr.json").read_text())["Instructions"]
    assert "RoofLine" not in done.stdout and "Operator Basic Information:" in done.stdout


def test_the_simulator_and_its_logs(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """T27, T36, T40: a folder for each core, the table of times; the logs give the same timeline again, and what is
    missing in them is told while the rest goes on (T38)."""
    done = msopprof("simulator", "--soc-version=Ascend910B1", "--dump=on", sys.executable, script("launch(64, 2)\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].endswith("script.py, use simulator Ascend910B1 by --soc-version")
    root = results.root
    assert not list(root.glob("*.csv")) and blocks(root / "simulator" / "visualize_data.bin") >= {
        BlockType.TRACE,
        BlockType.INSTR_API,
    }
    for name in ("core0.veccore0", "core1.veccore0"):
        assert {path.name for path in (root / "simulator" / name).iterdir()} == {
            f"{name}_code_exe.csv", f"{name}_instr_exe.csv", "trace.json",
        }  # fmt: skip
    lines = done.stdout.splitlines()
    at = lines.index("Core operator results run in simulator as follow:")
    for line in lines[at + 2 : at + 4]:
        name, duration, running = line.split()
        assert name.endswith(".veccore0") and float(duration) >= float(running) > 0
    drawn = [event for event in events(root / "simulator" / "trace.json") if event["ph"] == "X"]
    logs = (root / "dump").rename(tmp_path / "logs")
    kept = root.rename(tmp_path / "kept")
    again = msopprof("simulator", f"--export={logs}", "--soc-version=Ascend910B1")
    assert again.returncode == 0, again.stdout
    assert "Failed to parse pc to code" in again.stdout  # T37: there is no kernel object
    redrawn = [
        event
        for event in events(results.root / "simulator" / "trace.json")
        if event["ph"] == "X" and event["pid"] != "NOTICE"
    ]

    def shape(event: dict[str, Any]) -> tuple[Any, ...]:
        return event["pid"], event["tid"], event["ts"], event["dur"], event["name"]

    def instructions(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Without the scalar spans: a log has the fetch of four instructions in one line."""
        return sorted(shape(event) for event in found if event["name"] not in ("cache_time", "ccu_time"))

    assert instructions(drawn) == instructions(redrawn)
    results.root.rename(tmp_path / "second")
    (logs / "core1.veccore0.instr_popped_log.dump").unlink()
    partial = msopprof("simulator", f"--export={logs}", "--soc-version=Ascend910B1")
    assert partial.returncode == 0 and results.status["partial"]
    assert [
        line
        for line in partial.stdout.splitlines()
        if line.startswith("[ERROR] Core 1") or "core1" in line and "[ERROR]" in line
    ]
    assert kept.is_dir()


def test_no_logs(msopprof: Run, results: Any, tmp_path: Path) -> None:
    """T42: an empty folder, and one of rubbish; nothing is created."""
    (tmp_path / "logs").mkdir()
    for text in ("", "rubbish\n" * 10):
        (tmp_path / "logs" / "core0.veccore0.instr_log.dump").write_text(text)
        done = msopprof("simulator", "--export=logs")
        assert done.returncode != 0
        assert "[ERROR] Failed to get any available dump file to parse, please check" in done.stdout
        assert not results.out.exists()
    assert msopprof("simulator", "--export=nowhere").returncode == 2


def test_pipe_utilization_alone_hides_the_flags(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """T28, and T32's notice on a chip without scalar spans."""
    assert (
        msopprof("simulator", "--aic-metrics=PipeUtilization", sys.executable, script("launch(64)\n")).returncode == 0
    )
    assert not {event["ph"] for event in events(results.root / "simulator" / "trace.json")} & {"B", "E", "s", "t"}
    results.root.rename(tmp_path / "first")
    done = msopprof("simulator", A5, "--aic-metrics=OverHead", sys.executable, script("launch(64)\n"))
    assert done.returncode == 0
    assert "[WARN]  OverHead is not supported on Ascend950PR" in done.stdout
    assert {"B", "E", "s", "t"} <= {event["ph"] for event in events(results.root / "simulator" / "trace.json")}


def test_on_board_timelines(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """T43 to T45 and T50: lanes of the pipes asked for, a pipe with more instructions than numbers, what only SIMT has."""
    path = script(MANY + "many[1](x, 600)\n")
    done = msopprof(A5, "--aic-metrics=INSTRTIMELINE", "--pipe=MTE2/simd", sys.executable, path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [event for event in events(results.root / "trace.json") if event["ph"] == "X" and event["pid"] != "NOTICE"]
    lanes = [event["tid"] for event in found]
    assert set(lanes) == {"MTE2", "VECTOR"} and lanes.count("VECTOR") == 512
    assert (
        "[WARN]  InstrTimeline of pipes[VECTOR] is incomplete because these pipes have more than 512 instructions."
        in done.stdout
    )
    assert results.status["partial"] and results.status["kernels"][0]["losses"][0]["text"].startswith(
        "InstrTimeline of"
    )
    results.root.rename(tmp_path / "first")
    done = msopprof(A5, "--aic-metrics=pcsampling", sys.executable, path)
    assert done.returncode == 0
    for feature in ("Warp timeline", "Warp stall reasons", "Register status"):
        assert done.stdout.count(f"[WARN]  {feature} is not supported: operator many is not a SIMT operator.") == 1
    assert BlockType.TOP_STALL_REASON not in blocks(results.root / "visualize_data.bin")


def test_the_cache_at_the_start(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """T19: with application replay the second launch finds the data of the first; with kernel replay it does not; a
    pre-run warms the first as well."""
    path = script("x, z = np.ones(64, np.float32), np.zeros(64, np.float32)\ncopy[1](x, z, 64)\ncopy[1](x, z, 64)\n")

    def misses(*words: str) -> list[int]:
        done = msopprof("--launch-count=2", "--aic-metrics=L2Cache", *words, sys.executable, path)
        assert done.returncode == 0, done.stdout + done.stderr
        # 9 events of L2Cache in passes of 8, and the pass that A2 adds for it
        assert ("Application replay takes 3 rounds on a card" in done.stdout) == ("--replay-mode=application" in words)
        root = results.root
        counts = []
        for order in (0, 1):
            (table,) = (root / "copy" / str(order)).glob("L2Cache_*.csv")
            heads, row = (line.split(",") for line in table.read_text().splitlines())
            counts.append(sum(int(row[heads.index(f"aiv_r{port}_read_cache_miss_allocate")]) for port in (0, 1)))
        root.rename(tmp_path / f"kept{len(list(tmp_path.iterdir()))}")
        return counts

    cold = misses()
    assert cold[0] > 0 and cold[1] == cold[0]
    assert misses("--replay-mode=application") == [cold[0], 0]
    assert misses("--replay-mode=application", "--warm-up=5") == [0, 0]


def test_an_endless_kernel(
    msopprof: Run, script: Write, results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T25: ended when the time is up; what ran is written, and said to be partial. The minute is over a moment after the
    script has begun its endless launch, however long its start takes."""
    ready, real = tmp_path / "ready", time.monotonic
    monkeypatch.setattr("npuscope.cli.attend.time.monotonic", lambda: real() + (100.0 if ready.exists() else 0.0))
    text = "import threading\nlaunch(64)\nthreading.Timer(2, lambda: open('ready', 'w').close()).start()\nlong[1](x, 1 << 30)\n"
    done = msopprof(
        "simulator",
        "--timeout=1",
        "--launch-count=2",
        "--aic-metrics=PipeUtilization",
        sys.executable,
        script(MANY + text),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARN]  The timeout has reached and the application will be forcibly killed." in done.stdout.splitlines()
    found = results.status
    assert found["partial"] and found["application"]["timed_out"]
    kernels = [(item["kernel"], item["partial"]) for item in found["kernels"]]
    assert kernels in ([("copy", False)], [("copy", False), ("long", True)])  # the first where the machine is very slow


def test_a_disk_that_is_full(msopprof: Run, script: Write, results: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """T59: one line; nothing half-written."""

    def full(*arguments: Any, **options: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("npuscope.cli.profile_files.write_bin", full)
    done = msopprof(sys.executable, script("launch(64)\n"))
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr
    assert re.search(r"^\[WARN\]  copy: cannot write .*: No space left on device$", done.stdout, re.M)
    assert not results.out.exists()


def test_triton_beside_others(msopprof: Run, script: Write, results: Any, tmp_path: Path) -> None:
    """A tile kernel is left out with a line for each kernel, the rest goes on; alone it is nothing to profile."""
    pytest.importorskip("triton")
    tile = (
        "import torch, triton, triton.language as tl\n\n@triton.jit\ndef tile(x, n: tl.constexpr):\n"
        "    tl.store(x + tl.arange(0, n), 1.0)\n\ny = torch.zeros(64)\ntile[(1,)](y, 64)\ntile[(1,)](y, 64)\n"
    )
    done = msopprof("--launch-count=9", "--aic-metrics=BasicInfo", sys.executable, script(tile + "launch(64)\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("[WARN]  tile: a Triton kernel has no pipes") == 1
    assert [item["kernel"] for item in results.status["kernels"]] == ["copy"] and len(results.status["failed"]) == 2
    results.root.rename(tmp_path / "first")
    done = msopprof("--launch-count=9", sys.executable, script(tile))
    assert done.returncode == 2 and done.stdout.splitlines()[-1] == "[ERROR] no launch is left that can be profiled"
    assert not list(results.out.iterdir()) if results.out.exists() else True
