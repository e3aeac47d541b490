"""Who waits: three ranks with clocks that are apart, every figure by hand."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.monitor.analysis.cluster import analyse
from npuscope.monitor.analysis.records import Collectives, Group, Marked, Ranges, Records
from npuscope.monitor.analysis.reduction import Summary, reduced

COMPUTE = {0: (100, 100, 100), 1: (130, 130, 100), 2: (110, 110, 150)}
"""What each rank computes in three steps; then it waits for the others, and 40 go for the transfer."""
CLOCK = {0: 0, 1: 10**12, 2: -(10**9)}
TRANSFER = 40
NAMES = {0: "MatMul", 1: "hcom_allReduce_", 2: "world"}


def rank(number: int, *, drop: int | None = None, overlap: int = 0, group: tuple[int, ...] = ()) -> Summary:
    """A rank's records; the collective of step `drop` is lost; `overlap` is a kernel beside the start of each."""
    now = CLOCK[number]
    kernels, talks, steps = [], [], []
    for step in range(3):
        begin, there = now, now + COMPUTE[number][step]
        last = max(times[step] for times in COMPUTE.values())
        end = begin + last + TRANSFER
        kernels.append((begin, there + overlap, 0))
        if step != drop:
            talks.append((there, end, 1, 2, 1024, 0))
        steps.append((step + 1, begin, end))
        now = end
    columns = [np.array(column, np.int64) for column in zip(*talks, strict=True)]
    label, start, end = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    return reduced(
        Records(
            number, 100 + number, f"file {number}", "node", number, NAMES,
            Ranges(*(np.array(column, np.int64) for column in zip(*kernels, strict=True))), Collectives(*columns),
            Marked(label, start, end, "marks", True), {"world": Group("", group)} if group else {},
        )
    )  # fmt: skip


def test_every_figure_of_three_ranks() -> None:
    cluster = analyse([rank(number) for number in (2, 0, 1)])
    matrices, waits = cluster.matrices, cluster.waits
    assert [one.rank for one in matrices.ranks] == [0, 1, 2]
    assert matrices.label.tolist() == [1, 2, 3]
    assert matrices.duration.tolist() == [[170, 170, 190]] * 3
    assert matrices.compute.tolist() == [list(COMPUTE[number]) for number in range(3)]
    assert matrices.communication.tolist() == [[70, 70, 90], [40, 40, 90], [60, 60, 40]]
    assert matrices.idle.tolist() == [[0, 0, 0]] * 3
    # Who comes last waits for nobody; the others wait as long as they are earlier.
    assert waits.waiting.tolist() == [[30, 30, 50], [0, 0, 50], [20, 20, 0]]
    (world,) = waits.communicators
    assert world.transfer.tolist() == [40, 40, 40]
    assert world.waiting.tolist() == [50, 50, 100]
    assert world.longest.tolist() == [30, 30, 50]
    assert world.last.tolist() == [1, 1, 2]
    assert world.bytes.tolist() == [1024] * 3
    assert (world.count, world.unmatched) == (1, 0)


def test_three_steps_name_nobody_and_say_how_many_would() -> None:
    cluster = analyse([rank(number) for number in range(3)])
    assert not cluster.slow
    # 2^-n * 10 tests * 3 ranks <= 0.001 from n = 15 on.
    assert any("3 steps are too few to name a steadily slow rank: 15 are needed" in note for note in cluster.notes)


def test_waiting_that_a_kernel_covers_is_no_loss() -> None:
    cluster = analyse([rank(number, overlap=10) for number in range(3)])
    # Ten of each wait lie beside a kernel; a wait that is shorter than that is none.
    assert cluster.waits.waiting.tolist() == [[20, 20, 40], [0, 0, 40], [10, 10, 0]]
    assert cluster.matrices.exposed[1].tolist() == [30, 30, 80]
    assert cluster.matrices.own[1].tolist() == [140, 140, 110]


def test_a_lost_collective_costs_its_step_only() -> None:
    cluster = analyse([rank(0), rank(1, drop=1), rank(2)])
    # In step 2 only ranks 0 and 2 are known: the shorter of 70 and 60 counts as the transfer.
    assert cluster.waits.waiting.tolist() == [[30, 10, 50], [0, 0, 50], [20, 0, 0]]
    (world,) = cluster.waits.communicators
    assert world.unmatched == pytest.approx(1 / 9)
    assert any("11% of its ranks' steps do not match" in note for note in cluster.notes)


def test_a_rank_without_file_is_named() -> None:
    cluster = analyse([rank(number, group=(0, 1, 2, 3, 4)) for number in range(3)])
    assert cluster.waits.communicators[0].missing == (3, 4)
    assert any("no file of rank 3-4" in note for note in cluster.notes)
