"""Stock PyTorch under a launcher: the launcher registers too, and its workers are traced in its place."""

from __future__ import annotations

import sys

import pytest
from daemon_process import Daemon
from training import LOOP, operators, order, running, script, status, stepping, wait_until, written

LAUNCHER = """
import sys
import torch.multiprocessing
import loop

def work(rank, folder):
    loop.train(folder)

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), nprocs=2)
"""
FORKING = (
    LOOP.partition("if __name__")[0]
    + """
if __name__ == "__main__":
    if os.fork() == 0:
        open(f"{sys.argv[1]}/child_{os.getpid()}", "w").close()
    train(sys.argv[1])
"""
)


def test_the_limit_takes_a_worker_and_not_the_launcher(daemon: Daemon) -> None:
    pytest.importorskip("torch")
    script(daemon.folder)
    launcher = script(daemon.folder, LAUNCHER, "launcher.py")
    with running(daemon.folder, [sys.executable, str(launcher), str(daemon.folder)]) as job:
        wait_until(lambda: len(status(daemon)) == 3, 120, "launcher and two workers did not register")
        workers = sorted(set(status(daemon)) - {job.pid})
        stepping(daemon, workers)
        one = order(daemon, f"{daemon.folder}/one.json", limit=1, duration_ms=300)
        assert sorted(one["processesMatched"]) == sorted([job.pid, *workers])
        (traced,) = one["activityProfilersTriggered"]
        assert traced in workers
        assert operators(written(daemon.folder / f"one_{traced}.json"))

        wait_until(lambda: {process["state"] for process in status(daemon).values()} == {"idle"}, 60)
        both = order(daemon, f"{daemon.folder}/both.json", [job.pid], limit=2, duration_ms=300)
        assert sorted(both["activityProfilersTriggered"]) == workers  # named by their launcher's number
        for worker in workers:
            assert operators(written(daemon.folder / f"both_{worker}.json"))


def test_a_forked_child_does_not_register_and_does_no_harm(daemon: Daemon) -> None:
    pytest.importorskip("torch")
    path = script(daemon.folder, FORKING, "forking.py")
    with running(daemon.folder, [sys.executable, str(path), str(daemon.folder)]) as job:
        stepping(daemon, [job.pid])
        wait_until(lambda: list(daemon.folder.glob("child_*")), 60)
        (child,) = (int(found.name.removeprefix("child_")) for found in daemon.folder.glob("child_*"))
        wait_until((daemon.folder / f"steps_{child}").exists, 60)
        reply = order(daemon, f"{daemon.folder}/fork.json", duration_ms=300)
        assert reply["processesMatched"] == reply["activityProfilersTriggered"] == [job.pid]
        assert operators(written(daemon.folder / f"fork_{job.pid}.json"))
        assert set(status(daemon)) == {job.pid}
        named = order(daemon, f"{daemon.folder}/fork.json", [child])
        assert named["processesMatched"] == [] and f"none of the processes {child} is registered" in named["reason"]
