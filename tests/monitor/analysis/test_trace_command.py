"""The command that is printed is one that our `dyno` takes, word for word."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from daemon_process import Daemon
from simulated_cluster import Job, all_records, simulate

from npuscope.monitor.analysis.matrices import Matrices, side_by_side
from npuscope.monitor.analysis.reduction import reduced
from npuscope.monitor.analysis.trace_command import trace_commands


@pytest.fixture(scope="module")
def matrices() -> Matrices:
    return side_by_side([reduced(one) for one in all_records(simulate(Job(ranks=16, steps=4)))])


def test_a_command_for_each_host(matrices: Matrices) -> None:
    first, second = trace_commands(matrices, [3, 5, 12])
    assert first.startswith("dyno --hostname node0 nputrace --rank-list 3,5 --process-limit 8 ")
    assert second.startswith("dyno --hostname node1 nputrace --rank-list 12 ")
    assert trace_commands(matrices, []) == []


def without_devices(matrices: Matrices) -> Matrices:
    return replace(matrices, ranks=tuple(replace(one, device=-1) for one in matrices.ranks))


def test_counters_of_a_device_are_asked_for_where_there_is_one(matrices: Matrices) -> None:
    (command,) = trace_commands(matrices, [3, 5])
    assert "--profiler-level Level1" in command
    (command,) = trace_commands(without_devices(matrices), [3, 5])
    assert "nputrace --rank-list 3,5 --process-limit 8 " in command and "Level1" not in command


@pytest.mark.parametrize("device", [True, False])
def test_dyno_takes_it(device: bool, matrices: Matrices, daemon: Daemon) -> None:
    (command,) = trace_commands(matrices if device else without_devices(matrices), [3, 5])
    words = shlex.split(command)
    assert words[:3] == ["dyno", "--hostname", "node0"]
    done = daemon.dyno("--hostname", "127.0.0.1", *words[3:])
    assert "usage" not in done.stderr.lower() and done.returncode in (0, 1), done.stderr
    assert "config = " in done.stdout
    assert "PROFILE_RANK_LIST=3,5" in done.stdout and "PROFILE_ASYNC_MODE=true" in done.stdout
    assert "No processes were matched" in done.stdout
