"""The arguments of a Triton launch: tensors become storages, and views with a buffer in the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from npuscope.errors import UserError
from npuscope.frontends import addresses
from npuscope.frontends.launch import Session, array_dtype, describe
from npuscope.frontends.triton_values import FakeTensor, HostArray, device_of
from npuscope.mlir.tiles.kinds import bits_of, dtype_of, element_of, is_pointer, pointee_of
from npuscope.npu.memory import borrow
from npuscope.tile.affine import Affine
from npuscope.tile.pointer import Pointer
from npuscope.tile.storage import Argument, Storage
from npuscope.trace.schema import Buffer, Space


class Arguments:
    """Those of one launch: what the kernel is called with (`bound`), and the tensors among it (`tensors`)."""

    def __init__(
        self, session: Session, passed: Sequence[tuple[str, Any]], kinds: Sequence[str], dereferences: bool
    ) -> None:
        self._session = session
        self._storages = Storages()
        self.bound = [self._bind(name, value, kind) for (name, value), kind in zip(passed, kinds, strict=True)]
        pointers = (value for value in self.bound if isinstance(value, Pointer))
        self.tensors = [pointer.argument for pointer in pointers if pointer.argument is not None]
        if dereferences:
            self.tensors += self._reachable()

    @property
    def storages(self) -> list[Storage]:
        """The memory behind the tensors."""
        return self._storages.found

    def _reachable(self) -> list[Argument]:
        """Memory that the kernel may reach by a number: tensors whose address the script has asked for."""
        known = {storage.address for storage in self._storages.found}
        found = []
        for tensor in addresses.living():
            if device_of(tensor) == "cpu" and tensor.untyped_storage().data_ptr() not in known:
                argument = self._storages.argument("a tensor by its address", tensor, _dtype_of(tensor))
                found.append(self._registered(argument))
        return found

    def _bind(self, name: str, value: Any, kind: str) -> Any:
        if is_pointer(kind):
            return self._pointer(name, value, kind)
        element = element_of(kind)
        dtype = dtype_of(element)
        if dtype == np.bool_:
            return np.array([bool(value)])
        if dtype.kind == "i":
            bits = bits_of(element)
            half = 1 << (bits - 1)
            return Affine((int(value) + half) % (2 * half) - half, (), (), bits)
        return np.array([value], np.float64).astype(dtype)

    def _pointer(self, name: str, value: Any, kind: str) -> Pointer:
        if isinstance(value, int):
            return Pointer(None, Affine(value, (), (), 64))
        argument = self._registered(self._storages.argument(name, value, dtype_of(pointee_of(kind))))
        return Pointer(argument, Affine(argument.address, (), (), 64))

    def undefined(self, argument: Argument) -> tuple[tuple[int, int], ...]:
        """What has no content of an argument, as byte offsets from its lowest."""
        poison = self._session.poison
        if poison is None or argument.storage.data is None or argument.gaps:
            return ()
        begin = argument.low - argument.storage.address
        data = argument.storage.data[begin : begin + argument.high - argument.low]
        return poison.runs(data, argument.dtype)

    def _registered(self, argument: Argument) -> Argument:
        """The argument with a buffer in the trace."""
        undefined = self.undefined(argument)
        argument.number = self._session.recorder.add_buffer(
            Buffer(
                Space.GM, -1, argument.low, argument.high - argument.low, "argument", argument.name,
                argument.dtype.name, argument.shape, writeable=argument.writeable, undefined=undefined,
                strides=() if argument.in_rows else argument.strides,
            )
        )  # fmt: skip
        return argument


class Storages:
    """The memory behind the arguments of a launch; what two of them share is one storage."""

    def __init__(self) -> None:
        self.found: list[Storage] = []

    def argument(self, name: str, value: Any, dtype: np.dtype[Any]) -> Argument:
        """A tensor as the view that a kernel gets."""
        if not hasattr(value, "data_ptr"):
            raise UserError(f"argument {name} of type {type(value).__name__} is no tensor")
        address = int(value.data_ptr())
        own = dtype if dtype.itemsize == value.element_size() else np.dtype(f"V{value.element_size()}")
        if isinstance(value, FakeTensor):
            storage = self._storage(value.base, value.size, None, value)
            return Argument(name, storage, address, own, value.shape, value.stride())
        if isinstance(value, HostArray):
            start, size = value.memory()
            writeable = value.array.flags.writeable
            storage = self._storage(start, size, borrow(start, size, writeable, value.array), value.array)
            return Argument(name, storage, address, own, value.shape, value.stride(), -1, writeable)
        owner = value.untyped_storage()
        start, size = int(owner.data_ptr()), int(owner.nbytes())
        storage = self._storage(start, size, borrow(start, size, True, owner), owner)
        return Argument(name, storage, address, own, tuple(value.shape), tuple(value.stride()))

    def _storage(self, address: int, size: int, data: np.ndarray | None, owner: Any) -> Storage:
        for known in self.found:
            if known.address == address and known.size == size:
                return known
        storage = Storage(address, size, data, owner)
        self.found.append(storage)
        return storage


def passed_values(signature: Any, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The arguments that reach the kernel: no constants, tuples and descriptors taken apart."""
    for (name, kind), value in zip(signature, values, strict=True):
        if kind == "constexpr":
            continue
        if isinstance(kind, tuple):
            inner = [(f"{name}[{place}]", one) for place, one in enumerate(kind)]
            yield from passed_values(inner, value)
        elif isinstance(kind, str) and kind.startswith("tensordesc"):
            yield from _descriptor_values(name, value)
        else:
            yield name, value


def _descriptor_values(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A host descriptor as the kernel takes it whose descriptors have become pointers: base, extents and strides, two
    flags, and extents and strides again."""
    extents = [(f"{name}.shape[{axis}]", extent) for axis, extent in enumerate(value.shape)]
    strides = [(f"{name}.strides[{axis}]", stride) for axis, stride in enumerate(value.strides)]
    yield name, value.base
    yield from (*extents, *strides)
    yield f"{name}.padding", value.padding == "nan"
    yield f"{name}.round_f32_to_tf32", bool(getattr(value, "round_f32_to_tf32", False))
    yield from (*extents, *strides)


def _dtype_of(tensor: Any) -> np.dtype[Any]:
    """The elements of a torch tensor, as bytes where numpy has no such type."""
    try:
        return array_dtype(str(tensor.dtype).removeprefix("torch."))
    except TypeError:
        return np.dtype(f"V{tensor.element_size()}")


def described(value: Any) -> str:
    """An argument in a few words for a report."""
    if isinstance(value, FakeTensor):
        return f"{describe(value)} without memory"
    return describe(getattr(value, "base", value))
