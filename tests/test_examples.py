"""Every example is clean and right; every planted bug is found on its line, and nothing else is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
CLEAN = sorted(path for dsl in ("pyasc", "triton") for path in (ROOT / "examples" / dsl).glob("*.py"))
BUGS = {
    "add_tail_too_long": {("illegal-read", "asc.data_copy(x_local, x_gm[i * tile:], tile)"),
                          ("illegal-read", "asc.data_copy(y_local, y_gm[i * tile:], tile)"),
                          ("illegal-write", "asc.data_copy(z_gm[i * tile:], z_local, tile)"),
                          ("race-waw", "asc.data_copy(z_gm[i * tile:], z_local, tile)")},
    "freed_buffer": {("use-after-free", "asc.add(z_local, x_ready, y_ready, tile)")},
    "misaligned_offset": {("misaligned", "asc.data_copy(y_local, y_gm[i * tile:], tile)"),
                          ("misaligned", "asc.add(z_local, x_local, y_local, tile)")},
    "missing_flag": {("race-raw", "asc.add(z_local, x_local, y_local, tile)")},
    "triton_mask_too_wide": {("illegal-read", "x = tl.load(x_ptr + start + lanes, mask=mask)"),
                             ("illegal-write", "tl.store(out_ptr + start + lanes, x * factor, mask=mask)")},
    "ub_overrun": {("illegal-write", "asc.muls(work, x_local, 1.0, count=width)  # runs on into peak")},
}


def check(script: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run `npuscope check --format json` on a script."""
    program = "from npuscope.cli.main import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", program, "check", "--format", "json", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done, json.loads(done.stderr[done.stderr.index("{") :])


@pytest.mark.parametrize("script", CLEAN, ids=lambda path: path.stem)
def test_example_is_clean(script: Path) -> None:
    """Its own assertion against numpy holds and no check fires."""
    done, report = check(script)
    assert (done.returncode, report["findings"]) == (0, [])
    assert report["launches"] >= 1
    assert script.stem in done.stdout


def test_every_bug_is_listed() -> None:
    """No planted bug without an expectation."""
    assert {path.stem for path in (ROOT / "examples" / "bugs").glob("*.py")} == set(BUGS)


@pytest.mark.parametrize("name", BUGS)
def test_bug_is_found(name: str) -> None:
    """Class and line of each finding; exit code 1."""
    script = ROOT / "examples" / "bugs" / f"{name}.py"
    lines = script.read_text().splitlines()
    done, report = check(script)
    assert done.returncode == 1
    found = {
        (finding["kind"], lines[finding["access"]["frames"][0]["line"] - 1].strip()) for finding in report["findings"]
    }
    assert found == BUGS[name]
