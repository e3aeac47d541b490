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
FILES = sorted(path.stem for path in FOLDER.glob("*_kernels.py"))
WITHOUT_INTERPRETER = {"device_kernels"}
"""Files of which the interpreter can run nothing."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of both ways to run, each in its own process (which way is decided at import)."""
    folder = tmp_path_factory.mktemp("values")
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    running = [
        subprocess.Popen(
            [sys.executable, str(FOLDER / "run_cases.py"), mode, str(folder)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for mode in ("ours", "interpreter")
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    return folder


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
        have = got.get(key)
        if part == "!":
            found.append(f"{name}: the other side fails: {wanted}")
        elif have is None:
            found.append(f"{name}: {got.get(f'{name}/!', 'nothing')}")
        else:
            found += _difference(key, have, wanted.reshape(have.shape), float(got[f"{name}/tolerance"][column]))
    return sorted(set(found))


def _difference(key: str, have: np.ndarray, wanted: np.ndarray, tolerance: float) -> list[str]:
    if tolerance:
        same = np.isclose(have, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = (have == wanted) | ((have != have) & (wanted != wanted))
    if same.all():
        return []
    first = np.unravel_index(int(np.argmin(same)), same.shape)
    return [f"{key}: {int((~same).sum())} of {same.size}, first at {first}: {have[first]}, not {wanted[first]}"]


@pytest.mark.parametrize("file", FILES)
def test_results_are_those_of_torch_and_numpy(results: Path, file: str) -> None:
    want = load(results / f"expected-{file}.npz")
    assert len(want) > 3
    found = differences(load(results / f"ours-{file}.npz"), want, 0)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("file", sorted(set(FILES) - WITHOUT_INTERPRETER))
def test_results_are_those_of_tritons_interpreter(results: Path, file: str) -> None:
    want = load(results / f"interpreter-{file}.npz")
    assert len(want) > 3
    found = differences(load(results / f"ours-{file}.npz"), want, 1)
    assert not found, "\n".join(found)
