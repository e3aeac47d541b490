"""Stock PyTorch when its daemon dies: the job goes on, finds the next daemon by itself and is traced again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_process import Daemon
from training import operators, order, running, status, stepping, wait_until, written


def test_a_job_outlives_its_daemon_and_finds_the_next(start: Callable[..., Daemon]) -> None:
    pytest.importorskip("torch")
    first = start()
    with running(first.folder) as job:
        stepping(first, [job.pid])
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(10)
        assert (first.folder / "dynolog").is_socket()  # left behind, and in the next one's way
        again = start()
        wait_until(lambda: job.pid in status(again), 60, "the job did not come back")
        reply = order(again, f"{again.folder}/again.json", duration_ms=300)
        assert reply["activityProfilersTriggered"] == [job.pid]
        assert operators(written(again.folder / f"again_{job.pid}.json"))


def test_a_job_that_began_without_a_daemon_registers_when_there_is_one(
    start: Callable[..., Daemon], folder: Path
) -> None:
    pytest.importorskip("torch")
    with running(folder) as job:
        wait_until((folder / f"steps_{job.pid}").exists, 90)
        daemon = start()
        wait_until(lambda: job.pid in status(daemon), 60, "the job did not register")
        assert order(daemon, f"{daemon.folder}/late.json", duration_ms=300)["activityProfilersTriggered"] == [job.pid]
        assert operators(written(daemon.folder / f"late_{job.pid}.json"))
