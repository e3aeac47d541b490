"""A timeline of some of a launch's cores."""

from __future__ import annotations

import numpy as np

from npuscope.profiler.some_cores import some_cores
from npuscope.trace.schema import CoreInfo, CoreType, Launch, Site
from npuscope.trace.timeline import (
    CORE_COLUMNS,
    EDGE_COLUMNS,
    SLICE_COLUMNS,
    TRANSFER_COLUMNS,
    Lane,
    Loss,
    Source,
    Step,
    Timeline,
    distinct_details,
)


def timeline() -> Timeline:
    """Two mixed blocks, AIC 0 with AIV 0 and 1, AIC 1 with AIV 2 and 3; one slice on each of the six cores in turn."""
    cores = tuple(
        core
        for block in (0, 1)
        for core in (
            CoreInfo(CoreType.AIC, block), CoreInfo(CoreType.AIV, 2 * block), CoreInfo(CoreType.AIV, 2 * block + 1, 1),
        )
    )  # fmt: skip
    slices = np.zeros((len(SLICE_COLUMNS), 6), np.int64)
    slices[SLICE_COLUMNS.index("core")] = [5, 0, 3, 1, 4, 2]
    slices[SLICE_COLUMNS.index("start")] = np.arange(6) * 10
    transfers = np.zeros((len(TRANSFER_COLUMNS), 2), np.int64)
    transfers[0] = [0, 3]
    edges = np.zeros((len(EDGE_COLUMNS), 2), np.int64)
    edges[:2] = [[2, 1], [4, 4]]  # inside block 1; from block 0 to block 1
    return Timeline(
        Launch(0, "k", "Ascend910B1", cores, (2,), {}, {}), "Ascend910B1", 1850.0, Source.MODEL, 100, 0,
        [Step(0, "X", Lane.SCALAR, Site(""))], slices, ["s0", "s1", "s2", "s3", "s4", "s4"], transfers, edges=edges,
        cores=np.arange(len(CORE_COLUMNS) * 6).reshape(len(CORE_COLUMNS), 6),
        losses=(Loss("a", "everywhere"), Loss("b", "core 0", core=0), Loss("c", "core 4", core=4)),
    )  # fmt: skip


def test_a_block_of_a_mixed_launch() -> None:
    """Number 1 is an AIC and its two AIVs; slices, transfers, edges, cores and losses have the new numbers."""
    whole = timeline()
    part = some_cores(whole, {1})
    assert [core.name for core in part.launch.cores] == [core.name for core in whole.launch.cores[3:]]
    assert part.slice("core").tolist() == [2, 0, 1] and part.slice("start").tolist() == [0, 20, 40]
    assert list(part.details) == ["s0", "s2", "s4"] and part.details[1] == "s2" and part.details[1:] == ["s2", "s4"]
    assert part.transfer("slice").tolist() == [0]
    assert part.edges[:2].tolist() == [[1], [2]]
    assert part.core("start").tolist() == [3, 4, 5]
    assert [(loss.text, loss.core) for loss in part.losses] == [("everywhere", -1), ("core 4", 1)]
    texts, place = distinct_details(part.details, np.array([2, 0, 2]))
    assert [texts[number] for number in place] == ["s4", "s0", "s4"]
    assert whole.slices.shape[1] == 6 and whole.transfer("slice").tolist() == [0, 3]  # untouched


def test_none_and_all() -> None:
    """A number that there is not leaves nothing; all of them leave everything."""
    assert some_cores(timeline(), {7}).slices.shape[1] == 0
    assert np.array_equal(some_cores(timeline(), {0, 1}).slices, timeline().slices)
