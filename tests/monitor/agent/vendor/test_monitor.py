"""`Monitor`: collecting from a program's own code, and the workbook."""

from __future__ import annotations

import os
import stat
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from npuscope import mstx
from npuscope.monitor.activity.batch import batch
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent import equipment, occupancy
from npuscope.monitor.agent.sources.mstx import MstxSource
from npuscope.monitor.agent.sources.source import Deliver, Source, Unavailable
from npuscope.monitor.agent.vendor import collected, workbook
from npuscope.monitor.agent.vendor.kinds import ActivityKind
from npuscope.monitor.agent.vendor.monitor import Monitor
from npuscope.monitor.agent.vendor.records import API, Communication, Kernel, Marker, records_of

SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class Device:
    """Stands in for a device: gives two kernels and a collective at its stop."""

    name = "device"
    kinds = frozenset({Kind.KERNEL, Kind.COMMUNICATION})

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        self.wanted, self.strings, self.deliver = kinds, strings, deliver

    def change(self, kinds: frozenset[Kind]) -> None:
        raise AssertionError("nobody changes kinds here")

    def flush(self) -> None:
        """Nothing yet."""

    def stop(self) -> None:
        number = self.strings.number
        if Kind.KERNEL in self.wanted:
            self.deliver(batch(Kind.KERNEL, {
                "start": [1_700_000_000_000_000_500, 30], "end": [1_700_000_000_000_001_750, 40],
                "device": [0, 1], "stream": [2, 3], "correlation": [7, 8], "type": [number("KERNEL_AIVEC")] * 2,
                "name": [number("Add"), number("=Mul")],
            }))  # fmt: skip
        if Kind.COMMUNICATION in self.wanted:
            self.deliver(batch(Kind.COMMUNICATION, {
                "data_type": [4], "count": [1024], "device": [0], "stream": [5], "start": [1000], "end": [3500],
                "algorithm": [number("RING")], "name": [number("hcom_allReduce_")], "comm": [number("group")],
                "correlation": [9],
            }))  # fmt: skip

    @property
    def losses(self) -> Mapping[str, int]:
        return {}


@pytest.fixture(autouse=True)
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Source]]:
    """What the monitor finds in the process."""
    found: list[Source] = [MstxSource(), Device()]
    monkeypatch.setattr(equipment, "sources", lambda log: found)
    monkeypatch.setattr(Monitor, "_state", None)
    monkeypatch.setenv("MSMONITOR_LOG_PATH", str(tmp_path))
    yield found
    Monitor.stop()
    occupancy.leave(Monitor)


def test_ranges_and_marks_of_the_host() -> None:
    Monitor.start([ActivityKind.Marker])
    number = mstx.range_start("step", None, "train")
    mstx.mark("now")
    mstx.range_end(number)
    left_open = mstx.range_start("open")
    Monitor.stop()
    mstx.range_end(left_open)
    (step, now) = Monitor.get_result()[ActivityKind.Marker]
    assert (step.name, step.domain, step.sourceKind, step.id) == ("step", "train", "Host", number)
    assert (step.pid, step.tid, step.deviceId, step.streamId) == (os.getpid(), threading.get_native_id(), 0, 0)
    assert step.startNs < now.startNs == now.endNs < step.endNs
    assert now.name == "now" and isinstance(now, Marker)


def test_records_of_a_device() -> None:
    """Those of the kinds asked for; the next start forgets them."""
    Monitor().start([ActivityKind.Kernel, ActivityKind.Communication])
    Monitor().stop()
    found = Monitor().get_result()
    assert list(found) == [ActivityKind.Kernel, ActivityKind.Communication]
    assert found[ActivityKind.Kernel][1] == Kernel("=Mul", 30, 40, 1, 3, 8, "KERNEL_AIVEC")
    assert found[ActivityKind.Communication] == [
        Communication("hcom_allReduce_", 1000, 3500, 0, 5, 1024, "FP32", "group", "RING", 9)
    ]
    assert found[ActivityKind.Communication][0].to_tuple() == (
        "hcom_allReduce_", 1.0, 3.5, 0, 5, 1024, "FP32", "group", "RING", 9
    )  # fmt: skip
    Monitor().start([ActivityKind.Marker])
    assert Monitor().get_result() == {ActivityKind.Marker: []}


def test_records_so_far() -> None:
    Monitor.start([ActivityKind.Marker])
    mstx.mark("first")
    assert [marker.name for marker in Monitor.get_result()[ActivityKind.Marker]] == ["first"]
    mstx.mark("second")
    Monitor.stop()
    assert [marker.name for marker in Monitor.get_result()[ActivityKind.Marker]] == ["first", "second"]


@pytest.mark.parametrize("kinds", [None, (), [], ["Marker"], [1], ActivityKind.Marker])
def test_bad_kinds(kinds: object, capsys: pytest.CaptureFixture[str]) -> None:
    Monitor.start(kinds)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "[ERROR] Invalid activity kind list\n"
    assert Monitor.get_result() == {}
    assert capsys.readouterr().out == "[WARNING] No valid activity kind\n"


def test_it_keeps_out_while_another_collects(capsys: pytest.CaptureFixture[str]) -> None:
    """No effect; and others are told while it runs itself."""
    other = object()
    occupancy.enter(other, lambda: "a trace is running")
    Monitor.start([ActivityKind.Marker])
    assert capsys.readouterr().out == "[WARNING] Monitor is not started: a trace is running\n"
    occupancy.leave(other)
    assert occupancy.in_the_way_of(other) == ""
    Monitor.start([ActivityKind.Marker])
    assert "Monitor API" in occupancy.in_the_way_of(other)
    Monitor.start([ActivityKind.Kernel])
    assert capsys.readouterr().out == "[WARNING] Monitor is running already\n"
    Monitor.stop()
    assert occupancy.in_the_way_of(other) == ""


def test_nothing_here_gives_the_kind(sources: list[Source], capsys: pytest.CaptureFixture[str]) -> None:
    class Absent(Device):
        def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
            raise Unavailable("no card here")

    sources[1] = Absent()
    Monitor.start([ActivityKind.Kernel])
    out = capsys.readouterr().out
    assert out.startswith("[ERROR] Monitor is not started: ") and "no card here" in out


def test_what_memory_cannot_keep_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(collected, "MOST", 3)
    Monitor.start([ActivityKind.Marker])
    for _ in range(5):
        mstx.mark("x")
    Monitor.stop()
    assert len(Monitor.get_result()[ActivityKind.Marker]) == 3
    assert "lost: beyond what is kept in memory 2" in capsys.readouterr().out


def read(path: Path) -> dict[str, list[list[str | float]]]:
    """The sheets of a workbook by name: cells as they are, text or number. A reader of the format's own XML."""
    with zipfile.ZipFile(path) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        names = [sheet.attrib["name"] for sheet in book.iter(f"{SHEET}sheet")]
        shared = []
        if "xl/sharedStrings.xml" in archive.namelist():
            for item in ElementTree.fromstring(archive.read("xl/sharedStrings.xml")).iter(f"{SHEET}si"):
                shared.append("".join(part.text or "" for part in item.iter(f"{SHEET}t")))
        found = {}
        for number, name in enumerate(names, start=1):
            sheet = ElementTree.fromstring(archive.read(f"xl/worksheets/sheet{number}.xml"))
            found[name] = [[_value(cell, shared) for cell in row] for row in sheet.iter(f"{SHEET}row")]
    return found


def _value(cell: ElementTree.Element, shared: list[str]) -> str | float:
    if cell.get("t") == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{SHEET}t"))
    text = cell.findtext(f"{SHEET}v") or ""
    assert cell.find(f"{SHEET}f") is None, "a formula"
    return shared[int(text)] if cell.get("t") == "s" else float(text)


def test_a_workbook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sheet a kind, the headings of the vendor, all text but the duration; words for people; an old file is
    overwritten, not added to."""
    pytest.importorskip("xlsxwriter")
    Monitor.start([ActivityKind.Kernel, ActivityKind.Communication, ActivityKind.Marker])
    Monitor.stop()
    Monitor.save(str(tmp_path / "found"))
    path = tmp_path / "found.xlsx"
    assert capsys.readouterr().out.splitlines() == [
        f"[INFO] Start to save activity data file: {path}", f"[INFO] File saved successfully: {path}"
    ]  # fmt: skip
    sheets = read(path)
    assert list(sheets) == ["Kernel", "Communication", "Marker"]
    assert sheets["Kernel"] == [
        ["Name", "Start(us)", "End(us)", "Device ID", "Stream ID", "Correlation ID", "Type", "Duration(us)"],
        ["Add", "1700000000000000.5", "1700000000000001.75", "0", "2", "7", "KERNEL_AIVEC", 1.25],
        ["=Mul", "0.03", "0.04", "1", "3", "8", "KERNEL_AIVEC", 0.01],
    ]
    assert sheets["Communication"][1] == [
        "hcom_allReduce_", "1.0", "3.5", "0", "5", "1024", "FP32", "group", "RING", "9", 2.5
    ]  # fmt: skip
    assert sheets["Marker"] == [list(workbook.HEADINGS[ActivityKind.Marker])]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    Monitor.save(str(path))
    assert capsys.readouterr().out.splitlines()[0] == (f"[WARNING] File already exists: {path}, will be overwritten")
    assert read(path) == sheets and sorted(os.listdir(tmp_path)) == ["found.xlsx"]


def test_more_rows_than_a_sheet_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xlsxwriter")
    monkeypatch.setattr(workbook, "MOST_ROWS", 2)
    Monitor.start([ActivityKind.Kernel])
    Monitor.stop()
    Monitor.save(str(tmp_path / "found.xlsx"))
    sheets = read(tmp_path / "found.xlsx")
    assert [[row[0] for row in rows] for rows in sheets.values()] == [["Name", "Add"], ["Name", "=Mul"]]
    assert list(sheets) == ["Kernel", "Kernel 2"]


@pytest.mark.parametrize("path", ["", None, 3, "a\0b"])
def test_a_path_that_is_none(path: object, capsys: pytest.CaptureFixture[str]) -> None:
    Monitor.save(path)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "[ERROR] Invalid file path\n"


def test_what_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No data; no folder; no library. Nothing half-written stays."""
    Monitor.start([ActivityKind.Marker])
    Monitor.stop()
    Monitor.save(str(tmp_path / "a.xlsx"))
    assert capsys.readouterr().out == "[WARNING] No valid activity data\n"
    Monitor.start([ActivityKind.Kernel])
    Monitor.stop()
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    Monitor.save(str(tmp_path / "a.xlsx"))
    assert "error: no XlsxWriter (pip install 'npuscope[excel]')" in capsys.readouterr().out
    monkeypatch.undo()
    assert not [name for name in os.listdir(tmp_path) if "xlsx" in name]


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xlsxwriter")
    Monitor.start([ActivityKind.Kernel])
    Monitor.stop()
    path = tmp_path / "missing" / "a.xlsx"
    Monitor.save(str(path))
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"[ERROR] Failed to save file: {path}, error: No such file or directory"
    )


def test_markers_of_a_device_take_the_hosts_name() -> None:
    """By hand: a range with both sides, whose device records have no name; the start of another without its end."""
    strings = Strings()
    names = [strings.number(text) for text in ("step", "", "train", "")]
    markers = batch(Kind.MARKER, {
        "flag": [Flag.START_WITH_DEVICE, Flag.START_WITH_DEVICE, Flag.END_WITH_DEVICE, Flag.END_WITH_DEVICE, Flag.START],
        "side": [Side.HOST, Side.DEVICE, Side.HOST, Side.DEVICE, Side.HOST], "time": [10, 25, 20, 45, 50],
        "id": [1, 1, 1, 1, 2], "process": [7, -1, 7, -1, 7], "thread": [8, -1, 8, -1, 8],
        "device": [-1, 3, -1, 3, -1], "stream": [-1, 4, -1, 4, -1],
        "name": [names[0], names[1], names[1], names[1], names[0]],
        "domain": [names[2], names[3], names[3], names[3], names[2]],
    })  # fmt: skip
    assert records_of(markers, strings.texts) == [
        Marker("step", "Host", "train", 1, 10, 20, 7, 8, 0, 0),
        Marker("step", "Device", "train", 1, 25, 45, 0, 0, 3, 4),
    ]


def test_calls() -> None:
    strings = Strings()
    calls = batch(Kind.ACL_API, {
        "start": np.array([5]), "end": [9], "process": [1], "thread": [2], "correlation": [3],
        "name": [strings.number("aclrtMalloc")],
    })  # fmt: skip
    assert records_of(calls, strings.texts) == [API("aclrtMalloc", 5, 9, 1, 2, 3)]
    assert API().to_tuple() == ("", 0.0, 0.0, 0, 0, 0)
