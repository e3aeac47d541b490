"""The container: round trips, limits, and a judge that knows nothing of the writer."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuscope.errors import UserError
from npuscope.profiler.writers import bin as container
from npuscope.profiler.writers.bin import Block, BlockType, read_bin, write_bin
from npuscope.profiler.writers.bin_check import trace_complaints, viewer_complaints
from npuscope.profiler.writers.large_file import pieces_of

INFO = Block(BlockType.OP_BASIC_INFO, b'{"name":"k"}')
TRACE = b'{"profilingType":"op","schemaVersion":2,"traceEvents":[{"ph":"X","pid":"core0","tid":"MTE2","ts":1}]}'
PAYLOADS = st.binary(min_size=1, max_size=40)
BLOCKS = st.one_of(
    st.builds(Block, st.sampled_from([kind for kind in BlockType if kind is not BlockType.CODE]), PAYLOADS),
    st.builds(Block, st.just(BlockType.CODE), PAYLOADS, st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
)


@settings(max_examples=50, deadline=None)
@given(blocks=st.lists(BLOCKS, min_size=1, max_size=6))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, blocks: list[Block]) -> None:
    path = tmp_path_factory.mktemp("bin") / "visualize_data.bin"
    assert write_bin(path, blocks) == []
    assert read_bin(path) == blocks
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == [path.name]


def test_bytes_of_the_container(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_bin(path, [Block(BlockType.OP_BASIC_INFO, b"{}x"), Block(BlockType.CODE, b"a = 1", "k.py")])
    data = path.read_bytes()
    assert data[:16] == struct.pack("<QBBBB", 4, 5, 1, 0x5A, 0x5A) + b"{}x\0"
    assert data[16:28] == struct.pack("<QBBBB", 8, 1, 3, 0x5A, 0x5A)  # the path is not counted
    assert data[28 : 28 + 4096].rstrip(b"\0") == b"k.py"
    assert data[28 + 4096 :] == b"a = 1\0\0\0"


def test_a_long_block_comes_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(TRACE)
    path = tmp_path / "x.bin"
    write_bin(path, [INFO, Block(BlockType.TRACE, pieces_of(tmp_path / "trace.json")), INFO])
    assert [block.text for block in read_bin(path)] == [INFO.payload, TRACE, INFO.payload]
    assert viewer_complaints(path) == []


def test_another_version_never_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    old = Block(
        BlockType.INSTR_API, b'{"Cores":[],"Instructions Dtype":{"Instructions":{}},"Instructions":[]}', version=0
    )
    write_bin(path, [old, INFO])
    assert [block.version for block in read_bin(path)] == [0x5A, 0]
    assert viewer_complaints(path) == []
    with pytest.raises(ValueError, match="would not recognise"):
        write_bin(tmp_path / "y.bin", [old])
    assert os.listdir(tmp_path) == ["x.bin"]


def test_limits_are_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "DETAIL_LIMIT", 20)
    monkeypatch.setattr(container, "LARGEST_FILE", 120)
    path = tmp_path / "x.bin"
    large = Block(BlockType.ROOF_LINE, (b"[" * 15, b"]" * 15))
    losses = write_bin(path, [INFO, large, Block(BlockType.OCCUPANCY_MAP, b""), Block(BlockType.TRACE, TRACE)])
    assert [loss.kind for loss in losses] == ["block"] * 3
    assert "ROOF_LINE is left out: it is larger than" in losses[0].text
    assert "OCCUPANCY_MAP is left out: it is empty" in losses[1].text
    assert "TRACE is left out: the file would be larger than" in losses[2].text
    assert read_bin(path) == [INFO]


def test_a_path_that_has_no_room(tmp_path: Path) -> None:
    losses = write_bin(tmp_path / "x.bin", [INFO, Block(BlockType.CODE, b"x", "d/" * 2048)])
    assert "path of" in losses[0].text
    assert read_bin(tmp_path / "x.bin") == [INFO]


def test_nothing_to_write_is_no_file(tmp_path: Path) -> None:
    assert write_bin(tmp_path / "x.bin", []) == []
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_bin(path, [INFO])

    def broken() -> Any:
        yield INFO
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_bin(path, broken())
    assert os.listdir(tmp_path) == ["x.bin"]
    assert read_bin(path) == [INFO]


@pytest.mark.parametrize("cut", [1, 11, 13])
def test_a_file_that_ends_too_early(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.bin"
    write_bin(path, [INFO, INFO])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    with pytest.raises(UserError, match="ends inside"):
        read_bin(path)
    assert any(text.startswith("V2") for text in viewer_complaints(path))


@pytest.mark.parametrize("data", [b"no such file at all", struct.pack("<QBBBB", 4, 99, 0, 0x5A, 0x5A) + b"abcd"])
def test_what_is_no_such_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"no block begins at byte 0|unknown type 0x63 at byte 0"):
        read_bin(path)


def raw(kind: int, payload: bytes, version: int = 0x5A) -> bytes:
    """A block put together without the writer."""
    padding = -len(payload) % 4
    return struct.pack("<QBBBB", len(payload) + padding, kind, padding, version, 0x5A) + payload + bytes(padding)


def table(kinds: dict[str, int], row: dict[str, Any], cores: int = 1) -> bytes:
    document = {"Cores": ["c"] * cores, "Instructions Dtype": {"Instructions": kinds}, "Instructions": [row]}
    return raw(4, json.dumps(document).encode())


BAD = {
    "V1 empty": (raw(5, b""), "V1"),
    "V1 version": (raw(4, b"{}", version=0), "V1"),
    "V2 size": (struct.pack("<QBBBB", 4000, 5, 0, 0x5A, 0x5A) + b"{}  ", "V2"),
    "V2 payload": (raw(5, b"{}  ") + struct.pack("<QBBBB", 2, 5, 2, 0x5A, 0x5A) + b"\0\0", "V2"),
    "V3 wide": (table({"Address": 3, "Cycles": 1}, {"Address": "0x10", "Cycles": [2**31]}), "V3"),
    "V3 point": (table({"Address": 3, "Rate": 4}, {"Address": "0x10", "Rate": [12]}), "V3"),
    "V4": (table({"Address": 3}, {"Address": "here"}), "V4"),
    "V5": (table({"Address": 3}, {"Address": "0x10", "Cycles": [1]}), "V5"),
    "V6": (table({"Address": 3, "Cycles": 1}, {"Address": "0x10", "Cycles": [1]}, cores=2), "V6"),
    "V7 events": (raw(5, b"{}") + raw(2, b'{"other":[]}'), "V7"),
    "V7 ph": (raw(5, b"{}") + raw(2, b'{"traceEvents":[{"ts":1}]}'), "V7"),
    "V8 pid": (raw(5, b"{}") + raw(2, b'{"schemaVersion":2,"traceEvents":[{"ph":"X","pid":1}]}'), "V8"),
    "V8 kind": (raw(5, b"{}") + raw(2, b'{"schemaVersion":2,"traceEvents":[{"ph":"f"}]}'), "V8"),
    "V8 zero": (raw(5, b"{}") + raw(2, b'{"schemaVersion":2,"traceEvents":[{"ph":"C","ts":0}]}'), "V8"),
    "roof": (raw(13, b'{"multiple_rooflines":[{"title":"Mine","rooflines":[]}]}'), "no roofline called Mine"),
    "unit": (raw(6, b'{"subblock_detail":[{"unit":4}]}'), "D19"),
    "count": (raw(8, b'{"core_memory_map":[{"memory_unit":[{"memory_path":0,"request":4294967296}]}]}'), "V3"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_judge_sees(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.bin"
    data, rule = BAD[name]
    path.write_bytes(data)
    path.chmod(0o640)
    assert any(rule in text for text in viewer_complaints(path)), viewer_complaints(path)


def test_the_judge_sees_size_and_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(raw(5, b"{}" + b" " * 300))
    path.chmod(0o646)
    monkeypatch.setattr("npuscope.profiler.writers.bin_check.MEBIBYTE", 1)
    found = viewer_complaints(path)
    assert [text[:3] for text in found] == ["V11", "V9:"]


def test_a_trace_of_its_own() -> None:
    assert trace_complaints(TRACE, alone=True) == []
    assert trace_complaints(b'{"traceEvents":[{"ph":"X"}],"profilingType":"op"}', alone=True)[0].startswith("V10")
