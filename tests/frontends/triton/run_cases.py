"""Runs all kernels of this folder: run_cases.py (ours|interpreter) FOLDER

For each file of kernels the tensors of every case are saved as FOLDER/MODE-FILE.npz, under "case/argument"; the text of
an error as "case/!". With "ours" come also FOLDER/expected-FILE.npz.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def plain(tensor: Any) -> np.ndarray:
    """A tensor as numpy knows it."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return np.asarray(tensor)
    if tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        tensor = tensor.to(torch.float32)
    return tensor.contiguous().numpy()


def save(path: Path, cases: list[Any], results: Callable[[Any], dict[str, Any] | None]) -> None:
    """What `results` says of every case; None: nothing."""
    found: dict[str, np.ndarray] = {}
    for case in cases:
        try:
            result = results(case)
        except Exception as error:
            found[f"{case.name}/!"] = np.array(f"{type(error).__name__}: {error}")
            continue
        if result is not None:
            found.update({f"{case.name}/{name}": plain(value) for name, value in result.items()})
            found[f"{case.name}/tolerance"] = np.array([case.tolerance, case.near])
    np.savez(path, **found)


def main(mode: str, folder: Path) -> None:
    """Run, save."""
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
    if mode == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        from npuscope.frontends import triton
        from npuscope.frontends.launch import Session

        triton.install(Session())
    import torch
    from cases import TABLE

    torch.set_num_threads(1)
    for path in sorted(Path(__file__).parent.glob("*_kernels.py")):
        begin = len(TABLE)
        importlib.import_module(path.stem)
        cases = TABLE[begin:]
        if mode == "ours":
            save(folder / f"ours-{path.stem}.npz", cases, lambda case: case.run())
            save(folder / f"expected-{path.stem}.npz", cases, lambda case: case.expected() if case.expect else None)
        else:
            save(folder / f"interpreter-{path.stem}.npz", cases, lambda case: None if case.interpreter else case.run())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
