"""One recording by PyTorch's profiler, from its start to a folder of raw data."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from npuscope.monitor.agent.processors.host import host_name, host_number
from npuscope.monitor.agent.trace import naming
from npuscope.monitor.agent.trace.distributed import whereabouts
from npuscope.monitor.agent.trace.garbage import Collections
from npuscope.monitor.agent.trace.host import HostUse
from npuscope.monitor.agent.trace.marks import Marks
from npuscope.monitor.agent.trace.preemption import Preemption
from npuscope.monitor.agent.trace.request import Refused, Request

STEP = "ProfilerStep#"
"""The name that every reader of PyTorch's traces takes for a step."""


class Capture:
    """A recording of every thread of this process. Not safe for several threads at once; `finish` may come from any."""

    def __init__(self, request: Request, folder: Path, preempted: Callable[[], None], warn: Callable[[str], None]):
        """`preempted` is called, on the program's thread, when the program starts a profiler of its own: it has to
        finish this one first."""
        self.request = request
        self.folder = folder
        self._warn = warn
        self._profiler: Any = None
        self._preemption = Preemption(preempted)
        self._collections = Collections(request.collections_ms) if request.collections_ms is not None else None
        self._host = HostUse(request.host) if request.host else None
        self._marks = Marks(request.include, request.exclude) if request.marks else None
        self._range: Any = None
        self._range_thread = 0
        self._began = 0
        self.devices: tuple[str, ...] = ()
        self.unfinished = -1
        """The step that was going on when the recording ended; -1 when none was."""

    def prepare(self) -> None:
        """Warm up: from here on events are collected, and thrown away until `begin`. Raises Refused."""
        torch = _torch()
        if torch.autograd.profiler._is_profiler_enabled:
            raise Refused("the program runs torch.profiler itself, and there is one profiler in a process")
        self.devices = _devices(torch) if self.request.device else ()
        with self._preemption.ours():
            try:
                # Not torch.profiler's: that one imports PyTorch's compiler when it starts, which takes seconds and
                # breaks a program that is about to import it on another thread.
                self._profiler = torch.autograd.profiler.profile(
                    use_cpu=self.request.cpu or not self.devices,
                    use_device=self.devices[0] if self.devices else None,
                    use_kineto=True,
                    record_shapes=self.request.shapes,
                    profile_memory=self.request.memory,
                    with_stack=self.request.stack,
                    with_flops=self.request.flops,
                    with_modules=self.request.modules,
                    experimental_config=_settings(torch, self.request),
                )
                self._profiler._prepare_trace()
            except Exception as error:
                self._profiler = None
                raise Refused(f"PyTorch's profiler does not start: {error}") from None

    def begin(self) -> None:
        """Record from here on. Raises Refused."""
        for extra in (self._collections, self._host, self._marks):
            if extra is not None:
                self._guarded(extra.start)
        try:
            with self._preemption.ours():
                self._profiler._start_trace()
        except Exception as error:
            self._end_extras()
            raise Refused(f"PyTorch's profiler does not start: {error}") from None
        self._began = time.time_ns()
        self._preemption.install()

    def step(self, number: int) -> None:
        """The program's thread begins a step."""
        self._close_range()
        record = sys.modules["torch"].autograd.profiler.record_function(f"{STEP}{number}")
        record.__enter__()
        self._range, self._range_thread, self.unfinished = record, threading.get_ident(), number

    def cancel(self) -> None:
        """End before `begin`, or without a trace."""
        self._preemption.remove()
        self._end_extras()
        with contextlib.suppress(Exception):
            if self._profiler is not None:
                self._profiler.__exit__(None, None, None)
        self._profiler = None

    def finish(self, whole_step: bool, partial: str = "") -> Path:
        """End and write the raw data; returns the folder. `whole_step` says that the step going on is complete,
        `partial` why the trace is shorter than asked for. Raises OSError when the folder cannot be written."""
        if whole_step and self._close_range():
            self.unfinished = -1
        self._preemption.remove()
        profiler, self._profiler = self._profiler, None
        began = time.perf_counter_ns()
        profiler.__exit__(None, None, None)
        ended = time.time_ns()
        stopped = time.perf_counter_ns()
        extras = self._end_extras()
        part = naming.part_of(self.folder)
        try:
            (part / naming.RAW).mkdir(mode=naming.MODE, parents=True)
            (part / naming.LOGS).mkdir(mode=naming.MODE)
            profiler.kineto_results.save(str(part / naming.EVENTS))
            _require_export(part / naming.EVENTS)
            os.chmod(part / naming.EVENTS, naming.FILE_MODE)
            exported = time.perf_counter_ns()
            _write(part / naming.EXTRAS, extras)
            metadata = self._metadata(ended, partial)
            metadata["stopped_ms"] = {
                "stop": round((stopped - began) / 1e6, 3),
                "write": round((exported - stopped) / 1e6, 3),
            }
            _write(part / naming.METADATA, metadata)
            _write(part / _info_name(metadata["rank"]), {"rank_id": metadata["rank"], "config": {"common_config": {}}})
            part.rename(self.folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        return self.folder

    def _metadata(self, ended: int, partial: str) -> dict[str, Any]:
        torch = sys.modules["torch"]
        return whereabouts() | {
            "host": host_name(),
            "host_uid": host_number(),
            "pid": os.getpid(),
            "start_ns": self._began,
            "end_ns": ended,
            "unfinished_step": self.unfinished,
            "devices": self.devices,
            "partial": partial,
            "export_type": self.request.export,
            "trace_id": self.request.trace_id,
            "torch": str(torch.__version__),
            "options": dict(self.request.options),
        }

    def _close_range(self) -> bool:
        """End the annotation of the step; a range ends on the thread that began it or not at all."""
        record, self._range = self._range, None
        if record is None or self._range_thread != threading.get_ident():
            return False
        record.__exit__(None, None, None)
        return True

    def _end_extras(self) -> dict[str, Any]:
        named = {"collections": self._collections, "host": self._host, "marks": self._marks}
        return {name: self._guarded(extra.stop) or {} for name, extra in named.items() if extra is not None}

    def _guarded(self, action: Callable[[], Any]) -> Any:
        """What is recorded beside the trace may fail without harm to it."""
        try:
            return action()
        except Exception as error:
            self._warn(f"a part of the trace is missing: {error!r}")
            return None


def _torch() -> Any:
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        raise Refused("PyTorch is not imported in this process")
    return torch


def _devices(torch: Any) -> tuple[str, ...]:
    """The device that the process uses in the place of an NPU, if any: a trace must not be what first touches it."""
    backend = torch._C._get_privateuse1_backend_name()
    return tuple(name for name in ("cuda", "xpu", backend) if _in_use(torch, name))[:1]


def _in_use(torch: Any, name: str) -> bool:
    try:
        module = getattr(torch, name, None)
        return bool(module and module.is_available() and getattr(module, "is_initialized", lambda: True)())
    except Exception:
        return False


def _settings(torch: Any, request: Request) -> Any:
    """All threads, and no event kept for Python, which this PyTorch may not know yet. Memory is recorded of the thread
    that starts the profiler, and of those that work for it, or not at all."""
    make = torch._C._profiler._ExperimentalConfig
    every = not request.memory
    try:
        return make(profile_all_threads=every, trace_only=not request.stack)
    except TypeError:
        return make(profile_all_threads=every)


def _require_export(path: Path) -> None:
    """PyTorch says nothing when it cannot write. Raises OSError for a file that does not end as it should."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 64))
        if not file.read().rstrip().endswith(b"}"):
            raise OSError(28, "PyTorch could not write the whole trace", str(path))


def _info_name(rank: int) -> str:
    """The vendor's name for the file by which tools learn the rank."""
    return f"profiler_info_{rank}.json" if rank >= 0 else "profiler_info.json"


def _write(path: Path, what: Any) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, naming.FILE_MODE)
    with open(descriptor, "wb") as file:
        file.write(orjson.dumps(what, option=orjson.OPT_INDENT_2))
