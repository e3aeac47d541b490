"""The thread on which a process's monitor works: commands in, and the clock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from npuscope.monitor.agent.collector import Collector
from npuscope.monitor.agent.commands import Command

NAME = "MsptiMonitor"
"""As the vendor's plug-in calls its own."""
CLOSE_SECONDS = 30.0
"""How long the rest of what was collected may take to be written when the process ends."""


class Worker:
    """Serves a collector. The thread is started by the first command: a process that gets none has none."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._wake = threading.Condition()
        self._tasks: deque[Callable[[], object]] = deque()
        self._closing = False
        self._thread: threading.Thread | None = None

    def submit(self, command: Command) -> None:
        """Have a command carried out, after those before it. Returns at once."""
        self.call(lambda: self.collector.handle(command))

    def call(self, task: Callable[[], object]) -> None:
        """Have something done on the thread, where the collector may be touched."""
        with self._wake:
            if self._closing:
                return
            self._tasks.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
                self._thread.start()
            self._wake.notify()

    def close(self) -> None:
        """Carry out what was submitted, stop the collector and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            patience = self.collector.tick()
            with self._wake:
                if not self._tasks and not self._closing:
                    # At most so long: the lock takes no wait of years.
                    self._wake.wait(None if patience is None else min(patience, 3600.0))
                task = self._tasks.popleft() if self._tasks else None
                done = task is None and self._closing
            if task is not None:
                task()
            elif done:
                self.collector.close()
                return
