"""Who is slow in simulated jobs: the right rank, the right pattern, the right cause, and nobody where all is well."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_cluster import Job, all_records, simulate

from npuscope.monitor.analysis.cluster import Cluster, analyse
from npuscope.monitor.analysis.reduction import reduced
from npuscope.monitor.analysis.slow_ranks import AT_START, COMPUTE, HOST, SINCE, SPORADIC, STEADY

STEPS = np.arange(1, 201)


def judged(**about: object) -> Cluster:
    """A job of 16 ranks and 200 steps with 3 % noise."""
    return analyse([reduced(one) for one in all_records(simulate(Job(**about)))])  # type: ignore[arg-type]


def test_five_percent_with_three_percent_noise_over_two_hundred_steps() -> None:
    cluster = judged(slow={5: 1.05})
    (one,) = cluster.slow
    assert (one.rank, one.pattern, one.cause) == (5, STEADY, COMPUTE)
    assert one.confidence > 0.9999
    # 8.8 ms of own time, of which 8 ms are compute: 5 % more of it are 400 us.
    assert one.low <= 400_000 <= one.high
    assert one.slower == pytest.approx(0.05 * 8 / 8.8, abs=0.006)
    assert one.alike == pytest.approx(1.05, abs=0.01)
    assert one.waiting < one.peers_waiting
    assert one.last > 0.35


def test_a_rank_in_a_grid_is_named_and_not_those_who_wait_with_it() -> None:
    """The others of its tensor-parallel row come late to the data-parallel collectives, through no fault of theirs."""
    cluster = judged(tensor=4, slow={5: 1.06})
    assert [one.rank for one in cluster.slow] == [5]
    assert not cluster.links


@pytest.mark.parametrize(
    ("times", "pattern", "first"),
    [
        (np.where(STEPS <= 20, 1.5, 1.0), AT_START, 21),
        (np.where(STEPS > 120, 1.1, 1.0), SINCE, 121),
        (np.where(np.random.default_rng(1).random(200) < 0.1, 1.6, 1.0), SPORADIC, None),
    ],
    ids=["at the start", "since a step", "now and then"],
)
def test_patterns_in_time(times: np.ndarray, pattern: str, first: int | None) -> None:
    (one,) = judged(slow={9: times}).slow
    assert (one.rank, one.pattern) == (9, pattern)
    assert one.first_step is None if first is None else abs(one.first_step - first) <= 2
    slow = int((times > 1).sum())
    assert 0.6 * slow <= one.slow_steps <= 1.1 * slow


def test_one_slow_operator_is_named() -> None:
    (one,) = judged(slow={3: 1.5}, slow_operator="RmsNorm").slow
    assert (one.rank, one.cause, one.alike) == (3, COMPUTE, None)
    worst = one.operators[0]
    assert worst.name == "RmsNorm"
    assert worst.ratio == pytest.approx(1.5, abs=0.02)
    # 12 % of 8 ms in two calls; half as much again are 480 us a step.
    assert worst.calls == 2 and worst.excess == pytest.approx(480_000, rel=0.03)


def test_a_slow_host_is_no_slow_card() -> None:
    (one,) = judged(late={3: 1000.0}).slow
    assert (one.rank, one.cause, one.operators) == (3, HOST, ())
    assert one.idle - one.peers_idle == pytest.approx(1_000_000, rel=0.05)


def test_several_slow_ranks_the_costliest_first() -> None:
    cluster = judged(slow={2: 1.08, 11: 1.2, 7: 1.12})
    assert [one.rank for one in cluster.slow] == [11, 7, 2]
    assert not cluster.nodes


def test_all_ranks_of_a_host_are_a_slow_host() -> None:
    cluster = judged(ranks=32, slow=dict.fromkeys(range(8, 16), 1.1))
    (node,) = cluster.nodes
    assert (node.host, node.ranks) == ("node1", tuple(range(8, 16)))
    assert sorted(one.rank for one in cluster.slow) == list(range(8, 16))


def test_a_slow_link_is_no_slow_rank() -> None:
    cluster = judged(tensor=4, links={2: 1.5})
    assert not cluster.slow
    (link,) = cluster.links
    assert link.ranks == (2, 6, 10, 14)
    assert link.slower == pytest.approx(0.5, abs=0.03)
    assert link.peers == 3


def test_a_slow_link_and_a_slow_rank_are_kept_apart() -> None:
    cluster = judged(tensor=4, links={0: 1.4}, slow={6: 1.08})
    assert [one.rank for one in cluster.slow] == [6]
    assert [one.ranks for one in cluster.links] == [(0, 4, 8, 12)]


def test_a_pipeline_compares_ranks_at_the_same_place() -> None:
    """The last stage has twice the work by design; a slow rank in it is found, the stage itself is not slow."""
    from simulated_cluster import records

    run = simulate(Job(ranks=16, slow={rank: 2.0 for rank in range(8, 16)} | {12: 2.12}))
    summaries = []
    for rank in range(16):
        one = records(run, rank)
        one.strings = {**one.strings, 90: "Loss" if rank >= 8 else "Embedding"}
        one.kernels.name[::8] = 90
        summaries.append(reduced(one))
    cluster = analyse(summaries)
    assert [one.rank for one in cluster.slow] == [12]
    assert sorted(len(part.rows) for part in cluster.peers) == [8, 8]


@pytest.mark.parametrize("hiccups", [0.0, 0.01])
def test_a_healthy_job_has_nobody_to_blame(hiccups: float) -> None:
    """A hundred seeds, no false alarm; also where any rank now and then takes half a step longer."""
    for seed in range(100):
        cluster = judged(ranks=8, seed=seed, hiccups=hiccups, layers=1)
        assert not cluster.slow and not cluster.links, seed
        assert cluster.largest and abs(cluster.largest[1]) < 0.02


def test_a_slow_rank_is_found_whatever_the_seed() -> None:
    for seed in range(50):
        slow = seed % 8
        assert [one.rank for one in judged(ranks=8, seed=seed, slow={slow: 1.05}, layers=1).slow] == [slow], seed


def test_without_kernels_the_rank_is_named_and_the_cause_is_not() -> None:
    summaries = []
    for one in all_records(simulate(Job(slow={5: 1.06}))):
        one.kernels = one.kernels.where(slice(0, 0))
        summaries.append(reduced(one))
    (found,) = analyse(summaries).slow
    assert (found.rank, found.cause, found.compute) == (5, "unknown", None)


def test_without_collectives_kernels_tell() -> None:
    summaries = []
    for one in all_records(simulate(Job(slow={5: 1.06}))):
        one.collectives = one.collectives.where(slice(0, 0))
        summaries.append(reduced(one))
    assert [one.rank for one in analyse(summaries).slow] == [5]
