"""Activities of a process that uses stock PyTorch: operators, collectives, allocations, user ranges, a GPU's work.

User ranges alone need nothing of PyTorch's profiler and cost next to nothing; every other kind does, in windows.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.torch_ranges import TorchRanges
from npuscope.monitor.agent.sources.torch_window import Plan
from npuscope.monitor.agent.sources.torch_windows import TorchWindows

HOST_KINDS = frozenset({Kind.MARKER, Kind.API, Kind.MEMORY, Kind.COMMUNICATION})
DEVICE_KINDS = frozenset({Kind.KERNEL, Kind.RUNTIME_API, Kind.MEMCPY, Kind.MEMSET})


class TorchSource:
    """Operators as API (`aten::mm`), gloo's and NCCL's collectives as Communication, allocations as Memory,
    `record_function` as Marker, and a GPU's kernels, copies, sets and runtime calls."""

    name = "torch"

    def __init__(self) -> None:
        self._ranges = TorchRanges()
        self._windows = TorchWindows()

    @property
    def kinds(self) -> frozenset[Kind]:
        """On an NPU the ranges only: the vendor's activity library has the rest, and calls mean its own calls. A GPU's
        work where there is no better source for it."""
        if "torch_npu" in sys.modules:
            return frozenset({Kind.MARKER})
        return HOST_KINDS | DEVICE_KINDS if uses_gpu() and not has_cupti() else HOST_KINDS

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Collect. Raises Unavailable when PyTorch is not imported or cannot do it, and when another profiler runs
        and nothing but what needs one is asked for; with ranges asked for too, the windows wait for the other to end.
        """
        self.stop()
        if "torch.autograd.profiler" not in sys.modules:
            raise Unavailable("PyTorch is not imported in this process")
        self._strings, self._deliver = strings, deliver
        marked, recorded = self._divided(kinds)
        if recorded:
            self._windows.start(recorded, _plan(recorded), strings, deliver, wait=marked)
        if marked:
            self._ranges.start(strings, deliver)

    def change(self, kinds: frozenset[Kind]) -> None:
        """Collect other kinds from now on."""
        marked, recorded = self._divided(kinds)
        if marked and not self._ranges.running:
            self._ranges.start(self._strings, self._deliver)
        elif not marked:
            self._ranges.stop()
        if not recorded:
            self._windows.stop()
        elif self._windows.running:
            self._windows.change(recorded, _plan(recorded))
        else:
            self._windows.start(recorded, _plan(recorded), self._strings, self._deliver, wait=marked)

    def step(self, number: int) -> None:
        """The job has taken a step: windows change between steps. On the job's thread; cheap, never raises."""
        self._windows.step()

    def flush(self) -> None:
        """Deliver what is complete so far."""
        self._ranges.flush()
        self._windows.flush()

    def stop(self) -> None:
        """Deliver the rest and stop."""
        self._ranges.stop()
        self._windows.stop()

    def abandon(self) -> None:
        """In a fork: let go of everything."""
        self._ranges.abandon()
        self._windows.abandon()

    @property
    def losses(self) -> Mapping[str, int]:
        """Records, windows and stretches of time that were lost since the last start."""
        ranges = {"ranges beyond what may wait": self._ranges.lost} if self._ranges.lost else {}
        return {**ranges, **self._windows.losses}

    def _divided(self, kinds: frozenset[Kind]) -> tuple[bool, frozenset[Kind]]:
        """Whether ranges are asked for, and what is to be recorded in windows."""
        ours = kinds & self.kinds
        return Kind.MARKER in ours, ours - {Kind.MARKER}


def _plan(kinds: frozenset[Kind]) -> Plan:
    """What windows must record for these kinds."""
    return Plan(
        memory=Kind.MEMORY in kinds,
        shapes=Kind.COMMUNICATION in kinds and _initialised() is not None,
        devices=uses_gpu() and not has_cupti(),
    )


def _initialised() -> Any:
    """torch.distributed, once the job has groups; it is never imported for us."""
    module = sys.modules.get("torch.distributed")
    ready = module is not None and module.is_available() and module.is_initialized()
    return module if ready else None


def uses_gpu() -> bool:
    """Whether the job has a GPU at work; asking never starts one."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def has_cupti() -> bool:
    """Whether another source reads a GPU's records; the driver has one reader at a time."""
    return importlib.util.find_spec("cupti") is not None
