"""Folders of dumps, made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Dumps = Callable[..., Path]


@pytest.fixture
def dumps(tmp_path: Path) -> Dumps:
    """Writes logs, given as name=text with ``popped`` and ``retired`` for the two of ``core0.veccore0``."""

    def write(popped: str | None = None, retired: str | None = None, **others: str) -> Path:
        files = {"core0.veccore0.instr_popped_log.dump": popped, "core0.veccore0.instr_log.dump": retired}
        files |= {name.replace("__", "."): text for name, text in others.items()}
        for name, text in files.items():
            if text is not None:
                (tmp_path / name).write_bytes(text.encode())
        return tmp_path

    return write
