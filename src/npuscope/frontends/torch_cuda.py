"""Scripts written for ``device="cuda"`` on a machine without a GPU, once they have imported Triton.

``torch.cuda`` then tells code outside torch of one device that is always ready and never busy. Times that its events
measure are all the same, its memory is empty. See :mod:`npuscope.frontends.torch_devices` for the tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from npuscope.frontends.torch_devices import Devices, Notice, outside
from npuscope.frontends.torch_npu import with_torch

NAME = "npuscope (simulated)"
CAPABILITY = (8, 0)
MULTIPROCESSORS = 40
MEMORY = 80 << 30
MILLISECONDS = 1.0


def alias_cuda(notice: Notice) -> None:
    """Give torch, when it is there or comes, a simulated "cuda" unless a real one is there."""
    with_torch(notice, _alias)


def _alias(torch: Any, devices: Devices) -> None:
    if devices.gpu or torch.cuda.is_available():
        return
    devices.gpu = True
    devices.names.add("cuda")
    _patch_module(torch, devices)
    _patch_functions(torch, devices)


def properties() -> Any:
    """What ``torch.cuda.get_device_properties`` returns."""
    return SimpleNamespace(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=MEMORY,
        multi_processor_count=MULTIPROCESSORS, warp_size=32, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, shared_memory_per_block=49152, shared_memory_per_block_optin=166912,
        shared_memory_per_multiprocessor=167936, L2_cache_size=40 << 20, is_integrated=0, is_multi_gpu_board=0,
        gcnArchName="",
    )  # fmt: skip


def _answers(torch: Any) -> dict[str, Any]:
    """Functions of the module that need no more than an answer."""
    return {
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_properties": lambda device=None: properties(),
        "get_arch_list": lambda: ["sm_80"],
        "synchronize": lambda device=None: None,
        "init": lambda: None,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
        "manual_seed": lambda seed: _seed(torch, seed),
        "manual_seed_all": lambda seed: _seed(torch, seed),
        "default_generators": (Counter(torch),),
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "memory_stats": lambda device=None: {},
        "reset_peak_memory_stats": lambda device=None: None,
        "reset_max_memory_allocated": lambda device=None: None,
        "mem_get_info": lambda device=None: (MEMORY, MEMORY),
        "utilization": lambda device=None: 0,
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "set_stream": lambda stream: None,
        "stream": Chosen,
        "device": Chosen,
        "device_of": Chosen,
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
    }


def _seed(torch: Any, seed: int) -> None:
    """Torch's own seeding of everything comes here too, and has seeded the CPU's generator then."""
    torch.cuda.default_generators[0].manual_seed(seed)
    if outside(sys._getframe(2)):
        torch.default_generator.manual_seed(seed)


def _patch_module(torch: Any, devices: Devices) -> None:
    for name, answer in _answers(torch).items():
        setattr(torch.cuda, name, answer)
    torch.cuda.is_available = _to_outsiders(torch.cuda.is_available, True)
    torch.cuda.device_count = _to_outsiders(torch.cuda.device_count, 1)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *arguments, **named: 0)


def _patch_functions(torch: Any, devices: Devices) -> None:
    """What no mode sees: the default device, autocasting, loading, and generators of random numbers."""
    from torch.utils._device import DeviceContext

    begin = DeviceContext.__init__
    DeviceContext.__init__ = lambda self, device: begin(self, devices.translate(device))
    from torch.amp.autocast_mode import autocast

    prepare, load = autocast.__init__, torch.load

    def cast_here(self: Any, device_type: str, dtype: Any = None, *more: Any, **named: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
        prepare(self, device_type, dtype, *more, **named)

    def load_here(file: Any, map_location: Any = None, *more: Any, **named: Any) -> Any:
        return load(file, "cpu" if map_location is None else devices.translate(map_location), *more, **named)

    autocast.__init__ = cast_here
    torch.load = load_here
    original = torch.Generator

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

        def __call__(cls, device: Any = "cpu") -> Any:
            return original(devices.translate(device))

    torch.Generator = Kind("Generator", (), {"__module__": "torch", "__doc__": original.__doc__})


def _to_outsiders(original: Callable[[], Any], answer: Any) -> Callable[[], Any]:
    """A function that tells torch the truth and everybody else `answer`."""
    return lambda: answer if outside(sys._getframe(1)) else original()


class Counter:
    """The device's generator of random numbers as libraries use it that draw them in kernels of their own: a seed and
    how many were drawn, 8 bytes each."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._numbers = [torch.default_generator.initial_seed(), 0]

    def get_state(self) -> Any:
        """Both numbers as bytes."""
        return self._torch.tensor([_signed(number) for number in self._numbers]).view(self._torch.uint8)

    def set_state(self, state: Any) -> Counter:
        """Go on from a state."""
        self._numbers = state.view(self._torch.int64).tolist()
        return self

    def manual_seed(self, seed: int) -> Counter:
        """Begin anew."""
        self._numbers = [int(seed), 0]
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self._numbers[0] % (1 << 64)


def _signed(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class Chosen:
    """A device or stream that is chosen for a while: there is only one."""

    def __init__(self, chosen: Any = None) -> None:
        self.idx = self.prev_idx = 0

    def __enter__(self) -> Chosen:
        return self

    def __exit__(self, *what: Any) -> None:
        """Nothing was changed."""


class Stream:
    """All streams are one, and everything in it is done."""

    cuda_stream = stream_id = device_index = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Takes what a stream is made of."""

    def synchronize(self) -> None:
        """Done."""

    def query(self) -> bool:
        """Whether everything is done: always."""
        return True

    def wait_stream(self, stream: Any) -> None:
        """Done."""

    def wait_event(self, event: Any) -> None:
        """Done."""

    def record_event(self, event: Any = None) -> Any:
        """An event that has happened."""
        return event or Event()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *what: Any) -> None:
        """Nothing was changed."""


class Event:
    """An event that has happened; between two of them lies always the same time."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Takes what an event is made of."""

    def record(self, stream: Any = None) -> None:
        """Done."""

    def wait(self, stream: Any = None) -> None:
        """Done."""

    def query(self) -> bool:
        """Whether it has happened: always."""
        return True

    def synchronize(self) -> None:
        """Done."""

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds to the other event."""
        return MILLISECONDS
