"""CSV files of metric tables."""

from __future__ import annotations

import csv
import os
import stat
from pathlib import Path

import pytest

from npuscope.errors import UserError
from npuscope.profiler.table import Table
from npuscope.profiler.writers.csv import read_table, table_text, write_table

TABLE = Table(
    "PipeUtilization",
    ("block_id", "name", "time(us)", "count"),
    ((0, "vector0", 5.0909090909, 8400), (1, "cube0", None, -3)),
)


def test_numbers_have_six_decimals_or_none() -> None:
    assert table_text(TABLE) == "block_id,name,time(us),count\n0,vector0,5.090909,8400\n1,cube0,NA,-3\n"


def test_text_is_quoted_where_it_must_be_or_where_it_is_asked_for() -> None:
    table = Table("x", ("instr", "detail"), (("MOV", "Dst:UB,Src:OUT"), ("ADD", "plain"), ('S"', 'say "so"')))
    assert table_text(table) == 'instr,detail\nMOV,"Dst:UB,Src:OUT"\nADD,plain\n"S""","say ""so"""\n'
    always = table_text(table, quoted=("detail",))
    assert always == 'instr,detail\nMOV,"Dst:UB,Src:OUT"\nADD,"plain"\n"S""","say ""so"""\n'
    assert list(csv.reader(always.splitlines()))[1:] == [list(row) for row in table.rows]


def test_a_table_without_rows_has_its_heads() -> None:
    assert table_text(Table("x", ("a", "b"), ())) == "a,b\n"


def test_files_have_the_suffix_that_they_are_given(tmp_path: Path) -> None:
    assert write_table(TABLE, tmp_path).name == "PipeUtilization.csv"
    path = write_table(TABLE, tmp_path, "20260102030405678")
    assert path.name == "PipeUtilization_20260102030405678.csv"
    assert path.read_text() == table_text(TABLE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["PipeUtilization.csv", "PipeUtilization_20260102030405678.csv"]


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    found = read_table(write_table(TABLE, tmp_path, "20260102030405678"))
    assert found.name == "PipeUtilization" and found.columns == TABLE.columns
    assert found.rows == ((0, "vector0", 5.090909, 8400), (1, "cube0", None, -3))


def test_other_spellings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "Memory.csv"
    path.write_bytes(b"\xef\xbb\xbfblock_id, a\r\n0, N/A\r\n1, 2.5\r\n")
    assert read_table(path) == Table("Memory", ("block_id", "a"), ((0, None), (1, 2.5)))


def test_errors_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*PipeUtilization\.csv"):
        write_table(TABLE, tmp_path / "missing")
    with pytest.raises(UserError, match="cannot read"):
        read_table(tmp_path / "missing.csv")
    short = tmp_path / "short.csv"
    short.write_text("a,b\n1\n")
    with pytest.raises(UserError, match="row 2 has 1 cells for 2 columns"):
        read_table(short)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(UserError, match="it is empty"):
        read_table(tmp_path / "empty.csv")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_table(TABLE, tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        write_table(Table("PipeUtilization", ("a",), ()), tmp_path)
    assert path.read_text() == table_text(TABLE)
    assert os.listdir(tmp_path) == ["PipeUtilization.csv"]
