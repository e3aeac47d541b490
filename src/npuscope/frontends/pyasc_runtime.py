"""Stands in for pyasc's runtime library at its lowest seam: the C wrapper functions that `rt.*` calls by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from npuscope.errors import Unsupported
from npuscope.npu.chip import Chip

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


def _cell(pointer: Any, kind: Any) -> Any:
    """The C object behind an address argument."""
    return kind.from_address(ctypes.cast(pointer, ctypes.c_void_p).value or 0)


class Runtime:
    """`call(name, *args)` as pyasc expects it; device memory is host memory."""

    def __init__(self, chip: Callable[[], Chip]) -> None:
        self.chip = chip

    def call(self, name: str, *arguments: Any) -> None:
        """Carry out a runtime function. Raises Unsupported for one that the simulated device has no use for."""
        method = getattr(self, "_" + name, None)
        if method is None:
            raise Unsupported(f"the runtime function {name} is not simulated")
        method(*arguments)

    def _GetSocVersionWrapper(self, text: Any, size: Any) -> None:  # noqa: N802 - the vendor's name
        ctypes.memmove(text, self.chip().name.encode() + b"\0", len(self.chip().name) + 1)

    def _GetDeviceCountWrapper(self, count: Any) -> None:  # noqa: N802
        _cell(count, ctypes.c_int32).value = 1

    def _GetDeviceInfoWrapper(self, device: Any, module: Any, kind: Any, result: Any) -> None:  # noqa: N802
        _cell(result, ctypes.c_int64).value = self.chip().cores.aic

    def _SetDeviceWrapper(self, device: Any) -> None:  # noqa: N802
        pass

    def _DeviceResetWrapper(self, device: Any) -> None:  # noqa: N802
        pass

    def _StreamCreateWrapper(self, stream: Any, priority: Any) -> None:  # noqa: N802
        _cell(stream, ctypes.c_void_p).value = 1

    def _StreamSynchronizeWithTimeoutWrapper(self, stream: Any, timeout: Any) -> None:  # noqa: N802
        pass

    def _DeviceSynchronizeWrapper(self) -> None:  # noqa: N802
        pass

    def _StreamDestroyWrapper(self, stream: Any) -> None:  # noqa: N802
        pass

    def _StreamSynchronizeWrapper(self, stream: Any = None, timeout: Any = None) -> None:  # noqa: N802
        pass

    def _MallocWrapper(self, pointer: Any, size: Any, kind: Any, module: Any) -> None:  # noqa: N802
        _cell(pointer, ctypes.c_void_p).value = _libc.malloc(size.value)

    def _FreeWrapper(self, pointer: Any) -> None:  # noqa: N802
        _libc.free(pointer)

    def _MemcpyWrapper(self, target: Any, room: Any, source: Any, size: Any, kind: Any) -> None:  # noqa: N802
        ctypes.memmove(target, source, size.value)

    def _GetC2cCtrlAddrWrapper(self, address: Any, length: Any = None) -> None:  # noqa: N802
        _cell(address, ctypes.c_uint64).value = 0
