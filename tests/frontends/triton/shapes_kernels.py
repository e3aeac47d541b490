"""Moving values about: views, reductions, scans, sorting, gathers, products."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from cases import case

I32 = torch.int32


@triton.jit
def permute(x, o, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, A)[:, None, None] * B * C + tl.arange(0, B)[None, :, None] * C + tl.arange(0, C)[None, None, :]
    v = tl.permute(tl.load(x + i), (2, 0, 1))
    j = tl.arange(0, C)[:, None, None] * A * B + tl.arange(0, A)[None, :, None] * B + tl.arange(0, B)[None, None, :]
    tl.store(o + j, v)


case(permute, lambda: {"x": torch.randn(4, 8, 2), "o": torch.zeros(2, 4, 8), "A": 4, "B": 8, "C": 2}, expect=lambda x, **_: {"o": x.permute(2, 0, 1)})


@triton.jit
def views(x, o, p, q, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(o + i, tl.ravel(tl.trans(tl.reshape(v, (4, N // 4)))))
    tl.store(p + tl.arange(0, 2 * N), tl.interleave(v, v * 2))
    a, b = tl.split(tl.view(v, (N // 2, 2)))
    tl.store(q + tl.arange(0, N // 2), a - b)


case(
    views, lambda: {"x": torch.randn(64), "o": torch.zeros(64), "p": torch.zeros(128), "q": torch.zeros(32), "N": 64},
    expect=lambda x, **_: {"o": x.view(4, 16).T.reshape(-1), "p": torch.stack([x, x * 2], 1).view(-1), "q": x.view(32, 2)[:, 0] - x.view(32, 2)[:, 1]},
)  # fmt: skip


@triton.jit
def join_and_cat(x, o, p, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    joined = tl.join(tl.join(v, v + 1), tl.join(v + 2, v + 3))
    tl.store(o + i[:, None, None] * 4 + tl.arange(0, 2)[None, :, None] * 2 + tl.arange(0, 2)[None, None, :], joined)
    tl.store(p + tl.arange(0, 2 * N), tl.cat(v, -v, can_reorder=True))


case(
    join_and_cat, lambda: {"x": torch.randn(16), "o": torch.zeros(16, 2, 2), "p": torch.zeros(32), "N": 16},
    expect=lambda x, **_: {"o": torch.stack([torch.stack([x, x + 1], -1), torch.stack([x + 2, x + 3], -1)], -1), "p": torch.cat([x, -x])},
)  # fmt: skip


@triton.jit
def affine_views(o, p, n, N: tl.constexpr):
    i = tl.reshape(tl.arange(0, N) * 3 + n, (N // 8, 8))
    tl.store(o + tl.arange(0, N // 8)[:, None] * 8 + tl.arange(0, 8)[None, :], i)
    j = tl.reshape(i, (N,))
    tl.store(p + tl.arange(0, N), j + tl.ravel(tl.expand_dims(tl.arange(0, N), 0)))


case(
    affine_views, lambda: {"o": torch.zeros(64, dtype=I32), "p": torch.zeros(64, dtype=I32), "n": 5, "N": 64},
    expect=lambda o, p, n, N: {"o": torch.arange(64) * 3 + 5, "p": torch.arange(64) * 4 + 5},
)  # fmt: skip


@triton.jit
def five_axes(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.reshape(tl.load(x + i), (2, 2, 4, 2, 2))
    r = tl.sum(tl.sum(v, axis=2), axis=0)
    tl.store(o + tl.arange(0, 8), tl.ravel(tl.trans(r, (2, 0, 1))))


case(five_axes, lambda: {"x": torch.arange(64.0), "o": torch.zeros(8), "N": 64}, expect=lambda x, **_: {"o": x.view(2, 2, 4, 2, 2).sum((0, 2)).permute(2, 0, 1).reshape(-1)})


@triton.jit
def reductions(x, o, p, N: tl.constexpr, M: tl.constexpr):
    v = tl.load(x + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :])
    i = tl.arange(0, N)
    tl.store(o + i, tl.sum(v, axis=1))
    tl.store(o + N + i, tl.max(v, axis=1))
    tl.store(o + 2 * N + i, tl.min(v, axis=1))
    tl.store(p + i, tl.argmax(v, axis=1))
    tl.store(p + N + i, tl.argmin(v, axis=1))
    largest, where = tl.max(v, axis=1, return_indices=True)
    tl.store(o + 3 * N + i, largest + where)
    tl.store(o + 4 * N, tl.sum(v))
    tl.store(o + 4 * N + 1, tl.max(tl.max(v, axis=0), axis=0))


def reduce_expect(x: torch.Tensor, N: int, M: int, **_: Any) -> dict[str, Any]:
    rows = [x.sum(1), x.amax(1), x.amin(1), x.amax(1) + torch.from_numpy(x.numpy().argmax(1))]
    return {"o": torch.cat([*rows, x.sum()[None], x.amax()[None]]), "p": np.concatenate([x.numpy().argmax(1), x.numpy().argmin(1)])}


for kind in (torch.float32, torch.int32):
    case(
        reductions, lambda kind=kind: {"x": torch.randint(-4, 5, (8, 32)).to(kind), "o": torch.zeros(34, dtype=kind), "p": torch.zeros(16, dtype=I32), "N": 8, "M": 32},
        expect=reduce_expect, name=f"_{kind}",
    )  # fmt: skip


@triton.jit
def xor_sums(x, o, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(o, tl.xor_sum(v))
    tl.store(o + 1, tl.reduce_or(v, axis=0))
    tl.store(o + 2, tl.sum((v > 3).to(tl.int32)))


case(xor_sums, lambda: {"x": torch.randint(0, 99, (64,), dtype=I32), "o": torch.zeros(3, dtype=I32), "N": 64},
     expect=lambda x, **_: {"o": np.array([np.bitwise_xor.reduce(x.numpy()), np.bitwise_or.reduce(x.numpy()), (x > 3).sum()])})  # fmt: skip


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def three_results(x, o, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    mean, m2, n = tl.reduce((v, tl.zeros_like(v), tl.full([N], 1.0, tl.float32)), 0, welford)
    tl.store(o, mean)
    tl.store(o + 1, m2 / n)


case(three_results, lambda: {"x": torch.randn(64), "o": torch.zeros(2), "N": 64}, tolerance=1e-5, near=1e-5,
     expect=lambda x, **_: {"o": torch.stack([x.mean(), x.var(unbiased=False)])})  # fmt: skip


@triton.jit
def first_wins(a, b):
    return a


@triton.jit
def last_wins(a, b):
    return b


@triton.jit
def ordered(x, o, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(o, tl.reduce(v, 0, first_wins))
    tl.store(o + 1, tl.reduce(v, 0, last_wins))
    tl.store(o + 2 + tl.arange(0, N), tl.associative_scan(v, 0, last_wins))


case(ordered, lambda: {"x": torch.randn(16), "o": torch.zeros(18), "N": 16}, expect=lambda x, **_: {"o": torch.cat([x[:1], x[-1:], x])})


# ruff: noqa: SIM108 - the branches are what is tested


@triton.jit
def larger_branching(a, b):
    if a > b:
        r = a
    else:
        r = b
    return r


@triton.jit
def branching_reduce(x, o, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(o, tl.reduce(v, 0, larger_branching))
    tl.store(o + 1 + tl.arange(0, N), tl.associative_scan(v, 0, larger_branching))


case(branching_reduce, lambda: {"x": torch.randn(16), "o": torch.zeros(17), "N": 16}, expect=lambda x, **_: {"o": torch.cat([x.amax()[None], x.cummax(0).values])})


@triton.jit
def scans(x, o, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    v = tl.load(x + at)
    tl.store(o + at, tl.cumsum(v, axis=1))
    tl.store(o + N * M + at, tl.cumsum(v, axis=0, reverse=True))
    tl.store(o + 2 * N * M + at, tl.cumprod(v, axis=1))


def scan_expect(x: torch.Tensor, N: int, M: int, **_: Any) -> dict[str, Any]:
    return {"o": torch.cat([x.cumsum(1), x.flip(0).cumsum(0).flip(0), x.cumprod(1)])}


case(scans, lambda: {"x": torch.rand(4, 8) + 0.5, "o": torch.zeros(12, 8), "N": 4, "M": 8}, expect=scan_expect, tolerance=1e-5)


@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, linear)
    tl.store(o + i, h)
    _, g = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, linear, reverse=True)
    tl.store(o + N + i, g)


def recurrence_expect(x: torch.Tensor, y: torch.Tensor, N: int, **_: Any) -> dict[str, Any]:
    found = []
    for order in (range(N), reversed(range(N))):
        h, row = 0.0, [0.0] * N
        for k in order:
            h = h * float(x[k]) + float(y[k])
            row[k] = h
        found += row
    return {"o": np.array(found, np.float32)}


case(recurrence, lambda: {"x": torch.rand(32), "y": torch.randn(32), "o": torch.zeros(64), "N": 32}, expect=recurrence_expect, tolerance=1e-5, near=1e-5)


@triton.jit
def sorting(x, o, p, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    v = tl.load(x + at)
    tl.store(o + at, tl.sort(v))
    tl.store(o + N * M + at, tl.sort(v, descending=True))
    tl.store(o + 2 * N * M + at, tl.flip(v, 1))
    tl.store(p + tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.topk(v, 4))


def sorting_expect(x: torch.Tensor, N: int, M: int, **_: Any) -> dict[str, Any]:
    return {"o": torch.cat([x.sort(1).values, x.sort(1, descending=True).values, x.flip(1)]), "p": x.topk(4, 1).values}


for kind in (torch.float32, torch.int32):
    case(
        sorting, lambda kind=kind: {"x": torch.randint(-99, 99, (4, 16)).to(kind), "o": torch.zeros(12, 16, dtype=kind), "p": torch.zeros(4, 4, dtype=kind), "N": 4, "M": 16},
        expect=sorting_expect, name=f"_{kind}",
    )  # fmt: skip


@triton.jit
def gathering(x, y, o, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(o + at, tl.gather(tl.load(x + at), tl.load(y + at), axis=1))
    tl.store(o + N * M + at, tl.gather(tl.load(x + at), tl.load(y + at) % N, axis=0))


case(
    gathering, lambda: {"x": torch.randn(4, 8), "y": torch.randint(0, 8, (4, 8), dtype=I32), "o": torch.zeros(8, 8), "N": 4, "M": 8},
    expect=lambda x, y, **_: {"o": torch.cat([x.gather(1, y.long()), x.gather(0, y.long() % 4)])},
)  # fmt: skip


@triton.jit
def histogram(x, o, N: tl.constexpr, M: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(o + tl.arange(0, M), tl.histogram(v, M))
    tl.store(o + M + tl.arange(0, M), tl.histogram(v, M, mask=v > 2))


case(
    histogram, lambda: {"x": torch.randint(0, 20, (128,), dtype=I32), "o": torch.zeros(32, dtype=I32), "N": 128, "M": 16},
    expect=lambda x, **_: {"o": torch.cat([torch.bincount(x[x < 16], minlength=16), torch.bincount(x[(x < 16) & (x > 2)], minlength=16)])},
)  # fmt: skip


@triton.jit
def dot(x, y, o, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, OUT: tl.constexpr, HOW: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(y + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
    c = tl.dot(a, b, out_dtype=OUT, input_precision=HOW)
    tl.store(o + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.dot(a, b, acc=c, out_dtype=OUT, input_precision=HOW))


DOTS = [
    (torch.float32, torch.float32, tl.float32, "ieee", 1e-5), (torch.float16, torch.float32, tl.float32, None, 1e-5), (torch.float16, torch.float16, tl.float16, None, 1e-2),
    (torch.bfloat16, torch.float32, tl.float32, None, 1e-5), (torch.int8, torch.int32, tl.int32, None, 0.0), (torch.float64, torch.float64, tl.float64, "ieee", 1e-12),
    (torch.float8_e4m3fn, torch.float32, tl.float32, None, 1e-5), (torch.float8_e5m2, torch.float32, tl.float32, None, 1e-5), (torch.float32, torch.float32, tl.float32, "tf32", 2e-2),
]  # fmt: skip
for kind, wide, out, how, tolerance in DOTS:
    case(
        dot,
        lambda kind=kind, wide=wide, out=out, how=how: {
            "x": (torch.randn(16, 32) * (1 if kind.is_floating_point else 9)).to(kind), "y": (torch.randn(32, 16) * (1 if kind.is_floating_point else 9)).to(kind),
            "o": torch.zeros(16, 16, dtype=wide), "M": 16, "K": 32, "N": 16, "OUT": out, "HOW": how,
        },
        expect=lambda x, y, o, **_: {"o": (2 * (x.double() @ y.double())).to(o.dtype)}, tolerance=tolerance, near=max(tolerance, 1e-5), name=f"_{kind}_{wide}_{how}",
        interpreter="it multiplies bits" if kind == torch.bfloat16 else "it adds float8 as float16" if kind.itemsize == 1 and kind.is_floating_point else "",
    )  # fmt: skip


@triton.jit
def batched_dot(x, y, o, B: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, B)[:, None, None] * M * M + tl.arange(0, M)[None, :, None] * M + tl.arange(0, M)[None, None, :]
    tl.store(o + at, tl.dot(tl.load(x + at), tl.load(y + at), input_precision="ieee"))


case(batched_dot, lambda: {"x": torch.randn(4, 16, 16), "y": torch.randn(4, 16, 16), "o": torch.zeros(4, 16, 16), "B": 4, "M": 16},
     expect=lambda x, y, **_: {"o": x @ y}, tolerance=1e-5, near=1e-5)  # fmt: skip


@triton.jit
def scaled(a, sa, b, sb, o, M: tl.constexpr, K: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr, S: tl.constexpr):
    i, j, s = tl.arange(0, M), tl.arange(0, M), tl.arange(0, S)
    x = tl.load(a + i[:, None] * (K // PA) + tl.arange(0, K // PA)[None, :])
    y = tl.load(b + tl.arange(0, K // PB)[:, None] * M + j[None, :])
    xs = tl.load(sa + i[:, None] * S + s[None, :])
    ys = tl.load(sb + j[:, None] * S + s[None, :])
    tl.store(o + i[:, None] * M + j[None, :], tl.dot_scaled(x, xs, FA, y, ys, FB))


FOURS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def scaled_expect(a: torch.Tensor, sa: torch.Tensor, b: torch.Tensor, sb: torch.Tensor, o: torch.Tensor, S: int, K: int, **_: Any) -> dict[str, Any]:
    def wide(value: torch.Tensor, axis: int) -> np.ndarray:
        if value.dtype != torch.uint8:
            return value.double().numpy()
        raw = value.numpy()
        shape = list(raw.shape)
        shape[axis] *= 2
        return FOURS[np.stack([raw & 15, raw >> 4], axis=axis + 1)].reshape(shape)

    scale = [np.repeat(2.0 ** (value.numpy().astype(float) - 127), K // S, axis=1) for value in (sa, sb)]
    return {"o": ((wide(a, 1) * scale[0]) @ (wide(b, 0) * scale[1].T)).astype(np.float32)}


def small(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8) if dtype == torch.uint8 else torch.randn(*shape).to(dtype)


for one, other in ((("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)), (("e2m1", torch.uint8), ("e2m1", torch.uint8)), (("bf16", torch.bfloat16), ("e4m3", torch.float8_e4m3fn))):
    packs = [2 if kind == torch.uint8 else 1 for _, kind in (one, other)]
    case(
        scaled,
        lambda one=one, other=other, packs=packs: {
            "a": small(one[1], 32, 64 // packs[0]), "sa": torch.randint(120, 131, (32, 2), dtype=torch.uint8), "b": small(other[1], 64 // packs[1], 32),
            "sb": torch.randint(120, 131, (32, 2), dtype=torch.uint8), "o": torch.zeros(32, 32), "M": 32, "K": 64, "PA": packs[0], "PB": packs[1],
            "FA": one[0], "FB": other[0], "S": 2,
        },
        expect=scaled_expect, tolerance=1e-4, near=1e-4, name=f"_{one[0]}_{other[0]}", interpreter="it reads bits of bfloat16" if one[0] == "bf16" else "",
    )  # fmt: skip


@triton.jit
def sign_of_difference(a, b):
    if a < b:
        return -1
    elif a == b:
        return 0
    else:
        return 1


@triton.jit
def mapped(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.map_elementwise(sign_of_difference, tl.load(x + i), tl.load(y + i)))


case(
    mapped, lambda: {"x": torch.randint(-3, 3, (64,), dtype=I32), "y": torch.randint(-3, 3, (64,), dtype=I32), "o": torch.zeros(64, dtype=I32), "N": 64},
    expect=lambda x, y, **_: {"o": torch.sign(x - y)}, interpreter="it has no map_elementwise",
)  # fmt: skip


@triton.jit
def swap_pair(a, b):
    return b, a


@triton.jit
def mapped_pairs(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.map_elementwise(swap_pair, tl.load(x + i), pack=2)[0])


case(mapped_pairs, lambda: {"x": torch.randn(64), "o": torch.zeros(64), "N": 64}, expect=lambda x, **_: {"o": x.view(32, 2).flip(1).reshape(-1)}, interpreter="it has no map_elementwise")
