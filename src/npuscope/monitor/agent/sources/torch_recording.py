"""Records what the job's main thread does: when a recording begins and ends, and what becomes of it.

Everything is done on the main thread, between two steps, or between two instructions of the interpreter when the job
does not step. One recording ends and the next begins in one go, so nothing falls between them; to end one stands in the
job's way for as long as there are entries, so it is done when there are some thousands.

Other threads are not recorded, because nobody but themselves could end a recording of theirs; those that work for the
main thread are.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_collectives as python
from npuscope.monitor.agent.sources import torch_operators as entries
from npuscope.monitor.agent.sources import torch_recorder as recorder
from npuscope.monitor.agent.sources import torch_rivals as rivals
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.torch_inner_collectives import Told, inner_collectives, told
from npuscope.monitor.agent.sources.torch_main_thread import Visit, on_main_thread
from npuscope.monitor.agent.sources.torch_operators import (
    Notes,
    Operators,
)
from npuscope.monitor.agent.sources.torch_ranges import HOOK

NAME = "TorchSource"
ENTRIES = 8192
"""Entries of a recording, about: five milliseconds of ending."""
SHORTEST, FIRST, LONGEST = 0.05, 0.1, 1.0
"""Seconds a recording lasts; the first one tells how many entries come."""
LOOK_SECONDS = 0.1
PACE_SECONDS = 0.05
GRACE = 4.0
"""A step is expected for as many of the last step's lengths."""
GRACE_SECONDS = 1.0
"""... and for no longer than this."""
FLUSH_SECONDS = 0.5
"""How long a flush waits for the main thread."""
STOP_SECONDS = 2.0
"""The same of a stop."""
MOST_WAITING = 8
"""Recordings that wait to be converted, at most."""
ASK_SECONDS = 30.0
"""Between two looks into PyTorch's flight recorder."""

OTHER = "pauses for another profiler"
RPC = "pauses for torch.distributed.rpc"
LEFT = "recordings that the main thread did not end in time"
FAILED = "recordings that PyTorch did not give"
WAITING = "recordings beyond what may wait"
CUT = "operators that had begun before a recording, or ended after it"
ELSEWHERE = "steps on a thread that is not recorded: only the main one is"


@dataclass
class _Session:
    """What is wanted between a start and a stop."""

    kinds: frozenset[Kind]
    strings: Strings
    deliver: Deliver
    collectives: python.TorchCollectives
    told: Told
    asked: float = float("-inf")
    """When the flight recorder was looked into, monotonic seconds."""
    over: bool = False
    """Nothing is delivered any more."""


@dataclass(frozen=True)
class _Recording:
    session: _Session
    since: float
    """Monotonic seconds."""


class TorchRecording:
    """Operators, allocations and collectives until it is stopped. One for a process: whoever comes later finds the
    recording that could not be ended yet."""

    def __init__(self) -> None:
        self._session: _Session | None = None
        self._going: _Recording | None = None
        """Only the main thread begins and ends it."""
        self._busy = self._leaving = False
        self._ended: deque[tuple[list[list[Any]], _Recording]] = deque()
        self._converting = threading.Lock()
        self._open_operators: set[int] = set()
        """Begun under a recorder of ours and not ended, as far as conversion has come."""
        self._lost: Counter[str] = Counter()
        self._stepped, self._gap = float("-inf"), 0.0
        self._length = FIRST
        self._due = self._paused = self._forks = False
        self._wake, self._switched, self._over = threading.Event(), threading.Event(), threading.Event()
        self._visit = Visit(self.visit)
        self._threads: Sequence[threading.Thread] = ()
        self._token = object()
        """Of the threads that work; those of an earlier start see that they are not meant any more."""

    @property
    def losses(self) -> Mapping[str, int]:
        """What was not seen since the last start, by reason."""
        return dict(+self._lost)

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver, *, wait: bool) -> None:
        """Record. Raises Unavailable where PyTorch cannot do it safely, and when another profiler records this thread,
        the main one, unless we are to `wait`."""
        recorder.demand()
        if self._session is not None:
            raise Unavailable("something else in this process records with PyTorch already")
        if on_main_thread() and self._going is None and recorder.recorded_already() and not wait:
            raise Unavailable("another PyTorch profiler is running in this process, and there can be only one")
        if not self._forks:
            self._forks = True
            os.register_at_fork(before=self._before_fork)
        self._lost.clear()
        self._length, self._paused, self._due, self._leaving = FIRST, False, False, False
        session = _Session(kinds, strings, deliver, python.TorchCollectives(), {})
        if Kind.COMMUNICATION in kinds:
            session.collectives.start()
        rivals.watch(self._make_way)
        HOOK.hold(NAME)
        self._session = session
        if on_main_thread():
            self.visit()
        self._token = token = object()
        work = (self._pace, NAME), (self._serve, f"{NAME}Records")
        self._threads = [threading.Thread(target=what, args=(token,), name=name, daemon=True) for what, name in work]
        for thread in self._threads:
            thread.start()

    def change(self, kinds: frozenset[Kind]) -> None:
        """Record other kinds from now on."""
        session = self._session
        if session is None:
            return
        if Kind.COMMUNICATION not in kinds:
            session.collectives.stop()
        elif not session.collectives.running:
            session.collectives.start()
        session.kinds = kinds
        self.flush()

    def step(self) -> None:
        """The job is between two steps; on its own thread. Never raises and never waits."""
        if self._session is None and self._going is None:
            return
        if not on_main_thread():
            self._lost[ELSEWHERE] += 1
            return
        now = time.monotonic()
        self._gap, self._stepped = now - self._stepped, now
        self.visit()

    def visit(self) -> None:
        """Begin or end what is to be begun or ended; on the main thread. Never raises and never waits."""
        if self._busy:
            return
        self._busy = True
        try:
            if not recorder.inside_backward():
                self._switch()
        except Exception:  # the job has nothing to do with it
            self._lost[FAILED] += 1
        finally:
            self._busy = False

    def flush(self) -> None:
        """Deliver what is complete so far; what the main thread is in the midst of may take a moment."""
        self._due = True
        self._meet(FLUSH_SECONDS, lambda: not self._due)
        self._convert()

    def stop(self) -> None:
        """Deliver the rest and record no more."""
        session = self._session
        if session is None:
            return
        self._session = None
        if not self._meet(STOP_SECONDS, lambda: self._going is None):
            self._lost[LEFT] += 1  # what serves here goes on until it is ended
        session.collectives.stop()
        self._convert()
        self._deliver_calls(session)
        session.over = True
        self._let_go()
        self._wake.set()
        self._over.set()
        if self._going is None:
            for thread in self._threads:
                thread.join(STOP_SECONDS)

    def leave(self) -> None:
        """The job is about to end the agent: nothing more will be done on this thread."""
        self._leaving = True
        if on_main_thread() and self._going and not recorder.inside_backward():
            self._end()

    def abandon(self) -> None:
        """In a fork: what was recorded is the parent's."""
        session, self._session = self._session, None
        if session is not None:
            session.collectives.stop()
            session.over = True
        self._ended.clear()
        self._converting, self._token = threading.Lock(), object()
        self._wake, self._switched, self._over = threading.Event(), threading.Event(), threading.Event()
        self._threads, self._busy = (), False
        self._visit.forget()
        HOOK.abandon()
        if on_main_thread():
            self.visit()
        self._ended.clear()
        self._let_go()

    def _switch(self) -> None:
        session, going = self._session, self._going
        if going is not None and (
            self._due or session is not going.session or time.monotonic() - going.since >= self._length
        ):
            self._end()
            going = None
        if session is not None and going is None and not self._leaving:
            self._begin(session)
        self._due = False
        self._switched.set()

    def _begin(self, session: _Session) -> None:
        if recorder.recorded_already() or recorder.uses_rpc():
            if not self._paused:
                self._lost[RPC if recorder.uses_rpc() else OTHER] += 1
            self._paused = True
            return
        self._paused = False
        shapes = Kind.COMMUNICATION in session.kinds and session.collectives.running
        recorder.begin(shapes=shapes, memory=Kind.MEMORY in session.kinds)
        HOOK.kept = threading.get_ident()
        self._going = _Recording(session, time.monotonic())

    def _end(self) -> None:
        going = self._going
        HOOK.kept = 0
        if going is None:
            return
        lasted = time.monotonic() - going.since
        try:
            lists = recorder.end()
        except Unavailable:
            self._going = None
            raise
        rate = max(sum(map(len, lists)), 1) / max(lasted, 1e-3)
        self._length = min(max(ENTRIES / rate, SHORTEST), LONGEST)
        if len(self._ended) < MOST_WAITING:
            self._ended.append((lists, going))
        else:
            self._lost[WAITING] += 1
        self._going = None  # now, for whoever waits for it goes on to convert
        self._wake.set()

    def _meet(self, seconds: float, reached: Any) -> bool:
        """Have the main thread come by, and wait until something is `reached`."""
        if on_main_thread():
            self.visit()
            return bool(reached())
        end = time.monotonic() + seconds
        while not reached():
            self._switched.clear()
            self._visit.ask()
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._switched.wait(min(left, LOOK_SECONDS))
        return True

    def _make_way(self) -> None:
        """Another recorder is about to begin, on this thread."""
        if not on_main_thread() or self._going is None or recorder.inside_backward():
            return
        session = self._going.session
        self._busy = True
        try:
            self._end()
            self._paused = True
            self._lost[OTHER] += 1
            self._convert()
            if self._open_operators:
                # An operator that goes on around this would end under the other recorder, as one of its own. PyTorch
                # refuses a second recorder, in words, so it finds ours.
                self._begin(session)
        except Exception:
            self._lost[FAILED] += 1
        finally:
            self._busy = False

    def _before_fork(self) -> None:
        """The child shall have no recorder."""
        if self._going is not None and on_main_thread() and not recorder.inside_backward():
            try:
                self._end()
            except Exception:
                self._lost[FAILED] += 1

    def _let_go(self) -> None:
        if self._session is None and self._going is None:
            HOOK.release(NAME)
            rivals.release(self._make_way)

    def _works(self, token: object) -> bool:
        return token is self._token and (self._session is not None or self._going is not None)

    def _pace(self, token: object) -> None:
        while self._works(token):
            if self._wanted():
                self._visit.ask()
            self._over.wait(PACE_SECONDS)
            self._over.clear()
        if token is self._token:
            self._let_go()

    def _serve(self, token: object) -> None:
        while self._works(token):
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
            try:
                self._convert()
            except Exception:  # whatever it was, the next recording may go well
                self._lost[FAILED] += 1

    def _wanted(self) -> bool:
        """Whether the main thread is to come by without a step."""
        now, going = time.monotonic(), self._going
        if going is None:
            return not self._step_expected(now)
        if self._session is not going.session:
            return True
        return now - going.since >= self._length and not (
            self._step_expected(now) and now - going.since < self._length + GRACE_SECONDS
        )

    def _step_expected(self, now: float) -> bool:
        return now - self._stepped < min(GRACE * self._gap, GRACE_SECONDS)

    def _convert(self) -> None:
        with self._converting:
            for _ in range(len(self._ended)):  # not those that come meanwhile, for they may come faster
                lists, recording = self._ended.popleft()
                found = entries.notes(lists)
                done = [self._operators(one) for one in found]
                if not recording.session.over:
                    self._deliver(found, done, recording.session)
                del found, done
                entries.let_go(lists)
            if self._session is not None:
                self._deliver_calls(self._session)

    def _operators(self, found: Notes) -> Operators:
        done, begun, ended = entries.operators(found)
        self._open_operators -= ended
        self._open_operators |= begun if found.own else set()
        self._lost[CUT] += len(begun)
        return done

    def _deliver(self, found: Sequence[Notes], done: Sequence[Operators], session: _Session) -> None:
        thread = threading.main_thread()
        for one, its in zip(found, done, strict=True):
            if Kind.API in session.kinds and len(its.at):
                session.deliver(entries.calls(one, its, thread.native_id or -1, session.strings))
            if Kind.MEMORY in session.kinds and (memory := entries.allocations(one)) is not None:
                session.deliver(memory)
            if Kind.COMMUNICATION in session.kinds and one.own:
                of_python = session.collectives.calls(thread.ident or 0, int(np.min(one.time)))
                inner, unended = inner_collectives(one, its, found, of_python)
                self._lost[python.UNENDED] += unended
                self._deliver_collectives([self._told(row, session) for row in inner], session)

    def _told(self, row: python.Collective, session: _Session) -> python.Collective:
        """A collective of C++ code with its type and group, as far as PyTorch tells them."""
        now, key = time.monotonic(), (row.name, row.count)
        if key not in session.told and now - session.asked >= ASK_SECONDS:
            session.told, session.asked = told(), now
        kind, group = session.told.get(key, (row.type, python.only_group(row.name.partition(":")[0])))
        return replace(row, type=kind, group=group)

    def _deliver_calls(self, session: _Session) -> None:
        if session.collectives.lost:
            self._lost[python.UNENDED] += session.collectives.lost
            session.collectives.lost = 0
        self._deliver_collectives(session.collectives.take(), session)

    def _deliver_collectives(self, rows: Sequence[python.Collective], session: _Session) -> None:
        made = python.collectives(rows, session.strings)
        if made is not None:
            session.deliver(made)
