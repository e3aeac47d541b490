"""Kernels run on CPU tensors: what they leave is what torch or numpy says, and what Triton's own interpreter leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")
FOLDER = Path(__file__).with_name("triton")
MODULES = sorted(path.stem for path in FOLDER.glob("*_kernels.py"))
MODES = ("ours", "interpreter", "expected")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """All files run in all three ways, two processes at a time (how a kernel runs is decided when it is imported)."""
    folder = tmp_path_factory.mktemp("values")
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    paths = {(mode, module): folder / f"{mode}-{module}.npz" for module in MODULES for mode in MODES}
    waiting = list(paths.items())
    running: list[subprocess.Popen[str]] = []
    while waiting or running:
        while waiting and len(running) < 2:
            (mode, module), path = waiting.pop(0)
            command = [sys.executable, str(FOLDER / "run_cases.py"), mode, module, str(path)]
            running.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
        done = running.pop(0)
        _, errors = done.communicate(timeout=300)
        assert done.returncode == 0, errors
    return paths


@cache
def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return dict(file)


def differences(got: dict[str, np.ndarray], want: dict[str, np.ndarray], column: int) -> list[str]:
    """What is different, in words; `column` picks the case's tolerance."""
    found = []
    for key, wanted in want.items():
        name, part = key.split("/", 1)
        if part == "tolerance":
            continue
        if part == "!":
            found.append(f"{name}: the other side fails: {wanted}")
            continue
        have = got.get(key)
        if have is None:
            found.append(f"{name}: {got.get(f'{name}/!', 'nothing')}")
            continue
        tolerance = float(got[f"{name}/tolerance"][column])
        if have.shape != wanted.shape:
            wanted = wanted.reshape(have.shape)
        if tolerance:
            same = np.isclose(have, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            same = (have == wanted) | ((have != have) & (wanted != wanted))
        if not same.all():
            first = np.unravel_index(int(np.argmin(same)), same.shape) if same.ndim else ()
            found.append(f"{key}: {int((~same).sum())} of {same.size}, first at {first}: {have[first]}, not {wanted[first]}")
    return sorted(set(found))


@pytest.mark.parametrize("module", MODULES)
def test_results_are_those_of_torch_and_numpy(results: dict[tuple[str, str], Path], module: str) -> None:
    want = load(results["expected", module])
    assert len(want) > 3
    found = differences(load(results["ours", module]), want, 0)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("module", MODULES)
def test_results_are_those_of_tritons_interpreter(results: dict[tuple[str, str], Path], module: str) -> None:
    want = load(results["interpreter", module])
    assert len(want) > 3
    found = differences(load(results["ours", module]), want, 1)
    assert not found, "\n".join(found)
