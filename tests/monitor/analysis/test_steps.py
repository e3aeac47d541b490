"""Where steps begin and end."""

from __future__ import annotations

import numpy as np
from simulated_cluster import OPERATORS, Job, all_records, simulate

from npuscope.monitor.analysis.cluster import analyse
from npuscope.monitor.analysis.records import Collectives, Marked, Records
from npuscope.monitor.analysis.reduction import reduced
from npuscope.monitor.analysis.steps import labelled, marked, steps_of


def columns(*values: list[int]) -> list[np.ndarray]:
    return [np.array(value, np.int64) for value in values]


def test_names_of_steps() -> None:
    strings = {0: "step 7", 1: "Step#12", 2: "steps", 3: "forward step", 4: "step", 5: "ProfilerStep#3", 6: " step 0 "}
    assert labelled(strings, np.arange(7)).tolist() == [7, 12, -1, -1, -1, -1, 0]


def test_a_step_lasts_until_the_next_in_a_row() -> None:
    """The pause between two belongs to the first; not where numbers are missing or the pause is long."""
    label, start, end = columns([1, 2, 3, 5, 6], [0, 120, 240, 360, 900], [100, 220, 340, 460, 1000])
    found = steps_of(Records(0, 0, "", steps=Marked(label, start, end, "marks", True)))
    assert found.end.tolist() == [120, 240, 340, 460, 1000]
    assert found.start.tolist() == start.tolist()


def test_a_step_that_was_marked_twice_counts_the_second_time() -> None:
    label, start, end = columns([1, 2, 1, 2], [0, 100, 500, 600], [90, 190, 590, 690])
    found = marked(label, start, end, "marks", on_device=True)
    assert found.start.tolist() == [500, 600]


def test_host_marks_give_collectives_to_the_step_that_called_them() -> None:
    """The host is two steps ahead of the device at the end; a step ends with its last collective."""
    start, end, launched = columns([100, 300, 500], [200, 400, 600], [5, 15, 25])
    zeros = np.zeros(3, np.int64)
    label, begin, until = columns([1, 2, 3], [0, 10, 20], [9, 19, 29])
    found = steps_of(
        Records(
            0, 0, "", collectives=Collectives(start, end, zeros, zeros, zeros, launched),
            steps=Marked(label, begin, until, "step marks on the host", False),
        )
    )  # fmt: skip
    assert found.of_collective.tolist() == [0, 1, 2]
    assert found.end.tolist() == [200, 400, 600]
    assert found.start.tolist() == [0, 200, 400]


def test_steps_without_marks_are_told_from_collectives_that_repeat() -> None:
    """Recordings begin at different steps, clocks of hosts are five seconds apart; still all is laid together."""
    job = Job(ranks=16, tensor=4, steps=120, slow={5: 1.06})
    run = simulate(job)
    summaries = []
    for one in all_records(run, marked=False):
        late = one.rank % 7
        one.kernels = one.kernels.where(slice(len(OPERATORS) * job.layers * late, None))
        one.collectives = one.collectives.where(slice((job.layers + 1) * late + 1, None))
        summaries.append(reduced(one))
    cluster = analyse(summaries)
    assert [one.rank for one in cluster.slow] == [5]
    first = {one.rank: int(one.label[0]) for one in cluster.matrices.ranks}
    assert {rank: at - first[0] for rank, at in first.items()} == {rank: rank % 7 for rank in range(16)}
    assert any("steps are not marked" in note for note in cluster.notes)
    assert max(one.unmatched for one in cluster.waits.communicators) < 0.05
