"""Stands in for pyasc's runtime library at its lowest seam: the C wrapper functions that `rt.*` calls by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from npuscope.errors import Unsupported
from npuscope.frontends.heap import Heap
from npuscope.npu.chip import Chip

ROUNDING = 512
"""pyasc asks for that many bytes more than its caller wants, to round the address up."""

TO_DEVICE = frozenset([1, 3, 5, 6])
FROM_DEVICE = frozenset([2, 3, 5, 7])
"""Kinds of copies (`rt.MemcpyKind`) that write and read device memory."""

OUT_OF_MEMORY = 207001
BAD_PARAMETER = 107000
"""Codes that the vendor's runtime returns."""


def _cell(pointer: Any, kind: Any) -> Any:
    """The C object behind an address argument."""
    return kind.from_address(ctypes.cast(pointer, ctypes.c_void_p).value or 0)


class Runtime:
    """`call(name, *args)` as pyasc expects it; device memory is host memory, its blocks kept by `heap`."""

    def __init__(self, chip: Callable[[], Chip], heap: Heap, chosen: Callable[[int], None] = lambda device: None
                 ) -> None:
        self.chip = chip
        self.heap = heap
        self.chosen = chosen  # hears which device the script chooses

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
        self.chosen(int(device.value))

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
        try:
            address = self.heap.malloc(max(size.value - ROUNDING, 0) or size.value)
        except MemoryError:
            raise RuntimeError(f"Function MallocWrapper returned {OUT_OF_MEMORY}") from None
        _cell(pointer, ctypes.c_void_p).value = address

    def _FreeWrapper(self, pointer: Any) -> None:  # noqa: N802
        self.heap.free(pointer.value or 0)

    def _MemcpyWrapper(self, target: Any, room: Any, source: Any, size: Any, kind: Any) -> None:  # noqa: N802
        if size.value > room.value:
            raise RuntimeError(f"Function MemcpyWrapper returned {BAD_PARAMETER}")
        number = int(kind)
        self.heap.copy(target.value or 0, source.value or 0, size.value, room.value, number in TO_DEVICE,
                       number in FROM_DEVICE)

    def _GetC2cCtrlAddrWrapper(self, address: Any, length: Any = None) -> None:  # noqa: N802
        _cell(address, ctypes.c_uint64).value = 0


class Allocations(dict[int, int]):
    """pyasc's own table of live blocks (handle to pointer). A handle that is not in it is what `rt.free` was wrongly
    given: that is noted before pyasc's own KeyError."""

    def __init__(self, heap: Heap) -> None:
        super().__init__()
        self._heap = heap

    def __missing__(self, handle: int | None) -> int:
        self._heap.free(handle or 0)
        raise KeyError(handle)
