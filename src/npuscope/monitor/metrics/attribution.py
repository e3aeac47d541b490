"""To whom a process belongs: what can be read once and holds for its life."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from npuscope.monitor.proc import command, environment, own_number, rank

COMMAND_LENGTH = 80
RENEW_SECONDS = 60.0
"""A process number may come to mean another process."""
MOST_KNOWN = 20_000
JOB = {"LOCAL_RANK": "local_rank", "WORLD_SIZE": "world_size", "RANK_SIZE": "world_size"}
"""Variables that launchers set, besides the rank; of two that say the same the first counts."""
SCHEDULER = {
    "SLURM_JOB_ID": "job_id", "USER": "username", "SLURM_JOB_ACCOUNT": "slurm_account",
    "SLURM_JOB_PARTITION": "slurm_partition",
}  # fmt: skip
LONGEST_VALUE = 128


@dataclass(frozen=True)
class Belongings:
    """Labels of a process."""

    process: dict[str, str]
    """`pid` as the process knows itself, `host_pid` as the daemon does, and its place in the job."""
    owner: dict[str, str]
    """What else is known: the command, and what the batch system says."""


def belongings(pid: int, from_environment: bool = True) -> Belongings:
    """The labels of the process that the daemon knows by this number; what cannot be read is left out.

    `from_environment`: whether to say what the batch system says.
    """
    variables = environment(pid) or {}
    labels = {"pid": str(own_number(pid) or pid), "host_pid": str(pid)}
    if (number := rank(variables)) is not None:
        labels["rank"] = str(number)
    for name, label in JOB.items():
        if variables.get(name, "").isdigit():
            labels.setdefault(label, variables[name][:LONGEST_VALUE])
    owner = {"command": command(pid, COMMAND_LENGTH)}
    if from_environment:
        owner |= {label: variables[name][:LONGEST_VALUE] for name, label in SCHEDULER.items() if variables.get(name)}
    return Belongings(labels, owner)


class Senders:
    """Remembers for a while what was found out about processes that send often. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[int, tuple[float, dict[str, str]]] = {}

    def labels(self, pid: int) -> dict[str, str]:
        """The process and its place in the job."""
        now = self._clock()
        found = self._known.get(pid)
        if found and now < found[0]:
            return found[1]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        labels = belongings(pid).process
        self._known[pid] = now + RENEW_SECONDS, labels
        return labels
