"""The commands that take a deep trace of the slow ranks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from npuscope.monitor.analysis.matrices import Matrices

ITERATIONS = 5
LOG = "/tmp/npuscope-slow"


def trace_commands(matrices: Matrices, ranks: Sequence[int]) -> list[str]:
    """One `dyno` command for each host. NPU processes are asked through the vendor's plug-in, by rank: the limit on
    processes is raised to all of the host, since the ranks are chosen by the processes themselves. Others are stock
    PyTorch's, by process."""
    by_host: dict[str, list[int]] = {}
    wanted = set(ranks)
    for row, one in enumerate(matrices.ranks):
        if one.rank in wanted:
            by_host.setdefault(one.host, []).append(row)
    made = []
    for host, rows in by_host.items():
        there = [one for one in matrices.ranks if one.host == host]
        chosen = [matrices.ranks[row] for row in rows]
        words = ["dyno", *(["--hostname", host] if host else [])]
        if any(one.device >= 0 for one in chosen):
            words += ["nputrace", "--rank-list", ",".join(str(one.rank) for one in chosen)]
            words += ["--process-limit", str(max(len(there), 1)), "--start-step", "-1"]
            words += ["--iterations", str(ITERATIONS), "--profiler-level", "Level1", "--log-file", LOG]
        else:
            words += ["gputrace", "--pids", ",".join(str(one.pid) for one in chosen)]
            words += ["--process-limit", str(len(chosen)), "--iterations", str(ITERATIONS)]
            words += ["--log-file", f"{LOG}.json"]
        made.append(shlex.join(words))
    return made
