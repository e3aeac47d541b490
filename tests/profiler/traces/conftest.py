"""Timelines made by hand, and those of real kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuscope.cli.session import run_in_session
from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.trace.recorder import Batch
from npuscope.trace.rows import launches
from npuscope.trace.schema import CoreInfo, CoreType, Launch, Site, SourceFrame
from npuscope.trace.timeline import (
    CORE_COLUMNS,
    EDGE_COLUMNS,
    MARK_COLUMNS,
    SLICE_COLUMNS,
    TRANSFER_COLUMNS,
    UNKNOWN,
    Lane,
    Loss,
    Source,
    Step,
    Timeline,
)

EXAMPLES = Path(__file__).parents[3] / "examples" / "pyasc"
AIV, AIC = CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIC, 0)


def hand_made(
    slices: list[dict[str, Any]],
    *,
    edges: list[tuple[int, int, int, int]] = (),
    transfers: list[dict[str, int]] = (),
    marks: list[tuple[int, int]] = (),
    cores: tuple[CoreInfo, ...] = (AIV,),
    mhz: float = 1000.0,
    cycles: int | None = None,
    losses: tuple[Loss, ...] = (),
    source: Source = Source.MODEL,
    core_times: list[tuple[int, int]] = (),
) -> Timeline:
    """A timeline of slices given as columns by name, with `text` the instruction, `line` its line and `detail`."""
    steps: dict[tuple[str, int, int], int] = {}
    made: list[Step] = []
    table = np.full((len(SLICE_COLUMNS), len(slices)), UNKNOWN, np.int64)
    for number, given in enumerate(slices):
        values = {"core": 0, "lane": Lane.SCALAR, "bytes": 0, "work": 0, "row": number} | given
        text, line = values.pop("text", "NOP"), values.pop("line", number + 1)
        values.pop("detail", None)
        key = text, line, int(values["lane"])
        if key not in steps:
            steps[key] = len(made)
            site = Site(text, (SourceFrame("kernel.py", line), SourceFrame("host.py", 7)))
            made.append(Step(0x1000 + 4 * len(made), text, Lane(values["lane"]), site))
        values["step"] = steps[key]
        for name, value in values.items():
            table[SLICE_COLUMNS.index(name), number] = value
    details = [str(given.get("detail", "")) for given in slices]
    moved = np.full((len(TRANSFER_COLUMNS), len(transfers)), UNKNOWN, np.int64)
    for number, transfer in enumerate(transfers):
        for name, value in transfer.items():
            moved[TRANSFER_COLUMNS.index(name), number] = value
    times = np.full((len(CORE_COLUMNS), len(core_times)), UNKNOWN, np.int64)
    for number, (start, end) in enumerate(core_times):
        times[:2, number] = start, end
    end = int(table[SLICE_COLUMNS.index("end")].max(initial=0))
    return Timeline(
        Launch(0, "kernel", "Ascend910B1", cores, (len(cores),), {}, {}), "Ascend910B1", mhz, source,
        end if cycles is None else cycles, 0, made, table, details, transfers=moved,
        edges=np.array(edges, np.int64).reshape(-1, len(EDGE_COLUMNS)).T.copy(), cores=times, losses=losses,
        marks=np.array(marks, np.int64).reshape(-1, len(MARK_COLUMNS)).T.copy(),
    )  # fmt: skip


@pytest.fixture
def hand() -> Callable[..., Timeline]:
    """Makes a timeline of given slices."""
    return hand_made


def written_by(write: Callable[..., int], *arguments: Any) -> dict[str, Any]:
    """What a writer writes, as JSON; the number of events that it says must be right."""
    file = BytesIO()
    count = write(file, *arguments)
    document: dict[str, Any] = json.loads(file.getvalue())
    assert len(document["traceEvents"]) == count
    return document


@pytest.fixture
def written() -> Callable[..., dict[str, Any]]:
    """Calls a writer of trace.json and reads what it wrote."""
    return written_by


@pytest.fixture(scope="session")
def example_timeline() -> Callable[[str, str], Timeline]:
    """The timeline of an example of the repository on a chip; each is run once."""
    known: dict[tuple[str, str], Timeline] = {}

    def make(name: str, chip: str) -> Timeline:
        pytest.importorskip("asc")
        if (name, chip) not in known:
            batches: list[Batch] = []
            argv, path = list(sys.argv), list(sys.path)
            try:
                code, _ = run_in_session((batches.append,), None, str(EXAMPLES / f"{name}.py"), (), False)
            finally:
                sys.argv, sys.path = argv, path
            assert code == 0
            known[name, chip] = time_launch(next(iter(launches(batches))), load_chip(chip))
        return known[name, chip]

    return make
