"""Operations that move values about without changing them."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.tile.affine import Affine, dense, with_shape
from npuscope.tile.box import Box
from npuscope.tile.pointer import Pointer

Shape = tuple[int, ...]


def whole(shape: Shape, value: Any) -> np.ndarray:
    """The value as an array of the tile's full shape (the programs' axis may still have the length 1)."""
    array = dense(value)
    return np.broadcast_to(array, (array.shape[0], *shape)) if array.shape[1:] != shape else array


def expand(axis: int, shape: Shape, value: Any) -> Any:
    """The value with a new axis of length 1; `shape` is the result's."""
    kind = type(value)
    if kind is Affine:
        return with_shape(value, (*value.strides[:axis], 0, *value.strides[axis:]), shape)
    if kind is Box:
        return Box(shape, {at + (at >= axis): bound for at, bound in value.bounds.items()})
    if kind is Pointer:
        return Pointer(value.argument, expand(axis, shape, value.address))
    return np.expand_dims(value, axis + 1)


def broadcast(shape: Shape, value: Any) -> Any:
    """The value repeated along axes of length 1."""
    kind = type(value)
    if kind is Affine:
        strides = tuple(
            0 if count == 1 else stride for stride, count in zip(value.strides, value.shape, strict=True)
        )
        return with_shape(value, strides, shape)
    if kind is Box:
        bounds = {}
        for axis, (low, high) in value.bounds.items():
            if value.shape[axis] == 1 and shape[axis] != 1:
                high = np.where(np.asarray(high) > low, shape[axis], 0)
                high, low = (int(high) if high.ndim == 0 else high), 0
            bounds[axis] = (low, high)
        return Box(shape, bounds)
    if kind is Pointer:
        return Pointer(value.argument, broadcast(shape, value.address))
    return value


def transpose(order: Shape, shape: Shape, value: Any) -> Any:
    """The value with its axes in another order; `shape` is the result's."""
    kind = type(value)
    if kind is Affine:
        return with_shape(value, tuple(value.strides[axis] for axis in order), shape)
    if kind is Box:
        return Box(shape, {order.index(axis): bound for axis, bound in value.bounds.items()})
    if kind is Pointer:
        return Pointer(value.argument, transpose(order, shape, value.address))
    return np.transpose(value, (0, *(axis + 1 for axis in order)))


def reshape(source: Shape, shape: Shape, value: Any) -> Any:
    """The same elements in row-major order under another shape."""
    if type(value) is Pointer:
        address = reshape(source, shape, value.address)
        return Pointer(value.argument, address)
    if type(value) is Affine:
        strides = _respread(source, shape, value.strides)
        if strides is not None:
            return with_shape(value, strides, shape)
    if type(value) is Box and not value.bounds:
        return Box(shape, {})
    array = dense(value)
    if array.size == array.shape[0]:  # one number all over
        return array.reshape((-1,) + (1,) * len(shape))
    array = whole(source, array)
    return array.reshape((array.shape[0], *shape))


def _respread(source: Shape, shape: Shape, strides: Shape) -> Shape | None:
    """Strides under another shape, where only axes of length 1 come and go or one axis is taken apart; else None."""
    moving = [(count, stride) for count, stride in zip(source, strides, strict=True) if count > 1]
    if not any(strides):
        return (0,) * len(shape)
    if len(moving) == 1:
        result, step = [], moving[0][1]
        for count in reversed(shape):
            result.append(step if count > 1 else 0)
            step *= count
        return tuple(reversed(result))
    if [count for count, _ in moving] == [count for count in shape if count > 1]:
        left = iter(stride for _, stride in moving)
        return tuple(next(left) if count > 1 else 0 for count in shape)
    return None


def join(shape: Shape, one: Any, other: Any) -> np.ndarray:
    """Two tiles of `shape` side by side along a new last axis."""
    left, right = np.broadcast_arrays(whole(shape, one), whole(shape, other))
    return np.stack((left, right), axis=-1)


def split(shape: Shape, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """The two halves along the last axis of a tile of `shape`, which has the length 2."""
    array = whole(shape, value)
    return np.ascontiguousarray(array[..., 0]), np.ascontiguousarray(array[..., 1])


def concatenate(one_shape: Shape, other_shape: Shape, one: Any, other: Any) -> np.ndarray:
    """Two tiles one after the other along the first axis."""
    left, right = whole(one_shape, one), whole(other_shape, other)
    programs = max(left.shape[0], right.shape[0])
    return np.concatenate([np.broadcast_to(part, (programs, *part.shape[1:])) for part in (left, right)], axis=1)


def pick(axis: int, source: Shape, shape: Shape, value: Any, index: Any) -> np.ndarray:
    """Elements of `value` (of shape `source`) at `index` (of `shape`) along an axis."""
    values, places = whole(source, value), whole(shape, index)
    programs = max(values.shape[0], places.shape[0])
    values, places = (np.broadcast_to(part, (programs, *part.shape[1:])) for part in (values, places))
    result: np.ndarray = np.take_along_axis(values, places.astype(np.int64), axis + 1)
    return result


def choose(condition: Any, one: Any, other: Any) -> Any:
    """`one` where the condition holds, else `other`."""
    if type(one) is Pointer or type(other) is Pointer:
        argument = one.argument if one.argument is other.argument else None
        return Pointer(argument, np.where(dense(condition), _wide(one.address), _wide(other.address)))
    return np.where(dense(condition), dense(one), dense(other))


def choose_whole(rank: int, condition: Any, one: Any, other: Any) -> Any:
    """`one` in programs in which the condition holds, else `other`; both are tiles of `rank` axes."""
    return choose(dense(condition).reshape((-1,) + (1,) * rank), one, other)


def _wide(address: Affine | np.ndarray) -> np.ndarray:
    return address.wide() if isinstance(address, Affine) else address
