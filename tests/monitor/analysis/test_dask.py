"""The same files on a real Dask scheduler with two workers, in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from daemon_process import environment
from simulated_cluster import Job, all_records, simulate, write_database

from npuscope.errors import UserError
from npuscope.monitor.analysis.cluster import analyse_files
from npuscope.monitor.analysis.files import find

distributed = pytest.importorskip("distributed", reason="Dask is optional: pip install 'dask[distributed]'")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("dask")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment(folder)["PYTHONPATH"])
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(folder)
        )
    with cluster:
        yield str(cluster.scheduler_address)


def test_workers_of_a_scheduler_find_the_same(scheduler: str, tmp_path: Path) -> None:
    for one in all_records(simulate(Job(ranks=12, tensor=2, steps=60, slow={7: 1.2}))):
        write_database(one, tmp_path)
    (tmp_path / "msmonitor_9_20261130120000000_99.db").write_bytes(b"")
    there = analyse_files(find([tmp_path]), scheduler=scheduler)
    here = analyse_files(find([tmp_path]), processes=1)
    assert [one.rank for one in there.slow] == [7]
    assert there.slow == here.slow
    assert there.left_out == here.left_out and "rank 99" in there.left_out[0]
    assert np.array_equal(there.waits.waiting, here.waits.waiting)


def test_processes_of_this_machine_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuscope.monitor.analysis.workers.FEW", 8)
    for one in all_records(simulate(Job(ranks=20, steps=40, slow={7: 1.2}))):
        write_database(one, tmp_path)
    there, here = (analyse_files(find([tmp_path]), processes=count) for count in (2, 1))
    assert [one.rank for one in there.slow] == [7]
    assert there.slow == here.slow


def test_no_scheduler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in all_records(simulate(Job(ranks=2, steps=10))):
        write_database(one, tmp_path)
    monkeypatch.setattr("npuscope.monitor.analysis.workers.CONNECT_SECONDS", 1)
    with pytest.raises(UserError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        analyse_files(find([tmp_path]), scheduler="tcp://127.0.0.1:9")
