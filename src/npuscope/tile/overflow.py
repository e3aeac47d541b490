"""Integers that did not fit their width, and the note that follows their wrapped values to where they are used."""

from __future__ import annotations

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
    """An integer array that came out of an overflow; what is computed from it by sums and products stays one."""

    note: Overflow | None = None

    def __array_finalize__(self, source: Any) -> None:
        """Arrays made from this one carry its note on."""
        self.note = getattr(source, "note", None)


def wrap(operation: str, site: int, one: Affine, other: Affine, exact: Affine) -> np.ndarray:
    """The result of an operation that did not fit, as the device has it."""
    values = exact.wide()
    limit = 1 << (exact.bits - 1)
    if exact.bits == 64:  # the values have wrapped already; those farthest out are among the culprits
        where = np.unravel_index(int(np.argmax(np.abs(_about(exact)))), values.shape)
    else:
        where = np.unravel_index(int(np.argmax((values < -limit) | (values >= limit))), values.shape)
    cases = [int(np.broadcast_to(operand.wide(), values.shape)[where]) for operand in (one, other)]
    result: Wrapped = values.astype(SIGNED[exact.bits]).view(Wrapped)
    result.note = Overflow(operation, site, cases[0], cases[1], exact.bits)
    return result


def _about(value: Affine) -> np.ndarray:
    """The numbers as floats, for what does not fit 64 bits."""
    rank = len(value.shape)
    total = np.asarray(value.base, np.float64).reshape((-1,) + (1,) * rank)
    for axis, (stride, count) in enumerate(zip(value.strides, value.shape, strict=True)):
        if stride and count > 1:
            place = (1,) + (1,) * axis + (count,) + (1,) * (rank - axis - 1)
            total = total + (np.arange(count) * float(stride)).reshape(place)
    return total


def plain(value: np.ndarray) -> np.ndarray:
    """Without the note: what is taken from it now is meant to wrap (a hash, a remainder)."""
    return value.view(np.ndarray) if type(value) is Wrapped else value
