"""Files beside the logs of instructions become tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npuscope.profiler.ingest import extras
from npuscope.profiler.ingest.extras import Reader, read_extras


def test_each_kind(tmp_path: Path) -> None:
    (tmp_path / "core0.veccore0.perf_pmu.log").write_text("title\n12 : vec busy cycles | 345\n13: mte2 | -1\r\n")
    (tmp_path / "core0_summary_log").write_text("0 : total | 9\n")
    (tmp_path / "core0.veccore0.ccu_log.dump").write_text(
        "[info] 5: [DEC] instr.name=ADD instr.pc=0x10D0 instr.id=7\nx\n"
    )
    (tmp_path / "core0.veccore0.issque.1.dump").write_text(
        "[info] 6 [Push Instr] instr.name=ADD instr.pc=0x10d0 instr.id=7\n[info] 9 [RETIRE INSTR] name=ADD pc=0x10d0 id=7\n"
    )
    (tmp_path / "core0.veccore0.ub.wr_log.dump").write_text(
        "[info] [00000031] VADD, pc: 0x10d0, id: 7\nAddress 00000040 = [00ff 12AB]\nAddress 00000060 = [01]\n"
    )
    (tmp_path / "other.txt").write_text("1 : x | 2\n")
    found = {table.name: table for table in read_extras(tmp_path)}
    assert found["VendorCounters"].rows == (
        ("core0.veccore0.perf_pmu.log", 12, "vec busy cycles", 345),
        ("core0.veccore0.perf_pmu.log", 13, "mte2", -1),
        ("core0_summary_log", 0, "total", 9),
    )
    assert found["ControlStages"].rows == (("core0.veccore0.ccu_log.dump", 5, "DEC", "ADD", "0x10d0", 7),)
    assert [row[1:] for row in found["QueueEvents"].rows] == [
        (6, "Push Instr", "ADD", "0x10d0", 7),
        (9, "RETIRE INSTR", "ADD", "0x10d0", 7),
    ]
    assert found["MemoryAccesses"].columns == ("file", "cycle", "instr", "pc", "id", "address", "data")
    assert [row[1:] for row in found["MemoryAccesses"].rows] == [
        (31, "VADD", "0x10d0", 7, "0x00000040", "00ff12ab"),
        (31, "VADD", "0x10d0", 7, "0x00000060", "01"),
    ]


def test_a_new_kind_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = Reader("Words", re.compile(r".*\.words"), ("word",), lambda text: ((word,) for word in text.split()))
    monkeypatch.setattr(extras, "READERS", [words])
    (tmp_path / "a.words").write_text("one two")
    (table,) = read_extras(tmp_path)
    assert table.rows == (("a.words", "one"), ("a.words", "two"))
