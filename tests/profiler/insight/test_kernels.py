"""Real kernels through charts and blocks (opprof.md 7: T07 to T11, T54, T57)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from npuscope.profiler.insight import Blocks, Mode, wanted_types
from npuscope.profiler.profile import Profile
from npuscope.profiler.writers.bin import Block, BlockType, read_bin, write_bin
from npuscope.profiler.writers.bin_check import viewer_complaints

Profiles = dict[str, Profile]
TRACE = b'{"schemaVersion":2,"traceEvents":[{"ph":"X","pid":"core0","tid":"MTE2","ts":1,"dur":1,"name":"a"}]}'
ADVICE = {
    "compute bound", "memory bound", "latency bound:pipeline caused", "latency bound:memory caused",
    "latency bound:compute caused",
}  # fmt: skip


def written(profile: Profile, path: Path, mode: Mode = Mode.OP, **options: Any) -> dict[BlockType, Any]:
    """The blocks of a file of everything, read back; each JSON parsed."""
    made = Blocks(profile, frozenset(BlockType), mode, trace=TRACE, **options)
    sources = Blocks(profile, frozenset(BlockType), mode, trace=TRACE, **options)
    assert write_bin(path, made) == []
    found = read_bin(path)
    assert [(block.type, block.text, block.path) for block in found] == [
        (block.type, block.text, block.path) for block in sources
    ]
    assert viewer_complaints(path) == []
    texts = {block.type: block.text for block in found}
    return {kind: text if kind is BlockType.CODE else json.loads(text) for kind, text in texts.items()}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["add_kernel", "matmul_kernel", "matmul_relu_kernel"])
def test_every_rule_of_the_viewer_holds(examples: Profiles, tmp_path: Path, name: str, mode: Mode) -> None:
    blocks = written(examples[name], tmp_path / "visualize_data.bin", mode)
    assert set(blocks) == set(BlockType) - {BlockType.TOP_STALL_REASON}
    assert name.encode() in blocks[BlockType.CODE]
    assert blocks[BlockType.OP_BASIC_INFO]["op_type"] == {"add_kernel": "vector", "matmul_kernel": "cube"}.get(
        name, "mix"
    )


def test_cores_and_cycles_of_lines(examples: Profiles, tmp_path: Path) -> None:
    profile = examples["add_kernel"]
    apart = written(profile, tmp_path / "a.bin", Mode.SIMULATOR)
    merged = written(profile, tmp_path / "b.bin", Mode.OP)
    names = [f"core{core}.veccore0" for core in range(8)]
    assert apart[BlockType.FILE_API]["Cores"] == apart[BlockType.INSTR_API]["Cores"] == names
    assert merged[BlockType.INSTR_API]["Cores"] == ["ALL"]
    add = next(row for row in apart[BlockType.INSTR_API]["Instructions"] if row["Source"].startswith("VADD"))
    assert add["Instructions Executed"] == [4] * 8  # four tiles on each core
    assert add["Pipe"] == "VECTOR"
    # 1024 floats of 255 * 256 bytes
    assert add["Vector Utilization Percentage"] == pytest.approx([100 * 4096 / 65280] * 8, abs=1e-6)
    whole = next(row for row in merged[BlockType.INSTR_API]["Instructions"] if row["Source"].startswith("VADD"))
    assert whole["Cycles"] == [sum(add["Cycles"])]
    (file,) = apart[BlockType.FILE_API]["Files"]
    text = apart[BlockType.CODE].decode().splitlines()
    line = next(line for line in file["Lines"] if "asc.add(" in text[line["Line"] - 1])
    low, high = (int(end, 16) for end in line["Address Range"][0])
    assert low <= int(add["Address"], 16) <= high
    moved = sum(sum(line["Process Bytes"]) for line in file["Lines"])
    assert moved == 3 * 4 * 8 * 4 * 1024  # x, y and z


def test_rooflines_of_a_matmul(examples: Profiles, tmp_path: Path) -> None:
    """T08."""
    chart = written(examples["matmul_kernel"], tmp_path / "a.bin")[BlockType.ROOF_LINE]
    titles = [picture["title"] for picture in chart["multiple_rooflines"]]
    assert titles == ["GM/L2", "Memory Unit(Cube)", "Pipeline(Cube)", "Memory Transfer(Cube)"]
    ratios = [line["ratio"] for picture in chart["multiple_rooflines"] for line in picture["rooflines"]]
    assert ratios
    assert all(ratio == "NA" or 0 < ratio < 1 for ratio in ratios)
    assert chart["advice"] in ADVICE
    line = chart["multiple_rooflines"][0]["rooflines"][0]
    assert line["point"][1] == pytest.approx(
        2 * 64 * 96 * 48 / examples["matmul_kernel"].timeline.microseconds / 1e6, rel=1e-3
    )


def test_a_slow_core_is_named(own: Profiles, examples: Profiles, tmp_path: Path) -> None:
    """T09."""
    block = written(own["uneven"], tmp_path / "a.bin")[BlockType.OCCUPANCY_MAP]
    assert "vector0 of core[3] take more time than other vector cores" in block["advice"].splitlines()
    assert "vector0 of core[3] write/read more data than other vector cores" in block["advice"].splitlines()
    assert [core["core_id"] for core in block["op_detail"]] == [0, 1, 2, 3]
    even = written(examples["add_kernel"], tmp_path / "b.bin")[BlockType.OCCUPANCY_MAP]
    assert "data" not in even["advice"]  # all cores move the same


def test_a_tile_that_is_loaded_again_is_found_in_the_cache(own: Profiles, tmp_path: Path) -> None:
    """T10."""
    blocks = written(own["twice"], tmp_path / "a.bin")
    text = blocks[BlockType.CODE].decode().splitlines()
    at = {word: number for number, line in enumerate(text, 1) for word in re.findall(r"# (first|again)$", line)}
    lines = {line["Line"]: line for line in blocks[BlockType.FILE_API]["Files"][0]["Lines"]}
    assert lines[at["first"]]["L2Cache Hit Rate"] == [0.0]
    assert lines[at["again"]]["L2Cache Hit Rate"] == [100.0]
    records = [
        record for record in blocks[BlockType.CACHELINE_HEAT_MAP]["Cacheline Records"] if record["Hit"]["Value"][0]
    ]
    assert len(records) == 1024 * 4 // 512
    assert {tuple(map(tuple, record["Hit"]["Address Range"])) for record in records} == {
        tuple(map(tuple, lines[at["again"]]["Address Range"]))
    }
    assert {tuple(map(tuple, record["Miss"]["Address Range"])) for record in records} == {
        tuple(map(tuple, lines[at["first"]]["Address Range"]))
    }
    assert {tuple(record["Hit"]["Value"]) for record in records} == {(1, 50.0)}


def test_memory_detail_tells_what_filled_l0(examples: Profiles, tmp_path: Path) -> None:
    """T11."""

    def ways(**options: Any) -> dict[int, dict[str, Any]]:
        chart = written(examples["matmul_kernel"], tmp_path / "a.bin", **options)[BlockType.STORAGE_ACCESS_HEAT_MAP]
        return {unit["memory_path"]: unit for unit in chart["core_memory_map"][0]["memory_unit"]}

    assert 37 not in ways()
    detailed = ways(detail=True)
    assert detailed[35]["request"] == 0
    assert detailed[37]["request"] == 64 * 96 * 2 // 256
    assert detailed[38]["request"] == 96 * 48 * 2 // 128


def test_bank_conflicts_are_only_where_they_should_be(own: Profiles, tmp_path: Path) -> None:
    """T57."""
    blocks = written(own["banks"], tmp_path / "a.bin")
    rows = [row for row in blocks[BlockType.INSTR_API]["Instructions"] if row["Source"].startswith("VADD")]
    reads = [row["UB Read Conflict"][0] > 0 for row in rows]
    writes = [row["UB Write Conflict"][0] > 0 for row in rows]
    assert (reads, writes) == ([False, True, False], [False, False, True])
    copies = [row for row in blocks[BlockType.INSTR_API]["Instructions"] if row["Pipe"] == "MTE2"]
    assert {row["UB Read Conflict"][0] for row in copies} == {-1}


def test_groups_that_were_not_asked_for_are_not_available(examples: Profiles, tmp_path: Path) -> None:
    """T07."""
    blocks = written(examples["add_kernel"], tmp_path / "a.bin", tables=("MemoryUB", "L2Cache"))
    core = blocks[BlockType.STORAGE_ACCESS_HEAT_MAP]["core_memory_map"][0]
    known = {unit["memory_path"] for unit in core["memory_unit"] if unit["request"] != "NA"}
    assert known == {0, 1, 14, 15}
    assert core["L2cache"]["total_request"] != "NA"
    assert core["Vector"]["cycle"] == "NA"
    assert blocks[BlockType.COMPUTE_LOAD_FIGURE]["subblock_detail"] == []
    pipes = next(
        table for table in blocks[BlockType.STORAGE_ACCESS_TABLE]["table_per_block"][0]["table_detail"]
        if table["table_name"] == "Pipe Vector Core0"
    )  # fmt: skip
    assert {cell for row in pipes["row"] for cell in row["value"]} == {"NA"}


class Asked:
    """A selection."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __getattr__(self, name: str) -> bool:
        return name in self.names


def test_what_a_selection_stands_for() -> None:
    b = BlockType
    assert wanted_types(Asked()) == {b.TRACE, b.OP_BASIC_INFO}  # T06
    default = {b.TRACE, *(b(number) for number in range(5, 10))}  # T01
    assert wanted_types(Asked("counters")) == default
    assert wanted_types(Asked("counters", "roofline", "occupancy")) == default | {b.ROOF_LINE, b.OCCUPANCY_MAP}
    source = {b.CODE, b.FILE_API, b.INSTR_API, b.CACHELINE_HEAT_MAP}
    assert wanted_types(Asked("source", "stalls")) == {b.TRACE, b.OP_BASIC_INFO, b.TOP_STALL_REASON, *source}
    assert wanted_types(Asked("simulator")) == {b.CODE, b.TRACE, b.FILE_API, b.INSTR_API}


def test_only_what_is_wanted_is_built(examples: Profiles) -> None:
    made = list(Blocks(examples["add_kernel"], {BlockType.OP_BASIC_INFO}))
    assert [block.type for block in made] == [BlockType.OP_BASIC_INFO]


def test_the_source_is_not_there(examples: Profiles) -> None:
    made = Blocks(examples["add_kernel"], {BlockType.CODE}, read=lambda file: None)
    assert list(made) == []
    assert "add_queues.py is not shown" in made.losses[0].text


def test_reasons_to_wait(examples: Profiles, tmp_path: Path) -> None:
    stalls = {3: {"Active": 10, "Nop_Cycles": 5}, 5: {"Scoreboard_Not_Ready": 15, "Active": 20}}
    blocks = written(examples["add_kernel"], tmp_path / "a.bin", stalls=stalls)
    assert list(blocks[BlockType.TOP_STALL_REASON]["top_stall_reason_table"].items()) == [
        ("Scoreboard_Not_Ready", 15), ("Nop_Cycles", 5),
    ]  # fmt: skip
    steps = examples["add_kernel"].timeline.steps
    rows = {row["Address"]: row for row in blocks[BlockType.INSTR_API]["Instructions"]}
    row = rows[hex(steps[5].address)]
    assert row["Stall Sampling(Not Issue)"] == {"Percent": 75.0, "Details": {"Scoreboard_Not_Ready": 15}}
    assert row["Stall Sampling(All Samples)"]["Percent"] == 70.0
    shares = [row["Stall Sampling(All Samples)"]["Percent"] for row in rows.values()]
    assert sum(shares) == pytest.approx(100)


def test_blocks_are_plain(examples: Profiles) -> None:
    made: list[Block] = list(Blocks(examples["matmul_kernel"], frozenset(BlockType)))
    assert [block.type for block in made] == sorted(block.type for block in made)
