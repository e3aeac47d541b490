"""What kernels of public libraries were found to do, as small as it gets."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from cases import case

BF16 = torch.bfloat16


@triton.jit
def narrow_sum(x, o, N: tl.constexpr):
    tl.store(o, tl.sum(tl.load(x + tl.arange(0, N)), axis=0))


# One after the other, 1 would no longer be added to 256.
for dtype in (BF16, torch.float16):
    case(
        narrow_sum, lambda dtype=dtype: {"x": torch.ones(2048, dtype=dtype), "o": torch.zeros(1, dtype=dtype), "N": 2048},
        expect=lambda **_: {"o": torch.tensor([2048.0])}, name=f"_{dtype}",
        interpreter="it reduces no bfloat16" if dtype is BF16 else "",
    )  # fmt: skip


@triton.jit
def narrow_product(x, o, N: tl.constexpr):
    tl.store(o + tl.arange(0, N), tl.reduce(tl.load(x + tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)), 1, times))


@triton.jit
def times(a, b):
    return a * b


case(
    narrow_product, lambda: {"x": (torch.arange(32.0) / 16).to(BF16), "o": torch.zeros(8, dtype=BF16), "N": 8}, tolerance=0.02,
    expect=lambda x, **_: {"o": x.view(8, 4).float().prod(1)}, interpreter="it reduces no bfloat16",
)  # fmt: skip


@triton.jit
def band(x):
    if x > 3.0:
        return 4
    if x > 2.0:
        return 3
    if x > 1.0:
        return 2
    if x > 0.0:
        return 1
    return 0


@triton.jit
def bands(x, o):
    """Blocks of equal content become one, which then stands before some that lead to it."""
    pid = tl.program_id(0)
    value = tl.load(x + pid)
    if value > 5.0:
        return
    low = band(value)
    tl.store(o + pid, low * 16 | band(-value))


def banded(x: torch.Tensor, **_: Any) -> dict[str, Any]:
    low, high = (sum((y > limit).int() for limit in range(4)) for y in (x, -x))
    return {"o": torch.where(x > 5, -1, low * 16 | high).int()}


case(
    bands,
    lambda: {"x": torch.linspace(-6, 6, 25), "o": torch.full((25,), -1, dtype=torch.int32)},
    grid=(25,),
    expect=banded,
)


@triton.jit
def read_only_pointer(x: tl.const, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i) + 1)


case(
    read_only_pointer, lambda: {"x": torch.arange(8.0), "o": torch.zeros(8), "N": 8}, expect=lambda x, **_: {"o": x + 1}
)

ROW = torch.arange(16.0)


@triton.jit
def before_and_after(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i - 4))
    tl.store(x + i + 4, -tl.load(x + i), mask=i < 4)
    tl.store(o + N + i, tl.load(x + i - 4))


def shifted(**_: Any) -> dict[str, Any]:
    after = ROW.clone()
    after[8:12] = -ROW[4:8]
    return {"o": torch.cat((ROW, after)), "x": ROW[4:8]}


case(before_and_after, lambda: {"x": ROW.clone()[4:8], "o": torch.zeros(32), "N": 16}, expect=shifted)
