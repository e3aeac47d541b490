"""A job of stock PyTorch, unchanged: its steps, ranges and operators in the database, as plain SQLite reads them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from agent import jobs
from agent.jobs import agents, known, monitor, shows, words
from daemon_process import Daemon
from training import running, wait_until

LOOP = """
import time
import torch
from torch.profiler import record_function

torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.time() + 240
while time.time() < end:
    with record_function("forward"):
        loss = model(torch.randn(4, 32)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.005)
"""

RANGES = """
select startNs, endNs, message.value from MSTX_EVENTS
join STRING_IDS message on message.id = message join STRING_IDS domain on domain.id = domainId
where domain.value = ? order by startNs
"""
CALLS = "select startNs, endNs from CANN_API join STRING_IDS on id = name where value = ? order by startNs"


def test_the_database_of_a_job(agent_daemon: Daemon, folder: Path) -> None:
    with running(folder, words(folder, LOOP), agents(folder)) as job:
        known(agent_daemon, [job.pid])
        for _ in range(2):  # the second collection finds what the first one left
            written = set(folder.glob("out/*.db"))
            monitor(
                agent_daemon, "--npu-monitor-start", "--mspti-activity-kind", "Marker,API", "--log-file",
                str(folder / "out"), "--report-interval-s", "1", "--duration", "3",
            )  # fmt: skip
            shows(agent_daemon, job.pid, monitor="Running")
            shows(agent_daemon, job.pid, monitor="Idle")
            wait_until(lambda: set(folder.glob("out/*.db")) - written, 60, jobs.log(folder, job.pid))  # noqa: B023
            check(*(set(folder.glob("out/*.db")) - written))
    assert "torch:" not in jobs.log(folder, job.pid)  # as losses begin
    assert os.path.exists(folder / "job.log")
    assert "USDT" not in (folder / "job.log").read_text()


def check(path: Path) -> None:
    """Every whole step has one of each, within it."""
    with closing(sqlite3.connect(path)) as database:
        steps = database.execute(RANGES, ("step",)).fetchall()
        ranges = [row for row in database.execute(RANGES, ("torch",)) if row[2] == "forward"]
        calls = database.execute(CALLS, ("aten::addmm",)).fetchall()
    numbers = [int(name.removeprefix("step ")) for _, _, name in steps]
    assert len(numbers) > 3
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert all(end == following for (_, end, _), (following, _, _) in zip(steps, steps[1:], strict=False))
    # The sources start one after the other, and what begins after the collection's end is left out: the first step and
    # the last one may lack something.
    for start, end, _ in steps[1:-1]:
        assert sum(start <= one[0] and one[1] <= end for one in ranges) == 1
        assert sum(start <= one[0] and one[1] <= end for one in calls) == 1
