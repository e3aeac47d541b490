"""Activities of a process that uses stock PyTorch: operators, collectives, allocations, user ranges, a GPU's work.

User ranges, and collectives that Python code issues, need nothing of PyTorch's profilers and cost next to nothing;
operators are recorded by one that cannot harm a running job (`torch_recorder`), a GPU's work by the other one, on a
thread where it cannot (`torch_window`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.torch_ranges import TorchRanges
from npuscope.monitor.agent.sources.torch_recording import TorchRecording
from npuscope.monitor.agent.sources.torch_windows import TorchWindows

RECORDED = frozenset({Kind.API, Kind.MEMORY, Kind.COMMUNICATION})
HOST_KINDS = RECORDED | {Kind.MARKER}
DEVICE_KINDS = frozenset({Kind.KERNEL, Kind.RUNTIME_API, Kind.MEMCPY, Kind.MEMSET})
ON_DEVICE = DEVICE_KINDS | {Kind.COMMUNICATION}
RECORDING = TorchRecording()
WINDOWS = TorchWindows()


class TorchSource:
    """Operators of the main thread as API (`aten::mm`), gloo's and NCCL's collectives as Communication, allocations as
    Memory, `record_function` as Marker, and a GPU's kernels, copies, sets and runtime calls."""

    name = "torch"

    def __init__(self) -> None:
        self._ranges = TorchRanges()
        self._recording = self._windows = False
        self._lost: Mapping[str, int] = {}

    @property
    def kinds(self) -> frozenset[Kind]:
        """On an NPU the ranges only: the vendor's activity library has the rest, and calls mean its own calls. A GPU's
        work where there is no better source for it."""
        if "torch_npu" in sys.modules:
            return frozenset({Kind.MARKER})
        host = HOST_KINDS if _counts_memory() else HOST_KINDS - {Kind.MEMORY}
        return host | DEVICE_KINDS if _records_device() else host

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Collect. Raises Unavailable when PyTorch is not imported or cannot do it, and when another profiler runs
        and nothing but what needs one is asked for; with ranges asked for too, the rest waits for the other to end.
        """
        self.stop()
        if "torch.autograd.profiler" not in sys.modules:
            raise Unavailable("PyTorch is not imported in this process")
        self._strings, self._deliver, self._lost = strings, deliver, {}
        try:
            self.change(kinds)
        except Unavailable:
            self.stop()
            raise

    def change(self, kinds: frozenset[Kind]) -> None:
        """Collect other kinds from now on."""
        ours = kinds & self.kinds
        marked, recorded = Kind.MARKER in ours, ours & RECORDED
        on_device = ours & ON_DEVICE if _records_device() else frozenset()
        if not recorded:
            self._end_recording()
        elif self._recording:
            RECORDING.change(recorded)
        else:
            RECORDING.start(recorded, self._strings, self._deliver, wait=marked)
            self._recording = True
        if not on_device:
            self._end_windows()
        elif self._windows:
            WINDOWS.change(on_device)
        else:
            WINDOWS.start(on_device, self._strings, self._deliver, wait=marked)
            self._windows = True
        if not marked:
            self._ranges.stop()
        elif not self._ranges.running:
            self._ranges.start(self._strings, self._deliver)

    def step(self, number: int) -> None:
        """The job has taken a step. On the job's thread; cheap, never raises."""
        RECORDING.step()

    def flush(self) -> None:
        """Deliver what is complete so far."""
        self._ranges.flush()
        if self._recording:
            RECORDING.flush()
        if self._windows:
            WINDOWS.flush()

    def stop(self) -> None:
        """Deliver the rest and stop."""
        self._end_recording()
        self._end_windows()
        self._ranges.stop()

    def leave(self) -> None:
        """The job is about to end the agent, on its own thread."""
        RECORDING.leave()

    def abandon(self) -> None:
        """In a fork: let go of everything."""
        self._ranges.abandon()
        if self._recording:
            RECORDING.abandon()
        if self._windows:
            WINDOWS.abandon()
        self._recording = self._windows = False

    @property
    def losses(self) -> Mapping[str, int]:
        """Records, recordings and stretches of time that were lost since the last start."""
        ranges = {"ranges beyond what may wait": self._ranges.lost} if self._ranges.lost else {}
        recorded = RECORDING.losses if self._recording else {}
        return {**ranges, **self._lost, **recorded, **(WINDOWS.losses if self._windows else {})}

    def _end_recording(self) -> None:
        if self._recording:
            self._recording = False
            RECORDING.stop()
            self._lost = {**self._lost, **RECORDING.losses}

    def _end_windows(self) -> None:
        if self._windows:
            self._windows = False
            WINDOWS.stop()
            self._lost = {**self._lost, **WINDOWS.losses}


def uses_gpu() -> bool:
    """Whether the job has a GPU at work; asking never starts one."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def has_cupti() -> bool:
    """Whether another source reads a GPU's records; the driver has one reader at a time."""
    return importlib.util.find_spec("cupti") is not None


def _counts_memory() -> bool:
    """Whether PyTorch can tell of allocations; on devices that it does not expect it would write a line for each."""
    accelerator = getattr(sys.modules.get("torch"), "accelerator", None)
    device = accelerator.current_accelerator() if accelerator is not None else None
    return device is None or device.type == "cuda"


def _records_device() -> bool:
    return uses_gpu() and not has_cupti()
