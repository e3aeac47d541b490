"""How much of the host this process uses while it is traced."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

PERIOD_SECONDS = 0.1
NAME = "npuscope-host"


class HostUse:
    """Samples the process's share of the processors (percent of one) and its memory (bytes), ten times a second."""

    def __init__(self, systems: frozenset[str]) -> None:
        self._systems = systems
        self._ended = threading.Event()
        self._rows: list[tuple[int, float, int]] = []
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self) -> dict[str, list[Any]]:
        """No longer; the columns `time` (wall clock, ns) and, of those asked for, `cpu` and `mem`."""
        self._ended.set()
        self._thread.join(1.0)
        times, cpu, memory = map(list, zip(*self._rows, strict=True)) if self._rows else ([], [], [])
        found = {"time": times, "cpu": cpu, "mem": memory}
        return {name: column for name, column in found.items() if name == "time" or name in self._systems}

    def _run(self) -> None:
        with contextlib.suppress(Exception):  # no figures are better than a thread that dies aloud
            import psutil

            process = psutil.Process()
            process.cpu_percent()
            while not self._ended.wait(PERIOD_SECONDS):
                self._rows.append((time.time_ns(), process.cpu_percent(), process.memory_info().rss))
