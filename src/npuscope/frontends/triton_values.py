"""What scripts pass to kernels beside tensors in memory: numpy arrays and scalars, and tensors without memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from npuscope.errors import UserError

FAKE_BASE = 1 << 60
FAKE_GAP = 1 << 21
FAKE_ALIGNMENT = 512
"""Addresses of memory that does not exist: no process has any there."""


class HostArray:
    """A numpy array in the shape that Triton knows."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.array.ctypes.data)

    def memory(self) -> tuple[int, int]:
        """Address and bytes of the array that this one is a view of, or of itself."""
        owner = self.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = np.byte_bounds(owner)
        return int(low), int(high - low)

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.array.itemsize)

    def stride(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis."""
        return tuple(step // self.array.itemsize for step in self.array.strides)


class FakeTensor:
    """A tensor without memory (on torch's device "meta", or one of its fake tensors), at a made-up address."""

    def __init__(self, tensor: Any, base: int, size: int) -> None:
        self.tensor = tensor
        self.base = base
        self.size = size
        self.dtype = tensor.dtype
        self.shape = tuple(tensor.shape)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.base + int(self.tensor.storage_offset()) * self.element_size()

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.tensor.element_size())

    def stride(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis."""
        return tuple(self.tensor.stride())


def host_value(value: Any, name: str, known: dict[int, Any]) -> Any:
    """An argument as Triton and the launch take it. `known` holds the memory of the launch's fake tensors by storage.

    Raises UserError for a tensor that lies elsewhere.
    """
    kind = type(value)
    if kind in (int, float, bool, str) or value is None:
        return value
    if isinstance(value, np.ndarray):
        return HostArray(value)
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "untyped_storage"):
        return _tensor(value, name, known)
    if kind in (tuple, list):
        return kind(host_value(item, f"{name}[{index}]", known) for index, item in enumerate(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = zip(value._fields, value, strict=True)
        return kind(*(host_value(item, f"{name}.{field}", known) for field, item in named))
    if kind.__name__ == "TensorDescriptor":
        return _descriptor(value, name, known)
    return value


def _tensor(value: Any, name: str, known: dict[int, Any]) -> Any:
    where = device_of(value)
    if where == "cpu":
        return value
    if where != "meta":
        raise UserError(
            f"argument {name} lies on device {where}, which kernels here cannot reach: pass a CPU tensor"
            + (" or hide the GPU (CUDA_VISIBLE_DEVICES=)" if where == "cuda" else "")
        )
    storage = value.untyped_storage()
    size = int(storage.nbytes())
    key = int(storage._cdata)
    if key not in known:
        end = max((base + length for base, length in known.values()), default=FAKE_BASE)
        known[key] = (-(-(end + FAKE_GAP) // FAKE_ALIGNMENT) * FAKE_ALIGNMENT, size)
    return FakeTensor(value, *known[key])


def device_of(value: Any) -> str:
    """ "meta" for whatever has no memory, fake tensors included, whichever device they claim."""
    import torch

    if any(base.__name__ == "FakeTensor" for base in type(value).__mro__):
        return "meta"
    with torch._C.DisableTorchFunction():
        if isinstance(value, torch.Tensor):
            return str(value.device.type)
        storage = value.untyped_storage()  # a library's own wrapper repeats what a tensor has told it
        return str(getattr(storage, "device", value.device).type)


def _descriptor(value: Any, name: str, known: dict[int, Any]) -> Any:
    base = host_value(value.base, f"{name}.base", known)
    if base is value.base:
        return value
    other = copy.copy(value)
    other.base = base
    return other
