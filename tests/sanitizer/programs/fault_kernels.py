"""Kernels with faults of single operations; a function launches one of them."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def strided(where, x, out, step, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    place = tl.load(where + index)
    tl.store(out + index, tl.load(x + place * step))


def product_of_loaded() -> None:
    where = torch.tensor([1, 2, 3, 70000], dtype=torch.int32)
    strided[(1,)](where, torch.zeros(100), torch.zeros(4), 65536, BLOCK=4)


def product_that_lands_inside() -> None:
    where = torch.tensor([0, 0, 0, 65536], dtype=torch.int32)
    strided[(1,)](where, torch.zeros(100), torch.zeros(4), 65536, BLOCK=4)


@triton.jit
def summed(where, x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    place = tl.load(where + index)
    tl.store(out + index, tl.load(x + (place + place)))


def sum_that_passes() -> None:
    summed[(1,)](torch.tensor([0, 1, 2, 2147483600], dtype=torch.int32), torch.zeros(100), torch.zeros(4), BLOCK=4)


@triton.jit
def asserting(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < n, other=0.0)
    tl.device_assert(value >= 0, "negative input")


def fails_an_assertion() -> None:
    x = torch.ones(100)
    x[70] = -1
    x[80] = -1
    asserting[(4,)](x, 100, BLOCK=32)


@triton.jit
def contiguous(x, out, step, BLOCK: tl.constexpr):
    index = tl.max_contiguous(tl.arange(0, BLOCK) * step, BLOCK)
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + index))


def is_not_contiguous(step: int = 2) -> None:
    contiguous[(1,)](torch.zeros(64), torch.zeros(32), step, BLOCK=32)


@triton.jit
def copied(x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index))


def writes_what_is_read_only() -> None:
    target = np.zeros(32, np.float32)
    target.flags.writeable = False
    copied[(1,)](np.ones(32, np.float32), target, BLOCK=32)


@triton.jit
def norm(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + index, mask=index < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + index, power / tl.sum(power, axis=0), mask=index < columns)


def softmax_of_nothing(rows: int = 4) -> None:
    x = torch.zeros(rows, 8)
    if rows > 2:
        x[2] = -float("inf")
    out = torch.zeros(rows, 8)
    norm[(rows,)](x, out, 8, BLOCK=8)
    norm[(rows,)](out, x, 8, BLOCK=8)


def softmax_of_a_nan() -> None:
    x = torch.zeros(4, 8)
    x[1, 5] = float("nan")
    norm[(4,)](x, torch.zeros(4, 8), 8, BLOCK=8)


@triton.jit
def roots(x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out + index, tl.log(tl.load(x + index).to(tl.bfloat16).to(tl.float32) - 3.0))


def log_of_less_than_nothing() -> None:
    roots[(1,)](torch.arange(8.0), torch.zeros(8), BLOCK=8)


@triton.jit
def chain(first, second, x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    page = tl.load(first + index)
    line = tl.load(second + page)
    tl.store(out + index, tl.load(x + tl.maximum(line, 0) * 4))


def two_tables() -> None:
    first = torch.tensor([3, 2, 1, 0], dtype=torch.int64)
    second = torch.tensor([0, 1, 99, 3], dtype=torch.int32)
    chain[(1,)](first, second, torch.zeros(20), torch.zeros(4), BLOCK=4)


@triton.jit
def one_start(starts, x, out, BLOCK: tl.constexpr):
    start = tl.load(starts + tl.program_id(0))
    for step in range(2):
        index = start + step * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + index, tl.load(x + index))


def start_that_was_loaded() -> None:
    starts = torch.tensor([0, 16, 56], dtype=torch.int32)
    one_start[(3,)](starts, torch.zeros(64), torch.zeros(64), BLOCK=8)


@triton.jit
def exchange(x, n, BLOCK: tl.constexpr):
    tl.atomic_xchg(x + tl.arange(0, BLOCK), 1, mask=tl.arange(0, BLOCK) < n)


def exchanges_past_the_end() -> None:
    exchange[(1,)](torch.zeros(6, dtype=torch.int32), 8, BLOCK=8)
