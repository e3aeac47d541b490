"""`msopprof` on kernels of every kind: vector, cube and mixed ones, on chips of each column set (opprof.md 7: T01 to T05,
T08 to T11, T30, T31, T34, T54)."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from npuscope.profiler.writers.bin import BlockType, read_bin
from npuscope.profiler.writers.bin_check import trace_complaints, viewer_complaints

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pyasc"
SEVEN = (
    "ArithmeticUtilization",
    "L2Cache",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "PipeUtilization",
    "ResourceConflictRatio",
)
BOUNDS = {
    "compute bound", "memory bound", "latency bound:pipeline caused", "latency bound:memory caused",
    "latency bound:compute caused",
}  # fmt: skip

UNEVEN = """
@asc.jit
def uneven(x: asc.GlobalAddress):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 1024)
    for i in range(1 + (asc.get_block_idx() // 3) * 19):
        asc.data_copy(tile, source, 1024)

uneven[4](np.ones(1024, np.float32))
"""
"""The last of four cores copies twenty times as much as the others."""


def examples(*names: str) -> str:
    """A script that runs examples of the repository."""
    return f"import runpy\nfor name in {names!r}:\n    runpy.run_path(f'{EXAMPLES}/{{name}}.py', run_name='__main__')\n"


def table(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of a CSV file, whatever moment its name has."""
    (path,) = (path for path in folder.glob("*.csv") if path.stem.partition("_")[0] == name)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def column(folder: Path, name: str, head: str) -> list[float]:
    return [float(row[head]) for row in table(folder, name)]


def blocks(path: Path) -> dict[BlockType, Any]:
    """The JSON of the blocks of a file that the viewer takes whole (V1 to V9, V11)."""
    assert viewer_complaints(path) == []
    return {block.type: json.loads(block.text) for block in read_bin(path) if block.type is not BlockType.CODE}


def events(path: Path) -> list[dict[str, Any]]:
    """The events of a trace that the viewer takes (V7, V8, V10), their times numbers from the launch on."""
    data = path.read_bytes()
    assert trace_complaints(data, alone=True) == []
    found: list[dict[str, Any]] = json.loads(data)["traceEvents"]
    for event in found:
        if event["ph"] != "M":
            assert isinstance(event["ts"], int | float) and 0 <= event["ts"] < 1e4, event
            assert event.get("dur", 0) >= 0
    return found


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory, msopprof_in: Run) -> Path:
    """A vector, a cube and a mixed kernel and an uneven one, with every chart, on 910B4: the folder of a run."""
    folder = tmp_path_factory.mktemp("kinds")
    names = ("add_queues", "matmul_cube", "matmul_leaky_relu")
    groups = "--aic-metrics=Roofline,Occupancy,MemoryDetail,Source"
    script = "import numpy as np\nimport asc\n" + examples(*names) + UNEVEN
    done = msopprof_in(folder, script, "--soc-version=Ascend910B4", "--launch-count=9", groups)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout)
    return folder


def of(kinds: Path, kernel: str) -> Path:
    (root,) = (kinds / "out").iterdir()
    return root / kernel / "0"


def test_a_vector_kernel(kinds: Path) -> None:
    """T01: a row for each of 8 blocks, nothing of cube cores; the blocks of the memory chart in the file."""
    folder = of(kinds, "add_kernel")
    for name in SEVEN:
        rows = table(folder, name)
        assert [(row["block_id"], row["sub_block_id"]) for row in rows] == [(str(n), "vector0") for n in range(8)]
        assert {cell for row in rows for head, cell in row.items() if head.startswith("aic_")} <= {"NA"}
    (info,) = table(folder, "OpBasicInfo")
    assert (info["Op Type"], info["Block Dim"], info["Mix Block Dim"]) == ("vector", "8", "0")
    assert column(folder, "Memory", "GM_to_UB_datas(KB)") == [2 * 4 * 4.0] * 8  # x and y, four tiles of 4 KB
    assert set(blocks(folder / "visualize_data.bin")) >= {BlockType(number) for number in range(5, 10)}


def test_a_cube_kernel(kinds: Path) -> None:
    """T02, T08: one row, nothing of vector cores; every line of the rooflines lies below its roof, or does not apply."""
    folder = of(kinds, "matmul_kernel")
    for name in SEVEN:
        (row,) = table(folder, name)
        assert row["sub_block_id"] == "cube0"
        assert {cell for head, cell in row.items() if head.startswith("aiv_")} <= {"NA"}
    (info,) = table(folder, "OpBasicInfo")
    assert info["Op Type"] == "cube"
    assert column(folder, "MemoryL0", "aic_l0c_write_bw_cube(GB/s)")[0] > 0
    assert column(folder, "MemoryL0", "aic_l0c_read_bw_cube(GB/s)") == [0]  # one multiplication alone adds to nothing
    chart = blocks(folder / "visualize_data.bin")[BlockType.ROOF_LINE]
    titles = [picture["title"] for picture in chart["multiple_rooflines"]]
    assert titles[:2] == ["GM/L2", "Memory Unit(Cube)"]
    ratios = [line["ratio"] for picture in chart["multiple_rooflines"] for line in picture["rooflines"]]
    assert ratios and all(ratio == "NA" or 0 < ratio < 1 for ratio in ratios)
    assert chart["advice"] in BOUNDS
    assert "RoofLine Summary Report:" in (kinds / "said").read_text()


def test_a_mixed_kernel(kinds: Path) -> None:
    """T03, T11: six rows for two blocks, ratios of the task; MemoryDetail's columns and the bytes of each line."""
    folder = of(kinds, "matmul_relu_kernel")
    (info,) = table(folder, "OpBasicInfo")
    assert (info["Op Type"], info["Block Dim"], info["Mix Block Dim"]) == ("mix", "2", "4")
    pipes = table(folder, "PipeUtilization")
    cores = [(str(block), name) for block in (0, 1) for name in ("cube0", "vector0", "vector1")]
    assert [(row["block_id"], row["sub_block_id"]) for row in pipes] == cores
    for row in pipes:
        kind, unit = ("aic", "cube") if row["sub_block_id"] == "cube0" else ("aiv", "vec")
        time, ratio = float(row[f"{kind}_{unit}_time(us)"]), float(row[f"{kind}_{unit}_ratio"])
        task = float(info["Task Duration(us)"])
        assert time == pytest.approx(ratio * task, abs=1e-6 * (1 + task))  # both have six decimals
        for way in ("aic_mte1_active_bw(GB/s)", "aic_mte2_active_bw(GB/s)"):
            assert float(row[way]) > 0 if kind == "aic" else row[way] == "NA"
    (file,) = blocks(folder / "visualize_data.bin")[BlockType.FILE_API]["Files"]
    moved = sum(sum(count for count in line["Process Bytes"] if count > 0) for line in file["Lines"])
    assert moved >= 256 * 256 * 4  # at least the result leaves


def test_one_slow_core(kinds: Path) -> None:
    """T09: it is named; where all cores do the same nobody is said to move more."""
    late = "vector0 of core[3] take more time than other vector cores"
    chart = blocks(of(kinds, "uneven") / "visualize_data.bin")[BlockType.OCCUPANCY_MAP]
    assert late in chart["advice"].splitlines()
    said = (kinds / "said").read_text()
    assert f"  {late}" in said.partition("Occupancy Summary Report:")[2].splitlines()
    even = blocks(of(kinds, "add_kernel") / "visualize_data.bin")[BlockType.OCCUPANCY_MAP]["advice"]
    assert "more data" not in even and "more instructions" not in even


def test_lines_of_the_cache(kinds: Path) -> None:
    """T10: every copy after the first finds its line; the ranges of a cell are those of the copy."""
    found = blocks(of(kinds, "uneven") / "visualize_data.bin")
    records = found[BlockType.CACHELINE_HEAT_MAP]["Cacheline Records"]
    assert len(records) == 4096 // 512
    copies = [row for row in found[BlockType.INSTR_API]["Instructions"] if row["Pipe"] == "MTE2"]
    (address,) = {int(row["Address"], 16) for row in copies if sum(row["Process Bytes"]) > 0}
    for record in records:
        (low, high), = record["Hit"]["Address Range"]  # fmt: skip
        assert int(low, 16) <= address <= int(high, 16)
        hits, misses = record["Hit"]["Value"][0], record["Miss"]["Value"][0]
        assert (misses, (hits + misses) % (3 + 20)) == (1, 0)  # as many requests for each of the 23 copies


@pytest.mark.parametrize(
    ("chip", "kernel", "kind"), [("Ascend310P3", "add_queues", "AiCore"), ("Ascend950PR_9599", "matmul_leaky_relu", "mix")]
)  # fmt: skip
def test_other_chips(msopprof: Run, script: Write, results: Any, chip: str, kernel: str, kind: str) -> None:
    """T04, T05: the columns of 310P and of A5."""
    done = msopprof(f"--soc-version={chip}", sys.executable, script(examples(kernel)))
    assert done.returncode == 0, done.stdout + done.stderr
    folder = results.root
    (info,) = table(folder, "OpBasicInfo")
    assert info["Op Type"] == kind and ("Mix Block Dim" in info) == (kind == "mix")
    assert set(blocks(folder / "visualize_data.bin")) >= {BlockType(number) for number in range(5, 10)}
    assert {path.stem for path in folder.glob("*.csv")} == {"OpBasicInfo", *SEVEN}
    cache, pipes = table(folder, "L2Cache"), table(folder, "PipeUtilization")
    if kind == "AiCore":
        assert len(cache) == 1 and "block_id" not in cache[0] and "aic_l2_cache_hit_rate(%)" in cache[0]
        assert all(head.startswith("aic_") for row in pipes for head in row)
        return
    assert len(cache) == 6 and "aic_read_close_hit" in cache[0] and "aiv_vec_vf_ratio" in table(
        folder, "ArithmeticUtilization"
    )[0]  # fmt: skip
    for row in cache:
        side = "aic" if row["sub_block_id"] == "cube0" else "aiv"
        counts = {way: float(row[f"{side}_read_{way}"]) for way in (
            "close_hit", "close_miss", "close_victim", "far_hit", "far_miss", "far_victim")}  # fmt: skip
        if total := sum(counts.values()):
            rate = 100 * (counts["close_hit"] + counts["far_hit"]) / total  # opprof.md 2.3
            assert float(row[f"{side}_read_hit_rate(%)"]) == pytest.approx(rate, abs=1e-5)


def test_the_simulators_timeline(msopprof: Run, script: Write, results: Any) -> None:
    """T30, T31, T34: counters that hold every byte, spans that end where their slice starts, arrows between the cores
    of a block."""
    done = msopprof(
        "simulator", "--launch-count=2", sys.executable, script(examples("add_queues", "matmul_leaky_relu"))
    )
    assert done.returncode == 0, done.stdout + done.stderr
    vector = events(results.root / "add_kernel" / "0" / "simulator" / "trace.json")
    sums = {"GM_TO_UB": 0.0, "UB_TO_GM": 0.0}
    for event in vector:
        if event["ph"] == "C" and event["name"] in sums:
            sums[event["name"]] += event["args"]["throughput(MB/s)"]  # of a microsecond: bytes
    assert sums == {"GM_TO_UB": pytest.approx(2 * 32768 * 4, rel=0.01), "UB_TO_GM": pytest.approx(32768 * 4, rel=0.01)}
    spans = ("cache_time", "ccu_time")
    starts = {event["group_id"]: event["ts"] for event in vector
              if "group_id" in event and event["ph"] == "X" and event["name"] not in spans}  # fmt: skip
    ends = [(event["group_id"], event["ts"] + event["dur"]) for event in vector if event["name"] == "ccu_time"]
    checked = [(starts[group], end) for group, end in ends if group in starts]
    assert len(checked) > 100 and all(abs(start - end) < 2e-6 for start, end in checked)
    mixed = events(results.root / "matmul_relu_kernel" / "0" / "simulator" / "trace.json")
    arrows: dict[str, list[dict[str, Any]]] = {}
    for event in mixed:
        if event["ph"] in "st" and str(event["id"]).startswith("intra_"):
            arrows.setdefault(event["id"], []).append(event)
    assert len(arrows) >= 16  # the sixteen tiles of 64 x 64 go from a cube core to a vector core
    for first, second in arrows.values():
        assert (first["ph"], second["ph"]) == ("s", "t") and first["ts"] <= second["ts"]
        block, other = (event["pid"].partition(".") for event in (first, second))
        assert block[0] == other[0] and block[2] != other[2]
