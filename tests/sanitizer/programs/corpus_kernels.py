# ruff: noqa: SIM108
"""Kernels in the shape of public bug reports, each with its clean twin; a function launches one of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def decay(value, gate, target, K, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    one = tl.load(value + row * K + k, mask=k < K, other=0.0)
    if MASKED:
        two = tl.load(gate + row * K + k, mask=k < K, other=0.0)
    else:
        two = tl.load(gate + row * K + k)
    tl.store(target + row * K + k, one * tl.exp(two), mask=k < K)


def t02(masked: bool = False) -> None:
    decay[(5,)](torch.zeros(5, 60), torch.zeros(5, 60), torch.zeros(5, 60), 60, BLOCK=64, MASKED=masked)


@triton.jit
def levels(scales, target, T, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, BLOCK)
    causal = i[:, None] >= j[None, :]
    if ROWS:
        causal = causal & (i[:, None] < T)
    scale = tl.load(scales + i[:, None] + 0 * j[None, :], mask=causal, other=0.0)
    tl.store(target + i[:, None] * BLOCK + j[None, :], scale, mask=i[:, None] < T)


def t03(rows: bool = False) -> None:
    levels[(2,)](torch.ones(100), torch.zeros(100, 64), 100, BLOCK=64, ROWS=rows)


@triton.jit
def rope(heads, H, stride, BLOCK_H: tl.constexpr):
    base = heads + tl.program_id(0) * BLOCK_H * stride
    h = tl.arange(0, BLOCK_H)
    value = tl.load(base + h * stride, mask=h < H)
    tl.store(base + h * stride, value + 1, mask=h < H)


def t04(block: int = 4) -> None:
    rope[(triton.cdiv(6, block),)](torch.zeros(6), 6, 1, BLOCK_H=block)


@triton.jit
def scales_of(scales, target, K, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    total = 0.0
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        if MASKED:
            scale = tl.load(scales + k, mask=k < K, other=0)
        else:
            scale = tl.load(scales + k)
        total += tl.sum(tl.where(scale == 255, float("nan"), scale.to(tl.float32)), axis=0)
    tl.store(target, total)


def t06(masked: bool = False) -> None:
    pool = torch.full((96,), 255, dtype=torch.uint8)
    pool[:90] = 1
    scales_of[(1,)](pool[:90], torch.zeros(1), 90, BLOCK=32, MASKED=masked)


@triton.jit
def table(pages, target, n, BLOCK: tl.constexpr):
    page = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + page, tl.load(pages + page, mask=page < n, other=0.0))


def t08() -> None:
    table[(4,)](torch.ones(32), torch.zeros(128), 32, BLOCK=32)


@triton.jit
def before(source, target, BLOCK: tl.constexpr, CURED: tl.constexpr):
    index = tl.arange(0, BLOCK) - 64
    place = tl.maximum(index, 0) if CURED else index
    tl.store(target + tl.arange(0, BLOCK), tl.load(source + place, mask=index >= 0, other=0.0))


def t09(cured: bool = False) -> None:
    before[(1,)](torch.ones(64), torch.zeros(128), BLOCK=128, CURED=cured)


@triton.jit
def sample(tokens, out, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    token = tl.load(tokens + lane, mask=lane < n, other=0)
    mask = (lane < n) & (token >= 0) if MASKED else lane < n
    tl.store(out + token, 1.0, mask=mask)


def t10(masked: bool = False) -> None:
    sample[(1,)](torch.tensor([3, -1, 5], dtype=torch.int32), torch.zeros(8), 3, BLOCK=4, MASKED=masked)


@triton.jit
def dequantise(source, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    if WIDE:
        m = m.to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    place = m[:, None] * N + n[None, :]
    tl.store(source + place, tl.load(source + place) + 1)


def t11(wide: bool = False) -> None:
    rows = 1 << 20
    source = torch.empty(rows, 6144, dtype=torch.int8, device="meta")
    dequantise[(rows // 64,)](source, 6144, BLOCK_M=64, BLOCK_N=64, WIDE=wide)


@triton.jit
def bmm(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, MASKED: tl.constexpr):
    batch = tl.program_id(0)
    m, n = tl.arange(0, TM), tl.program_id(1) * TN + tl.arange(0, TN)
    total = tl.zeros((TM, TN), dtype=tl.float32)
    for start in range(0, K, TK):
        k = start + tl.arange(0, TK)
        left, right = k[None, :] < K, k[:, None] < K
        if MASKED:
            left, right = left & (m[:, None] < M), right & (n[None, :] < N)
        one = tl.load(a + batch * M * K + m[:, None] * K + k[None, :], mask=left, other=0.0)
        other = tl.load(b + batch * K * N + k[:, None] * N + n[None, :], mask=right, other=0.0)
        total += tl.dot(one, other, input_precision="ieee")
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + batch * M * N + m[:, None] * N + n[None, :], total, mask=inside)


def t15(masked: bool = False) -> None:
    a, b, c = torch.randn(4, 16, 72), torch.randn(4, 72, 40), torch.zeros(4, 16, 40)
    bmm[(4, 1)](a, b, c, 16, 40, 72, TM=32, TN=64, TK=32, MASKED=masked)


@triton.jit
def heads_by_hand(source, target, T, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    head = source + tl.program_id(1) * T * 40
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, BLOCK_D)
    value = tl.load(head + t[:, None] * 40 + d[None, :])
    tl.store(target + tl.program_id(1) * T * 40 + t[:, None] * 40 + d[None, :], value, mask=d[None, :] < 40)


@triton.jit
def heads_described(source, target, T, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    head = tl.program_id(1) * T * 40
    shown = tl.make_tensor_descriptor(source + head, [T, WIDTH], [40, 1], [BLOCK_T, BLOCK_D])
    value = shown.load([tl.program_id(0) * BLOCK_T, 0])
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, BLOCK_D)
    tl.store(target + head + t[:, None] * 40 + d[None, :], value, mask=d[None, :] < 40)


@triton.jit
def heads_pointed_at(source, target, T, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr, CHECKED: tl.constexpr):
    head, start = tl.program_id(1) * T * 40, tl.program_id(0) * BLOCK_T
    block = tl.make_block_ptr(source + head, (T, 40), (40, 1), (start, 0), (BLOCK_T, BLOCK_D), (1, 0))
    if CHECKED:
        value = tl.load(block, boundary_check=(1,), padding_option="zero")
    else:
        value = tl.load(block)
    t, d = start + tl.arange(0, BLOCK_T), tl.arange(0, BLOCK_D)
    tl.store(target + head + t[:, None] * 40 + d[None, :], value, mask=d[None, :] < 40)


def t16_pointer(checked: bool) -> None:
    source, target = torch.randn(3, 32, 40), torch.zeros(3, 32, 40)
    heads_pointed_at[(2, 3)](source, target, 32, BLOCK_T=16, BLOCK_D=64, CHECKED=checked)
    assert bool((source == target).all())


def t16(how: str = "by hand") -> None:
    source, target = torch.randn(3, 32, 40), torch.zeros(3, 32, 40)
    if how == "by hand":
        heads_by_hand[(2, 3)](source, target, 32, BLOCK_T=16, BLOCK_D=64)
    else:
        heads_described[(2, 3)](source, target, 32, WIDTH=64 if how == "too wide" else 40, BLOCK_T=16, BLOCK_D=64)
    assert how == "too wide" or bool((source == target).all())


@triton.jit
def transpose(source, target, M, N, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(source + m[:, None] * N + n[None, :])
    tl.store(target + n[:, None] * M + m[None, :], tl.trans(value))


def t17(m: int = 48, n: int = 50) -> None:
    transpose[(triton.cdiv(m, 32), triton.cdiv(n, 32))](torch.zeros(m, n), torch.zeros(n, m), m, n, TILE=32)


@triton.jit
def varlen(keys, lengths, target, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    start = tl.load(lengths + tile)
    end = tl.load(lengths + tile + 1)
    k = start + tl.arange(0, BLOCK)
    tl.store(target + k, tl.load(keys + k, mask=k < end), mask=k < end)


def t18(tiles: int = 3) -> None:
    lengths = torch.tensor([0, 9, 16], dtype=torch.int32)
    varlen[(tiles,)](torch.ones(16), lengths, torch.zeros(16), BLOCK=16)


@triton.jit
def prefixes(lens, target):
    request = tl.program_id(0)
    tl.store(target + request, tl.load(lens + request))


def t19(count: int = 3) -> None:
    prefixes[(4,)](torch.zeros(count, dtype=torch.int32), torch.zeros(4, dtype=torch.int32))


@triton.jit
def topk(logits, target, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(logits + row * stride + column, mask=column < columns, other=-float("inf"))
    tl.store(target + row, tl.max(value, axis=0))


def t21(stride: int = 48) -> None:
    topk[(6,)](torch.zeros(6, 64)[:, :48], torch.zeros(6), stride, 48, BLOCK=64)


@triton.jit
def fill(target, n, BLOCK: tl.constexpr, SKIP: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    if SKIP:
        mask = mask & (index % 8 != 2) & (index % 8 != 3)
    tl.store(target + index, 1.0, mask=mask)


def t22(skip: bool = False) -> None:
    fill[(4,)](torch.empty(100), 100, BLOCK=32, SKIP=skip)


def t22_read_later() -> None:
    target, other = torch.empty(100), torch.empty(100)
    fill[(4,)](target, 100, BLOCK=32, SKIP=True)
    double[(4,)](target, other, 100, BLOCK=32)


@triton.jit
def double(source, target, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + index, 2 * tl.load(source + index, mask=index < n), mask=index < n)


@triton.jit
def shift(data, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(data + index, mask=index < n)
    tl.store(data + index + 1, value, mask=index < n)


def r01(n: int = 1024) -> None:
    shift[(triton.cdiv(n, 128),)](torch.zeros(n + 1), n, BLOCK=128)


@triton.jit
def reverse(src, dst, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + n - 1 - index, tl.load(src + index, mask=index < n), mask=index < n)


def r02(clone: bool = False) -> None:
    data = torch.arange(1024.0)
    reverse[(8,)](data.clone() if clone else data, data, 1024, BLOCK=128)


def r06(read: bool = False) -> None:
    slot, other = torch.zeros(100), torch.zeros(100)
    fill[(4,)](slot, 100, BLOCK=32, SKIP=False)
    if read:
        double[(4,)](slot, torch.zeros(100), 100, BLOCK=32)
    fill[(4,)](slot, 100, BLOCK=32, SKIP=False)
    double[(4,)](slot, other, 100, BLOCK=32)
