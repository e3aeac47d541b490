"""What counts as computing."""

from __future__ import annotations

import numpy as np
from simulated_cluster import Job, records, simulate

from npuscope.monitor.analysis.computing import computing, host_operators, outermost
from npuscope.monitor.analysis.records import Ranges


def ranges(*rows: tuple[int, int, int]) -> Ranges:
    return Ranges(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def test_kernels_of_collectives_are_no_computing() -> None:
    strings = {0: "MatMul", 1: "ncclDevKernel_AllReduce_Sum_f32", 2: "hcom_allReduce_", 3: "HcclAicpuKernel", 4: "Add"}
    kept = computing(ranges((0, 1, 0), (1, 2, 1), (2, 3, 2), (3, 4, 3), (4, 5, 4)), strings)
    assert kept.name.tolist() == [0, 4]


def test_operators_of_the_host_by_name() -> None:
    strings = {0: "aten::addmm", 1: "c10d::allreduce_", 2: "autograd::engine::evaluate_function: X", 3: "aten::t"}
    assert host_operators(strings) == [0, 3]


def test_an_operator_that_another_calls_is_part_of_it() -> None:
    """Thread 1: 0-10 calls 2-4 and 4-10; 10-12 stands alone. Thread 2 begins within thread 1's first."""
    found = outermost(
        ranges((0, 10, 0), (2, 4, 1), (4, 10, 2), (10, 12, 3), (5, 20, 4), (6, 7, 5)), np.array([1, 1, 1, 1, 2, 2])
    )
    assert sorted(found.name.tolist()) == [0, 3, 4]
    assert len(outermost(Ranges(), np.zeros(0, np.int64))) == 0


def test_a_job_without_a_card_computes_on_its_host(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Its operators stand in CANN_API as PyTorch names them."""
    import sqlite3

    from simulated_cluster import write_database

    from npuscope.monitor.analysis.files import find
    from npuscope.monitor.analysis.reduction import Summary, reduce_file

    one = records(simulate(Job(ranks=2, steps=5)), 0)
    path = write_database(one, tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE RANK_DEVICE_MAP SET deviceId = -1")
        db.execute("UPDATE STRING_IDS SET value = 'aten::' || value WHERE id < 4")
        db.execute(
            "INSERT INTO CANN_API SELECT startNs, endNs, 10000, 7, 0, name FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
        )
        db.execute(
            "INSERT INTO CANN_API SELECT startNs + 1, endNs - 1, 10000, 7, 0, name FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
        )
        db.execute("DROP TABLE COMPUTE_TASK_INFO")
    summary = reduce_file(find([path]).recordings[0])
    assert isinstance(summary, Summary)
    assert summary.compute.sum() == (one.kernels.end - one.kernels.start).sum()
    assert summary.operators.calls.tolist() == [10, 10, 10, 10]
    assert summary.operators.names[0].startswith("aten::")
