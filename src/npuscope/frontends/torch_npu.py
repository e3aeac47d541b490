"""Scripts that put their tensors on ``device="npu"``: torch keeps them on the CPU, where the simulated device is.

Nothing imports torch before the script does; the change is made right after the script's own ``import torch``.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from npuscope.frontends.imports import after_import, stand_in
from npuscope.frontends.uninitialised import fill_torch

Notice = Callable[[str], None]


def alias_npu(notice: Notice) -> None:
    """From now on, an import of torch also gives it an ``npu`` device; `notice` hears of the first use, once."""
    after_import("torch", lambda torch: _patch(torch, notice))
    stand_in("torch_npu")


def _is_npu(device: Any) -> bool:
    return str(device).split(":")[0] == "npu"


def _patch(torch: Any, notice: Notice) -> None:
    from torch.overrides import TorchFunctionMode

    if hasattr(torch, "npu"):
        return
    told: list[bool] = []

    def tell() -> None:
        if not told:
            told.append(True)
            notice('torch device "npu" is simulated: its tensors stay in CPU memory')

    def translate(value: Any) -> Any:
        if isinstance(value, (str, torch.device)) and _is_npu(value):
            tell()
            return torch.device("cpu")
        return value

    class NpuIsHere(TorchFunctionMode):
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if "device" in kwargs:
                kwargs = {**kwargs, "device": translate(kwargs["device"])}
            name = getattr(func, "__name__", "")
            if name in ("to", "new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "device"):
                args = tuple(translate(value) for value in args)
            made = func(*args, **kwargs)
            fill_torch(func, kwargs, made)
            return made

    def npu_method(self: Any, *args: Any, **kwargs: Any) -> Any:
        tell()
        return self

    torch.Tensor.npu = npu_method
    torch.npu = sys.modules["torch.npu"] = _npu_module()
    NpuIsHere().__enter__()


def _npu_module() -> types.ModuleType:
    """``torch.npu`` as far as kernel scripts use it: one device that is always ready."""
    module: Any = types.ModuleType("torch.npu")
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.set_device = lambda device: None
    module.synchronize = lambda device=None: None
    module.empty_cache = lambda: None
    module.manual_seed = module.manual_seed_all = lambda seed: None
    module.current_stream = lambda device=None: types.SimpleNamespace(npu_stream=0, synchronize=lambda: None)
    return module
