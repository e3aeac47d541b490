"""One stretch of recording by PyTorch's profiler: opened, closed, and never heard of by the job.

What was found out about PyTorch 2.13, and what this relies on:

* With `profile_all_threads` the operators of every thread are recorded, and the window may be opened and closed by any
  thread. Allocations are reported only to a window that the allocating thread itself has opened (a *bound* window),
  and only that thread may close it.
* Closing holds the interpreter's lock for 3 to 6 microseconds a record, so windows are short.
* One window at a time: a second one steals the records of the first, and closing the first then ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from npuscope.monitor.agent.sources.source import Unavailable

LOG_LEVEL = "_ZN9libkineto6Logger14severityLevel_E"
SILENT = 6
"""Above the profiler library's highest level of messages, USDT = 5."""


@dataclass(frozen=True)
class Plan:
    """What a window records besides operators."""

    memory: bool = False
    """Allocations; makes the window a bound one."""
    shapes: bool = False
    """Shapes and types of inputs: how much a collective of the host moves."""
    devices: bool = False
    """Kernels, copies and calls of a GPU."""


def demand() -> None:
    """Raises Unavailable where this PyTorch cannot do what the file says."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Unavailable("PyTorch is not imported in this process")
    if not hasattr(sys.modules.get("torch.autograd.profiler"), "_is_profiler_enabled") or _settings(Plan()) is None:
        version = getattr(torch, "__version__", "of an unknown version")
        raise Unavailable(f"PyTorch {version} cannot record all threads; 2.4 and later can")


def open_window(plan: Plan) -> None:
    """Record from now on. Raises Unavailable, and then nothing is recorded."""
    autograd = sys.modules["torch"]._C._autograd
    config, activities = _settings(plan), _activities(plan)
    with _quiet():
        try:
            autograd._prepare_profiler(config, activities)
            with _quiet():  # preparing for the first time sets the level of messages
                autograd._enable_profiler(config, activities)
        except Exception as error:
            raise Unavailable(f"PyTorch's profiler does not start: {error}") from error


def close_window() -> Any:
    """Stop recording; returns what PyTorch calls a `_ProfilerResult`. Raises Unavailable when there is none."""
    with _quiet():
        try:
            return sys.modules["torch"]._C._autograd._disable_profiler()
        except Exception as error:
            raise Unavailable(f"PyTorch's profiler does not stop: {error}") from error


def _settings(plan: Plan) -> Any:
    inner = sys.modules["torch"]._C._profiler
    more: dict[str, bool] = {"profile_all_threads": not plan.memory}
    if plan.devices:
        more["expose_kineto_event_metadata"] = True  # sizes of copies, names of groups
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
