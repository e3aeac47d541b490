"""Six Triton kernels for the comparison of `benchmarks/triton.py`, and the run of one of them in this process.

    python kernels.py CASE

prints one line of JSON: CPU seconds of everything from the inputs to the reference, peak memory, whether the values are
right. CASE_TOOL names what wraps every kernel ("package:client"), CASE_DEVICE where tensors lie.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from typing import Any

import torch
import triton
import triton.language as tl

DEVICE = os.environ.get("CASE_DEVICE", "cpu")
CASES = ("add", "softmax", "matmul", "layernorm", "attention", "histogram")


def traced(kernel: Any) -> Any:
    """The kernel under the tool that was asked for."""
    package, _, client = os.environ.get("CASE_TOOL", "").partition(":")
    return importlib.import_module(package).trace(client)(kernel) if package else kernel


def rand(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers, always the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator).to(dtype).to(DEVICE)


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Zeros."""
    return torch.zeros(*shape, dtype=dtype).to(DEVICE)


@traced
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def case_add(n: int = 1 << 20, block: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of two vectors."""
    x, y, out = rand(n), rand(n), zeros(n)
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
    return out, x + y


@traced
@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out_ptr + row * stride + offs, e / tl.sum(e, axis=0), mask=mask)


def case_softmax(rows: int = 4096, cols: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax of rows."""
    x, out = rand(rows, cols), zeros(rows, cols)
    softmax_kernel[(rows,)](x, out, cols, cols, BLOCK=triton.next_power_of_2(cols))
    return out, torch.softmax(x, dim=1)


@traced
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a_mask = (rm[:, None] < M) & (rk[None, :] + k < K)
        b_mask = (rk[:, None] + k < K) & (rn[None, :] < N)
        a = tl.load(a_ptr + rm[:, None] * stride_am + (rk[None, :] + k) * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + (rk[:, None] + k) * stride_bk + rn[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    c_mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, acc, mask=c_mask)


def case_matmul(size: int = 512) -> tuple[torch.Tensor, torch.Tensor]:
    """Product of two matrices."""
    a, b, c = rand(size, size), rand(size, size), zeros(size, size)
    grid = (triton.cdiv(size, 64), triton.cdiv(size, 64))
    matmul_kernel[grid](
        a,
        b,
        c,
        size,
        size,
        size,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        BM=64,
        BN=64,
        BK=32,
    )
    return c, a @ b


@traced
@triton.jit
def layernorm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride + offs, mask=offs < cols, other=0.0)
    mean = tl.sum(total, axis=0) / cols
    square = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < cols, other=0.0)
        x = tl.where(offs < cols, x - mean, 0.0)
        square += x * x
    rstd = 1 / tl.sqrt(tl.sum(square, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < cols
        x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0)
        w = tl.load(w_ptr + offs, mask=mask)
        b = tl.load(b_ptr + offs, mask=mask)
        tl.store(out_ptr + row * stride + offs, (x - mean) * rstd * w + b, mask=mask)


def case_layernorm(rows: int = 1024, cols: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalised rows."""
    x, w, b, out = rand(rows, cols), rand(cols), rand(cols), zeros(rows, cols)
    layernorm_kernel[(rows,)](x, w, b, out, cols, cols, 1e-5, BLOCK=256)
    return out, torch.nn.functional.layer_norm(x, (cols,), w, b, 1e-5)


@traced
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    stride_h,
    stride_n,
    scale,
    N,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1) * stride_h
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + head + rm[:, None] * stride_n + rd[None, :], mask=rm[:, None] < N, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, N, BN):
        rn = start + tl.arange(0, BN)
        k = tl.load(k_ptr + head + rn[:, None] * stride_n + rd[None, :], mask=rn[:, None] < N, other=0.0)
        v = tl.load(v_ptr + head + rn[:, None] * stride_n + rd[None, :], mask=rn[:, None] < N, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(rn[None, :] < N, s, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new_top[:, None])
        decay = tl.exp(top - new_top)
        norm = norm * decay + tl.sum(p, axis=1)
        acc = acc * decay[:, None] + tl.dot(p, v, input_precision="ieee")
        top = new_top
    tl.store(out_ptr + head + rm[:, None] * stride_n + rd[None, :], acc / norm[:, None], mask=rm[:, None] < N)


def case_attention(heads: int = 4, n: int = 256, d: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention in one pass."""
    q, k, v, out = rand(heads, n, d), rand(heads, n, d) * 0.5, rand(heads, n, d) + 1, zeros(heads, n, d)
    attention_kernel[(triton.cdiv(n, 64), heads)](q, k, v, out, q.stride(0), q.stride(1), d**-0.5, n, BM=64, BN=64, D=d)
    return out, torch.nn.functional.scaled_dot_product_attention(q, k, v)


@traced
@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    key = tl.load(x_ptr + offs, mask=mask, other=0)
    tl.atomic_add(bins_ptr + key, 1, mask=mask)


def case_histogram(n: int = 1 << 16, bins: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts by atomic addition."""
    x = torch.randint(0, bins, (n,), dtype=torch.int32, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    out = zeros(bins, dtype=torch.int32)
    histogram_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out, torch.bincount(x.cpu(), minlength=bins).to(torch.int32).to(DEVICE)


def measure(name: str) -> None:
    """Run one case and say what it took."""
    torch.set_num_threads(1)
    start = time.process_time()
    got, want = globals()[f"case_{name}"]()
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # before the comparison, which needs memory too
    right = bool(torch.allclose(got.float(), want.float(), atol=1e-3, rtol=1e-3))
    print("RESULT " + json.dumps({"cpu": spent, "peak": peak, "right": right}))


if __name__ == "__main__":
    measure(sys.argv[1])
