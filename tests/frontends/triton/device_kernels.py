"""Functions of the device's library and pieces of inline assembly."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from cases import case
from triton.language.extra import libdevice

I32 = torch.int32
NONE = "it has no functions of the device"


@triton.jit
def library(x, y, n, o, p, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, k = tl.load(x + i), tl.load(y + i), tl.load(n + i)
    tl.store(o + i, libdevice.tanh(a))
    tl.store(o + N + i, libdevice.pow(b, a))
    tl.store(o + 2 * N + i, libdevice.erfinv(b - 0.5))
    tl.store(o + 3 * N + i, libdevice.fast_expf(a) + libdevice.log1p(b))
    tl.store(o + 4 * N + i, libdevice.ldexp(a, k % 8))
    tl.store(o + 5 * N + i, libdevice.rint(a) + libdevice.round(a * 2))
    tl.store(o + 6 * N + i, libdevice.atan2(a, b) + libdevice.hypot(a, b))
    tl.store(o + 7 * N + i, libdevice.pow(b, k % 5))
    tl.store(o + 8 * N + i, libdevice.isnan(a / (k & 1)).to(tl.float32) + libdevice.signbit(a))
    tl.store(o + 9 * N + i, libdevice.div_rz(a, b) + libdevice.div_rd(b, a))
    tl.store(p + i, libdevice.clz(k) + libdevice.popc(k) * 100)
    tl.store(p + N + i, libdevice.mulhi(k, k - 5))
    tl.store(p + 2 * N + i, libdevice.float2int_rd(a * 10))
    tl.store(p + 3 * N + i, libdevice.byte_perm(k, k + 1, 0x5140))
    tl.store(p + 4 * N + i, libdevice.ffs(k) + libdevice.brev(k))


def library_expect(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor, N: int, **_: Any) -> dict[str, Any]:
    a, b, k = x.double(), y.double(), n.long()
    remainder = torch.from_numpy(np.fmod(n.numpy(), 5)).double()
    scale = torch.from_numpy(np.fmod(n.numpy(), 8)).double()
    away = torch.trunc(a * 2 + torch.copysign(torch.tensor(0.5), a))
    rows = [
        a.tanh(), b.pow(a), torch.special.erfinv(b - 0.5), a.exp() + b.log1p(), a * 2.0**scale, a.round() + away, torch.atan2(a, b) + torch.hypot(a, b),
        b.pow(remainder), ((a == 0) & (k & 1 == 0)).double() + (a < 0), a / b + b / a,
    ]  # fmt: skip
    numbers = [int(value) & 0xFFFFFFFF for value in n]
    signed = lambda values: np.array(values, np.uint64).astype(np.uint32).view(np.int32)  # noqa: E731
    after = [(value + 1) & 0xFFFFFFFF for value in numbers]
    whole = [
        np.array([32 - value.bit_length() + 100 * value.bit_count() for value in numbers], np.int32),
        ((k * (k - 5)) >> 32).int().numpy(), torch.floor(x * 10).int().numpy(),
        signed([(v & 0xFF) | (w & 0xFF) << 8 | (v >> 8 & 0xFF) << 16 | (w >> 8 & 0xFF) << 24 for v, w in zip(numbers, after, strict=True)]),
        signed([((v & -v).bit_length() + int(f"{v:032b}"[::-1], 2)) & 0xFFFFFFFF for v in numbers]),
    ]  # fmt: skip
    return {"o": torch.cat(rows), "p": np.concatenate(whole)}


case(
    library,
    lambda: {"x": torch.randn(64), "y": torch.rand(64) * 0.9 + 0.05, "n": torch.randint(-(2**20), 2**20, (64,), dtype=I32), "o": torch.zeros(640), "p": torch.zeros(320, dtype=I32), "N": 64},
    expect=library_expect, tolerance=2e-6, interpreter=NONE,
)  # fmt: skip


@triton.jit
def one_number(x, o, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    r = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    r += tl.inline_asm_elementwise("{ .reg .f32 t; mul.f32 t, $1, 0f40000000; fma.rn.f32 $0, t, $1, 1.0; }", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(o + tl.arange(0, N), r)


case(one_number, lambda: {"x": torch.randn(64), "o": torch.zeros(64), "N": 64}, expect=lambda x, **_: {"o": x.tanh() + 2 * x * x + 1}, tolerance=1e-5, interpreter=NONE)


@triton.jit
def two_halves(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    packed = tl.inline_asm_elementwise("cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,r,r", [tl.load(x + i), tl.load(y + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(o + i, packed)


def halves_expect(x: torch.Tensor, y: torch.Tensor, **_: Any) -> dict[str, Any]:
    bits = [value.bfloat16().view(torch.int16).int() for value in (x, y)]
    return {"o": (bits[0] & 0xFFFF) | bits[1] << 16}


case(two_halves, lambda: {"x": torch.randn(64), "y": torch.randn(64), "o": torch.zeros(64, dtype=I32), "N": 64}, expect=halves_expect, interpreter=NONE)


@triton.jit
def packed_bytes(x, o, p, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.inline_asm_elementwise(
        """
        {
            // four bytes at a time: their halves, each as an element of 16 bits
            .reg .b32 low, high;
            and.b32 low, $4, 0x0F0F0F0F;
            shr.u32 high, $4, 4;
            and.b32 high, high, 0x0F0F0F0F;
            prmt.b32 $0, low, 0, 0x4140;
            prmt.b32 $1, low, 0, 0x4342;
            prmt.b32 $2, high, 0, 0x4140;
            prmt.b32 $3, high, 0, 0x4342;
        }
        """,
        "=r,=r,=r,=r,r", [tl.load(x + i)], dtype=(tl.int16, tl.int16), is_pure=True, pack=4,
    )  # fmt: skip
    tl.store(o + i, a)
    tl.store(p + i, b)


case(packed_bytes, lambda: {"x": torch.arange(128, dtype=torch.uint8) * 2, "o": torch.zeros(128, dtype=torch.int16), "p": torch.zeros(128, dtype=torch.int16), "N": 128},
     expect=lambda x, **_: {"o": x & 15, "p": x >> 4}, interpreter=NONE)  # fmt: skip


@triton.jit
def guarded(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    r = tl.inline_asm_elementwise(
        """
        { .reg .pred p; setp.gt.f32 p, $1, 0.5; @p mov.f32 $0, $1; @!p ex2.approx.ftz.f32 $0, $1; @!p add.f32 $0, $0, -1.0; }
        """,
        "=r,r", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(o + i, r)


case(guarded, lambda: {"x": torch.randn(64), "o": torch.zeros(64), "N": 64}, expect=lambda x, **_: {"o": torch.where(x > 0.5, x, x.exp2() - 1)}, tolerance=1e-6, interpreter=NONE)


@triton.jit
def eight_bits(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    r = tl.inline_asm_elementwise(
        "{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, $2, $1; cvt.rn.satfinite.e4m3x2.f32 h, $4, $3; mov.b32 $0, {l, h}; }",
        "=r,f,f,f,f", [tl.load(x + i)], dtype=tl.uint8, is_pure=True, pack=4,
    )  # fmt: skip
    tl.store(o + i, r)


case(eight_bits, lambda: {"x": torch.randn(64) * 300, "o": torch.zeros(64, dtype=torch.uint8), "N": 64},
     expect=lambda x, **_: {"o": x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)}, interpreter=NONE)  # fmt: skip


@triton.jit
def custom_down(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i).to(tl.float16).to(tl.float8e4b15).to(tl.uint8, bitcast=True))


def down_expect(x: torch.Tensor, N: int, **_: Any) -> dict[str, Any]:
    raw = np.arange(128)
    size = np.where(raw >> 3 == 0, (raw & 7) / 8 * 2.0**-14, (1 + (raw & 7) / 8) * 2.0 ** ((raw >> 3) - 15.0))
    half = np.abs(x.half().numpy().astype(np.float64))
    codes = np.array([int(np.argmin(np.abs(size - number) + 1e-12 * (raw % 2))) for number in half])
    return {"o": (codes + 128 * np.signbit(x.numpy())).astype(np.uint8)}


case(custom_down, lambda: {"x": torch.rand(64) * 2.5 - 1.25, "o": torch.zeros(64, dtype=torch.uint8), "N": 64}, expect=down_expect, interpreter=NONE)
