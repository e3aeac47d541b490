"""Waiting until PyTorch processes have written their traces."""

from __future__ import annotations

import functools
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from npuscope.cli.dyno.awaited import Awaited
from npuscope.cli.dyno.carry_out import Result, Waiter
from npuscope.cli.dyno.errand import read
from npuscope.cli.dyno.matched import Matched, matched
from npuscope.cli.dyno.options import host_name
from npuscope.cli.dyno.progress import progress
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.fanout import Answer, Limits, Question, ask_all
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.config import Trace, snapshot_file, trace_file

LOOK_SECONDS = 0.2
ASK_SECONDS = 1.0
PATIENCE_SECONDS = 3.0
"""How long a daemon may take to say what its processes do; the wait goes on without its word."""

States = Mapping[int, str]


@dataclass
class FileWaiter(Waiter):
    """Waits for trace files. Those on other hosts are seen only on a file system that is shared; of the rest the
    daemons tell when they are finished."""

    seconds: float
    trace: Trace
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = time.time()

    def wait(self, results: Sequence[Result], call: Call, voice: Voice) -> bool:
        """Whether every process that is traced has written a trace with something in it."""
        by_result = [(result, self._awaited(result, in_list=bool(call.hosts))) for result in results]
        awaited = [one for _, ones in by_result for one in ones]
        if awaited:
            self._warn_of_one_file(awaited, voice)
            self._watch(awaited, call)
        for result, ones in by_result:
            result.files = [one.document() for one in ones]
            if bad := [one for one in ones if not one.good]:
                result.verdict = type(result.verdict)(False, result.verdict.summary, bad[0].result)
        return bool(awaited) and all(one.good for one in awaited)

    def _awaited(self, result: Result, *, in_list: bool) -> list[Awaited]:
        traced = [one for one in matched(result.reply or {}) if one.outcome == "triggered"]
        here = is_here(result.endpoint.host)
        log_file = host_name(self.trace.log_file, result.endpoint.host if in_list else None)
        steps, snapshot = self.trace.iterations > 0, self.trace.profile_memory
        return [
            Awaited(one, result.endpoint, self._path(one, log_file), self.began, here, steps, snapshot)
            for one in traced
        ]

    def _path(self, process: Matched, log_file: str) -> str:
        if self.trace.profile_memory:
            return snapshot_file(process.pid)
        return process.trace_file or trace_file(log_file, process.pid)

    def _warn_of_one_file(self, awaited: Sequence[Awaited], voice: Voice) -> None:
        if len({(one.endpoint, one.path) for one in awaited}) < len(awaited):
            voice.note("warning: several processes write one file, because --log-file does not end in .json")

    def _watch(self, awaited: Sequence[Awaited], call: Call) -> None:
        deadline, next_question = time.monotonic() + self.seconds, 0.0
        with progress(many_hosts=bool(call.hosts)) as display:
            while True:
                left = [one for one in awaited if not one.over]
                if time.monotonic() >= next_question:
                    _hear(left, call)
                    next_question = time.monotonic() + ASK_SECONDS
                for one in left:
                    one.watch(time.time())
                    if not one.over and time.monotonic() >= deadline:
                        one.give_up(self.seconds, time.time())
                display.show(awaited)
                if all(one.over for one in awaited):
                    return
                time.sleep(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic())))


def _hear(awaited: Sequence[Awaited], call: Call) -> None:
    endpoints = list(dict.fromkeys(one.endpoint for one in awaited))
    questions = [Question(endpoint, rpc.simple_request("getStatus")) for endpoint in endpoints]
    limits = Limits(call.limits.parallel, min(call.limits.seconds, PATIENCE_SECONDS))
    states: dict[Endpoint, States] = {}
    for answer in ask_all(questions, limits, call.server.certificates):
        if (told := _states(answer)) is not None:
            states[answer.endpoint] = told
    for one in awaited:
        if (told := states.get(one.endpoint)) is not None:
            one.hear(told.get(one.process.pid), time.time())


def _states(answer: Answer) -> States | None:
    """What each process does, as the daemon says; None where it does not say."""
    try:
        processes = read(answer.reply or "", answer.endpoint).get("processes")
    except UserError:
        return None
    if not isinstance(processes, list):
        return None
    return {one["pid"]: str(one.get("state", "")) for one in processes if isinstance(one, dict) and "pid" in one}


def is_here(host: str) -> bool:
    """Whether a host's name or address means this one."""
    return host in ("localhost", "::1") or host.startswith("127.") or host in _own_names()


@functools.cache
def _own_names() -> frozenset[str]:
    # No name server is asked: it may be slow, and there may be thousands of hosts.
    name = socket.gethostname()
    addresses = (address.address for of_one in psutil.net_if_addrs().values() for address in of_one)
    return frozenset([name, name.partition(".")[0], *addresses])
