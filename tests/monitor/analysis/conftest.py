"""The simulated job of the benchmarks, for the tests of the analysis."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

SIMULATED = Path(__file__).resolve().parents[3] / "benchmarks" / "simulated_cluster.py"


def _load() -> None:
    # By its path: the folder of the benchmarks holds names that are also those of libraries.
    if "simulated_cluster" not in sys.modules:
        spec = spec_from_file_location("simulated_cluster", SIMULATED)
        assert spec and spec.loader
        module = sys.modules["simulated_cluster"] = module_from_spec(spec)
        spec.loader.exec_module(module)


_load()
