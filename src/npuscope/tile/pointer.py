"""Pointers: byte addresses that remember which argument they came from."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.tile import affine
from npuscope.tile.affine import Affine, dense, within_64_bits
from npuscope.tile.storage import Argument


class Pointer:
    """Host byte addresses, in a row or as an int64 array; `argument` None when they come from several or none."""

    __slots__ = ("argument", "address")

    def __init__(self, argument: Argument | None, address: Affine | np.ndarray) -> None:
        self.argument = argument
        self.address = address


def advance(size: int, pointer: Pointer, offset: Any) -> Pointer:
    """The pointer moved by `offset` elements of `size` bytes."""
    address = pointer.address
    if type(address) is Affine and type(offset) is Affine:
        strides = tuple(stride + step * size for stride, step in zip(address.strides, offset.strides, strict=True))
        moved_base = address.base + offset.base * size
        base = within_64_bits(moved_base) if isinstance(moved_base, int) else moved_base
        return Pointer(pointer.argument, Affine(base, strides, address.shape, 64))
    left = address.wide() if isinstance(address, Affine) else address
    moved = offset.wide() if isinstance(offset, Affine) else offset.astype(np.int64)
    return Pointer(pointer.argument, left + moved * size)


def splat(shape: tuple[int, ...], value: Any) -> Any:
    """One value per program as a tile."""
    kind = type(value)
    if kind is Affine:
        return affine.with_shape(value, (0,) * len(shape), shape)
    if kind is Pointer:
        return Pointer(value.argument, splat(shape, value.address))
    array = dense(value)
    return array.reshape((array.shape[0],) + (1,) * len(shape))
