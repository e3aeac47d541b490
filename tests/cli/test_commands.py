"""The commands as a person runs them: real processes, exit codes, streams, files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLEAN = ROOT / "examples" / "pyasc" / "add_flags.py"
BUG = ROOT / "examples" / "bugs" / "add_tail_too_long.py"


def npuscope(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    program = "from npuscope.cli.main import main; main()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd or ROOT, env=environment, check=False)


def test_clean_kernel() -> None:
    """Exit code 0, the script's own output on stdout, the verdict on stderr."""
    done = npuscope("check", CLEAN)
    assert done.returncode == 0
    assert done.stdout == "add_flags: 65536 sums equal numpy's\n"
    assert "memory: clean\n" in done.stderr
    assert done.stderr.endswith("\n1 launch, 328 instructions checked.\n")


def test_found_bug_names_the_line() -> None:
    """Exit code 1; class, element, file, line and source text are in the report."""
    done = npuscope("check", BUG)
    assert done.returncode == 1
    line = next(number for number, text in enumerate(BUG.read_text().splitlines(), 1) if "data_copy(z_gm" in text)
    assert "[illegal-write]" in done.stderr
    assert f"examples/bugs/add_tail_too_long.py:{line}  asc.data_copy(z_gm[i * tile:], z_local, tile)" in done.stderr
    assert "runs 1536 elements past the end of z" in done.stderr


def test_json_to_a_file(tmp_path: Path) -> None:
    """--format json --output: a whole document, nothing of it on the streams."""
    report = tmp_path / "report.json"
    done = npuscope("check", "--format", "json", "--output", report, BUG)
    document = json.loads(report.read_text())
    assert done.returncode == 1
    assert (document["errors"], document["warnings"], document["launches"]) == (4, 0, 1)
    assert [finding["kind"] for finding in document["findings"]] == [
        "illegal-read", "illegal-read", "illegal-write", "race-waw"
    ]
    assert document["findings"][2]["owner"]["name"] == "z"
    assert document["findings"][2]["element"] == 53248
    assert "illegal" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == [report]


def test_run_checks_nothing() -> None:
    """`run` leaves no report and keeps the script's exit code."""
    done = npuscope("run", BUG)
    assert (done.returncode, done.stderr) == (0, "")


def test_record_then_check_is_the_same_report(tmp_path: Path) -> None:
    """A recorded trace gives the report of the live run, byte for byte."""
    trace = tmp_path / "bug.trace"
    assert npuscope("record", "-o", trace, BUG).returncode == 0
    live, replayed = npuscope("check", BUG), npuscope("check", trace)
    assert (replayed.returncode, replayed.stderr) == (live.returncode, live.stderr)


def test_record_of_nothing_leaves_no_file(tmp_path: Path) -> None:
    """A script without launches: one line, exit 2, no file."""
    script = tmp_path / "empty.py"
    script.write_text("print('hello')\n")
    done = npuscope("record", "-o", tmp_path / "x.trace", script)
    assert done.returncode == 2
    assert "launched no kernel" in done.stderr
    assert list(tmp_path.iterdir()) == [script]


def test_missing_script() -> None:
    """One line and exit 2."""
    done = npuscope("check", "no/such/script.py")
    assert (done.returncode, done.stderr) == (2, "npuscope: no such script: no/such/script.py\n")


def test_a_script_that_raises(tmp_path: Path) -> None:
    """Its traceback without ours, its exit code."""
    script = tmp_path / "raises.py"
    script.write_text("def f():\n    raise KeyError('gone')\n\nf()\n")
    done = npuscope("check", script)
    assert done.returncode == 1
    assert "KeyError: 'gone'" in done.stderr
    assert "npuscope/cli" not in done.stderr
    assert "memory: nothing checked\n" in done.stderr
    assert done.stderr.endswith("\nno kernel was launched.\n")


@pytest.mark.parametrize(("statement", "code"), [("sys.exit(7)", 7), ("sys.exit('bad')", 1), ("sys.exit()", 0)])
def test_the_scripts_own_exit_code(tmp_path: Path, statement: str, code: int) -> None:
    """sys.exit with a number, a message, nothing."""
    script = tmp_path / "leaves.py"
    script.write_text(f"import sys\n{statement}\n")
    assert npuscope("run", script).returncode == code


def test_arguments_and_module_form(tmp_path: Path) -> None:
    """The script sees its own argv, also options; -m runs a module from the current folder."""
    (tmp_path / "tool.py").write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    assert npuscope("run", "tool.py", "-x", "--chip", "9", cwd=tmp_path).stdout == "['-x', '--chip', '9'] __main__\n"
    assert npuscope("run", "-m", "tool", "a", cwd=tmp_path).stdout == "['a'] __main__\n"


def test_unknown_chip() -> None:
    """The known chips are listed."""
    done = npuscope("check", "--chip", "910Z", CLEAN)
    assert done.returncode == 2
    assert "Ascend910B1" in done.stderr


def test_dsl_not_installed(tmp_path: Path) -> None:
    """A script that imports a missing DSL is told the extra to install."""
    (tmp_path / "script.py").write_text("import sys\nsys.modules['asc'] = None\nimport asc\n")
    done = npuscope("check", "script.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'npuscope[pyasc]'" in done.stderr


def test_dsl_out_of_range(tmp_path: Path) -> None:
    """A pyasc of another version is refused in one line."""
    (tmp_path / "script.py").write_text(
        "import importlib.metadata as m\nreal = m.version\n"
        "m.version = lambda name: '9.0' if name == 'pyasc' else real(name)\nimport asc\n"
    )
    done = npuscope("check", "script.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("npuscope: pyasc 9.0 is not supported (needs >=1.1,<1.2)")


def test_a_damaged_trace(tmp_path: Path) -> None:
    """Cut short: one line, exit 2."""
    trace = tmp_path / "bug.trace"
    npuscope("record", "-o", trace, BUG)
    data = trace.read_bytes()
    trace.write_bytes(data[: len(data) // 2] + data[-40:])
    done = npuscope("check", trace)
    assert done.returncode == 2
    assert "not a readable trace" in done.stderr


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    """The folder does not exist: one line, exit 2."""
    done = npuscope("check", "--output", tmp_path / "none" / "r.txt", CLEAN)
    assert done.returncode == 2
    assert "cannot write" in done.stderr


def test_help_documents_the_exit_codes() -> None:
    """Codes 0, 1, 2 are in the help."""
    text = npuscope("--help").stdout
    assert "0 clean, 1 findings, 2 usage" in text
    for verb in ("check", "run", "record"):
        assert verb in text


def test_a_kernel_that_an_error_ends_is_not_called_clean(tmp_path: Path) -> None:
    """An element type that the instruction does not take: one line with the user's line, exit 2, a partial report."""
    script = tmp_path / "script.py"
    script.write_text(
        """import numpy as np
import asc
import asc.runtime.config as config
config.set_platform(config.Backend.Model)

@asc.jit
def kernel(x: asc.GlobalAddress):
    local = asc.LocalTensor(asc.int32, asc.TPosition.VECCALC, 0, 64)
    asc.exp(local, local, 64)

kernel[1](np.zeros(64, np.int32))
"""
    )
    done = npuscope("check", "script.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "clean" not in done.stderr
    assert "Partial: kernel stopped early" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("npuscope: script.py:9: ")
