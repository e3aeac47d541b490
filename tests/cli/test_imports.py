"""What a command does not need is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from npuscope.cli.main import cli
try:
    cli.main({arguments!r}, standalone_mode=False, prog_name="npuscope")
except BaseException as error:
    print(type(error).__name__, error)
print("LOADED", *sorted(name for name in sys.modules if name.startswith({unwanted!r})))
"""


@pytest.mark.parametrize("verb", ["--help", "check"])
def test_the_profiler_costs_other_commands_nothing(verb: str, tmp_path: Path) -> None:
    """Neither its modules nor the compiler that it makes use of; a script without kernels asks for none."""
    script = tmp_path / "empty.py"
    script.write_text("")
    arguments = [verb] if verb.startswith("-") else [verb, str(script)]
    unwanted = ("numba", "npuscope.profiler", "npuscope.report.profile", "npuscope.npu.timing.")
    program = PROGRAM.format(arguments=arguments, unwanted=unwanted)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED", done.stdout
