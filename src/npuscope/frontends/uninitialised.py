"""Which bytes of a kernel's arguments were never given a value.

`np.empty`, `torch.empty` and their kin promise nothing about content. While a session checks or records, what they
return is filled with :data:`PATTERN`; the bytes of an argument that still hold it at a launch are undefined. The
pattern is laid by memory address, so that views need no bookkeeping, and every half, word and long word of it is a NaN
with a payload that no computation makes: an accidental use on the host is visible too.

Left alone: arrays of objects (their memory holds pointers), bool (a byte that is neither 0 nor 1 is no bool at all),
arrays of more than 256 MiB, anything that is not plain memory of numpy or of torch on the CPU, and what the
constructors of the array types return (`np.ndarray(shape)`, `torch.Tensor(n)`): their content counts as defined.
"""

from __future__ import annotations

import sys
from functools import lru_cache, update_wrapper
from types import TracebackType
from typing import Any

import numpy as np

from npuscope.npu.memory import borrow

PATTERN = bytes.fromhex("d67feb7fc97ffa7f")
"""The byte at address a is PATTERN[a % 8]: quiet NaNs as float16, bfloat16, float32 and float64."""

NUMPY = ("empty", "empty_like")
TORCH = frozenset(
    ["empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"]
)
"""The functions whose results have no content yet."""

PAGE_BITS = 16
INTEGER_UNIT = 4
INTEGER_RUN = 8
"""Integers may hold any value, so only 8 bytes in a row, counted in words of 4, are taken for undefined: up to 3 bytes
at either end of a run are missed, and no plausible data is mistaken. A float is judged element by element."""

MOST_BYTES = 1 << 28
"""What is larger counts as defined: filling it would take memory and time that the script itself may never spend."""

Runs = tuple[tuple[int, int], ...]


class Poison:
    """Fills what has no content and finds what has stayed that way. A context manager; one is active at a time."""

    def __init__(self) -> None:
        self._pages: set[int] = set()  # memory that held the pattern once; only there is it looked for
        self._replaced: dict[str, _Hooked] = {}

    def __enter__(self) -> Poison:
        global _active
        _active = self
        for name in NUMPY:
            hooked = self._replaced[name] = _Hooked(getattr(np, name))
            setattr(np, name, hooked)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        global _active
        _active = None
        for name, hooked in self._replaced.items():
            if getattr(np, name) is hooked:
                setattr(np, name, hooked.original)

    def fill(self, data: np.ndarray) -> None:
        """Give the flat uint8 array `data` the content that stands for none."""
        if data.size > MOST_BYTES:
            return
        address = address_of(data)
        whole = data.size // 8 * 8
        if whole:
            data[:whole].view(np.uint64).fill(_expected(address, 8)[0])
        if whole < data.size:
            data[whole:] = _expected(address, 1)[: data.size - whole]
        self._pages.update(_pages(address, data.size))

    def runs(self, data: np.ndarray, dtype: np.dtype[Any]) -> Runs:
        """(start, end) byte offsets, sorted and apart, of what is undefined in the elements that flat `data` holds."""
        if not data.size or self._pages.isdisjoint(_pages(address_of(data), data.size)):
            return ()
        return undefined_runs(data, dtype)


_active: Poison | None = None


def active() -> Poison | None:
    """The poison of the session that is running, None when nothing is checked or recorded."""
    return _active


def undefined_runs(data: np.ndarray, dtype: np.dtype[Any]) -> Runs:
    """Where flat uint8 `data` holds the pattern, as (start, end) byte offsets."""
    exact = _is_float(dtype)
    unit = dtype.itemsize if exact else INTEGER_UNIT
    same = _matches(data, unit)
    if same.all():
        starts, ends = np.array([0]), np.array([same.size * unit])
    else:
        padded = np.zeros(same.size + 2, np.int8)
        padded[1:-1] = same
        turns = np.flatnonzero(np.diff(padded)) * unit
        starts, ends = turns[::2], turns[1::2]
    tail = data[same.size * unit :]  # less than one unit
    if tail.size and ends.size and ends[-1] == same.size * unit:
        expected = _expected(address_of(tail), 1)[: tail.size]
        ends[-1] += tail.size if bool((tail == expected).all()) else 0
    least = unit if exact else min(INTEGER_RUN, max(data.size, INTEGER_UNIT))
    long = (ends - starts >= least) & (ends > starts)
    return tuple(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Floats of 2, 4 and 8 bytes; bfloat16 has a kind of its own."""
    return dtype.itemsize in (2, 4, 8) and (dtype.kind == "f" or dtype.name == "bfloat16")


def _matches(data: np.ndarray, unit: int) -> np.ndarray:
    """Which whole units of `data` hold the pattern."""
    address = address_of(data)
    whole = data.size // 8 * 8
    different = data[:whole].view(np.uint64) ^ _expected(address, 8)[0]
    tail = data[whole : data.size // unit * unit].view(f"u{unit}")
    return np.concatenate([different.view(f"u{unit}") == 0, tail == _expected(address, unit)[: tail.size]])


@lru_cache(maxsize=64)
def _pattern(shift: int, unit: int) -> np.ndarray:
    return np.frombuffer(PATTERN[shift:] + PATTERN[:shift], f"u{unit}")


def _expected(address: int, unit: int) -> np.ndarray:
    """The pattern from `address` on as unsigned integers of `unit` bytes, one period of it."""
    return _pattern(address % 8, unit)


def _pages(address: int, size: int) -> range:
    return range(address >> PAGE_BITS, ((address + size - 1) >> PAGE_BITS) + 1) if size else range(0)


def address_of(data: np.ndarray) -> int:
    """The host address of an array's first byte."""
    address: int = data.__array_interface__["data"][0]
    return address


class _Hooked:
    """A numpy function whose result is filled. It stands for the original also where libraries look functions up in
    dictionaries (numba's typing, implementations of numpy's array protocol)."""

    def __init__(self, original: Any) -> None:
        self.original = original
        update_wrapper(self, original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.original(*args, **kwargs)
        if _active is not None and not _is_ours(sys._getframe(1).f_globals):
            fill_numpy(_active, made)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __repr__(self) -> str:
        return repr(self.original)

    def __hash__(self) -> int:
        return hash(self.original)

    def __eq__(self, other: object) -> bool:
        return self.original is (other.original if isinstance(other, _Hooked) else other)

    def __reduce__(self) -> str:
        return str(self.original.__name__)  # by name, as any function


def _is_ours(names: dict[str, Any]) -> bool:
    """Whether npuscope itself calls: its own scratch arrays are nobody's argument."""
    return str(names.get("__name__", "")).startswith("npuscope.")


def fill_numpy(poison: Poison, made: Any) -> None:
    """Fill a fresh numpy array, whatever its order of axes."""
    if not isinstance(made, np.ndarray) or not made.nbytes or made.dtype.hasobject or made.dtype.kind == "b":
        return
    plain = made.view(np.ndarray)
    flat = plain.ravel(order="K")
    if np.may_share_memory(flat, plain):
        poison.fill(flat.view(np.uint8))


def fill_torch(function: Any, kwargs: dict[str, Any], made: Any) -> None:
    """Fill what a torch function returned, when it is one of those that promise no content and a session wants it."""
    if _active is None or getattr(function, "__name__", "") not in TORCH or kwargs.get("out") is not None:
        return
    import torch

    plain = type(made) is torch.Tensor and made.device.type == "cpu" and made.layout is torch.strided
    if not plain or made.dtype is torch.bool or made.is_quantized:
        return
    try:
        storage = made.untyped_storage()
        size, pointer = storage.nbytes(), storage.data_ptr()
    except RuntimeError:  # a tensor inside a function transform has no memory of its own
        return
    if size:
        _active.fill(borrow(pointer, size, True, storage))
