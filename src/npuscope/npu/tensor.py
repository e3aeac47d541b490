"""Handles on device memory that a kernel passes around: pointers and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.npu.memory import Memory
from npuscope.trace.schema import Space

DType = np.dtype[Any]


class Pointer:
    """A global-memory address with the array it came from; `address` in bytes."""

    __slots__ = ("memory", "address", "dtype", "buffer")

    def __init__(self, memory: Memory, address: int, dtype: DType, buffer: int) -> None:
        self.memory = memory
        self.address = address
        self.dtype = dtype
        self.buffer = buffer

    def offset(self, elements: int) -> Pointer:
        """The pointer `elements` further on."""
        return Pointer(self.memory, self.address + elements * self.dtype.itemsize, self.dtype, self.buffer)


class Tensor:
    """A typed view of a memory from byte `address` on.

    `buffer` is what owns the bytes and so bounds them. `length` is in elements, as the kernel declared it (-1: to the
    end of the buffer). `position` is Ascend C's TPosition. `slot` ties a tensor to its TQue buffer. Handles are
    mutable, as in Ascend C: set_global_buffer and the in-place operations rebind them.
    """

    __slots__ = ("memory", "address", "dtype", "buffer", "length", "position", "slot", "shape", "original", "tag")

    def __init__(
        self,
        memory: Memory,
        address: int,
        dtype: DType,
        buffer: int,
        length: int = -1,
        position: int = 0,
        slot: Any = None,
        shape: Any = None,
    ) -> None:
        self.memory = memory
        self.address = address
        self.dtype = dtype
        self.buffer = buffer
        self.length = length
        self.position = position
        self.slot = slot
        self.shape = shape
        self.original: Any = None
        self.tag = 0

    @property
    def space(self) -> Space:
        """The memory space the tensor lies in."""
        return self.memory.space

    def at(self, elements: int) -> Tensor:
        """The tensor `elements` further on, with what remains of the length."""
        dtype, length = self.dtype, self.length
        return Tensor(
            self.memory,
            self.address + elements * dtype.itemsize,
            dtype,
            self.buffer,
            length - elements if length >= 0 else -1,
            self.position,
            self.slot,
        )

    def cast(self, dtype: DType) -> Tensor:
        """The same bytes as elements of `dtype`."""
        length = self.length
        if length >= 0:
            length = length * self.dtype.itemsize // dtype.itemsize
        return Tensor(self.memory, self.address, dtype, self.buffer, length, self.position, self.slot)

    def rebind(self, other: Tensor) -> None:
        """Make this handle mean what `other` means."""
        for name in ("memory", "address", "dtype", "buffer", "length", "position", "slot"):
            setattr(self, name, getattr(other, name))


def shifted(tensor: Tensor, nbytes: int) -> Tensor:
    """The tensor `nbytes` bytes further on, same owner; `Tensor.at` counts in elements and keeps the length."""
    if nbytes == 0:
        return tensor
    return Tensor(tensor.memory, tensor.address + nbytes, tensor.dtype, tensor.buffer, -1, tensor.position, tensor.slot)
