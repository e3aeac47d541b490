"""Control flow, grids, memory of every layout, atomics, descriptors, calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from cases import case
from triton.tools.tensor_descriptor import TensorDescriptor

I32 = torch.int32


@triton.jit
def early_return(x, o, n, N: tl.constexpr):
    pid = tl.program_id(0)
    if pid % 3 == 1:
        return
    i = pid * N + tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=-1.0)
    if pid > 6:
        tl.store(o + i, v * 10, mask=i < n)
        return
    tl.store(o + i, v + pid, mask=i < n)


def early_expect(x: torch.Tensor, o: torch.Tensor, n: int, N: int) -> dict[str, Any]:
    pid = torch.arange(n) // N
    return {"o": torch.where(pid % 3 == 1, 0, torch.where(pid > 6, x * 10, x + pid))}


case(early_return, lambda: {"x": torch.randn(150), "o": torch.zeros(150), "n": 150, "N": 16}, grid=(10,), expect=early_expect)


@triton.jit
def both_arms(x, o, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    if pid % 2 == 0:
        v = tl.load(x + i) * 2
        tl.store(o + i, v)
    else:
        v = tl.load(x + i) - 1
        if pid > 5:
            v += 100
        tl.store(o + i, v)
    tl.store(o + 8 * N + pid, tl.sum(v))


def arms_expect(x: torch.Tensor, o: torch.Tensor, N: int) -> dict[str, Any]:
    pid = torch.arange(8 * N) // N
    v = torch.where(pid % 2 == 0, x * 2, x - 1 + torch.where(pid > 5, 100, 0))
    return {"o": torch.cat([v, v.view(8, N).sum(1)])}


case(both_arms, lambda: {"x": torch.arange(128.0), "o": torch.zeros(136), "N": 16}, grid=(8,), expect=arms_expect)


@triton.jit
def own_bounds(x, lengths, o, stride, N: tl.constexpr):
    pid = tl.program_id(0)
    length = tl.load(lengths + pid)
    total = tl.zeros([N], tl.float32)
    last = -1
    for k in range(0, length, N):
        i = k + tl.arange(0, N)
        total += tl.load(x + pid * stride + i, mask=i < length, other=0.0)
        last = k
    tl.store(o + pid * 2, tl.sum(total))
    tl.store(o + pid * 2 + 1, last)


def bounds_expect(x: torch.Tensor, lengths: torch.Tensor, **_: Any) -> dict[str, Any]:
    rows = [[float(x[row, :n].sum()), (int(n) - 1) // 8 * 8 if n else -1] for row, n in enumerate(lengths)]
    return {"o": torch.tensor(rows)}


case(
    own_bounds, lambda: {"x": torch.randint(0, 9, (9, 40)).float(), "lengths": torch.tensor([0, 1, 8, 9, 40, 17, 3, 0, 24], dtype=I32), "o": torch.zeros(9, 2), "stride": 40, "N": 8},
    grid=(9,), expect=bounds_expect,
)  # fmt: skip


# ruff: noqa: SIM108 - the branches are what is tested


@triton.jit
def collatz(x, o):
    pid = tl.program_id(0)
    n = tl.load(x + pid)
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(o + pid, steps)


def collatz_expect(x: torch.Tensor, o: torch.Tensor) -> dict[str, Any]:
    found = []
    for n in x.tolist():
        steps = 0
        while n > 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        found.append(steps)
    return {"o": torch.tensor(found)}


case(collatz, lambda: {"x": torch.arange(0, 30, dtype=I32), "o": torch.zeros(30, dtype=I32)}, grid=(30,), expect=collatz_expect)


@triton.jit
def nested_loops(o, N: tl.constexpr):
    pid = tl.program_id(0)
    count = 0
    for a in range(pid):
        for b in range(a, pid, 2):
            if (a + b) % 3 != 0:
                count += b
        k = 0
        while k < a:
            k += 2
            count += 1
    for c in tl.static_range(3):
        count += c * pid
    for d in tl.range(pid, 0, -2):
        count += d * 1000
    tl.store(o + pid, count)


def nested_expect(o: torch.Tensor, N: int) -> dict[str, Any]:
    found = []
    for pid in range(7):
        count = 0
        for a in range(pid):
            count += sum(b for b in range(a, pid, 2) if (a + b) % 3) + (a + 1) // 2
        found.append(count + 3 * pid + 1000 * sum(range(pid, 0, -2)))
    return {"o": torch.tensor(found)}


case(nested_loops, lambda: {"o": torch.zeros(7, dtype=I32), "N": 1}, grid=(7,), expect=nested_expect)


@triton.jit
def moving_pointers(x, o, n, N: tl.constexpr):
    pid = tl.program_id(0)
    at = x + pid * n + tl.arange(0, N)
    total = tl.zeros([N], tl.float32)
    for _ in range(0, n, N):
        total += tl.load(at)
        at += N
    tl.store(o + pid * N + tl.arange(0, N), total)


case(moving_pointers, lambda: {"x": torch.randint(0, 9, (5, 64)).float(), "o": torch.zeros(5, 16), "n": 64, "N": 16}, grid=(5,), expect=lambda x, **_: {"o": x.view(5, 4, 16).sum(1)})


@triton.jit
def chosen_pointer(x, y, o, N: tl.constexpr):
    pid = tl.program_id(0)
    if pid % 2 == 0:
        source = x
    else:
        source = y
    i = tl.arange(0, N)
    tl.store(o + pid * N + i, tl.load(source + i) + tl.load(tl.where(i < 4, x + i, y + i)))


def pointer_expect(x: torch.Tensor, y: torch.Tensor, N: int, **_: Any) -> dict[str, Any]:
    mixed = torch.where(torch.arange(N) < 4, x, y)
    return {"o": torch.stack([x + mixed, y + mixed, x + mixed, y + mixed])}


case(chosen_pointer, lambda: {"x": torch.randn(8), "y": torch.randn(8), "o": torch.zeros(4, 8), "N": 8}, grid=(4,), expect=pointer_expect)


@triton.jit
def three_axes(o):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(o + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x + 10 * y + 100 * z)


case(three_axes, lambda: {"o": torch.zeros(4, 3, 5, dtype=I32)}, grid=(5, 3, 4),
     expect=lambda o: {"o": torch.arange(5) + 10 * torch.arange(3)[:, None] + 100 * torch.arange(4)[:, None, None]})  # fmt: skip


@triton.jit
def many_programs(x, o, n, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    v = tl.load(x + i, mask=i < n)
    if pid % 1000 == 7:
        v = -v
    tl.store(o + i, v + 1, mask=i < n)


case(
    many_programs, lambda: {"x": torch.randn(20000), "o": torch.zeros(20000), "n": 20000, "N": 4}, grid=(5000,),
    expect=lambda x, **_: {"o": torch.where(torch.arange(20000) // 4 % 1000 == 7, -x, x) + 1}, interpreter="it takes too long",
)  # fmt: skip


@triton.jit
def large_tiles(x, o, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0.0) * 2, mask=i < n)


case(large_tiles, lambda: {"x": torch.randn(300000), "o": torch.zeros(300000), "n": 300000, "N": 65536}, grid=(5,), expect=lambda x, **_: {"o": x * 2})
case(large_tiles, lambda: {"x": torch.randn(8), "o": torch.ones(8), "n": 8, "N": 8}, grid=(0,), name="_none", expect=lambda o, **_: {"o": o})
case(large_tiles, lambda: {"x": torch.randn(8), "o": torch.ones(8), "n": 8, "N": 8}, grid=(2, 0), name="_none_2", expect=lambda o, **_: {"o": o})


@triton.jit
def strided(x, o, sx, sy, tx, ty, R: tl.constexpr, C: tl.constexpr):
    pid = tl.program_id(0)
    r = pid * R + tl.arange(0, R)
    c = tl.arange(0, C)
    v = tl.load(x + r[:, None] * sx + c[None, :] * sy)
    tl.store(o + r[:, None] * tx + c[None, :] * ty, v + 1)


def through(view: Any, out: Any, name: str) -> None:
    def make() -> dict[str, Any]:
        x, o = view(torch.randn(64, 64)), out(torch.zeros(64, 64))
        return {"x": x, "o": o, "sx": x.stride(0), "sy": x.stride(1), "tx": o.stride(0), "ty": o.stride(1), "R": 8, "C": 16}

    def expect(x: torch.Tensor, o: torch.Tensor, **_: Any) -> dict[str, Any]:
        o[:32, :16] = x[:32, :16] + 1
        return {"o": o}

    case(strided, make, grid=(4,), expect=expect, name=name)


through(lambda t: t[::2, ::3], lambda t: t[:32, :16], "_steps")
through(lambda t: t.T[:32, :16], lambda t: t[32:, 48:], "_transposed")
through(lambda t: t[:1, :16].expand(32, 16), lambda t: t.T[16:48, 8:24], "_broadcast_rows")
through(lambda t: t[:32, :1].expand(32, 16), lambda t: t[:32, :16], "_broadcast_columns")
through(lambda t: t[:32, 3:19], lambda t: t[:32, 5:21], "_offset")


@triton.jit
def scattered(x, at, o, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    k = tl.load(at + i, mask=i < n, other=0)
    tl.store(o + k, tl.load(x + (n - 1 - k), mask=i < n), mask=(i < n) & (k % 2 == 0))


def scattered_expect(x: torch.Tensor, at: torch.Tensor, o: torch.Tensor, n: int, N: int) -> dict[str, Any]:
    return {"o": torch.where(torch.arange(n) % 2 == 0, x.flip(0), o)}


for kind in (torch.int64, torch.int32):
    case(scattered, lambda kind=kind: {"x": torch.randn(100), "at": torch.randperm(100).to(kind), "o": torch.ones(100), "n": 100, "N": 32}, grid=(4,), expect=scattered_expect, name=f"_{kind}")


@triton.jit
def masks_of_booleans(m, x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    keep = tl.load(m + i)
    tl.store(o + i, tl.load(x + i, mask=keep, other=7.0))
    tl.store(o + N + i, tl.load(x + i), mask=keep & (i > 3))


case(masks_of_booleans, lambda: {"m": torch.rand(32) > 0.5, "x": torch.randn(32), "o": torch.zeros(64), "N": 32},
     expect=lambda m, x, **_: {"o": torch.cat([torch.where(m, x, 7), torch.where(m & (torch.arange(32) > 3), x, 0)])})  # fmt: skip

ATOMS = ["add", "max", "min", "and", "or", "xor", "xchg"]


@triton.jit
def atomic(x, o, old, N: tl.constexpr, WHAT: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i)
    at = o + i % 5
    if WHAT == "add":
        r = tl.atomic_add(at, v, mask=i % 7 != 0)
    elif WHAT == "max":
        r = tl.atomic_max(at, v, mask=i % 7 != 0)
    elif WHAT == "min":
        r = tl.atomic_min(at, v, mask=i % 7 != 0)
    elif WHAT == "and":
        r = tl.atomic_and(at, v, mask=i % 7 != 0)
    elif WHAT == "or":
        r = tl.atomic_or(at, v, mask=i % 7 != 0)
    elif WHAT == "xor":
        r = tl.atomic_xor(at, v, mask=i % 7 != 0)
    else:
        r = tl.atomic_xchg(at, v, mask=i % 7 != 0)
    tl.store(old + i, tl.where(i % 7 != 0, r, 0))


def atomic_expect(x: torch.Tensor, o: torch.Tensor, old: torch.Tensor, N: int, WHAT: str) -> dict[str, Any]:
    steps: dict[str, Any] = {
        "add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
        "xchg": lambda a, b: b,
    }  # fmt: skip
    memory, values = o.clone().numpy(), x.numpy()
    found = np.zeros_like(values)
    with np.errstate(over="ignore"):
        for k in range(len(values)):
            if k % 7:
                found[k] = memory[k % 5]
                memory[k % 5] = steps[WHAT](memory[k % 5], values[k])
    return {"o": memory, "old": found}


for what in ATOMS:
    for kind in (torch.int32, torch.uint32, torch.int64, torch.float32, torch.float64, torch.float16):
        if what in ("and", "or", "xor") and kind.is_floating_point or kind == torch.float16 and what != "add" or kind == torch.uint32 and what == "xchg":
            continue

        def make(what: str = what, kind: torch.dtype = kind) -> dict[str, Any]:
            x = torch.randn(96, dtype=torch.float64).to(kind) if kind.is_floating_point else torch.randint(-(2**30), 2**30, (96,), dtype=I32)
            start = torch.ones(5, dtype=kind) if kind != torch.uint32 else torch.full((5,), -5, dtype=I32).view(kind)
            return {"x": x.view(kind) if kind == torch.uint32 else x.to(kind), "o": start, "old": torch.zeros(96, dtype=kind), "N": 32, "WHAT": what}

        lone = what in ("max", "min") and kind.is_floating_point  # done as two atomics of integers, by sign
        case(
            atomic, make, grid=(3,), name=f"_{what}_{kind}", near=1e-6, tolerance=1e-6,
            expect=lambda lone=lone, **given: {name: value for name, value in atomic_expect(**given).items() if name == "o" or not lone},
            interpreter="it does it at once" if lone else "it exchanges no floats" if what == "xchg" and kind.is_floating_point else "",
        )  # fmt: skip


@triton.jit
def counted(o, ticket, N: tl.constexpr):
    i = tl.arange(0, N)
    mine = tl.atomic_add(ticket, 1)
    tl.store(o + tl.program_id(0), mine)
    tl.atomic_add(ticket + 1 + i * 0, i)


case(counted, lambda: {"o": torch.zeros(200, dtype=I32), "ticket": torch.zeros(2, dtype=I32), "N": 64}, grid=(200,),
     expect=lambda **_: {"o": torch.arange(200), "ticket": torch.tensor([200, 200 * 2016])})  # fmt: skip


@triton.jit
def last_one_sums(x, part, ticket, o, N: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(part + pid, tl.sum(tl.load(x + pid * N + tl.arange(0, N))))
    if tl.atomic_add(ticket, 1) == G - 1:
        tl.store(o, tl.sum(tl.load(part + tl.arange(0, G))))


case(last_one_sums, lambda: {"x": torch.randint(0, 9, (16, 8)).float(), "part": torch.zeros(16), "ticket": torch.zeros(1, dtype=I32), "o": torch.zeros(1), "N": 8, "G": 16},
     grid=(16,), expect=lambda x, **_: {"o": x.sum()[None], "part": x.sum(1)})  # fmt: skip


@triton.jit
def locked(lock, o, N: tl.constexpr):
    i = tl.arange(0, N)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(o + i, tl.load(o + i) + tl.program_id(0))
    tl.atomic_xchg(lock, 0)


case(locked, lambda: {"lock": torch.zeros(1, dtype=I32), "o": torch.zeros(8, dtype=I32), "N": 8}, grid=(70,), expect=lambda **_: {"lock": torch.zeros(1), "o": torch.full((8,), 2415)})


@triton.jit
def backwards(flag, o):
    pid = tl.program_id(0)
    while tl.atomic_add(flag, 0) != tl.num_programs(0) - 1 - pid:
        pass
    tl.store(o + pid, tl.load(flag))
    tl.atomic_xchg(flag, tl.num_programs(0) - pid)


case(backwards, lambda: {"flag": torch.zeros(1, dtype=I32), "o": torch.zeros(6, dtype=I32)}, grid=(6,), expect=lambda **_: {"o": torch.arange(5, -1, -1), "flag": torch.tensor([6])},
     interpreter="it runs one program after the other")  # fmt: skip


@triton.jit
def swap_tile(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + N + i, tl.atomic_cas(o + i, tl.load(x + i), i + 100))


case(swap_tile, lambda: {"x": torch.randint(0, 2, (16,), dtype=I32), "o": torch.zeros(32, dtype=I32), "N": 16},
     expect=lambda x, **_: {"o": torch.cat([torch.where(x == 0, torch.arange(16) + 100, 0), torch.zeros(16)])})  # fmt: skip


@triton.jit
def descriptors(x, o, M, N, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[R, C])
    target = tl.make_tensor_descriptor(o, shape=[M, N], strides=[N, 1], block_shape=[R, C])
    r, c = tl.program_id(0) * R, tl.program_id(1) * C
    target.store([r, c], source.load([r, c]) + source.load([r, c]).sum())


def descriptor_expect(x: torch.Tensor, M: int, N: int, R: int, C: int, **_: Any) -> dict[str, Any]:
    o = torch.zeros_like(x)
    for r in range(0, M, R):
        for c in range(0, N, C):
            o[r : r + R, c : c + C] = x[r : r + R, c : c + C] + x[r : r + R, c : c + C].sum()
    return {"o": o}


case(descriptors, lambda: {"x": torch.randint(0, 9, (20, 28)).float(), "o": torch.zeros(20, 28), "M": 20, "N": 28, "R": 8, "C": 16}, grid=(3, 2), expect=descriptor_expect)


@triton.jit
def host_descriptors(d, e, o, R: tl.constexpr):
    r = tl.program_id(0) * R
    v = d.load([r, 0])
    e.store([r, 0], v * 2)
    tl.store(o + r + tl.arange(0, R), tl.sum(tl.where(v == v, v, 1.0), axis=1))


def host(padding: str) -> dict[str, Any]:
    x, y, o = torch.randint(0, 9, (24, 12)).float(), torch.zeros(24, 12), torch.zeros(24)
    HELD[:] = [y]
    return {"d": TensorDescriptor.from_tensor(x, [8, 16], padding), "e": TensorDescriptor.from_tensor(y, [8, 16]), "o": o, "R": 8}


HELD: list[torch.Tensor] = []
for padding in ("zero", "nan"):
    case(
        host_descriptors, lambda padding=padding: host(padding), grid=(3,), name=f"_{padding}",
        expect=lambda d, o, padding=padding, **_: {"o": d.base.sum(1) + (4 if padding == "nan" else 0)},
    )  # fmt: skip


@triton.jit
def rows_by_index(x, at, o, M, N, R: tl.constexpr, C: tl.constexpr):
    rows = tl.load(at + tl.arange(0, R))
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[1, C])
    target = tl.make_tensor_descriptor(o, shape=[M, N], strides=[N, 1], block_shape=[1, C])
    target.scatter(source.gather(rows, 4), rows, 8)


def rows_expect(x: torch.Tensor, at: torch.Tensor, o: torch.Tensor, **_: Any) -> dict[str, Any]:
    o[at.long(), 8:24] = x[at.long(), 4:20]
    return {"o": o}


case(rows_by_index, lambda: {"x": torch.randn(16, 32), "at": torch.randperm(16)[:8].int(), "o": torch.zeros(16, 32), "M": 16, "N": 32, "R": 8, "C": 16}, expect=rows_expect)


@triton.jit
def descriptor_sums(x, o, M, N, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[R, C])
    target = tl.make_tensor_descriptor(o, shape=[R, C], strides=[C, 1], block_shape=[R, C])
    target.atomic_add([0, 0], source.load([tl.program_id(0) * R, 0]))


case(descriptor_sums, lambda: {"x": torch.randint(0, 9, (32, 16)).float(), "o": torch.zeros(8, 16), "M": 32, "N": 16, "R": 8, "C": 16}, grid=(4,),
     expect=lambda x, **_: {"o": x.view(4, 8, 16).sum(0)}, interpreter="it has no atomics of descriptors")  # fmt: skip


@triton.jit(noinline=True)
def apart(a, n):
    if n > 2:
        return a + 1.0
    return a * 2.0


@triton.jit(noinline=True)
def write_some(o, at, n):
    if n % 2 == 0:
        return
    tl.store(o + at, n)


@triton.jit
def inner(a, scale: tl.constexpr):
    return a * scale, a - scale


@triton.jit
def calls(x, o, N: tl.constexpr, EXTRA: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(o + pid, apart(tl.load(x + pid), pid))
    i = tl.arange(0, N)
    a, b = inner(tl.load(x + i), 3)
    if EXTRA is not None:
        a += EXTRA
    if pid == 0:
        tl.store(o + 8 + i, a + b)
    write_some(o, 16 + pid, pid)


def calls_expect(x: torch.Tensor, N: int, EXTRA: int | None, **_: Any) -> dict[str, Any]:
    pid = torch.arange(8)
    first = torch.where(pid > 2, x + 1, x * 2)
    return {"o": torch.cat([first, x * 3 + (EXTRA or 0) + x - 3, torch.where(pid % 2 == 1, pid, 0).float()])}


for extra in (None, 5):
    case(calls, lambda extra=extra: {"x": torch.arange(8.0), "o": torch.zeros(24), "N": 8, "EXTRA": extra}, grid=(8,), expect=calls_expect, name=f"_{extra}")


@triton.jit
def tuples(pair, o, sizes):
    a, b = pair
    i = tl.arange(0, 8)
    values = (tl.load(a + i), tl.load(b + i))
    total = values[0] * sizes[0]
    for k in tl.static_range(2):
        total += values[k] * sizes[k]
    tl.store(o + i, total)


TUPLED = torch.arange(8.0), torch.arange(8.0) * 10
case(tuples, lambda: {"pair": TUPLED, "o": torch.zeros(8), "sizes": (2, 3)}, expect=lambda **_: {"o": TUPLED[0] * 4 + TUPLED[1] * 3})


@triton.jit
def numbers_passed(o, a, b, c, d, e):
    tl.store(o, a + b)
    tl.store(o + 1, c)
    tl.store(o + 2, tl.where(d, 1.0, 2.0) + e)


case(numbers_passed, lambda: {"o": torch.zeros(3, dtype=torch.float64), "a": 1, "b": -7, "c": 2**40, "d": True, "e": 0.5}, expect=lambda **_: {"o": torch.tensor([-6.0, 2.0**40, 1.5])})


@triton.jit
def addresses(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    at = (x.to(tl.int64) + 4 * (N - 1 - i)).to(tl.pointer_type(tl.float32))
    tl.store(o + i, tl.load(at))


case(addresses, lambda: {"x": torch.randn(16), "o": torch.zeros(16), "N": 16}, expect=lambda x, **_: {"o": x.flip(0)})


@triton.jit
def table_of_pointers(table, o, N: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.load(table + pid).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, N)
    tl.store(o + pid * N + i, tl.load(source + i))


PARTS = [torch.arange(8.0) + 100 * k for k in range(3)]
case(
    table_of_pointers, lambda: {"table": torch.tensor([part.data_ptr() for part in PARTS]), "o": torch.zeros(3, 8), "N": 8}, grid=(3,),
    expect=lambda **_: {"o": torch.stack(PARTS)}, interpreter="it would find the tensors elsewhere",
)  # fmt: skip


@triton.jit
def optional(x, bias, o, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if bias is not None:
        v += tl.load(bias + i)
    tl.store(o + i, v)


case(optional, lambda: {"x": torch.arange(8.0), "bias": None, "o": torch.zeros(8), "N": 8}, expect=lambda x, **_: {"o": x})
