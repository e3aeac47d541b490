"""Compiled code goes when any source file of its folder changes."""

from __future__ import annotations

from pathlib import Path

from npuscope.trace.stale import drop_stale


def test_a_change_drops_all_compiled_code(tmp_path: Path) -> None:
    """Not when nothing changed, and nothing but numba's files."""
    (tmp_path / "one.py").write_text("x = 1")
    drop_stale(tmp_path)
    folder = tmp_path / "__pycache__"
    files = [folder / name for name in ("one.f-1.nbi", "one.f-1.1.nbc", "one.pyc")]
    for file in files:
        file.write_text("")
    drop_stale(tmp_path)
    assert all(file.exists() for file in files)
    (tmp_path / "two.py").write_text("y = 2")
    drop_stale(tmp_path)
    assert [file.exists() for file in files] == [False, False, True]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Nothing happens, and nothing fails."""
    (tmp_path / "__pycache__").write_text("no folder")
    drop_stale(tmp_path)
