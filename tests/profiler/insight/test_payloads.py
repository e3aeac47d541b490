"""Payloads of hand-made launches: numbers, ranges, limits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from npuscope.npu.chip import load_chip
from npuscope.npu.machine import cube_cores, mixed_cores
from npuscope.profiler.charts.cache_map import CacheMap
from npuscope.profiler.insight import Blocks, Mode
from npuscope.profiler.insight.base_info import base_info
from npuscope.profiler.insight.cacheline import cacheline
from npuscope.profiler.insight.file_api import file_api
from npuscope.profiler.insight.instruction_api import instruction_api
from npuscope.profiler.insight.plain import address_ranges, count, decimals, figure, wholes, written
from npuscope.profiler.profile import Profile
from npuscope.profiler.writers.bin import BlockType, read_bin, write_bin
from npuscope.profiler.writers.bin_check import viewer_complaints
from npuscope.trace.schema import Launch, Site, SourceFrame
from npuscope.trace.timeline import CORE_COLUMNS, SLICE_COLUMNS, UNKNOWN, Lane, Source, Step, Timeline


def made(steps: int = 4) -> Profile:
    """Each instruction runs once on the first vector core, the n-th for 10 n cycles."""
    code = [
        Step(0x1000 + 4 * n, f"I{n}", Lane.VECTOR, Site("x", (SourceFrame("k.py", 1 + n % 2),))) for n in range(steps)
    ]
    rows = [
        {"core": 1, "lane": Lane.VECTOR, "step": n, "start": 0, "end": 10 * n, "bytes": UNKNOWN} for n in range(steps)
    ]
    slices = np.array([[row.get(name, UNKNOWN) for name in SLICE_COLUMNS] for row in rows], np.int64).T.copy()
    cores = np.zeros((len(CORE_COLUMNS), 6), np.int64)
    cores[CORE_COLUMNS.index("end")] = [1850, 3700, 925, 0, 185, 18]
    launch = Launch(0, "k", "Ascend910B1", mixed_cores(2), (2,), {}, {})
    timeline = Timeline(
        launch,
        "Ascend910B1",
        1850.0,
        Source.MODEL,
        3700,
        0,
        code,
        slices,
        [f"n={n}" for n in range(steps)],
        cores=cores,
    )
    return Profile(timeline, load_chip("910B1"))


def test_ranges_go_over_neighbours() -> None:
    everyone = [0x10, 0x14, 0x1C, 0x20, 0x30]
    assert address_ranges([0x14, 0x10, 0x1C], everyone) == [["0x10", "0x1c"]]
    assert address_ranges([0x10, 0x1C, 0x20, 0x10], everyone) == [["0x10", "0x10"], ["0x1c", "0x20"]]
    assert address_ranges([], everyone) == []


def test_numbers_are_what_the_viewer_reads() -> None:
    assert wholes(np.array([2**40, -1, 7])) == [2**31 - 1, -1, 7]
    assert json.dumps(decimals(np.array([12, np.nan, 1 / 3]))) == "[12.0, -1.0, 0.333333]"
    assert (figure(None), figure(3), count(None), count(2.0**40)) == ("NA", 3.0, "NA", 2**31 - 1)
    assert (written(None), written(3), written(1.5)) == ("NA", "3", "1.500000")


def test_lines_take_turns() -> None:
    document = file_api(made(), merged=True)
    assert document is not None
    (file,) = document["Files"]
    first, other = file["Lines"]
    assert first["Address Range"] == [["0x1000", "0x1000"], ["0x1008", "0x1008"]]
    assert (first["Line"], first["Cycles"], other["Cycles"]) == (1, [20], [40])
    assert "Process Bytes" not in document["Files Dtype"]["Lines"]  # nobody knows them
    assert document["Provenance"] == "modelled"


def test_a_long_instruction_table_keeps_the_slowest() -> None:
    whole, none = instruction_api(made(8), merged=False)
    assert none == []
    assert len(json.loads(whole)["Instructions"]) == 8
    limit = len(whole) + 4096 - 300
    part, (loss,) = instruction_api(made(8), merged=False, limit=limit)
    kept = [row["Source"] for row in json.loads(part)["Instructions"]]
    assert 0 < len(kept) < 8
    assert kept == [f"I{n} n={n}" for n in range(8 - len(kept), 8)]
    assert (loss.count, loss.total) == (8 - len(kept), 8)
    assert f"holds {len(kept)} of 8 instructions" in loss.text


def chart(lines: int) -> CacheMap:
    ones = np.ones(lines, np.int64)
    touched = np.stack([np.arange(lines), np.arange(lines) % 4])
    return CacheMap(
        512, np.arange(lines) * 512, 0 * ones, np.arange(lines), touched, np.arange(lines + 1), 0 * ones, ones
    )


def test_a_long_cache_map_keeps_the_worst() -> None:
    steps = made().timeline.steps
    whole, none = cacheline(chart(50), steps)
    records = json.loads(whole)["Cacheline Records"]
    assert none == [] and len(records) == 50
    assert records[3] == {
        "Cacheline Id": 3, "Address": "0x600", "Hit": {"Value": [0, 0.0], "Address Range": []},
        "Miss": {"Value": [3, 100.0], "Address Range": [["0x100c", "0x100c"]]},
    }  # fmt: skip
    part, (loss,) = cacheline(chart(50), steps, limit=len(whole) // 2 + 4096)
    kept = [record["Cacheline Id"] for record in json.loads(part)["Cacheline Records"]]
    assert kept == list(range(50 - len(kept), 50))
    assert len(part) <= len(whole) // 2 + 4096
    assert loss.count == 50 - len(kept)


def test_ranges_of_a_line_that_several_instructions_touched() -> None:
    steps = made(5).timeline.steps
    touched = np.array([[0, 0, 0, 1, 1], [0, 1, 3, 2, 4]])
    some = CacheMap(512, np.array([0, 512]), np.array([2, 3]), np.array([1, 0]), touched, np.array([0, 3, 5]),
                    np.array([1, 1, 0, 2, 1]), np.array([0, 0, 1, 0, 0]))  # fmt: skip
    first, other = json.loads(cacheline(some, steps)[0])["Cacheline Records"]
    assert first["Hit"] == {"Value": [2, 66.666667], "Address Range": [["0x1000", "0x1004"]]}
    assert first["Miss"] == {"Value": [1, 33.333333], "Address Range": [["0x100c", "0x100c"]]}
    assert other["Hit"]["Address Range"] == [["0x1008", "0x1008"], ["0x1010", "0x1010"]]
    assert other["Miss"]["Address Range"] == []


def test_times_of_a_mixed_kernels_blocks() -> None:
    document = base_info(made(), ["do this"], device=1, pid=77)
    assert (document["op_type"], document["block_dim"], document["mix_block_dim"]) == ("mix", 2, 4)
    assert document["duration"] == pytest.approx(2.0)
    assert (document["device_id"], document["pid"], document["advice"]) == (1, 77, ["do this"])
    detail = document["mix_block_detail"]
    assert detail["head_name"] == ["Block ID", "Cube0 Duration(us)", "Vector0 Duration(us)", "Vector1 Duration(us)"]
    assert detail["size"] == [2, 4]
    assert detail["row"][0]["value"] == ["0", "1.000000", "2.000000", "0.500000"]
    assert "block_detail" not in document


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("chip", "kind"), [("910B1", "mix"), ("950PR", "mix"), ("310P3", "coupled")])
def test_a_vendors_log_that_tells_little(tmp_path: Path, chip: str, kind: str, mode: Mode) -> None:
    """Neither transfers nor cache nor cores are known: what is not known is ``NA``, and the viewer takes the file."""
    cores = mixed_cores(1) if kind == "mix" else cube_cores(2)
    code = [Step(0x40, "MOV", Lane.MTE2, Site("x")), Step(0x80, "MMAD", Lane.CUBE, Site("x"))]
    rows = [
        {"core": 0, "lane": step.lane, "step": n, "row": n, "start": 5 * n, "end": 9 * n + 1}
        for n, step in enumerate(code)
    ]
    slices = np.array([[row.get(name, UNKNOWN) for name in SLICE_COLUMNS] for row in rows], np.int64).T.copy()
    name = load_chip(chip).name
    table = np.full((len(CORE_COLUMNS), len(cores)), UNKNOWN, np.int64)
    table[:2] = [[0] * len(cores), [10] * len(cores)]
    launch = Launch(0, "k", name, cores, (1,), {}, {})
    timeline = Timeline(launch, name, 1000.0, Source.SIMULATOR, 10, 0, code, slices, ["a", "b"], cores=table)
    profile = Profile(timeline, load_chip(chip))
    made = Blocks(profile, frozenset(BlockType), mode)
    assert write_bin(tmp_path / "x.bin", made) == []
    assert viewer_complaints(tmp_path / "x.bin") == []
    blocks = {block.type: json.loads(block.text) for block in read_bin(tmp_path / "x.bin")}
    core = blocks[BlockType.STORAGE_ACCESS_HEAT_MAP]["core_memory_map"][0]
    requests = {unit["memory_path"]: unit["request"] for unit in core["memory_unit"]}
    assert {requests[path] for path in (0, 1, 6, 7, 8)} == {"NA"}  # GM, and what the cube reads and writes
    assert core["L2cache"]["hit_ratio"] == "NA"
    assert BlockType.CACHELINE_HEAT_MAP not in blocks
    assert BlockType.FILE_API not in blocks  # no line is known
    assert blocks[BlockType.INSTR_API]["Provenance"] == "vendor simulator"
    assert [row["Source"] for row in blocks[BlockType.INSTR_API]["Instructions"]] == ["MOV a", "MMAD b"]
    assert blocks[BlockType.OCCUPANCY_MAP]["op_detail"][0]["core_detail"][0]["throughput"] == "NA"
