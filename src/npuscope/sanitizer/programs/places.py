"""Elements, lanes and programs in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuscope.trace.schema import Buffer


def strides_of(buffer: Buffer) -> tuple[int, ...]:
    """Elements from one to the next along each axis."""
    if buffer.strides or not buffer.shape:
        return buffer.strides
    steps = [1]
    for count in reversed(buffer.shape[1:]):
        steps.append(steps[-1] * max(count, 1))
    return tuple(reversed(steps))


def index_of(buffer: Buffer, offset: int) -> tuple[int, ...]:
    """The index that lies `offset` elements after the first one; what no index reaches is left to the last axis."""
    if len(buffer.shape) < 2:
        return (offset,)
    strides = strides_of(buffer)
    index = [0] * len(strides)
    order = sorted((axis for axis, step in enumerate(strides) if step), key=lambda axis: -abs(strides[axis]))
    for axis in order[:-1]:
        index[axis] = offset // strides[axis] if offset >= 0 else 0
        offset -= index[axis] * strides[axis]
    if order:
        index[order[-1]] = offset // strides[order[-1]]
    return tuple(index)


def element(buffer: Buffer, offset: int) -> str:
    """``x_ptr[2, 48]``."""
    return f"{buffer.name}[{', '.join(map(str, index_of(buffer, offset)))}]"


def span(buffer: Buffer, first: int, end: int) -> str:
    """``x_ptr[128:256]``, or ``x_ptr[2, 0] to [3, 63]`` where there are several axes."""
    if len(buffer.shape) < 2 and end - first != 1:
        return f"{buffer.name}[{first}:{end}]"
    if end - first <= 1:
        return element(buffer, first)
    last = ", ".join(map(str, index_of(buffer, end - 1)))
    return f"{element(buffer, first)} to [{last}]"


def described(buffer: Buffer) -> str:
    """``float32[16, 48]``, with the strides where the elements do not follow each other."""
    words = f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]"
    return f"{words} with strides {tuple(buffer.strides)}" if buffer.strides else words


def number(count: int, word: str, words: str = "") -> str:
    """``1 lane``, ``24 lanes``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {words or word + 's'}"


def are(count: int) -> str:
    """The verb."""
    return "is" if count == 1 else "are"


def lanes(facts: Any) -> str:
    """``lane 5 of 128``, ``lanes [16, 0] to [31, 63] of [32, 64]``; "" for a single number."""
    shape: Sequence[int] = facts.get("tile", ())
    if not shape or "from" not in facts:
        return ""
    low, high = facts["from"], facts["to"]
    if len(shape) == 1:
        which = f"lane {low[0]}" if low == high else f"lanes {low[0]} to {high[0]}"
        return f"{which} of {shape[0]}"
    which = f"lane {list(low)}" if low == high else f"lanes {list(low)} to {list(high)}"
    return f"{which} of {list(shape)}"


def listed(numbers: Sequence[tuple[int, int]], most: int = 6) -> str:
    """``3, 5-9, ...`` for stretches of (first, last)."""
    words = [str(low) if high == low else f"{low}-{high}" for low, high in numbers[:most]]
    return ", ".join(words) + (", ..." if len(numbers) > most else "")
