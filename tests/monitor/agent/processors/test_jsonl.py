"""JSON lines (monitor formats, 5), read with the json module and with jq."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_disk import longest_file, small_disk, unprivileged
from processor_records import Maker, many_calls, many_kernels

from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.agent.processors.jsonl import FULL, HALF, UNWRITTEN, JsonLines
from npuscope.monitor.agent.processors.wanted import OLD

WAIT_SECONDS = 60.0
NAME = re.compile(r"msmonitor_42_(\d{17})_3\.jsonl")


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MSMONITOR_JSONL"):
            monkeypatch.delenv(name)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def close(lines: JsonLines, maker: Maker, groups: str = "") -> None:
    maker.run.ended, maker.run.groups = 2000, groups
    lines.close()


def records(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    assert text.endswith("\n")
    found = [json.loads(line) for line in text.splitlines()]
    for line, record in zip(text.splitlines(), found, strict=True):
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return found


def written(folder: Path, maker: Maker, *batches: Any, groups: str = "") -> list[dict[str, Any]]:
    lines = JsonLines(folder, maker.run)
    for batch in batches:
        lines.add(batch)
    close(lines, maker, groups)
    (path,) = folder.iterdir()
    assert NAME.fullmatch(path.name)
    header, *found = records(path)
    assert header["kind"] == "header"
    return found


CALL = {"name": "aclnnMatmul", "startNs": 10, "endNs": 20, "processId": 42, "threadId": 43, "correlationId": 7}
MARK = {"kind": "Marker", "name": "forward", "domain": "train", "id": 9}


def test_one_record_of_every_kind(tmp_path: Path, maker: Maker) -> None:
    groups = '{"g":{"global_ranks":[0,1]}}'
    found = written(tmp_path, maker, *maker.one_of_each(), groups=groups)
    assert found == [
        CALL | {"kind": "API"}, CALL | {"kind": "AclAPI"}, CALL | {"kind": "NodeAPI"}, CALL | {"kind": "RuntimeAPI"},
        {
            "kind": "Kernel", "name": "MatMul", "startNs": 10, "endNs": 20, "deviceId": 0, "streamId": 2,
            "type": "KERNEL_AICORE", "correlationId": 7,
        },
        {
            "kind": "Communication", "name": "allreduce", "startNs": 30, "endNs": 40, "deviceId": 0, "streamId": 3,
            "dataType": "FP32", "count": 1 << 20, "commName": "hccl_world_group", "algType": "MESH", "correlationId": 8,
        },
        MARK | {"sourceKind": "Host", "startNs": 100, "endNs": 150, "processId": 42, "threadId": 43},
        MARK | {"sourceKind": "Device", "startNs": 110, "endNs": 170, "deviceId": 5, "streamId": 6},
        {"kind": "parallel_group_info", "value": groups},
        {"kind": "rank_device_map", "rank": 3, "device": [0, 5]},
    ]  # fmt: skip


def test_the_example_of_the_format(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run)
    lines.add(maker.kernel(device=0))
    close(lines, maker)
    (path,) = tmp_path.iterdir()
    assert path.read_text().splitlines()[1] == (
        '{"correlationId":7,"deviceId":0,"endNs":20,"kind":"Kernel","name":"MatMul","startNs":10,"streamId":2,'
        '"type":"KERNEL_AICORE"}'
    )


def test_the_header(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run)
    lines.add(maker.kernel())
    close(lines, maker)
    (path,) = tmp_path.iterdir()
    header = records(path)[0]
    assert header.keys() == {"kind", "schema", "version", "host", "hostUid", "pid", "rank", "startNs"}
    assert (header["pid"], header["rank"], header["startNs"], header["schema"]) == (42, 3, 0, 1)


def test_values_that_differ_from_line_to_line(tmp_path: Path, maker: Maker) -> None:
    """A sheet writes what is the same in all lines differently from what is not."""
    batch = maker.batch(
        Kind.COMMUNICATION, data_type=[4, 11, 12345], count=[2**64 - 1, 0, 1], device=[0, 1, -1], stream=[3, 3, 4],
        start=[30, 50, 70], end=[40, 60, 80], algorithm=["MESH", "", "MESH"], name=['a"b\\c\n', "矩阵", "a\ud800"],
        comm=["x", "y", "x"], correlation=[2**64 - 1, 9, 10],
    )  # fmt: skip
    found = written(tmp_path, maker, batch)[:-1]
    assert [one["name"] for one in found] == ['a"b\\c\n', "矩阵", "a?"]
    assert [one["dataType"] for one in found] == ["FP32", "BFP16", "INVALID_TYPE"]
    assert [one["count"] for one in found] == [2**64 - 1, 0, 1]
    assert [one["correlationId"] for one in found] == [2**64 - 1, 9, 10]
    assert [(one["deviceId"], one["streamId"], one["startNs"]) for one in found] == [
        (0, 3, 30),
        (1, 3, 50),
        (-1, 4, 70),
    ]
    assert [(one["algType"], one["commName"]) for one in found] == [("MESH", "x"), ("", "y"), ("MESH", "x")]


def test_names_of_the_host_on_the_device(tmp_path: Path, maker: Maker) -> None:
    host, device = Side.HOST, Side.DEVICE
    instant, start, end = Flag.INSTANT_WITH_DEVICE, Flag.START_WITH_DEVICE, Flag.END_WITH_DEVICE
    lines = JsonLines(tmp_path, maker.run)
    lines.add(
        maker.marks((instant, host, 1, 1, "mark", "d"), (start, host, 2, 2, "range", "d"), (end, host, 3, 2, "", ""))
    )
    lines.report(0)
    lines.add(maker.marks((Flag.INSTANT, host, 4, 4, "host alone", "d"), (instant, device, 5, 1, "", "")))
    lines.report(0)
    lines.add(
        maker.marks((start, device, 6, 2, "", ""), (end, device, 7, 2, "", ""), (instant, device, 8, 77, "own", "o"))
    )
    close(lines, maker)
    (path,) = tmp_path.iterdir()
    found = [one for one in records(path) if one["kind"] == "Marker"]
    shown = [(one["sourceKind"], one["name"], one["domain"], one["startNs"], one["endNs"]) for one in found]
    assert sorted(shown, key=lambda one: one[3]) == [
        ("Host", "mark", "d", 1, 1), ("Host", "range", "d", 2, 3), ("Host", "host alone", "d", 4, 4),
        ("Device", "mark", "d", 5, 5), ("Device", "range", "d", 6, 7), ("Device", "own", "o", 8, 8),
    ]  # fmt: skip


def stamps(folder: Path) -> list[str]:
    found = [NAME.fullmatch(path.name) for path in sorted(folder.iterdir())]
    assert all(found)
    return [one[1] for one in found if one]


def lines_of(folder: Path) -> list[int]:
    return [len(path.read_text().splitlines()) for path in sorted(folder.iterdir())]


def test_files_rotate_and_only_the_newest_are_kept(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run, rotate_lines="100", rotate_files="2")
    lines.add(many_calls(maker, 250))
    close(lines, maker)
    assert lines_of(tmp_path) == [100, 50]
    kept = [one["correlationId"] for path in sorted(tmp_path.iterdir()) for one in records(path)]
    assert kept == list(range(100, 250))


def test_without_a_limit_all_files_are_kept(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run, rotate_lines=100)
    for _ in range(5):
        lines.add(many_calls(maker, 170))
        lines.report(0)
    close(lines, maker)
    assert lines_of(tmp_path) == [101, *[100] * 7, 50], "the header is not counted"
    assert len(set(stamps(tmp_path))) == 9
    assert sorted(lines.files) == sorted(tmp_path.iterdir()) == lines.files


def test_the_closing_lines_are_lines_too(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run, rotate_lines=100)
    lines.add(many_kernels(maker, 99))
    close(lines, maker, groups="{}")
    assert lines_of(tmp_path) == [101, 1]
    assert records(sorted(tmp_path.iterdir())[1]) == [{"kind": "rank_device_map", "rank": 3, "device": [0]}]


def test_files_of_others_are_left_alone(tmp_path: Path, maker: Maker) -> None:
    (tmp_path / "msmonitor_42_20200101000000000_3.jsonl").write_text("{}\n")
    (tmp_path / "notes.jsonl").write_text("{}\n")
    lines = JsonLines(tmp_path, maker.run, "100", "2")
    lines.add(many_calls(maker, 1000))
    close(lines, maker)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_file_may_be_removed_while_it_is_read_and_written(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run, "100", "2")
    lines.add(many_calls(maker, 50))
    lines.report(0)
    (path,) = tmp_path.iterdir()
    with path.open() as shipper:
        lines.add(many_calls(maker, 250))
        lines.report(0)
        assert not path.exists()
        assert len(shipper.read().splitlines()) == 101
    newest = max(tmp_path.iterdir())
    newest.unlink()
    lines.add(many_calls(maker, 7))
    close(lines, maker)
    assert lines_of(tmp_path)[-1] == 7, "what somebody removed holds nothing for anybody: a new one is begun"


def test_records_are_written_soon_without_a_report(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run)
    lines.add(many_calls(maker, 256))
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "IPCMonitor")
    assert thread.daemon
    lines.add(many_calls(maker, 1))
    until(lambda: lines.counts.get("written") == 257)
    close(lines, maker)
    assert not thread.is_alive()


def test_few_records_are_written_after_a_while(tmp_path: Path, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSMONITOR_JSONL_MAX_DUMP_INTERVAL", "1000")
    lines = JsonLines(tmp_path, maker.run)
    begin = time.monotonic()
    lines.add(many_calls(maker, 3))
    until(lambda: lines.counts.get("written") == 3)
    assert time.monotonic() - begin >= 0.99
    close(lines, maker)


def test_what_does_not_fit_is_counted_and_said_once(
    tmp_path: Path, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSMONITOR_JSONL_BUFFER_CAPACITY", "8192")
    lines = JsonLines(tmp_path / "missing", maker.run)
    for _ in range(10):
        lines.add(many_calls(maker, 1000))
        with pytest.raises(OSError, match="No such file"):
            lines.report(0)
    assert lines.counts == {FULL: 10_000 - 8192}
    (tmp_path / "missing").mkdir()
    lines.report(0)
    lines.add(many_calls(maker, 5))
    close(lines, maker)
    assert lines.counts == {FULL: 1808, "written": 8197}
    assert maker.warnings == ["1808 records are missing in the JSON lines: the disk did not take them in time"]
    (path,) = (tmp_path / "missing").iterdir()
    assert [one["correlationId"] for one in records(path)[1:]] == [*[*range(1000)] * 8, *range(192), *range(5)]


def test_a_full_disk(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run)
    lines.add(many_calls(maker, 10))
    lines.report(0)
    (path,) = tmp_path.iterdir()
    size = path.stat().st_size
    lines.add(many_calls(maker, 100))
    with longest_file(size + 1000), pytest.raises(OSError, match="too large"):
        lines.report(0)
    assert path.stat().st_size == size, "no line is half there"
    lines.report(0)
    assert [one["correlationId"] for one in records(path)[1:]] == [*range(10), *range(100)]
    with longest_file(path.stat().st_size + 1000), pytest.raises(OSError, match="too large"):
        lines.add(many_calls(maker, 300))
        close(lines, maker)
    assert lines.counts == {"written": 110, UNWRITTEN: 300}
    assert len(records(path)) == 111


def test_a_file_system_without_room(tmp_path: Path, maker: Maker) -> None:
    with small_disk(tmp_path / "small", "64k") as folder:
        lines = JsonLines(folder, maker.run, "100", "2")
        (folder / "ballast").write_bytes(bytes(64 << 10))
        lines.add(many_calls(maker, 200))
        with pytest.raises(OSError, match="No space"):
            lines.report(0)
        assert [path.name for path in folder.iterdir()] == ["ballast"]
        (folder / "ballast").unlink()
        lines.report(0)
        close(lines, maker)
        assert lines_of(folder) == [101, 100]


def test_a_folder_that_may_not_be_written(folder: Path, maker: Maker) -> None:
    folder.chmod(0o555)
    lines = JsonLines(folder, maker.run)
    with unprivileged():
        lines.add(many_calls(maker, 3))
        with pytest.raises(PermissionError):
            lines.report(0)
        with pytest.raises(PermissionError):
            close(lines, maker)
    assert lines.counts == {UNWRITTEN: 3}
    folder.chmod(0o755)


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o640), (0o077, 0o600)])
def test_who_may_read_them(tmp_path: Path, maker: Maker, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        written(tmp_path, maker, maker.kernel())
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_what_does_not_belong(tmp_path: Path) -> None:
    maker = Maker(started=15)
    lines = JsonLines(tmp_path, maker.run)
    lines.add(maker.kernel(1, 14))
    lines.add(maker.batch(Kind.HCCL, start=[20], end=[30]))
    lines.add(maker.marks((Flag.START, Side.HOST, 20, 2, "open", ""), (Flag.END, Side.HOST, 30, 3, "", "")))
    close(lines, maker)
    assert lines.counts == {OLD: 1, HALF: 1, "Hccl has no place in JSON lines": 1}
    assert list(tmp_path.iterdir()) == []


def test_every_thread_may_deliver(tmp_path: Path, maker: Maker) -> None:
    lines = JsonLines(tmp_path, maker.run, 500_000)
    batch = many_calls(maker, 300)
    threads = [threading.Thread(target=lambda: [lines.add(batch) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close(lines, maker)
    (path,) = tmp_path.iterdir()
    found = [one["correlationId"] for one in records(path)[1:]]
    assert np.bincount(found).tolist() == [40] * 300


@pytest.fixture
def jq() -> Iterator[Callable[..., str]]:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")

    def ask(program: str, *paths: Path) -> str:
        return subprocess.run(
            ["jq", "-s", "-c", program, *paths], capture_output=True, text=True, check=True
        ).stdout.strip()

    yield ask


def test_jq_reads_them(tmp_path: Path, maker: Maker, jq: Callable[..., str]) -> None:
    lines = JsonLines(tmp_path, maker.run, "1000")
    kernels = many_kernels(maker, 5000, begin=10**9)  # jq counts in floating point
    lines.add(kernels)
    lines.add(many_calls(maker, 500))
    close(lines, maker)
    paths = sorted(tmp_path.iterdir())
    took = int((kernels["end"] - kernels["start"]).sum())
    assert jq('[.[] | select(.kind == "Kernel") | .endNs - .startNs] | [length, add]', *paths) == f"[5000,{took}]"
    assert jq("group_by(.kind) | map([.[0].kind, length])", *paths) == (
        '[["Kernel",5000],["RuntimeAPI",500],["header",1],["rank_device_map",1]]'
    )
