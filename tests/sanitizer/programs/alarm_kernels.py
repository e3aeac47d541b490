"""What correct kernels of real libraries do, and a checker may mistake for a fault. A function launches one of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def in_place(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + index, tl.load(x + index, mask=index < n) * 2, mask=index < n)


def doubles_in_place() -> None:
    in_place[(8,)](torch.ones(500), 500, BLOCK=64)


@triton.jit
def two_passes(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        index = start + tl.arange(0, BLOCK)
        power = tl.exp(tl.load(x + row * n + index, mask=index < n, other=-float("inf")))
        tl.store(out + row * n + index, power, mask=index < n)
        total += power
    scale = 1 / tl.sum(total, axis=0)
    for start in range(0, n, BLOCK):
        index = start + tl.arange(0, BLOCK)
        value = tl.load(out + row * n + index, mask=index < n, other=0.0)
        tl.store(out + row * n + index, value * scale, mask=index < n)


def reads_its_own_lanes_again() -> None:
    x, out = torch.randn(6, 100), torch.empty(6, 100)
    two_passes[(6,)](x, out, 100, BLOCK=32)
    torch.testing.assert_close(out, torch.softmax(x, 1))


@triton.jit
def other_mask(scratch, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(scratch + index, index.to(tl.float32), mask=index < n)
    tl.store(out + index, tl.load(scratch + index))


def reads_with_another_mask() -> None:
    other_mask[(1,)](torch.zeros(64), torch.zeros(64), 50, BLOCK=64)


@triton.jit
def by_table(table, scratch, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    place = tl.load(table + index)
    tl.store(scratch + place, index.to(tl.float32), mask=index < n)
    tl.store(out + index, tl.load(scratch + place, mask=index < n, other=0.0))


def reads_what_each_lane_scattered() -> None:
    by_table[(1,)](torch.arange(63, -1, -1), torch.zeros(64), torch.zeros(64), 50, BLOCK=64)


@triton.jit
def persistent(x, out, tiles, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        index = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + index, tl.load(x + index) + 1)


def loops_over_tiles() -> None:
    out = torch.empty(64 * 37)
    persistent[(5,)](torch.zeros(64 * 37), out, 37, BLOCK=64)
    assert bool((out == 1).all())


@triton.jit
def split(a, b, c, K, M: tl.constexpr, STEP: tl.constexpr):
    m, k = tl.arange(0, M), tl.program_id(0) * STEP + tl.arange(0, STEP)
    one = tl.load(a + m[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
    other = tl.load(b + k[:, None] * M + m[None, :], mask=k[:, None] < K, other=0.0)
    tl.atomic_add(c + m[:, None] * M + m[None, :], tl.dot(one, other, input_precision="ieee"))


def adds_parts_atomically() -> None:
    a, b, c = torch.randn(16, 60), torch.randn(60, 16), torch.zeros(16, 16)
    split[(4,)](a, b, c, 60, M=16, STEP=16)
    torch.testing.assert_close(c, a @ b)


@triton.jit
def tiled(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    m = (tl.program_id(0) * TM + tl.arange(0, TM)) % M
    n = (tl.program_id(1) * TN + tl.arange(0, TN)) % N
    k = tl.arange(0, TK)
    left, right = a + m[:, None] * K + k[None, :], b + k[:, None] * N + n[None, :]
    total = tl.zeros((TM, TN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, TK)):
        one = tl.load(left, mask=k[None, :] < K - step * TK, other=0.0)
        other = tl.load(right, mask=k[:, None] < K - step * TK, other=0.0)
        total += tl.dot(one, other, input_precision="ieee")
        left += TK
        right += TK * N
    row, column = tl.program_id(0) * TM + tl.arange(0, TM), tl.program_id(1) * TN + tl.arange(0, TN)
    tl.store(c + row[:, None] * N + column[None, :], total, mask=(row[:, None] < M) & (column[None, :] < N))


def multiplies_with_wrapped_rows() -> None:
    a, b, c = torch.randn(50, 40), torch.randn(40, 45), torch.empty(50, 45)
    tiled[(4, 3)](a, b, c, 50, 45, 40, TM=16, TN=16, TK=16)
    torch.testing.assert_close(c, a @ b)


@triton.jit
def drop(x, out, n, p, seed, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, index) > p
    value = tl.load(x + index, mask=index < n)
    tl.store(out + index, tl.where(keep, value / (1 - p), 0.0), mask=index < n)


def draws_random_numbers() -> None:
    drop[(4,)](torch.ones(250), torch.empty(250), 250, 0.5, 1234, BLOCK=64)


@triton.jit
def hashed(keys, table, out, n, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    key = tl.load(keys + index, mask=index < n, other=0)
    place = (key * 40503 * 65599) & (SIZE - 1)
    tl.store(out + index, tl.load(table + place), mask=index < n)


def hashes_on_purpose() -> None:
    keys = torch.arange(1_000_000, 1_000_064, dtype=torch.int32)
    hashed[(1,)](keys, torch.zeros(128), torch.empty(64), 64, SIZE=128, BLOCK=64)


@triton.jit
def back_again(x, out, big, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    place = index * big - index * (big - 1)
    tl.store(out + index, tl.load(x + place))


def passes_32_bits_and_comes_back() -> None:
    out = torch.zeros(64)
    back_again[(1,)](torch.arange(64.0), out, 1 << 30, BLOCK=64)
    assert out.tolist() == list(range(64))


@triton.jit
def means(x, mean, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + index)
    part = tl.program_id(1) * 32 + tl.arange(0, 32)
    average = tl.sum(value, axis=0) / columns
    tl.store(mean + row, average)
    tl.store(out + row * columns + part, tl.load(x + row * columns + part) - average)


def several_programs_store_one_mean() -> None:
    means[(6, 4)](torch.randn(6, 128), torch.zeros(6), torch.zeros(6, 128), 128, BLOCK=128)


@triton.jit
def one_flag(x, found, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.max(tl.load(x + index, mask=index < n, other=0.0), axis=0) > 0.5:
        tl.store(found, 1)


def many_batches_set_one_flag() -> None:
    one_flag[(9000,)](torch.ones(9000 * 4), torch.zeros(1, dtype=torch.int32), 9000 * 4, BLOCK=4)


@triton.jit
def numbered(found):
    tl.store(found, tl.program_id(0) // 8192)


def batches_that_differ() -> None:
    numbered[(9000,)](torch.zeros(1, dtype=torch.int32))


@triton.jit
def early(x, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    index = start + tl.arange(0, BLOCK)
    tl.store(x + index, 1.0)


def returns_early() -> None:
    early[(16,)](torch.empty(512), 512, BLOCK=64)


@triton.jit
def pad(y, x, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    one = tl.load(x + index, mask=index < n, other=0)
    other = tl.load(y + index, mask=index < n, other=0)
    tl.store(out + index, one // other, mask=index < n)


def divides_padding() -> None:
    number = torch.arange(1, 51, dtype=torch.int32)
    pad[(1,)](number, number, torch.zeros(50, dtype=torch.int32), 50, BLOCK=64)


@triton.jit
def scalars(x, out):
    tl.store(x, 3.0)
    tl.store(out, tl.load(x))


def scalar_there_and_back() -> None:
    scalars[(1,)](torch.zeros(1), torch.zeros(1))


@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, mask=index < n), mask=index < n)


def autotuned() -> None:
    tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](torch.ones(100), torch.empty(100), 100)


@triton.jit
def windows(x, out, n, BLOCK: tl.constexpr, KEEP: tl.constexpr):
    index = tl.program_id(0) * KEEP + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, mask=index < n) * 2, mask=index < n)


def stores_overlapping_windows() -> None:
    windows[(8,)](torch.arange(300.0), torch.zeros(300), 300, BLOCK=64, KEEP=32)


@triton.jit
def lower_triangle(a, out, KEEP: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(a + rows * N + columns)
    tile = tl.where(rows >= columns, -tile, 0.0) if KEEP else tile * 2
    tl.store(out + rows * N + columns, tile)


def _triangle() -> torch.Tensor:
    """Half of it was never written."""
    a = torch.empty(16, 16)
    for row in range(16):
        a[row, : row + 1] = row
    return a


def lets_go_what_nothing_wrote() -> None:
    out = torch.empty(16, 16)
    lower_triangle[(1,)](_triangle(), out, True, N=16)
    assert torch.equal(out, torch.arange(0.0, -16, -1)[:, None].expand(16, 16).tril())


def passes_on_what_nothing_wrote() -> None:
    lower_triangle[(1,)](_triangle(), torch.empty(16, 16), False, N=16)


def adds_to_what_nothing_wrote() -> None:
    a = _triangle()
    lower_triangle[(1,)](a, a, True, N=16)


def doubles_what_nothing_wrote() -> None:
    a = _triangle()
    lower_triangle[(1,)](a, a, False, N=16)


@triton.jit
def pick(x, index, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * N + tl.load(index + i)))


def passes_strides_on() -> None:
    x, index, out = torch.randn(8, 8), torch.randperm(8), torch.empty(8)
    pick[(1,)](x.as_strided((8, 8), (8, 0)), index, out, N=8)
    assert torch.equal(out, x[torch.arange(8), index])


@triton.jit
def row_of_pointers(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = tl.max_contiguous(tl.multiple_of(x + tl.program_id(0) * N + i, N), N)
    tl.store(out + tl.program_id(0) * N + i, tl.load(at))


def promises_about_pointers() -> None:
    row_of_pointers[(4,)](torch.randn(4, 32), torch.empty(4, 32), N=32)
