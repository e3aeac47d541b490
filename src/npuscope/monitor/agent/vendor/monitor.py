"""``Monitor``: what the vendor's package offers to collect activities from a program's own code."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from npuscope.monitor.agent import equipment, occupancy
from npuscope.monitor.agent.commands import Refused
from npuscope.monitor.agent.crew import Crew
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.vendor import workbook
from npuscope.monitor.agent.vendor.collected import Collected
from npuscope.monitor.agent.vendor.kinds import ActivityKind
from npuscope.monitor.agent.vendor.records import Record, records_of
from npuscope.monitor.agent.vendor.say import say

RUNS = "the Monitor API is collecting in this process, and the two exclude each other"


class _State:
    """What the one monitor of a process holds."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.log = Log()
        self.crew = Crew(lambda: equipment.sources(self.log), self.log)
        self.collected = Collected()
        self.kinds: tuple[ActivityKind, ...] = ()
        self.running = False
        occupancy.enter(Monitor, lambda: RUNS if self.running else "")


class Monitor:
    """The process's collector; there is one, however often it is called for. Nothing here raises."""

    _one: Monitor | None = None
    _state: _State | None = None

    def __new__(cls) -> Monitor:
        """The one."""
        cls._one = cls._one or super().__new__(cls)
        return cls._one

    @classmethod
    def start(cls, kinds: list[ActivityKind]) -> None:
        """Forget what was collected, and collect these kinds from now on. No effect but a word while something else
        collects in this process."""
        if not isinstance(kinds, list) or not kinds or not all(isinstance(kind, ActivityKind) for kind in kinds):
            say("[ERROR] Invalid activity kind list")
            return
        state = cls._own()
        if state.running:
            say("[WARNING] Monitor is running already")
            return
        if reason := occupancy.in_the_way_of(Monitor):
            say(f"[WARNING] Monitor is not started: {reason}")
            return
        state.collected, state.kinds = Collected(), tuple(dict.fromkeys(kinds))
        try:
            state.collected.start(state.crew, frozenset(kind.kind for kind in kinds))
            state.running = True
        except Refused as refusal:
            say(f"[ERROR] Monitor is not started: {refusal}")

    @classmethod
    def stop(cls) -> None:
        """Collect no longer; what was collected is kept until the next start."""
        state = cls._own()
        if not state.running:
            return
        state.crew.stop()
        state.running = False
        if losses := state.collected.losses(state.crew):
            words = ", ".join(f"{reason} {count}" for reason, count in sorted(losses.items()))
            say(f"[WARNING] The activity data is not complete, lost: {words}")

    @classmethod
    def get_result(cls) -> dict[ActivityKind, list[Any]]:
        """The records so far, by kind."""
        state = cls._own()
        if not state.kinds:
            say("[WARNING] No valid activity kind")
            return {}
        if state.running:
            state.crew.flush()
        return {kind: _records(state.collected, kind) for kind in state.kinds}

    @classmethod
    def save(cls, path: str) -> None:
        """Write the records to a workbook; ``.xlsx`` is appended where it is missing."""
        if not isinstance(path, str) or not path or "\0" in path:
            say("[ERROR] Invalid file path")
            return
        records = cls.get_result()
        if not any(records.values()):
            say("[WARNING] No valid activity data")
            return
        path = os.path.abspath(path if path.endswith(workbook.SUFFIX) else path + workbook.SUFFIX)
        if os.path.exists(path):
            say(f"[WARNING] File already exists: {path}, will be overwritten")
        say(f"[INFO] Start to save activity data file: {path}")
        try:
            workbook.write(path, records)
        except ImportError:
            say(f"[ERROR] Failed to save file: {path}, error: no XlsxWriter (pip install 'npuscope[excel]')")
        except Exception as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            say(f"[ERROR] Failed to save file: {path}, error: {reason}")
        else:
            say(f"[INFO] File saved successfully: {path}")

    @classmethod
    def _own(cls) -> _State:
        """This process's state: in a fork, the parent's threads are not there."""
        state = cls._state
        if state is None or state.pid != os.getpid():
            if state is not None:
                with contextlib.suppress(Exception):
                    state.crew.abandon()
            state = cls._state = _State()
        return state


def _records(collected: Collected, kind: ActivityKind) -> list[Record]:
    found = collected.of(kind.kind)
    return [] if found is None else records_of(found, collected.strings.texts)
