"""The commands that take a deep trace of the slow ranks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from npuscope.monitor.analysis.matrices import Matrices
from npuscope.monitor.analysis.reduction import Summary

ITERATIONS = 5
LOG = "/tmp/npuscope-slow"


def trace_commands(matrices: Matrices, ranks: Sequence[int]) -> list[str]:
    """One `dyno` command for each host, to whoever wrote the records: our agent or the vendor's plug-in. The limit on
    processes is raised to all of the host, since the ranks are chosen by the processes themselves."""
    by_host: dict[str, list[Summary]] = {}
    for one in matrices.ranks:
        by_host.setdefault(one.host, []).append(one)
    made = []
    for host, there in by_host.items():
        chosen = [one for one in there if one.rank in ranks]
        if not chosen:
            continue
        words = ["dyno", *(["--hostname", host] if host else [])]
        words += ["nputrace", "--rank-list", ",".join(str(one.rank) for one in chosen)]
        words += ["--process-limit", str(len(there)), "--start-step", "-1", "--iterations", str(ITERATIONS)]
        if any(one.device >= 0 for one in chosen):
            words += ["--profiler-level", "Level1"]
        made.append(shlex.join([*words, "--analyse", "--async-mode", "--log-file", LOG]))
    return made
