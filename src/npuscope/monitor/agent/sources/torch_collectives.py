"""Collectives whose work the host does (gloo, MPI), as their issuing thread lives through them: from the call that
issues one to the moment when the thread has its result. Calls of Python code are seen at the call and at the wait.

Waiting for the other ranks is part of that time, which is what tells a slow rank. What gloo itself does is not looked
at: its threads end a range after the job has gone on, so that no recording could be ended safely at any moment.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from threading import get_ident
from time import time_ns
from typing import Any

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.torch_types import number_of_type

BINDINGS = "torch._C._distributed_c10d"
ON_HOST = ("gloo", "mpi")
CALLS = {
    "allreduce": ("all_reduce", 0), "allreduce_coalesced": ("all_reduce", 0), "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0), "allgather": ("all_gather", 1), "_allgather_base": ("all_gather", 1),
    "all_gather_single": ("all_gather", 1), "allgather_coalesced": ("all_gather", 1),
    "allgather_into_tensor_coalesced": ("all_gather", 1), "all_gather_single_coalesced": ("all_gather", 1),
    "gather": ("gather", 1), "scatter": ("scatter", 1), "reduce_scatter": ("reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter", 1), "reduce_scatter_single": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1), "reduce_scatter_single_coalesced": ("reduce_scatter", 1),
    "alltoall": ("all_to_all", 1), "alltoall_base": ("all_to_all", 1), "all_to_all_single": ("all_to_all", 1),
    "send": ("send", 0), "recv": ("recv", 0), "recv_anysource": ("recv", 0), "barrier": ("barrier", -1),
}  # fmt: skip
"""A group's methods: what PyTorch calls the collective, and which argument goes in, -1 where none does."""
MOST = 1 << 16
"""Collectives that wait for their end, or to be delivered, at most."""
UNENDED = "collectives whose end PyTorch did not tell"


@dataclass(frozen=True)
class Collective:
    """One collective of the host."""

    name: str
    group: str
    type: int
    count: int
    """Elements that go in."""
    start: int
    end: int
    """Nanoseconds of the wall clock."""


class TorchCollectives:
    """Sees the collectives that Python code issues, of every thread, between start and stop."""

    def __init__(self) -> None:
        self.lost = 0
        self.running = False
        self._going: dict[int, Collective] = {}
        self._done: list[Collective] = []
        self._calls: deque[tuple[int, int, int]] = deque(maxlen=MOST)
        self._backends: dict[tuple[str, str], str] = {}
        self._restore: list[Callable[[], None]] = []
        self._lock = threading.Lock()  # of those who take

    def start(self) -> None:
        """From now on; does nothing where PyTorch has no collectives."""
        self.stop()
        bindings = sys.modules.get(BINDINGS)
        if bindings is None:
            return
        self.lost = 0
        self._going, self._done, self._backends = {}, [], {}
        self.running = True
        for method, (title, position) in CALLS.items():
            if method in vars(bindings.ProcessGroup):
                self._restore.append(_wrapped(bindings.ProcessGroup, method, self._issuing(title, position)))
        self._restore.append(_wrapped(bindings.Work, "wait", self._waiting))

    def stop(self) -> None:
        """No longer; what ended waits to be taken."""
        while self._restore:
            self._restore.pop()()
        self.running = False
        self.lost += len(self._going)
        self._going = {}

    def take(self) -> list[Collective]:
        """Those that have ended since the last time."""
        with self._lock:
            taken = self._done[:]
            del self._done[: len(taken)]  # one that came meanwhile stays
            return taken

    def calls(self, thread: int, since: int) -> list[tuple[int, int]]:
        """When calls that issue began and returned on a thread (Python's number); those from before `since` are
        forgotten."""
        calls = self._calls
        while calls and calls[0][1] < since:
            calls.popleft()
        return [(start, end) for start, end, its in list(calls) if its == thread]

    def _issuing(self, title: str, position: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def issue(group: Any, *words: Any, **named: Any) -> Any:
                start = time_ns()
                work = call(group, *words, **named)
                self._calls.append((start, time_ns(), get_ident()))
                if self.running and work is not None:
                    try:
                        self._issued(group, title, [] if position < 0 else _tensors(words[position]), start, work)
                    except Exception:  # the job has nothing to do with it
                        self.lost += 1
                return work

            return issue

        return wrap

    def _waiting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wait(work: Any, *words: Any, **named: Any) -> Any:
            result = call(work, *words, **named)
            one = self._going.pop(id(work), None)
            if one is not None:
                self._done.append(replace(one, end=time_ns()))
            return result

        return wait

    def _issued(self, group: Any, title: str, tensors: Iterable[Any], start: int, work: Any) -> None:
        found = list(tensors)
        name = str(group.group_name)
        backend = self._backend(group, name, found[0].device if found else sys.modules["torch"].device("cpu"))
        if backend not in ON_HOST:
            return
        if len(self._going) + len(self._done) >= MOST:
            self.lost += 1
            return
        kind = number_of_type(str(found[0].dtype)) if found else number_of_type("")
        count = sum(one.numel() for one in found)
        # An object that nobody waited for is gone when another one has its number.
        self.lost += id(work) in self._going
        self._going[id(work)] = Collective(f"{backend}:{title}", name, kind, count, start, 0)

    def _backend(self, group: Any, name: str, device: Any) -> str:
        key = name, str(device.type)
        if key not in self._backends:
            self._backends[key] = str(group._get_backend(device).name()).lower()
        return self._backends[key]


def collectives(found: Iterable[Collective], strings: Strings) -> Batch | None:
    """Their records, with device and stream -1; None when there are none."""
    rows = list(found)
    if not rows:
        return None
    nowhere = [-1] * len(rows)
    return batch(
        Kind.COMMUNICATION,
        {
            "data_type": [row.type for row in rows], "count": [row.count for row in rows], "device": nowhere,
            "stream": nowhere, "start": [row.start for row in rows], "end": [row.end for row in rows],
            "algorithm": strings.numbers("" for _ in rows), "name": strings.numbers(row.name for row in rows),
            "comm": strings.numbers(row.group for row in rows), "correlation": [0] * len(rows),
        },
    )  # fmt: skip


def _tensors(argument: Any) -> Iterator[Any]:
    """The tensors in lists of lists."""
    if hasattr(argument, "numel"):
        yield argument
        return
    for one in argument:
        yield from _tensors(one)


def _wrapped(owner: Any, method: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], None]:
    """Put a method that `wrap` made in the place of the class's own; returns what undoes it."""
    before = vars(owner)[method]  # not what `getattr` gives: that would not take the object it is called on
    call = getattr(owner, method)
    ours = functools.wraps(call)(wrap(call))
    setattr(owner, method, ours)

    def restore() -> None:
        if vars(owner).get(method) is ours:  # whoever has wrapped ours meanwhile keeps it
            setattr(owner, method, before)

    return restore


def only_group(backend: str) -> str:
    """The name of the process group, when there is one group of the backend only; else the backend's name."""
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    if world is None:
        return backend
    groups = [group for group, (its, _) in dict(world.pg_map).items() if backend in str(its)]
    return str(world.pg_names.get(groups[0], backend)) if len(groups) == 1 else backend
