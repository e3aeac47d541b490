"""Scripts that put their tensors on ``device="npu"``: torch keeps them on the CPU, where the simulated device is.

Nothing imports torch before the script does; the change is made right after the script's own ``import torch``.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from npuscope.frontends import torch_devices
from npuscope.frontends.imports import after_import, stand_in
from npuscope.frontends.torch_devices import Devices, Notice
from npuscope.mstx.module import attach_mstx

_devices: list[Devices] = []
"""Those that are simulated in this process, once torch is there."""
_waiting: list[Callable[[Any, Devices], None]] = []


def alias_npu(notice: Notice) -> None:
    """From now on, an import of torch also gives it an ``npu`` device; `notice` hears of the first use, once."""
    after_import("torch", lambda torch: _patch(torch, notice))
    stand_in("torch_npu")


def with_torch(notice: Notice, action: Callable[[Any, Devices], None]) -> None:
    """Call `action(torch, devices)` when torch is there, now or later."""
    torch = sys.modules.get("torch")
    if torch is None or torch.__spec__ is None or getattr(torch.__spec__, "_initializing", False):
        _waiting.append(action)
        return
    _patch(torch, notice)
    for devices in _devices:
        action(torch, devices)


def _patch(torch: Any, notice: Notice) -> None:
    if hasattr(torch, "npu"):
        return
    devices = Devices(notice)
    _devices.append(devices)

    def npu_method(self: Any, *args: Any, **kwargs: Any) -> Any:
        devices.tell("npu")
        return self

    torch.Tensor.npu = npu_method
    torch.npu = sys.modules["torch.npu"] = _npu_module()
    attach_mstx(torch.npu)
    torch_devices.install(torch, devices)
    while _waiting:
        _waiting.pop()(torch, devices)


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
