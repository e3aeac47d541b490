"""Kernels with one mistake each, and correct ones that a checker may wrongly flag. Each function launches one of them."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def ramp(count: int) -> Any:
    """0, 1, 2, ... as floats."""
    return torch.arange(count, dtype=torch.float32)


@triton.jit
def scale(source, target, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    value = tl.load(source + index, mask=inside)
    tl.store(target + index, 2 * value, mask=inside)


def reads_past_the_end() -> None:
    scale[(4,)](ramp(250), torch.zeros(256), 256, BLOCK=64)


def writes_past_the_end() -> None:
    scale[(4,)](ramp(256), torch.zeros(250), 256, BLOCK=64)


@triton.jit
def shifted(source, target, n, by, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + index + by, mask=index < n)
    tl.store(target + index, value, mask=index < n)


def reads_before_the_start() -> None:
    shifted[(4,)](ramp(256), torch.zeros(256), 256, -3, BLOCK=64)


def reads_a_neighbour() -> None:
    pool = ramp(1024)
    shifted[(4,)](pool[:256], pool[512:768], 256, 100, BLOCK=64)


@triton.jit
def rows(source, target, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(source + row * stride + column)
    tl.store(target + row * BLOCK + column, value, mask=column < columns)


def reads_between_rows() -> None:
    rows[(7,)](ramp(8 * 32).reshape(8, 32)[:, :20], torch.zeros(8, 32), 32, 20, BLOCK=32)


@triton.jit
def count(source, bins, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(source + index, mask=index < n, other=0)
    tl.atomic_add(bins + key, 1, mask=index < n)


def counts_past_the_end() -> None:
    count[(2,)](torch.arange(100, dtype=torch.int32), torch.zeros(96, dtype=torch.int32), 100, BLOCK=64)


def counts() -> None:
    bins = torch.zeros(100, dtype=torch.int32)
    count[(2,)](torch.arange(100, dtype=torch.int32), bins, 100, BLOCK=64)
    assert bool((bins == 1).all())


def passes_32_bits() -> None:
    rows[(4100,)](torch.empty(4100, 1 << 19, dtype=torch.int8), torch.zeros(4100 * 32, dtype=torch.int8), 1 << 19, 32, BLOCK=32)


@triton.jit
def stamp(target):
    tl.store(target, tl.program_id(0))


def all_write_one_place() -> None:
    stamp[(6,)](torch.zeros(1, dtype=torch.int32))


@triton.jit
def mark(target):
    tl.store(target, 7)


def all_write_the_same() -> None:
    mark[(6,)](torch.zeros(1, dtype=torch.int32))


def shifts_in_place() -> None:
    data = ramp(257)
    shifted[(4,)](data, data, 256, 1, BLOCK=64)


@triton.jit
def total(source, target, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(source + index, mask=index < n, other=0.0), axis=0)
    before = tl.load(target)
    tl.store(target, before + part)


def loses_an_update() -> None:
    total[(4,)](ramp(256), torch.zeros(1), 256, BLOCK=64)


@triton.jit
def halves(source, scratch, target, BLOCK: tl.constexpr, GUARD: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(scratch + index, tl.load(source + index))
    if GUARD:
        tl.debug_barrier()
    low = tl.arange(0, BLOCK // 2)
    one = tl.load(scratch + low)
    other = tl.load(scratch + low + BLOCK // 2)
    tl.store(target + low, one + other)


def lanes_without_a_barrier() -> None:
    halves[(1,)](ramp(128), torch.zeros(128), torch.zeros(64), BLOCK=128, GUARD=False)


def lanes_with_a_barrier() -> None:
    halves[(1,)](ramp(128), torch.zeros(128), torch.zeros(64), BLOCK=128, GUARD=True)


def reads_what_nothing_wrote() -> None:
    total[(1,)](ramp(64), torch.empty(1), 64, BLOCK=64)


@triton.jit
def promised(source, target, BLOCK: tl.constexpr):
    index = tl.multiple_of(tl.arange(0, BLOCK) + 4, 8)
    tl.store(target + tl.arange(0, BLOCK), tl.load(source + index))


def breaks_a_promise() -> None:
    promised[(1,)](ramp(72), torch.zeros(64), BLOCK=64)


@triton.jit
def half_way(source, target, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    odd = source.to(tl.pointer_type(tl.int8)) + 2
    tl.store(target + index, tl.load(odd.to(tl.pointer_type(tl.float32)) + index))


def reads_at_an_odd_address() -> None:
    half_way[(1,)](ramp(65), torch.zeros(64), BLOCK=64)


@triton.jit
def quotient(one, other, target, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(target + index, tl.load(one + index) // tl.load(other + index))


def divides_by_zero() -> None:
    number = torch.arange(64, dtype=torch.int32)
    quotient[(1,)](number, number - 9, torch.zeros(64, dtype=torch.int32), BLOCK=64)


@triton.jit
def pick(source, where, target, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(where + index, mask=index < n, other=0)
    tl.store(target + index, tl.load(source + place, mask=index < n), mask=index < n)


def picks_past_the_end() -> None:
    where = torch.arange(200, dtype=torch.int32).flip(0)
    where[130] = 200
    pick[(4,)](ramp(200), where, torch.zeros(200), 200, BLOCK=64)


def picks() -> None:
    target = torch.zeros(200)
    pick[(4,)](ramp(200), torch.arange(200, dtype=torch.int32).flip(0), target, 200, BLOCK=64)
    assert bool((target == ramp(200).flip(0)).all())


@triton.jit
def late(source, target, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(target + index, tl.load(source + index - n, mask=index >= n, other=0.0))


def masks_what_lies_before() -> None:
    target = torch.zeros(64)
    late[(1,)](ramp(32), target, 32, BLOCK=64)
    assert bool((target[32:] == ramp(32)).all())


@triton.jit
def atomic_total(source, target, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(target, tl.sum(tl.load(source + index), axis=0))


def adds_atomically() -> None:
    target = torch.zeros(1)
    atomic_total[(4,)](ramp(256), target, BLOCK=64)
    assert float(target) == float(ramp(256).sum())


@triton.jit
def softmax(source, target, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(source + row * stride + column, mask=column < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(target + row * stride + column, power / tl.sum(power, axis=0), mask=column < columns)


def keeps_to_the_view() -> None:
    source, target = torch.randn(8, 32)[:, :20], torch.zeros(8, 32)[:, :20]
    softmax[(8,)](source, target, 32, 20, BLOCK=32)
    torch.testing.assert_close(target, torch.softmax(source, 1))


@triton.jit
def product(one, other, target, depth, stride, SIZE: tl.constexpr, STEP: tl.constexpr):
    side, inner = tl.arange(0, SIZE), tl.arange(0, STEP)
    left = one + side[:, None] * stride + inner[None, :]
    right = other + inner[:, None] * stride + side[None, :]
    sum_ = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for _ in range(0, tl.cdiv(depth, STEP)):
        sum_ += tl.dot(tl.load(left), tl.load(right), input_precision="ieee")
        left += STEP
        right += STEP * stride
    tl.store(target + side[:, None] * stride + side[None, :], sum_)


def moves_its_pointers() -> None:
    one, other, target = torch.randn(32, 32), torch.randn(32, 32), torch.zeros(32, 32)
    product[(1,)](one, other, target, 32, 32, SIZE=32, STEP=8)
    torch.testing.assert_close(target, one @ other)
