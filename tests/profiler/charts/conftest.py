"""Timelines and counters made by hand for the charts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.npu.chip import load_chip
from npuscope.npu.machine import cube_cores, mixed_cores, vector_cores
from npuscope.profiler.counters import Counters
from npuscope.trace.schema import CoreInfo, CoreType, Launch
from npuscope.trace.timeline import CORE_COLUMNS, SLICE_COLUMNS, UNKNOWN, Source, Step, Timeline

KINDS = {"vector": vector_cores, "cube": cube_cores, "mix": mixed_cores, "coupled": cube_cores}


def made(
    chip: str = "Ascend910B4",
    kind: str = "vector",
    blocks: int = 1,
    cycles: int = 8400,
    steps: tuple[Step, ...] = (),
    slices: tuple[dict[str, int], ...] = (),
    **tables: Any,
) -> Timeline:
    """A timeline of a launch whose cores all run from 0 to `cycles`."""
    cores: tuple[CoreInfo, ...] = KINDS[kind](blocks)
    launch = Launch(0, "made", chip, cores, (blocks,), {}, {})
    rows = np.array([[row.get(name, UNKNOWN) for name in SLICE_COLUMNS] for row in slices], np.int64)
    table = np.full((len(CORE_COLUMNS), len(cores)), UNKNOWN, np.int64)
    table[CORE_COLUMNS.index("start")], table[CORE_COLUMNS.index("end")] = 0, cycles
    return Timeline(
        launch, chip, float(load_chip(chip).frequency_mhz), Source.MODEL, cycles, 0, list(steps),
        rows.reshape(-1, len(SLICE_COLUMNS)).T.copy(), [f"detail {n}" for n in range(len(slices))],
        **{"cores": table, **tables},
    )  # fmt: skip


def counted(timeline: Timeline, columns: str, values: dict[int, Any], paths: dict[str, Any] | None = None) -> Counters:
    """Counters of a timeline: one figure for all cores, or one each; those of cube cores only on cube cores if given as
    ``("aic", 5)``."""
    cores = timeline.launch.cores
    aic = np.array([core.type is CoreType.AIC for core in cores])

    def spread(value: Any) -> np.ndarray:
        if isinstance(value, tuple):
            return np.where(aic == (value[0] == "aic"), float(value[1]), np.nan)
        return np.broadcast_to(np.asarray(value, np.float64), len(cores)).copy()

    total = np.full(len(cores), float(timeline.cycles))
    return Counters(
        columns, total, {number: spread(value) for number, value in values.items()},
        {name: spread(value) for name, value in (paths or {}).items()},
    )  # fmt: skip


@pytest.fixture
def make() -> Callable[..., Timeline]:
    return made


@pytest.fixture
def counters() -> Callable[..., Counters]:
    return counted
