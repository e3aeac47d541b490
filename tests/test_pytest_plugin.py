"""``pytest --npuscope`` on real kernels, in pytest processes of its own."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

INSTALLED = any(
    entry.value == "npuscope.pytest_plugin" for entry in importlib.metadata.entry_points(group="pytest11")
)
PLUGIN = [] if INSTALLED else ["-p", "npuscope.pytest_plugin"]

KERNEL = '''
import numpy as np
import pytest
import asc
import asc.runtime.config as config
config.set_platform(config.Backend.Model)

@asc.jit
def copy(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    target = asc.GlobalTensor()
    target.set_global_buffer(z)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 128)
    asc.data_copy(tile, source, n)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.data_copy(target, tile, n)

@asc.jit
def left_set(x: asc.GlobalAddress):
    asc.set_flag(asc.HardEvent.MTE2_V, 0)

def launch(n):
    copy[1](np.ones(64, np.float32), np.zeros(64, np.float32), n)
'''

TESTS = KERNEL + '''
def test_clean():
    launch(64)

def test_no_kernel():
    pass

def test_bad():
    launch(128)

def test_warned():
    left_set[1](np.ones(64, np.float32))

@pytest.mark.npuscope(allow=["illegal-read", "illegal-w*"])
def test_allowed():
    launch(128)

@pytest.mark.npuscope(allow="illegal-read")
def test_half_allowed():
    launch(128)

@pytest.mark.xfail(strict=True)
def test_expected():
    launch(128)

@pytest.fixture
def made():
    launch(128)

def test_fixture(made):
    raise AssertionError("a test whose fixture failed does not run")

def test_both():
    launch(128)
    assert "own" == "failure"
'''


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """pytest on TESTS."""
    pytest.importorskip("asc")
    pytester.makepyfile(TESTS)
    return pytester.runpytest_subprocess(*PLUGIN, *options)


@pytest.fixture(autouse=True)
def this_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subprocesses use the package of this tree, and this environment's other packages."""
    monkeypatch.setenv("PYTHONPATH", ":".join(entry for entry in sys.path if entry))


def test_findings_fail_tests(pytester: pytest.Pytester) -> None:
    """Errors and warnings; allowances; xfail; fixtures; a test's own failure stays its own."""
    result = run(pytester, "--npuscope", "-rA", "--strict-markers")
    result.assert_outcomes(passed=3, failed=4, xfailed=1, errors=1)
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_fixture*",
            "npuscope: 2 errors",
            "*_ test_bad _*",
            "npuscope: 2 errors",
            "error: illegal read in copy, AIV 0: *",
            "*asc.data_copy(tile, source, n)",
            "*_ test_warned _*",
            "npuscope: 1 warning",
            "*_ test_half_allowed _*",
            "npuscope: 1 error",
            "*_ test_both _*",
            "*assert \'own\' == \'failure\'*",
            "*Captured npuscope call*",
            "npuscope: * errors, 1 warning, 3 suppressed (8 launches, * instructions checked: memory*",
        ]
    )
    assert "a test whose fixture failed does not run" not in text.replace(TESTS, "").split("short test summary")[1]


def test_workers(pytester: pytest.Pytester) -> None:
    """With xdist the same outcomes and the same totals."""
    pytest.importorskip("xdist")
    result = run(pytester, "--npuscope", "-n", "2")
    result.assert_outcomes(passed=3, failed=4, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["npuscope: 9 errors, 1 warning, 3 suppressed (8 launches, *"])


def test_suppression_files(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """Rules count as with `npuscope check`."""
    rules = tmp_path / "rules.txt"
    rules.write_text("illegal-*  kernel=copy  # on purpose\n")
    result = run(pytester, "--npuscope", "--npuscope-suppressions", str(rules), "-k", "test_bad or test_clean")
    result.assert_outcomes(passed=2, deselected=7)
    result.stdout.fnmatch_lines(["npuscope: 0 errors, 0 warnings, 2 suppressed (2 launches, *"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--npuscope-checks", "nothing"], "no check is called nothing"),
        (["--npuscope-chip", "910Z"], "910Z"),
        (["--npuscope-suppressions", "none"], "cannot read none"),
    ],
)
def test_bad_options(pytester: pytest.Pytester, options: list[str], line: str) -> None:
    """One line, pytest's code for usage errors."""
    result = run(pytester, "--npuscope", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*npuscope: *{line}*"])


def test_without_the_option_nothing_is_imported(tmp_path: Path) -> None:
    """The plugin file and pytest, no numpy and none of our rooms."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    ours = sorted(name for name in sys.modules if name.startswith('npuscope.'))\n"
        "    assert ours == ['npuscope.pytest_plugin']\n    assert 'numpy' not in sys.modules\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", *PLUGIN, "test_it.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "npuscope:" not in done.stdout
