"""One stretch of recording a GPU's work by PyTorch's profiler: opened and closed by a thread of ours, on which no
operator runs.

The profiler asks the GPU's driver for what every thread of the process has it do, but notes operators of the one thread
that opened it only, so no operator of the job ever holds on to a window (`torch_recorder` says what happens else).
There is one such profiler in a process: while the job uses it, nobody else may.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_rivals import original

LOG_LEVEL = "_ZN9libkineto6Logger14severityLevel_E"
SILENT = 6
"""Above the profiler library's highest level of messages, USDT = 5."""


def open_window() -> None:
    """Record from now on. Raises Unavailable, and then nothing is recorded."""
    torch = sys.modules["torch"]
    inner = torch._C._profiler
    try:
        # Sizes of copies and names of groups are told on demand only.
        more = inner._ExperimentalConfig(expose_kineto_event_metadata=True)
        config = inner.ProfilerConfig(inner.ProfilerState.KINETO, False, False, False, False, False, more)
        activities = {inner.ProfilerActivity.CUDA}
        torch._C._autograd._prepare_profiler(config, activities)  # the first time, this sets the level of messages
        with _quiet():
            original("_enable_profiler")(config, activities)
    except Exception as error:
        raise Unavailable(f"PyTorch's profiler does not start: {error}") from error


def close_window() -> Any:
    """Stop recording; returns what PyTorch calls a `_ProfilerResult`. Raises Unavailable when there is none."""
    with _quiet():
        try:
            return sys.modules["torch"]._C._autograd._disable_profiler()
        except Exception as error:
            raise Unavailable(f"PyTorch's profiler does not stop: {error}") from error


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
