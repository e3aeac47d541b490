"""Runs the kernels of one file: run_cases.py (ours|interpreter|expected) MODULE OUT.npz

Every tensor of every case is saved as "case/argument"; the text of an error as "case/!".
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
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


def main(mode: str, module: str, out: str) -> None:
    """Run, save."""
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    if mode == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"
    if mode == "ours":
        from npuscope.frontends import triton
        from npuscope.frontends.launch import Session

        triton.install(Session())
    import torch

    torch.set_num_threads(1)
    importlib.import_module(module)
    from cases import TABLE

    found: dict[str, np.ndarray] = {}
    for case in TABLE:
        if mode == "interpreter" and case.interpreter or mode == "expected" and case.expect is None:
            continue
        try:
            results = case.expected() if mode == "expected" else case.run()
        except Exception as error:
            found[f"{case.name}/!"] = np.array(f"{type(error).__name__}: {error}")
            continue
        found.update({f"{case.name}/{name}": plain(value) for name, value in results.items()})
    for case in TABLE:
        found[f"{case.name}/tolerance"] = np.array([case.tolerance, case.near])
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
