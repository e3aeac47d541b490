"""What the agent asks of whoever takes traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from npuscope.monitor.protocol.fabric import Status


class Tracer(Protocol):
    """Takes traces in this process. Nothing here raises, and `step` costs next to nothing while no trace is planned."""

    def obey(self, pairs: Mapping[str, str]) -> None:
        """Plan the trace that a configuration asks for, or log why not. Called on the agent's thread."""

    def step(self) -> None:
        """The job begins its next step. Called on the job's thread."""

    @property
    def status(self) -> Status:
        """Of the trace channel: 0 idle, 1 running, 2 planned; the current step, and the first and the one after the
        last of the trace. `pid` and `job` are not looked at. Any thread may ask."""

    def close(self) -> None:
        """The process ends: stop, keep what was recorded."""
