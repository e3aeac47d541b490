"""Liger-Kernel: heads fused with losses, experts, attention variants, reinforcement learning."""

from __future__ import annotations

from typing import Any

import liger_kernel.ops as ops
import torch
import torch.nn.functional as F
from liger_kernel.ops.experimental import mm_int8int2
from liger_kernel.ops.grpo_loss import fused_selective_log_softmax
from liger_kernel.transformers import functional as liger

from libraries.call import BF16, F32, TF32, Call, Made, calls, leaf, randn
from libraries.liger_parts import angles, generalized_jsd, labels, mean_square, rms_norm, rotated, simplex

ROWS, WIDTH, VOCABULARY = 32, 128, 1000


def head(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states and the weight of the last layer."""
    return randn(ROWS, WIDTH, dtype=dtype), randn(VOCABULARY, WIDTH, dtype=dtype, scale=0.1)


def linear_cross_entropy(biased: bool, **options: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        bias = randn(VOCABULARY, dtype=dtype) if biased else None

        def plain(x: Any, w: Any, target: Any, bias: Any) -> Any:
            cap = options.get("softcap")
            found = F.linear(x, w, bias)
            return F.cross_entropy(cap * torch.tanh(found / cap) if cap else found, target)

        return (
            lambda x, w, target, bias: liger.liger_fused_linear_cross_entropy(x, w, target, bias, **options),
            plain,
            (*head(dtype), labels(ROWS, VOCABULARY), bias),
        )

    return make


def linear_jsd(dtype: torch.dtype) -> Made:
    def plain(x: Any, w: Any, y: Any, v: Any, target: Any) -> Any:
        student, teacher = (F.log_softmax(F.linear(*pair) / 2.0, -1) for pair in ((x, w), (y, v)))
        return generalized_jsd(student, teacher, 0.5, target)

    student, teacher = head(dtype), tuple(tensor.detach() for tensor in head(dtype))
    return (
        lambda x, w, y, v, target: liger.liger_fused_linear_jsd(x, w, y, v, target, 0.5, temperature=2.0),
        plain,
        (*student, *teacher, labels(ROWS, VOCABULARY)),
    )


def linear_kl_div(dtype: torch.dtype) -> Made:
    def plain(x: Any, w: Any, target: Any) -> Any:
        return F.kl_div(F.log_softmax(F.linear(x, w), -1), target, reduction="batchmean")

    target = torch.randn(ROWS, VOCABULARY).softmax(-1).to(dtype)
    return liger.liger_fused_linear_kl_div, plain, (*head(dtype), target)


def ce_tvd(dtype: torch.dtype) -> Made:
    def plain(student: Any, teacher: Any, target: Any) -> Any:
        kept = target != -100
        tvd = 0.5 * (student.softmax(-1) - teacher.softmax(-1)).abs().sum(-1) * kept
        return F.cross_entropy(student, target, reduction="none"), tvd

    arguments = (
        randn(ROWS, VOCABULARY, dtype=dtype),
        randn(ROWS, VOCABULARY, dtype=dtype).detach(),
        labels(ROWS, VOCABULARY),
    )
    return ops.LigerFusedCETVDFunction.apply, plain, arguments


def vocab_parallel(dtype: torch.dtype) -> Made:
    arguments = randn(8, 4, VOCABULARY, dtype=dtype), torch.randint(0, VOCABULARY, (8, 4))

    def ours(x: Any, target: Any) -> Any:
        return ops.LigerVocabParallelCEFunction.apply(x, target, None, -100, 0.1, "pytorch", "global")

    def plain(x: Any, target: Any) -> Any:
        return F.cross_entropy(x.flatten(0, 1), target.flatten(), reduction="none", label_smoothing=0.1).view(8, 4)

    return ours, plain, arguments


def experts(dtype: torch.dtype) -> Made:
    def plain(x: Any, up: Any, down: Any, chosen: Any, weights: Any) -> Any:
        gate, value = torch.einsum("th,enh->ten", x, up).chunk(2, -1)
        each = torch.einsum("tei,ehi->teh", F.silu(gate) * value, down)
        picked = each.gather(1, chosen.long()[..., None].expand(-1, -1, each.shape[-1]))
        return (picked * weights[..., None]).sum(1)

    chosen = torch.stack([torch.randperm(4)[:2] for _ in range(ROWS)]).int()
    arguments = (
        randn(ROWS, 64, dtype=dtype), randn(4, 96, 64, dtype=dtype, scale=0.1),
        randn(4, 64, 48, dtype=dtype, scale=0.1), chosen, leaf(torch.rand(ROWS, 2).to(dtype)),
    )  # fmt: skip
    return ops.LigerFusedMoEFunction.apply, plain, arguments


def mlp(dtype: torch.dtype) -> Made:
    def plain(x: Any, gate: Any, up: Any, down: Any) -> Any:
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)

    weights = [randn(*shape, dtype=dtype, scale=0.1) for shape in ((192, 64), (192, 64), (64, 192))]
    return ops.LigerMLPFunction.apply, plain, (randn(2, 80, 64, dtype=dtype), *weights)


def attention_residuals(dtype: torch.dtype) -> Made:
    def plain(v: Any, query: Any, norm: Any) -> Any:
        keys = v * mean_square(v) * norm
        return torch.einsum("nbt,nbtd->btd", torch.einsum("d,nbtd->nbt", query, keys).softmax(0), v)

    return (
        liger.liger_attn_res,
        plain,
        (randn(5, 2, 9, 200, dtype=dtype), randn(200, dtype=dtype, scale=0.1), randn(200, dtype=dtype)),
    )


def llama4_rope(dtype: torch.dtype) -> Made:
    turns = torch.outer(torch.arange(24.0), 10000 ** (-torch.arange(0, 64, 2) / 64))
    turning = torch.polar(torch.ones_like(turns), turns)

    def plain(q: Any, k: Any, turning: Any) -> Any:
        def turned(x: Any) -> Any:
            pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * turning[:, None]).flatten(-2)

        return turned(q), turned(k)

    arguments = randn(2, 24, 4, 64, dtype=dtype), randn(2, 24, 2, 64, dtype=dtype), turning
    return ops.LigerLlama4RopeFunction.apply, plain, arguments


def multimodal_rope(dtype: torch.dtype) -> Made:
    sections = (8, 12, 12)

    def plain(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        parts = [torch.cat([part[i % 3] for i, part in enumerate(x.split(sections * 2, -1))], -1) for x in (cos, sin)]
        return rotated(q, k, *parts)

    base = [angles(24, 64, F32) for _ in range(3)]
    cos, sin = (
        torch.stack([base[axis][part].roll(axis, 1).expand(2, -1, -1) for axis in range(3)]).to(dtype)
        for part in (0, 1)
    )
    arguments = randn(2, 4, 24, 64, dtype=dtype), randn(2, 2, 24, 64, dtype=dtype), cos, sin
    return lambda q, k, c, s: liger.liger_qwen2vl_mrope(q, k, c, s, list(sections)), plain, arguments


def neighborhood(dilation: int) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(q: Any, k: Any, v: Any) -> Any:
            scores = q @ k.mT / 32**0.5
            distance = (torch.arange(50)[:, None] - torch.arange(50)[None]).abs()
            near = (distance <= 3 * dilation) & (distance % dilation == 0)
            return scores.masked_fill(~near, -torch.inf).softmax(-1) @ v

        arguments = tuple(randn(2, 2, 50, 32, dtype=dtype) for _ in range(3))
        return lambda q, k, v: liger.liger_fused_neighborhood_attention(q, k, v, 7, dilation), plain, arguments

    return make


def multi_token(sparse: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(scores: Any, weight: Any, bias: Any) -> Any:
            future = torch.ones(40, 40, dtype=torch.bool).triu(1)
            masked = scores.masked_fill(future, -1e9 if sparse else -torch.inf)
            probabilities = simplex(masked) if sparse else masked.softmax(-1)
            return F.conv2d(probabilities, weight, bias, padding=1).masked_fill(future, 0.0)

        arguments = randn(2, 4, 40, 40, dtype=dtype), randn(4, 4, 3, 3, dtype=dtype), randn(4, dtype=dtype)
        return (
            lambda s, w, b: liger.liger_multi_token_attention(s, w, b, padding=1, sparse=sparse),
            plain,
            arguments,
        )

    return make


def hyper_coefficients(dtype: torch.dtype) -> Made:
    """Manifold-constrained hyper-connections: the coefficients of four streams."""

    def plain(x: Any, phi: Any, b: Any, pre: Any, post: Any, residual: Any) -> Any:
        flat = x.flatten(-2)
        mix = (flat @ phi) * mean_square(flat)
        h_pre = torch.sigmoid(mix[..., :4] * pre + b[:4])
        h_post = 2 * torch.sigmoid(mix[..., 4:8] * post + b[4:8])
        matrix = (mix[..., 8:] * residual + b[8:]).unflatten(-1, (4, 4)).softmax(-1) + 1e-6
        matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
        for _ in range(19):
            matrix = matrix / (matrix.sum(-1, keepdim=True) + 1e-6)
            matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
        return h_pre, h_post, matrix

    arguments = (
        randn(40, 4, 48, dtype=dtype), randn(192, 24, scale=0.1), randn(24),
        *(leaf(torch.tensor(value)) for value in (0.5, 0.7, 0.9)),
    )  # fmt: skip
    return lambda *given: liger.liger_mhc_coeffs(*given, allow_fp32=True), plain, arguments


def hyper_pre(dtype: torch.dtype) -> Made:
    arguments = randn(40, 4, 200, dtype=dtype), leaf(torch.rand(40, 4))
    return liger.liger_mhc_pre, lambda x, h: torch.einsum("nhc,nh->nc", x, h), arguments


def hyper_post(dtype: torch.dtype) -> Made:
    arguments = (
        randn(40, 4, 200, dtype=dtype),
        randn(40, 200, dtype=dtype),
        leaf(torch.rand(40, 4)),
        leaf(torch.rand(40, 4, 4)),
    )
    return (
        liger.liger_mhc_post_res,
        lambda x, f, post, mix: f[:, None] * post[..., None] + torch.einsum("noi,nic->noc", mix, x),
        arguments,
    )


def embedding(dtype: torch.dtype) -> Made:
    arguments = randn(300, 100, dtype=dtype), torch.randint(0, 300, (4, 33))
    return ops.LigerEmbeddingFunction.apply, lambda table, index: F.embedding(index, table), arguments


def int2_matmul(dtype: torch.dtype) -> Made:
    weights = torch.randint(-1, 2, (512, 96), dtype=torch.int32)
    left = torch.randint(-128, 128, (48, 512), dtype=torch.int8)

    def plain(left: Any, packed: Any) -> Any:
        return left.int() @ weights

    return mm_int8int2.matmul, plain, (left, mm_int8int2.pack_weights(weights.clone()))


def selective_log_softmax(dtype: torch.dtype) -> Made:
    def plain(logits: Any, ids: Any) -> Any:
        return (logits[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None])[..., 0]

    return (
        fused_selective_log_softmax,
        plain,
        (torch.randn(3, 13, VOCABULARY).to(dtype), torch.randint(0, VOCABULARY, (3, 12))),
    )


def grpo(kind: str, level: str = "token") -> Any:
    """Policy losses; `old` are the log probabilities under the policy that made the samples."""

    def make(dtype: torch.dtype) -> Made:
        beta, low, high, temperature = 0.04, 0.2, 0.3, 0.9
        mask = (torch.arange(12)[None] < torch.tensor([12, 9, 5])[:, None]).int()
        ids = torch.randint(0, VOCABULARY, (3, 12))
        logits = randn(3, 13, VOCABULARY, dtype=dtype)
        exact = (logits.detach()[:, :-1].float() / temperature).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
        old, reference = (exact + 0.3 * torch.randn(3, 12) for _ in range(2))

        def ours(logits: Any, old: Any, reference: Any, advantages: Any) -> Any:
            found = ops.GrpoLossFunction.apply(
                logits,
                old,
                reference,
                ids,
                advantages,
                mask,
                temperature,
                beta,
                low,
                high,
                False,
                kind,
                None,
                True,
                level,
            )
            return found[0]

        def plain(logits: Any, old: Any, reference: Any, advantages: Any) -> Any:
            now = (logits[:, :-1] / temperature).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
            ratio, gain = torch.exp(now - old), advantages[:, None]
            if level == "sequence":
                ratio = torch.exp(((now - old) * mask).sum(-1) / mask.sum(-1))[:, None]
            if kind == "cispo":
                each = -torch.clamp(ratio.detach(), max=high) * gain * now
            elif kind == "sapo":
                warmth = torch.where(gain > 0, 1.0, 1.05)
                each = -torch.sigmoid(warmth * (ratio - 1)) * 4 / warmth * gain
            else:
                each = -torch.minimum(ratio * gain, torch.clamp(ratio, 1 - low, 1 + high) * gain)
            each = each + beta * (torch.exp(reference - now) - (reference - now) - 1)
            if kind in ("bnpo", "cispo", "dapo"):
                return (each * mask).sum() / mask.sum()
            return ((each * mask).sum(-1) / mask.sum(-1)).mean()

        return ours, plain, (logits, old, reference, torch.randn(3))

    return make


FUSED: list[Call] = [
    *calls("rms_norm block of rows", rms_norm("llama", 0.0, True, 5000, 200), F32),
    *calls("fused_linear_cross_entropy", linear_cross_entropy(False), F32, BF16),
    *calls("fused_linear_cross_entropy bias, softcap", linear_cross_entropy(True, softcap=20.0), F32),
    *calls("fused_linear_jsd", linear_jsd, F32),
    *calls("fused_linear_kl_div", linear_kl_div, F32),
    *calls("fused_ce_tvd", ce_tvd, F32, BF16),
    *calls("vocab_parallel_cross_entropy", vocab_parallel, F32),
    *calls("fused_moe", experts, F32, tolerance=TF32),
    *calls("fused_moe", experts, BF16),
    *calls("mlp (descriptors)", mlp, BF16),
    *calls("attn_res", attention_residuals, F32, BF16),
    *calls("llama4_rope", llama4_rope, F32),
    *calls("qwen2vl_mrope", multimodal_rope, F32, BF16),
    *calls("neighborhood_attention", neighborhood(1), F32, tolerance=TF32),
    *calls("neighborhood_attention dilation", neighborhood(2), F32, tolerance=TF32),
    *calls("multi_token_attention", multi_token(False), F32),
    *calls("multi_token_attention sparse", multi_token(True), F32),
    *calls("mhc_coeffs", hyper_coefficients, F32, tolerance=TF32),
    *calls("mhc_coeffs", hyper_coefficients, BF16),
    *calls("mhc_pre", hyper_pre, F32, BF16),
    *calls("mhc_post_res", hyper_post, F32),
    *calls("embedding", embedding, F32),
    *calls("mm_int8int2", int2_matmul, F32),
    *calls("selective_log_softmax", selective_log_softmax, F32),
    *calls("grpo", grpo("grpo"), F32, BF16),
    *calls("grpo sequence level", grpo("grpo", "sequence"), F32),
    *calls("grpo bnpo", grpo("bnpo"), F32),
    *calls("grpo cispo", grpo("cispo"), F32),
    *calls("grpo sapo", grpo("sapo"), F32),
]
