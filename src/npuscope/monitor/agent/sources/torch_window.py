"""One stretch of recording by PyTorch's profiler: opened, closed, and never heard of by the job.

What was found out about PyTorch 2.13, and what this relies on:

* A window sees what its own thread does, allocations included, and what PyTorch's other threads do on its behalf
  (backward, the work of collectives). Only its thread may open and close it, and not from within a backward pass. A
  window over all threads is possible, but sees no allocations and could only be closed while operators are under way.
* An operator that has begun in a window writes its end into that window's memory, also when it ends later, if another
  window is open by then. So the end of a window looks for operators that have not ended.
* Closing holds the interpreter's lock for 3 to 6 microseconds a record, so windows are short.
* One window at a time in a process: a second one takes the first one's records, and closing the first then ends the
  process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from npuscope.monitor.agent.sources.source import Unavailable

LOG_LEVEL = "_ZN9libkineto6Logger14severityLevel_E"
END = "the end of a window of npuscope"
SILENT = 6
"""Above the profiler library's highest level of messages, USDT = 5."""


@dataclass(frozen=True)
class Plan:
    """What a window records besides operators."""

    memory: bool = False
    """Allocations."""
    shapes: bool = False
    """Shapes and types of inputs: how much a collective of the host moves."""
    devices: bool = False
    """Kernels, copies and calls of a GPU."""


def demand() -> None:
    """Raises Unavailable where this PyTorch cannot do what the file says."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Unavailable("PyTorch is not imported in this process")
    inner = torch._C
    parts = (inner, "_current_graph_task_id"), (inner._profiler, "_RecordFunctionFast"), (inner, "_autograd")
    if not all(hasattr(where, name) for where, name in parts) or _settings(Plan()) is None:
        version = getattr(torch, "__version__", "of an unknown version")
        raise Unavailable(f"the profiler of PyTorch {version} is not one that this source knows")


def open_window(plan: Plan) -> None:
    """Record from now on. Raises Unavailable, and then nothing is recorded."""
    autograd = sys.modules["torch"]._C._autograd
    config, activities = _settings(plan), _activities(plan)
    try:
        autograd._prepare_profiler(config, activities)  # the first time, this sets the level of messages
        with _quiet():
            autograd._enable_profiler(config, activities)
    except Exception as error:
        raise Unavailable(f"PyTorch's profiler does not start: {error}") from error


def close_window() -> tuple[Any, Sequence[Any], bool]:
    """Stop recording; returns what PyTorch calls a `_ProfilerResult`, its records, and whether all of them had ended.
    Raises Unavailable when there is none."""
    inner = sys.modules["torch"]._C
    with _quiet():
        try:
            with inner._profiler._RecordFunctionFast(END):
                pass
            result = inner._autograd._disable_profiler()
        except Exception as error:
            raise Unavailable(f"PyTorch's profiler does not stop: {error}") from error
    events = result.events()
    return result, events, _whole(events)


def inside_backward() -> bool:
    """Whether this thread is within a backward pass, where a window can be neither opened nor closed."""
    return bool(sys.modules["torch"]._C._current_graph_task_id() != -1)


def _whole(events: list[Any]) -> bool:
    """Take out the record that we made last; returns whether all others ended before it began. PyTorch gives those that
    have not ended the time of the closing."""
    for at in reversed(range(len(events))):
        if events[at].name() == END:
            last = events.pop(at)
            ends = np.fromiter(map(type(last).end_ns, events), np.int64, len(events))
            return not (ends > last.start_ns()).any()
    return False


def silence() -> None:
    """Record nothing of this thread's any more, for good: for a window that can never be closed."""
    sys.modules["torch"]._C._autograd._enable_record_function(False)


def _settings(plan: Plan) -> Any:
    inner = sys.modules["torch"]._C._profiler
    # Sizes of copies and names of groups.
    more = {"expose_kineto_event_metadata": True} if plan.devices else {}
    try:
        experimental = inner._ExperimentalConfig(**more)
        return inner.ProfilerConfig(
            inner.ProfilerState.KINETO, plan.shapes, plan.memory, False, False, False, experimental
        )
    except (AttributeError, TypeError):
        return None


def _activities(plan: Plan) -> set[Any]:
    known = sys.modules["torch"]._C._profiler.ProfilerActivity
    return {known.CPU, known.CUDA} if plan.devices else {known.CPU}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The profiler's library writes two lines to the job's stderr for every window; not for ours, unless the job has
    said itself what it wants to read."""
    level = _level()
    if level is None or "KINETO_LOG_LEVEL" in os.environ:
        yield
        return
    before, level.value = level.value, SILENT
    try:
        yield
    finally:
        level.value = before


@cache
def _level() -> ctypes.c_int | None:
    """The library's level of messages, where the build of PyTorch lets one see it."""
    try:
        library = Path(sys.modules["torch"].__file__ or "").parent / "lib" / "libtorch_cpu.so"
        return ctypes.c_int.in_dll(ctypes.CDLL(str(library)), LOG_LEVEL)
    except (OSError, ValueError):
        return None
