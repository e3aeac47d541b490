"""Scripts that put their tensors on a device that is not there: torch keeps them on the CPU, where it is simulated.

One mode of torch's own sees every call of a thread and says "cpu" where the script says the device's name. Code outside
torch also gets the answers that it needs to go on: from the moment a script has asked for "cuda", its tensors say that
they lie on "cuda:0"; torch itself, whose kernels for that device do not exist here, is always told the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from npuscope.frontends import addresses
from npuscope.frontends.uninitialised import fill_torch

Notice = Callable[[str], None]

TRUTHFUL = ("torch", "npuscope")
"""Packages that are told where a tensor really lies."""

PASSING = ("torch.utils._device", "torch.overrides")
"""Modules whose modes pass on what others ask."""


class Devices:
    """The devices that are simulated. `names` are those that tensors may be put on, `claims` whether "cuda" has been
    asked for, so that tensors on the CPU claim to lie there; `gpu` whether kernels for GPUs run here at all."""

    def __init__(self, notice: Notice) -> None:
        self.names = {"npu"}
        self.claims = False
        self.gpu = False
        self._notice = notice
        self._told: set[str] = set()

    def translate(self, value: Any) -> Any:
        """A device as torch has it; anything else as it is."""
        import torch

        if isinstance(value, bool) or not isinstance(value, (str, torch.device, int)):
            return value
        name, _, index = str(value).partition(":")
        if isinstance(value, int):
            name, index = "cuda", str(value)
        if name not in self.names:
            return value
        if index not in ("", "0"):
            raise RuntimeError(f"invalid device ordinal: {name}:{index}; there is one simulated device, {name}:0")
        self.tell(name)
        return torch.device("cpu")

    def tell(self, name: str) -> None:
        """Note that a device is used, and say so once."""
        self.claims |= name == "cuda"
        if name not in self._told:
            self._told.add(name)
            self._notice(f'torch device "{name}" is simulated: its tensors stay in CPU memory')


def install(torch: Any, devices: Devices) -> None:
    """Let the calls of this thread go through `devices`."""
    from torch.overrides import TorchFunctionMode

    class Simulated(TorchFunctionMode):
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = getattr(func, "__name__", "")
            if name == "__get__":
                return _attribute(devices, func, args, sys._getframe(1))
            special = SPECIAL.get(name)
            if special is not None and devices.gpu:
                return special(devices, func, args, kwargs)
            if "device" in kwargs:
                kwargs = {**kwargs, "device": devices.translate(kwargs["device"])}
            if name == "to" and len(args) > 1:
                args = (args[0], devices.translate(args[1]), *args[2:])
            elif name == "device" and args and str(args[0]).startswith("npu"):
                args = (devices.translate(args[0]), *args[1:])  # torch has no device of that name
            elif name == "data_ptr" and args:
                addresses.note(args[0])
            if devices.gpu and kwargs.get("pin_memory"):
                kwargs = {**kwargs, "pin_memory": False}
            made = func(*args, **kwargs)
            fill_torch(func, kwargs, made)
            return made

    _keep_in_backward(torch, Simulated)
    Simulated().__enter__()


def _keep_in_backward(torch: Any, mode: Any) -> None:
    """Let the functions of a backward pass go through the mode too; torch switches it off around `backward` itself."""
    run = torch.autograd.graph._engine_run_backward

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        with mode():
            return run(*args, **kwargs)

    torch.autograd.graph._engine_run_backward = torch.autograd._engine_run_backward = run_backward


def outside(frame: FrameType | None) -> bool:
    """Whether the code of a frame is the user's or a library's, and so told what it needs to hear."""
    name = _module(frame)
    while name in PASSING and frame is not None:
        frame = frame.f_back
        name = _module(frame)
    return name.split(".")[0] not in TRUTHFUL


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _attribute(devices: Devices, func: Any, args: Any, frame: FrameType) -> Any:
    """An attribute of a tensor."""
    import torch

    found = func(*args)
    if not devices.gpu:
        return found
    name = getattr(func.__self__, "__name__", "")
    if name == "device" and devices.claims and found.type == "cpu" and outside(frame):
        return torch.device("cuda", 0)
    if name == "is_cuda" and not found and outside(frame):
        return bool(args[0].device.type == "cpu")
    return found


def _here(devices: Devices, func: Any, args: Any, kwargs: Any) -> Any:
    """``x.cuda()``: the tensor is there."""
    devices.translate(kwargs.get("device", args[1] if len(args) > 1 else "cuda") or "cuda")
    return args[0]


def _same(devices: Devices, func: Any, args: Any, kwargs: Any) -> Any:
    return args[0]


def _index(devices: Devices, func: Any, args: Any, kwargs: Any) -> Any:
    found = func(*args, **kwargs)
    return 0 if found == -1 and devices.claims and outside(sys._getframe(2)) else found


SPECIAL: dict[str, Callable[[Devices, Any, Any, Any], Any]] = {
    "cuda": _here,
    "pin_memory": _same,
    "record_stream": lambda devices, func, args, kwargs: None,
    "get_device": _index,
}
"""Methods of tensors that only a GPU has."""
