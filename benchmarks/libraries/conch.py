"""conch-triton-kernels: attention over paged caches, quantization, normalization, vision."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
from conch.ops.activation.silu_and_mul import silu_and_mul
from conch.ops.attention.paged_attention import paged_attention
from conch.ops.attention.varlen_attention import varlen_attention
from conch.ops.embedding.rotary_embedding import rotary_embedding
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
from conch.ops.normalization.rms_norm import fused_add_rms_norm, rms_norm
from conch.ops.quantization.bitsandbytes import functional as blockwise
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import mixed_precision_gemm, scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vision import bev_pool, nms, voxelization
from conch.ops.vllm.copy_blocks import copy_blocks
from conch.ops.vllm.reshape_and_cache import reshape_and_cache
from conch.reference.quantization.bitsandbytes import dequantize_blockwise, quantize_blockwise
from conch.reference.vision import bev_pool as plain_bev_pool
from conch.reference.vision import nms as plain_nms

from libraries.call import BF16, F16, F32, TF32, Call, Made, calls
from libraries.liger_parts import mean_square

ROWS, COLUMNS = 48, 1000


def rows(dtype: torch.dtype, columns: int = COLUMNS) -> torch.Tensor:
    """Random rows."""
    return torch.randn(ROWS, columns).to(dtype)


def gated(function: Any, activation: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(x: Any) -> Any:
            gate, up = x.chunk(2, -1)
            return activation(gate) * up

        return function, plain, (rows(dtype, 2 * COLUMNS),)

    return make


def norm(dtype: torch.dtype) -> Made:
    return (
        lambda x, w: rms_norm(x, w, 1e-6),
        lambda x, w: x * mean_square(x) * w,
        (rows(dtype), torch.randn(COLUMNS).to(dtype)),
    )


def added_norm(dtype: torch.dtype) -> Made:
    def plain(x: Any, r: Any, w: Any) -> Any:
        s = x + r
        return s * mean_square(s) * w, s

    return (
        lambda x, r, w: fused_add_rms_norm(x, r, w, 1e-6),
        plain,
        (rows(dtype), rows(dtype), torch.randn(COLUMNS).to(dtype)),
    )


def gemma_norm(dtype: torch.dtype) -> Made:
    arguments = rows(dtype), torch.randn(COLUMNS).to(dtype)
    return lambda x, w: gemma_rms_norm(x, w, 1e-6), lambda x, w: x * mean_square(x) * (1 + w), arguments


def caches(dtype: torch.dtype, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Keys, values and the table of blocks for sequences of these lengths: 16 tokens a block, 2 heads of 64."""
    blocks = int(-(-lengths.max() // 16))
    table = torch.randperm(blocks * len(lengths) + 3)[: blocks * len(lengths)].view(len(lengths), blocks).int()
    return *(torch.randn(blocks * len(lengths) + 3, 16, 2, 64).to(dtype) for _ in range(2)), table


def unpaged(cache: Any, table: Any, length: int) -> Any:
    """A sequence's keys or values, each head for two heads of queries."""
    return cache[table.long()].flatten(0, 1)[:length].repeat_interleave(2, 1)


def paged(softcap: float) -> Any:
    def make(dtype: torch.dtype) -> Made:
        lengths = torch.tensor([70, 16, 33], dtype=torch.int32)

        def plain(q: Any, keys: Any, values: Any, table: Any) -> Any:
            outputs = []
            for index, length in enumerate(lengths.tolist()):
                scores = torch.einsum("hd,thd->ht", q[index], unpaged(keys, table[index], length)) / 8
                scores = softcap * torch.tanh(scores / softcap) if softcap else scores
                outputs.append(torch.einsum("ht,thd->hd", scores.softmax(-1), unpaged(values, table[index], length)))
            return torch.stack(outputs)

        return (
            lambda q, k, v, table: paged_attention(q, k, v, table, lengths.clone(), scale=0.125, softcap=softcap),
            plain,
            (torch.randn(3, 4, 64).to(dtype), *caches(dtype, lengths)),
        )

    return make


def varlen(causal: bool, queries: tuple[int, ...]) -> Any:
    def make(dtype: torch.dtype) -> Made:
        lengths = torch.tensor([70, 45, 33], dtype=torch.int32)
        ends = torch.tensor([0, *queries]).cumsum(0).int()

        def plain(q: Any, keys: Any, values: Any, table: Any) -> Any:
            outputs = []
            for index, length in enumerate(lengths.tolist()):
                own = q[ends[index] : ends[index + 1]]
                scores = torch.einsum("qhd,thd->hqt", own, unpaged(keys, table[index], length)) / 8
                if causal:
                    late = torch.arange(length)[None] > torch.arange(len(own))[:, None] + length - len(own)
                    scores = scores.masked_fill(late, -torch.inf)
                outputs.append(torch.einsum("hqt,thd->qhd", scores.softmax(-1), unpaged(values, table[index], length)))
            return torch.cat(outputs)

        def ours(q: Any, keys: Any, values: Any, table: Any) -> Any:
            return varlen_attention(
                q, keys, values, ends.clone(), max(queries), lengths.clone(), 70, table, causal=causal, scale=0.125
            )

        return ours, plain, (torch.randn(sum(queries), 4, 64).to(dtype), *caches(dtype, lengths))

    return make


def rotary(neox: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        turns = torch.outer(torch.arange(100.0), 10000 ** (-torch.arange(0, 64, 2) / 64))
        cache = torch.cat((turns.cos(), turns.sin()), -1).to(dtype)
        positions = torch.randint(0, 100, (20,))

        def plain(q: Any, k: Any, cache: Any) -> Any:
            cos, sin = cache[positions][:, None].chunk(2, -1)

            def turned(x: Any) -> Any:
                x = x.view(20, -1, 64)
                one, other = x.chunk(2, -1) if neox else (x[..., ::2], x[..., 1::2])
                parts = one * cos - other * sin, other * cos + one * sin
                return (torch.cat(parts, -1) if neox else torch.stack(parts, -1).flatten(-2)).flatten(1)

            return turned(q), turned(k)

        return (
            lambda q, k, cache: rotary_embedding(positions.clone(), q, k, 64, cache, is_neox=neox),
            plain,
            (torch.randn(20, 256).to(dtype), torch.randn(20, 128).to(dtype), cache),
        )

    return make


def int8_quant(dtype: torch.dtype) -> Made:
    def plain(x: Any, scale: Any) -> Any:
        return (x.float() * scale.float().reciprocal()).clamp(-128, 127).to(torch.int8), scale

    return scaled_int8_quant, plain, (rows(dtype) * 10, torch.tensor([0.2]))


def fp8_quant(dtype: torch.dtype) -> Made:
    def plain(x: Any, scale: Any) -> Any:
        return (x.float() * scale.float().reciprocal()).clamp(-448, 448).to(torch.float8_e4m3fn), scale

    return scaled_fp8_quant, plain, (rows(dtype) * 100, torch.tensor([0.2]))


def packed_gemm(bits: int, zeros: bool) -> Any:
    """Weights of a few bits packed along the rows into 32."""

    def make(dtype: torch.dtype) -> Made:
        each, group = 32 // bits, 64
        weights = torch.randint(0, 2**bits, (256, 96))
        shifts = bits * torch.arange(each)[None, :, None]
        packed = (weights.view(-1, each, 96) << shifts).sum(1).to(torch.uint32).view(torch.int32)
        scales = (torch.rand(4, 96) * 0.1).to(dtype)
        shift = torch.randint(0, 2**bits, (4, 96)).to(dtype) if zeros else None
        bias = 0 if zeros else 2 ** (bits - 1)

        def plain(x: Any, scales: Any) -> Any:
            whole = weights - bias if shift is None else weights - shift.to(x.dtype).repeat_interleave(group, 0)
            return x @ (whole * scales.repeat_interleave(group, 0))

        return (
            lambda x, scales: mixed_precision_gemm(x, packed, scales, shift, bits, bias, group),
            plain,
            (torch.randn(20, 256).to(dtype), scales),
        )

    return make


def int8_gemm(dtype: torch.dtype) -> Made:
    left, right = (torch.randint(-100, 100, shape, dtype=torch.int8) for shape in ((40, 128), (128, 72)))

    def plain(left: Any, right: Any, by_row: Any, by_column: Any) -> Any:
        return (left.double() @ right.double()) * by_row * by_column.T

    return (
        lambda a, b, s, t: scaled_gemm(a, b, s, t, dtype),
        plain,
        (left, right, torch.rand(40, 1) * 0.1, torch.rand(72, 1)),
    )


def quantized(kind: str, blocksize: int) -> Any:
    """Quantized and back again; the library brings a plain form, one number at a time."""

    def make(dtype: torch.dtype) -> Made:
        packed = kind != "fp8"
        code = None if packed else blockwise._create_dynamic_map()

        def ours(x: Any) -> Any:
            found, state = blockwise.quantize_blockwise(x, code=code, blocksize=blocksize, quant_type=kind)
            back = blockwise.dequantize_blockwise(
                found,
                state,
                absmax=state.absmax,
                code=code,
                blocksize=blocksize,
                quant_type=kind,
                out=torch.empty_like(x),
            )
            return found.flatten(), state.absmax, back

        def plain(x: Any) -> Any:
            x = x.to(dtype)
            blocks = -(-x.numel() // blocksize)
            found = torch.zeros(x.numel() // (2 if packed else 1), dtype=torch.uint8)
            absmax = torch.zeros(blocks)
            quantize_blockwise.quantize_blockwise_launcher(x, absmax, found, code, blocksize, x.numel(), kind)
            back = torch.zeros_like(x)
            dequantize_blockwise.dequantize_blockwise_launcher(found, absmax, back, code, blocksize, x.numel(), kind)
            return found, absmax, back

        return ours, plain, (torch.randn(500).to(dtype),)

    return make


def pooled(dtype: torch.dtype) -> Made:
    shape, counts = (2, 1, 6, 5), torch.randint(1, 9, (30,))
    starts = (counts.cumsum(0) - counts).int()
    cells = torch.randperm(60)[:30]
    where = torch.stack((cells % 6, cells // 6 % 5, torch.zeros_like(cells), cells // 30), -1)
    places = where.repeat_interleave(counts, 0).int()

    def ours(features: Any) -> Any:
        pooled_ = bev_pool.bev_pool(features, places, starts, counts.int(), *shape)
        return pooled_, bev_pool.bev_pool_backward(pooled_ * 0.5, places, starts, counts.int())

    def plain(features: Any) -> Any:
        pooled_ = plain_bev_pool.bev_pool_pytorch(features, places, starts, counts.int(), *shape)
        return pooled_, plain_bev_pool.bev_pool_backward_pytorch(pooled_ * 0.5, places, starts, counts.int())

    return ours, plain, (torch.randn(int(counts.sum()), 20).to(dtype),)


def suppressed(dtype: torch.dtype) -> Made:
    corners = torch.rand(150, 2) * 50
    boxes = torch.cat((corners, corners + 5 + torch.rand(150, 2) * 10), -1).to(dtype)
    return (
        lambda b, s: nms.nms(b, s, 0.3),
        lambda b, s: plain_nms._nms_pytorch_iterative(b, s, 0.3),
        (boxes, torch.rand(150).to(dtype)),
    )


def voxels(dtype: torch.dtype) -> Made:
    """Voxels come in any order: what is compared is how many points each one has, and the sum of their features."""
    grid = voxelization.VoxelizationParameter((0.0, 0.0, 0.0), (8.0, 8.0, 4.0), (1.0, 1.0, 1.0), 5)

    def ours(points: Any) -> Any:
        filled, features, places, counts = voxelization.generate_voxels(points, grid)
        dense = torch.zeros(4, 8, 8, dtype=torch.int32)
        x, y, z = places[: int(filled), :3].long().unbind(-1)
        dense[z, y, x] = counts[: int(filled)]
        alone = torch.zeros(4, 8, 8, 4)
        one = counts[: int(filled)] == 1
        alone[z[one], y[one], x[one]] = features[: int(filled)][one][:, 0]
        return filled, dense, alone

    def plain(points: Any) -> Any:
        x, y, z = points[:, :3].long().unbind(-1)
        dense = torch.zeros(4, 8, 8, dtype=torch.int32).index_put(
            (z, y, x), torch.ones(len(points), dtype=torch.int32), True
        )
        sums = torch.zeros(4, 8, 8, 4, dtype=points.dtype).index_put((z, y, x), points, True)
        alone = torch.where((dense == 1)[..., None], sums, 0.0)
        return (dense > 0).sum()[None].int(), dense.clamp(max=5), alone

    return ours, plain, (torch.cat((torch.rand(600, 3) * torch.tensor([8.0, 8.0, 4.0]), torch.randn(600, 1)), -1),)


def copied_blocks(dtype: torch.dtype) -> Made:
    pairs = torch.tensor([[0, 5], [2, 7], [1, 6]])

    def ours(keys: Any, values: Any) -> Any:
        copy_blocks(keys, values, pairs.clone())
        return keys, values

    def plain(keys: Any, values: Any) -> Any:
        for cache in (*keys, *values):
            cache[pairs[:, 1]] = cache[pairs[:, 0]]
        return keys, values

    return ours, plain, tuple([torch.randn(8, 200).to(dtype) for _ in range(3)] for _ in range(2))


def cached(dtype: torch.dtype) -> Made:
    slots = torch.randperm(8 * 16)[:20]

    def ours(key: Any, value: Any, keys: Any, values: Any) -> Any:
        reshape_and_cache(key, value, keys, values, slots.clone())
        return keys, values

    def plain(key: Any, value: Any, keys: Any, values: Any) -> Any:
        keys.flatten(0, 1)[slots], values.flatten(0, 1)[slots] = key, value
        return keys, values

    arguments = (
        *(torch.randn(20, 2, 40).to(dtype) for _ in range(2)),
        *(torch.randn(8, 16, 2, 40).to(dtype) for _ in range(2)),
    )
    return ours, plain, arguments


TABLE: list[Call] = [
    *calls("silu_and_mul", gated(silu_and_mul, F.silu), F32, BF16),
    *calls("gelu_tanh_and_mul", gated(gelu_tanh_and_mul, lambda x: F.gelu(x, approximate="tanh")), F32),
    *calls("rms_norm", norm, F32, BF16),
    *calls("fused_add_rms_norm", added_norm, F32, BF16),
    *calls("gemma_rms_norm", gemma_norm, F32, BF16),
    *calls("paged_attention", paged(0.0), F32, tolerance=TF32),
    *calls("paged_attention", paged(0.0), F16),
    *calls("paged_attention softcap", paged(10.0), F16),
    *calls("varlen_attention", varlen(False, (20, 9, 33)), F16, BF16),
    *calls("varlen_attention causal", varlen(True, (70, 45, 33)), F16),
    *calls("varlen_attention decode", varlen(True, (1, 1, 1)), F16),
    *calls("rotary_embedding neox", rotary(True), F32, F16),
    *calls("scaled_int8_quant", int8_quant, F32, F16),
    *calls("scaled_fp8_quant", fp8_quant, F32, F16),
    *calls("mixed_precision_gemm 4 bits", packed_gemm(4, False), F16),
    *calls("mixed_precision_gemm 8 bits, zeros", packed_gemm(8, True), F16),
    *calls("scaled_gemm int8", int8_gemm, F16),
    *calls("blockwise nf4", quantized("nf4", 64), F32, F16),
    *calls("blockwise fp4", quantized("fp4", 64), F32),
    *calls("blockwise fp8", quantized("fp8", 128), F32),
    *calls("bev_pool and backward", pooled, F32),
    *calls("nms", suppressed, F32),
    *calls("generate_voxels", voxels, F32),
    *calls("copy_blocks", copied_blocks, F32),
    *calls("reshape_and_cache", cached, F16),
]
