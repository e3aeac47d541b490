"""Integers that did not fit their width: wrapped values that know what they should have been, to where they are used.

Most kernels never make one. Where one is made, sums and products of it are computed twice, as the device does and
exactly; what is taken apart on purpose (a remainder, a shift, a mask: a hash) is an ordinary number from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.tile.affine import SIGNED, Affine


@dataclass(frozen=True, slots=True)
class Overflow:
    """An operation whose result did not fit: what it was, where (a site of the trace), the numbers of one case."""

    operation: str
    site: int
    one: int
    other: int
    bits: int

    @property
    def exact(self) -> int:
        """What the result would have been."""
        return {"+": self.one + self.other, "-": self.one - self.other, "*": self.one * self.other}[self.operation]

    @property
    def wrapped(self) -> int:
        """What it became."""
        half = 1 << (self.bits - 1)
        return (self.exact + half) % (2 * half) - half


class Wrapped(np.ndarray):
    """An integer array that came out of an overflow. `exact` are the numbers without it, as int64 (None where they do
    not fit that either)."""

    note: Overflow | None = None
    exact: np.ndarray | None = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """Sums and products stay wrapped; whatever else is computed is plain."""
        result = getattr(ufunc, method)(*map(plain, inputs), **named)
        if method != "__call__" or ufunc not in DUAL or named:
            return result
        return wrapped_as(result, _exactly(ufunc, inputs), _note(inputs))

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        """Broadcasts, choices and changes of shape stay wrapped."""
        result = function(*_each(plain, arguments), **named)
        if function not in MOVES:
            return result
        parts = list(_flat(arguments))
        if any(isinstance(part, Wrapped) and part.exact is None for part in parts):
            return wrapped_as(result, None, _note(parts))
        return wrapped_as(result, function(*_each(exactly, arguments), **named), _note(parts))

    def _moved(self, move: Callable[[np.ndarray], Any]) -> Any:
        result = move(plain(self))
        return wrapped_as(result, None if self.exact is None else move(self.exact), self.note)

    def reshape(self, *shape: Any, **named: Any) -> Any:
        """The same numbers under another shape."""
        return self._moved(lambda array: array.reshape(*shape, **named))

    def transpose(self, *axes: Any) -> Any:
        """The same numbers, axes in another order."""
        return self._moved(lambda array: array.transpose(*axes))

    def __getitem__(self, index: Any) -> Any:
        return self._moved(lambda array: array[index])

    def astype(self, dtype: Any, *arguments: Any, **named: Any) -> Any:
        """The numbers in a type that is as wide or wider stay wrapped."""
        result = plain(self).astype(dtype, *arguments, **named)
        if result.dtype.kind != "i" or result.dtype.itemsize < self.dtype.itemsize:
            return result
        return wrapped_as(result, self.exact, self.note)


DUAL = (np.add, np.subtract, np.multiply, np.negative)
MOVES = (np.broadcast_to, np.where, np.expand_dims, np.reshape, np.transpose, np.moveaxis, np.squeeze, np.concatenate)


def wrapped_as(result: Any, exact: np.ndarray | None, note: Overflow | None) -> Any:
    """A result with what it should have been; as it is where that is the same."""
    if exact is not None and not (exact != result).any():
        return result
    found: Wrapped = np.asarray(result).view(Wrapped)
    found.exact, found.note = exact, note
    return found


def plain(value: Any) -> Any:
    """Without the note: what is taken from it now is meant to wrap (a hash, a remainder)."""
    return value.view(np.ndarray) if type(value) is Wrapped else value


def exactly(value: Any) -> Any:
    """The numbers without the overflow."""
    return value.exact if isinstance(value, Wrapped) else value


def _exactly(ufunc: Any, inputs: tuple[Any, ...]) -> np.ndarray | None:
    if any(isinstance(value, Wrapped) and value.exact is None for value in inputs):
        return None
    found: np.ndarray = ufunc(*(np.asarray(exactly(value)).astype(np.int64) for value in inputs))
    return found


def _note(values: Any) -> Overflow | None:
    return next((value.note for value in values if isinstance(value, Wrapped)), None)


def _each(function: Callable[[Any], Any], values: Any) -> Any:
    """The function of every array in nested tuples and lists."""
    if isinstance(values, (tuple, list)):
        return type(values)(_each(function, value) for value in values)
    return function(values)


def _flat(values: Any) -> Any:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield value


def wrap(operation: str, site: int, one: Affine, other: Affine, exact: Affine) -> np.ndarray:
    """The result of an operation in a row that did not fit, as the device has it."""
    values = exact.wide()
    about = _about(exact) if exact.bits == 64 else values
    where = np.unravel_index(int(np.argmax(np.abs(about))), values.shape)
    cases = [int(np.broadcast_to(operand.wide(), values.shape)[where]) for operand in (one, other)]
    note = Overflow(operation, site, cases[0], cases[1], exact.bits)
    if exact.bits == 64:
        return wrapped_as(values, None, note)
    return wrapped_as(values.astype(SIGNED[exact.bits]), values, note)


def wrap_arrays(operation: str, site: int, result: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The result of a sum, difference or product of arrays, with what it should have been where that does not fit."""
    function = {"+": np.add, "-": np.subtract, "*": np.multiply}[operation]
    known = _note((one, other))
    if result.dtype.itemsize == 8:
        return result if known is None else wrapped_as(result, _exactly(function, (one, other)), known)
    exact = _exactly(function, (one, other))
    if exact is None or not (exact != result).any():
        return result
    if known is None:
        where = np.unravel_index(int(np.argmax(np.abs(exact))), exact.shape)
        cases = [int(np.broadcast_to(operand, exact.shape)[where]) for operand in (one, other)]
        known = Overflow(operation, site, cases[0], cases[1], 8 * result.dtype.itemsize)
    return wrapped_as(plain(result), exact, known)


def may_pass(operation: str, one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a sum, difference or product of 32-bit arrays may not fit; one with a hash's constant is meant not to."""
    if type(one) is Wrapped or type(other) is Wrapped:
        return True
    if one.dtype.itemsize != 4 or not one.size or not other.size:
        return False
    low, high, least, most = (int(bound) for array in (one, other) for bound in (array.min(), array.max()))
    found: tuple[int, ...]
    if operation == "*":
        if _mixes(low, high) or _mixes(least, most):
            return False
        found = (low * least, low * most, high * least, high * most)
    else:
        found = (low + least, high + most) if operation == "+" else (low - most, high - least)
    return min(found) < -(1 << 31) or max(found) >= 1 << 31


def _mixes(low: int, high: int) -> bool:
    """Whether a factor is a large odd number, as hashes and random numbers take them."""
    return low == high and low % 2 == 1 and abs(low) > 1 << 28


def facts_of(address: Wrapped, lanes: np.ndarray) -> dict[str, Any]:
    """What a fault says of the overflow behind some lanes of addresses; nothing where it is not to blame for them."""
    note = address.note
    if note is None or (address.exact is not None and not ((address.exact != plain(address)) & lanes).any()):
        return {}
    return {
        "overflow": {
            "operation": note.operation, "site": note.site, "one": note.one, "other": note.other, "exact": note.exact,
            "wrapped": note.wrapped, "bits": note.bits,
        }
    }  # fmt: skip


def _about(value: Affine) -> np.ndarray:
    """The numbers as floats, for what does not fit 64 bits."""
    rank = len(value.shape)
    total = np.asarray(value.base, np.float64).reshape((-1,) + (1,) * rank)
    for axis, (stride, count) in enumerate(zip(value.strides, value.shape, strict=True)):
        if stride and count > 1:
            place = (1,) + (1,) * axis + (count,) + (1,) * (rank - axis - 1)
            total = total + (np.arange(count) * float(stride)).reshape(place)
    return total
