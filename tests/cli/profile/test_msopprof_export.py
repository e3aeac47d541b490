"""`msopprof simulator --export`: logs of a run, whole and damaged (opprof.md 7: T33, T36, T39 to T42)."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Run = Callable[..., "CompletedProcess[str]"]
OBJECTS = Path(__file__).resolve().parents[2] / "profiler" / "ingest" / "objects"
B1, A5 = "--soc-version=Ascend910B1", "--soc-version=Ascend950PR_9599"

SCRIPT = """
import asc
import asc.runtime.config as config
import numpy as np
config.set_platform(config.Backend.Model)

@asc.jit
def double(x: asc.GlobalAddress, z: asc.GlobalAddress):
    source = asc.GlobalTensor()
    source.set_global_buffer(x + asc.get_block_idx() * 256)
    target = asc.GlobalTensor()
    target.set_global_buffer(z + asc.get_block_idx() * 256)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    for i in range(3):
        asc.data_copy(tile, source, 256)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.add(tile, tile, tile, 256)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(target, tile, 256)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)

x, z = np.ones(512, np.float32), np.zeros(512, np.float32)
double[2](x, z)
assert (z == 2).all()
"""
"""Each of two cores doubles a tile three times."""


def events(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "simulator" / "trace.json").read_text())["traceEvents"]
    return found


def instructions(folder: Path) -> list[tuple[Any, ...]]:
    """The slices and arrows of a trace; without spans of fetching, of which a log tells four instructions in a line."""
    return sorted(
        (event["ph"], event["pid"], event["tid"], event["ts"], event.get("dur", 0), event["name"])
        for event in events(folder)
        if event["ph"] in "XBEst" and event["pid"] != "NOTICE" and event["name"] not in ("cache_time", "ccu_time")
    )


def row_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, msopprof_in: Run) -> Path:
    """The results of a run that kept its logs."""
    folder = tmp_path_factory.mktemp("live")
    done = msopprof_in(folder, SCRIPT, "simulator", B1, "--dump=on")
    assert done.returncode == 0, done.stdout + done.stderr
    return _root(folder)


def _root(folder: Path) -> Path:
    (root,) = (folder / "out").iterdir()
    return root


@pytest.fixture
def logs(live: Path, tmp_path: Path) -> Path:
    """A copy of the logs of the run."""
    return Path(shutil.copytree(live / "dump", tmp_path / "logs"))


def test_logs_that_are_kept_change_nothing(live: Path, tmp_path: Path, msopprof_in: Run) -> None:
    """T40: with and without --dump everything else is the same."""
    assert msopprof_in(tmp_path, SCRIPT, "simulator", B1, "--dump=off").returncode == 0
    other = _root(tmp_path)

    def files(root: Path) -> dict[str, bytes]:
        # the script's own path is in the texts of both
        return {
            str(path.relative_to(root)): path.read_bytes().replace(str(root.parents[1]).encode(), b"")
            for path in root.rglob("*")
            if path.is_file() and path.suffix in (".csv", ".json") and path.parts[-2] != "report"
        }

    kept, plain = files(live), files(other)
    kept.pop("status.json"), plain.pop("status.json")
    assert len(plain) == 1 + 3 * 2 and kept == plain
    assert (live / "dump").is_dir() and not (other / "dump").exists()


def test_parts_of_a_log(live: Path, logs: Path, msopprof: Run, results: Any) -> None:
    """T36, T40: the logs, each cut into parts, some in the middle of a line, give the slices, arrows and counters of the
    run; no source lines are known (T37)."""
    for path in sorted(logs.glob("*.dump")):
        data = path.read_bytes()
        for number, part in enumerate((data[:99], data[99:300], data[300:])):
            path.with_name(path.name.replace(".dump", f".{number}.dump") if number else path.name).write_bytes(part)
    done = msopprof("simulator", f"--export={logs}", B1)
    assert done.returncode == 0, done.stdout
    assert instructions(results.root) == instructions(live) and len(instructions(live)) > 60
    counters = [
        [(event["name"], event["ts"], event["args"]) for event in events(root) if event["ph"] == "C"]
        for root in (live, results.root)
    ]
    assert counters[0] == counters[1] and counters[0]
    assert "Failed to parse pc to code" in done.stdout
    assert not any(event.get("args", {}).get("code") for event in events(results.root))


def test_without_the_cache_log(live: Path, logs: Path, msopprof: Run, results: Any) -> None:
    """T39: no lane of misses, no scalar spans, one ERROR with pcs; the rest is there, and the run says it is partial."""
    for path in logs.glob("*icache*"):
        path.unlink()
    done = msopprof("simulator", f"--export={logs}", B1)
    assert done.returncode == 0 and results.status["partial"]
    (error,) = (line for line in done.stdout.splitlines() if line.startswith("[ERROR]"))
    assert re.fullmatch(
        r"\[ERROR\] Core .*: icache log is missing; \d+ instructions cannot be drawn, first pcs: (0x[0-9a-f]+, )+"
        r"0x[0-9a-f]+",
        error,
    ), error
    found = events(results.root)
    assert not [event for event in found if event["tid"] == "CACHEMISS" and event["ph"] != "M"]
    assert not [event for event in found if event["name"] in ("cache_time", "ccu_time")]
    assert instructions(results.root) == [event for event in instructions(live) if event[2] != "CACHEMISS"]


def test_an_instruction_that_never_retired(logs: Path, msopprof: Run, results: Any) -> None:
    """T41: three pops and two retirements are two slices, with a warning that names the pc."""
    path = logs / "core0.veccore0.instr_log.dump"
    lines = path.read_text().splitlines(keepends=True)
    adds = [number for number, line in enumerate(lines) if " VADD" in line]
    assert len(adds) == 3
    (address,) = {re.search(r"PC: (0x[0-9a-f]+)", lines[number])[1] for number in adds}  # type: ignore[index]
    del lines[adds[2]]
    path.write_text("".join(lines))
    done = msopprof("simulator", f"--export={logs}", B1)
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("[WARN]") and address in line]
    drawn = [event for event in events(results.root) if event["ph"] == "X" and event["name"].startswith("VADD")]
    assert sorted(event["pid"] for event in drawn) == ["core0.veccore0"] * 2 + ["core1.veccore0"] * 3


def test_a_log_that_is_too_long(logs: Path, msopprof: Run, results: Any) -> None:
    """T42: a file above 1 GB is told and left out; the other core is there."""
    with (logs / "core0.veccore0.instr_log.dump").open("r+b") as file:
        file.truncate((1 << 30) + 1)  # takes no room
    done = msopprof("simulator", f"--export={logs}", B1)
    assert done.returncode == 0 and results.status["partial"]
    assert "[ERROR]" in done.stdout and "is larger than 1 GB and is not read" in done.stdout
    assert {event["pid"] for event in events(results.root) if event["ph"] == "X" and event["pid"] != "NOTICE"} == {
        "core1.veccore0"
    }


def line(tick: int, pc: int, pipe: str, name: str, operands: str = "", number: str = "") -> str:
    """A line of a popped or retire log (opprof.md 4.2)."""
    return f"[info] [{tick:08d}] (PC: 0x{pc:x}) {pipe:<9}: (Binary: 0x00000000){number} {name}  {operands}\n"


def core(folder: Path, popped: str, retired: str, name: str = "core0.veccore0") -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.instr_popped_log.dump").write_text(popped)
    (folder / f"{name}.instr_log.dump").write_text(retired)


def test_lines_of_the_kernels_object(msopprof: Run, results: Any, tmp_path: Path) -> None:
    """T36: with the object every instruction has its stack, and every line its time (opprof.md 2.5)."""
    popped = [
        line(tick, pc, "SCALAR", name) for tick, pc, name in ((10, 0x5017, "A"), (20, 0x501D, "B"), (40, 0x501D, "B"))
    ]
    retired = [
        line(tick, pc, "SCALAR", name) for tick, pc, name in ((14, 0x5017, "A"), (30, 0x501D, "B"), (50, 0x501D, "B"))
    ]
    core(tmp_path / "logs", "".join(popped), "".join(retired))
    (tmp_path / "logs" / "pc_start_addr.txt").write_text("0x5000\n")
    shutil.copy(OBJECTS / "linked.o", tmp_path / "logs" / "aicore_binary.o")
    done = msopprof("simulator", "--export=logs", "--soc-version=Ascend310P3")
    assert done.returncode == 0 and "Failed to parse pc to code" not in done.stdout, done.stdout
    (table,) = (results.root / "simulator").glob("*/*_code_exe.csv")
    rows = [(row["code"], row["call_count"], row["cycles"]) for row in row_table(table)]
    assert rows == [("/project/src/tile.h:3", "2", "20"), ("/project/src/add.c:5", "1", "4")]
    (first,) = (event for event in events(results.root) if event["ph"] == "X" and event["name"] == "A")
    assert first["args"]["code"].splitlines()[0].startswith("/project/src/add.c:5")


def test_warps(msopprof: Run, results: Any, tmp_path: Path) -> None:
    """T33: a lane for each warp, sixteen threads of the tail one at work; SIMT kernels come from logs only."""
    masks = "[prdctMask:ffffffff],[execMask:{}]"
    given = [(0, "ffffffff"), (1, "ffffffff"), (2, "0000ffff")]
    popped = [
        line(10 + warp, 0x100, "RVECEX", "VADD", f"R4,R2,R3 [warpId:{warp}] [schId:{warp}]", f" (ID: {warp})")
        for warp, _ in given
    ]
    retired = [
        line(30 + warp, 0x100, "RVECEX", "VADD", f"R4,R2,R3 [warpId:{warp}],[schId:{warp}],{masks.format(mask)}", f" (ID: {warp})")
        for warp, mask in given
    ]  # fmt: skip
    core(tmp_path / "logs", "".join(popped), "".join(retired))
    assert msopprof("simulator", "--export=logs", A5).returncode == 0
    drawn = {event["tid"]: event for event in events(results.root) if event["ph"] == "X" and event["pid"] != "NOTICE"}
    assert set(drawn) == {"WARP_0", "WARP_1", "WARP_2"}
    ends = [drawn[f"WARP_{warp}"]["args"]["detail"].rpartition(", ")[2] for warp in range(3)]
    assert ends == ["[threadNum:32]", "[threadNum:32]", "[threadNum:16]"]
    assert all(event["dur"] > 0 for event in drawn.values())


def test_a_trace_that_shows_nothing(msopprof: Run, results: Any, tmp_path: Path) -> None:
    """Logs in which no instruction lasts (opprof.md 9, pain 4): it is said, for people and for programs."""
    core(tmp_path / "logs", line(10, 0x100, "VEC", "VADD"), line(10, 0x100, "VEC", "VADD"))
    done = msopprof("simulator", "--export=logs", B1)
    assert done.returncode == 0, done.stdout
    assert "no instruction takes any time" in done.stdout
    assert [text for text in results.status["warnings"] if text.endswith("no instruction takes any time")]
