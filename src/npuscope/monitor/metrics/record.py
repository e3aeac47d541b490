"""One measurement: what was measured, when, of whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Value = int | float | str
HOST, PROCESS, DEVICE, DAEMON = "host", "process", "device", "daemon"
ENTITIES = (HOST, PROCESS, DEVICE, DAEMON)
CUMULATIVE = frozenset({
    "cpu_user_seconds", "cpu_system_seconds", "read_bytes", "write_bytes", "voluntary_switches",
    "involuntary_switches", "polls", "malformed", "impostors", "unsent", "faults", "data", "data_refused", "bad_data",
    "store_refused",
})  # fmt: skip
"""Values of processes and of the daemon that only grow while the process lives; all others go up and down."""


@dataclass(frozen=True)
class Record:
    """Values taken at one moment. `time` is Unix time in seconds, `entity` one of ENTITIES."""

    time: float
    entity: str
    labels: Mapping[str, str]
    values: Mapping[str, Value]

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """By which the newest record of the same thing is found."""
        return self.entity, tuple(sorted(self.labels.items()))
