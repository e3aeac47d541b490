"""A program that is told to end when there is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ENDS_AT_ONCE = """
import pathlib, sys
from npuscope.cli.attend import Limit, attend

enough = pathlib.Path(sys.argv[1])

def program():
    enough.touch()
    return 1

ended = attend(program, lambda: None, Limit(enough=enough.exists))
print(ended.code, ended.stopped, ended.timed_out)
"""


def test_a_program_may_end_before_anybody_looks(tmp_path: Path) -> None:
    """It ended because there was enough, whatever it exits with."""
    command = [sys.executable, "-c", ENDS_AT_ONCE, str(tmp_path / "enough")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1 True False\n"
