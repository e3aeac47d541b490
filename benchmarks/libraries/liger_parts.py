"""Liger-Kernel: norms, activations and losses."""

from __future__ import annotations

from typing import Any

import liger_kernel.ops as ops
import torch
import torch.nn.functional as F
from liger_kernel.transformers import functional as liger

from libraries.call import BF16, F16, F32, Call, Made, calls, leaf, randn

ROWS, COLUMNS, VOCABULARY = 48, 1000, 3001


def mean_square(x: Any, eps: float = 1e-6) -> Any:
    """One over the root of a row's mean square."""
    return torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def rms_norm(mode: str, offset: float, in_place: bool = True, rows: int = ROWS, columns: int = COLUMNS) -> Any:
    def make(dtype: torch.dtype) -> Made:
        arguments = randn(rows, columns, dtype=dtype), randn(columns, dtype=dtype)
        return (
            lambda x, w: liger.liger_rms_norm(x, w, 1e-6, offset, mode, in_place),
            lambda x, w: x * mean_square(x) * (w + offset),
            arguments,
        )

    return make


def rms_norm_plain(dtype: torch.dtype) -> Made:
    arguments = (randn(4, 12, COLUMNS, dtype=dtype),)
    return lambda x: liger.liger_rms_norm(x, None, 1e-6), lambda x: x * mean_square(x), arguments


def fused_add_rms_norm(dtype: torch.dtype) -> Made:
    def plain(x: Any, r: Any, w: Any) -> Any:
        s = x + r
        return s * mean_square(s) * w, s

    arguments = randn(ROWS, COLUMNS, dtype=dtype), randn(ROWS, COLUMNS, dtype=dtype), randn(COLUMNS, dtype=dtype)
    return lambda x, r, w: liger.liger_fused_add_rms_norm(x, r, w, 1e-6), plain, arguments


def modulated_rms_norm(shifted: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        shift = randn(4, COLUMNS, dtype=dtype) if shifted else None

        def plain(x: Any, w: Any, scale: Any, shift: Any) -> Any:
            y = x * mean_square(x) * w * (1 + scale[:, None])
            return y if shift is None else y + shift[:, None]

        arguments = (
            randn(4, 12, COLUMNS, dtype=dtype),
            randn(COLUMNS, dtype=dtype),
            randn(4, COLUMNS, dtype=dtype),
            shift,
        )
        return lambda x, w, s, t: liger.liger_modulated_rms_norm(x, w, s, t), plain, arguments

    return make


def layer_norm(dtype: torch.dtype) -> Made:
    arguments = randn(ROWS, COLUMNS, dtype=dtype), randn(COLUMNS, dtype=dtype), randn(COLUMNS, dtype=dtype)
    return (
        lambda x, w, b: liger.liger_layer_norm(x, w, b, 1e-6),
        lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b, 1e-6),
        arguments,
    )


def group_norm(dtype: torch.dtype) -> Made:
    arguments = randn(4, 12, 300, dtype=dtype), randn(12, dtype=dtype), randn(12, dtype=dtype)
    return (
        lambda x, w, b: liger.liger_group_norm(x, w, b, 12, 3, 1e-6),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-6),
        arguments,
    )


def poly_norm(dtype: torch.dtype) -> Made:
    def plain(x: Any, w: Any, b: Any) -> Any:
        powers = [x**power * mean_square(x**power) for power in (3, 2, 1)]
        return sum(w[place] * power for place, power in enumerate(powers)) + b

    arguments = randn(ROWS, COLUMNS, dtype=dtype), randn(3, dtype=dtype), randn(dtype=dtype)
    return lambda x, w, b: liger.liger_poly_norm(x, w, b), plain, arguments


def dyt(dtype: torch.dtype) -> Made:
    arguments = (
        randn(ROWS, COLUMNS, dtype=dtype),
        randn(1, dtype=dtype),
        randn(COLUMNS, dtype=dtype),
        randn(COLUMNS, dtype=dtype),
    )
    return liger.liger_dyt, lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta, arguments


def geglu(dtype: torch.dtype) -> Made:
    arguments = randn(ROWS, COLUMNS, dtype=dtype), randn(ROWS, COLUMNS, dtype=dtype)
    return liger.liger_geglu, lambda a, b: F.gelu(a, approximate="tanh") * b, arguments


def swiglu(dtype: torch.dtype) -> Made:
    arguments = randn(ROWS, COLUMNS, dtype=dtype), randn(ROWS, COLUMNS, dtype=dtype)
    return liger.liger_swiglu, lambda a, b: F.silu(a) * b, arguments


def swiglu_scaled(dtype: torch.dtype) -> Made:
    arguments = randn(ROWS, COLUMNS, dtype=dtype), randn(ROWS, COLUMNS, dtype=dtype)
    return (
        lambda a, b: ops.LigerSiLUMulFunction.apply(a, b, 1.5, 0.5),
        lambda a, b: F.silu(a * 1.5) * b * 0.5,
        arguments,
    )


def swiglu_gate_up(dtype: torch.dtype) -> Made:
    def plain(y: Any) -> Any:
        gate, up = y.chunk(2, -1)
        return F.silu(gate) * up

    return ops.LigerFusedGateUpSiLUMulFunction.apply, plain, (randn(ROWS, 2 * COLUMNS, dtype=dtype),)


def relu_squared(dtype: torch.dtype) -> Made:
    return liger.liger_relu_squared, lambda x: F.relu(x).square(), (randn(ROWS, COLUMNS, dtype=dtype),)


def softmax(columns: int) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return liger.liger_softmax, lambda x: F.softmax(x, -1), (randn(ROWS, columns, dtype=dtype),)

    return make


def simplex(x: Any) -> Any:
    """Projection onto the simplex."""
    ordered, _ = x.sort(-1, descending=True)
    counts = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    sums = ordered.cumsum(-1)
    support = (1 + counts * ordered > sums).sum(-1, keepdim=True)
    return F.relu(x - (sums.gather(-1, support - 1) - 1) / support)


def sparsemax(dtype: torch.dtype) -> Made:
    return liger.liger_sparsemax, simplex, (randn(ROWS, COLUMNS, dtype=dtype),)


def logits(dtype: torch.dtype, rows: int = ROWS) -> torch.Tensor:
    """Log probabilities over a vocabulary."""
    return leaf(torch.randn(rows, VOCABULARY).log_softmax(-1).to(dtype))


def labels(rows: int = ROWS, vocabulary: int = VOCABULARY) -> torch.Tensor:
    """Targets, some of them ignored."""
    chosen = torch.randint(0, vocabulary, (rows,))
    chosen[::5] = -100
    return chosen


def cross_entropy(**options: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(x: Any, target: Any) -> Any:
            cap, square = options.get("softcap"), options.get("lse_square_scale", 0.0)
            x = cap * torch.tanh(x / cap) if cap else x
            known = {name: options[name] for name in ("reduction", "label_smoothing") if name in options}
            loss = F.cross_entropy(x, target, **known)
            if not square:
                return loss
            z = (square * torch.logsumexp(x, -1) ** 2)[target != -100]
            return loss + z.mean()

        arguments = randn(ROWS, VOCABULARY, dtype=dtype), labels()
        return lambda x, target: liger.liger_cross_entropy(x, target, **options), plain, arguments

    return make


def cross_entropy_weighted(dtype: torch.dtype) -> Made:
    arguments = randn(ROWS, VOCABULARY, dtype=dtype), labels(), torch.rand(VOCABULARY)
    return (
        lambda x, target, weight: liger.liger_cross_entropy(x, target, weight),
        lambda x, target, weight: F.cross_entropy(x, target, weight.to(x.dtype)),
        arguments,
    )


def cross_entropy_extras(dtype: torch.dtype) -> Made:
    def ours(x: Any, target: Any) -> Any:
        found = liger.liger_cross_entropy(
            x,
            target,
            return_z_loss=True,
            lse_square_scale=1e-3,
            return_token_accuracy=True,
            return_predicted_tokens=True,
        )
        return found.loss, found.z_loss.detach(), found.token_accuracy.detach(), found.predicted_tokens.detach()

    def plain(x: Any, target: Any) -> Any:
        kept = target != -100
        z = (1e-3 * torch.logsumexp(x, -1) ** 2)[kept].mean()
        best = x.argmax(-1)
        accuracy = (best == target)[kept].double().mean()
        return F.cross_entropy(x, target) + z, z.detach(), accuracy, torch.where(kept, best, -1)

    return ours, plain, (randn(ROWS, VOCABULARY, dtype=dtype), labels())


def kl_div(reduction: str, log_target: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        target = logits(dtype).detach()
        return (
            lambda x, t: liger.liger_kl_div(x, t, reduction=reduction, log_target=log_target),
            lambda x, t: F.kl_div(x, t, reduction=reduction, log_target=log_target),
            (logits(dtype), target if log_target else target.exp()),
        )

    return make


def jsd(beta: float, labelled: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        target = labels() if labelled else None

        def plain(x: Any, y: Any, target: Any) -> Any:
            return generalized_jsd(x, y, beta, target)

        return (
            lambda x, y, target: liger.liger_jsd(x, y, target, beta),
            plain,
            (logits(dtype), logits(dtype).detach(), target),
        )

    return make


def generalized_jsd(x: Any, y: Any, beta: float, target: Any) -> Any:
    """Divergence of log probabilities `x` (student) from `y` (teacher)."""
    q, p = x.exp(), y.exp()
    if beta in (0.0, 1.0):
        each = p * (y - x) if beta == 0.0 else q * (x - y)
    else:
        middle = (beta * p + (1 - beta) * q).log()
        each = beta * p * (y - middle) + (1 - beta) * q * (x - middle)
    rows = each.sum(-1)
    return rows.mean() if target is None else (rows * (target != -100)).sum() / (target != -100).sum()


def tvd(reduction: str, labelled: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        target = labels() if labelled else None

        def plain(p: Any, q: Any, target: Any) -> Any:
            each = 0.5 * (p - q).abs()
            rows = each.shape[0]
            if target is not None:
                each = each * (target != -100)[:, None]
                rows = int((target != -100).sum())
            divisor = {"none": 1, "sum": 1, "batchmean": rows, "mean": rows * VOCABULARY}[reduction]
            return each / divisor if reduction == "none" else each.sum() / divisor

        arguments = leaf(logits(F32).exp().to(dtype)), logits(F32).detach().exp().to(dtype), target
        return lambda p, q, target: liger.liger_tvd(p, q, target, reduction), plain, arguments

    return make


def rope(dtype: torch.dtype) -> Made:
    q, k = randn(2, 4, 24, 64, dtype=dtype), randn(2, 2, 24, 64, dtype=dtype)
    return liger.liger_rope, rotated, (q, k, *angles(24, 64, dtype))


def angles(length: int, width: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of rotary embeddings, (1, length, width)."""
    turns = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
    both = torch.cat((turns, turns), -1)[None]
    return both.cos().to(dtype), both.sin().to(dtype)


def rotated(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding of the halves of each head."""

    def half(x: Any) -> Any:
        one, other = x.chunk(2, -1)
        return torch.cat((-other, one), -1)

    cos, sin = cos[:, None], sin[:, None]
    return q * cos + half(q) * sin, k * cos + half(k) * sin


PARTS: list[Call] = [
    *calls("rms_norm llama", rms_norm("llama", 0.0), F32, BF16, F16),
    *calls("rms_norm gemma", rms_norm("gemma", 1.0), F32, BF16),
    *calls("rms_norm none", rms_norm("none", 0.0, False), F32),
    *calls("rms_norm without weight", rms_norm_plain, F32),
    *calls("fused_add_rms_norm", fused_add_rms_norm, F32, BF16),
    *calls("modulated_rms_norm", modulated_rms_norm(False), F32),
    *calls("modulated_rms_norm shift", modulated_rms_norm(True), F32, BF16),
    *calls("layer_norm", layer_norm, F32, BF16),
    *calls("group_norm", group_norm, F32),
    *calls("poly_norm", poly_norm, F32, BF16),
    *calls("dyt", dyt, F32, BF16),
    *calls("geglu", geglu, F32, BF16),
    *calls("swiglu", swiglu, F32, BF16, F16),
    *calls("swiglu multipliers", swiglu_scaled, F32),
    *calls("swiglu fused gate and up", swiglu_gate_up, F32, BF16),
    *calls("relu_squared", relu_squared, F32, BF16),
    *calls("softmax one block", softmax(COLUMNS), F32, BF16),
    *calls("sparsemax", sparsemax, F32),
    *calls("cross_entropy", cross_entropy(), F32, BF16),
    *calls("cross_entropy sum, smoothing", cross_entropy(reduction="sum", label_smoothing=0.1), F32),
    *calls("cross_entropy none", cross_entropy(reduction="none"), F32),
    *calls("cross_entropy softcap, z loss", cross_entropy(softcap=30.0, lse_square_scale=1e-3), F32, BF16),
    *calls("cross_entropy weight", cross_entropy_weighted, F32),
    *calls("cross_entropy extras", cross_entropy_extras, F32),
    *calls("kl_div batchmean", kl_div("batchmean", False), F32, BF16),
    *calls("kl_div none, log target", kl_div("none", True), F32),
    *calls("kl_div mean", kl_div("mean", False), F32),
    *calls("jsd 0.5", jsd(0.5, False), F32, BF16),
    *calls("jsd 0.0", jsd(0.0, False), F32),
    *calls("jsd 1.0, labels", jsd(1.0, True), F32),
    *calls("jsd 0.3, labels", jsd(0.3, True), F32),
    *calls("tvd batchmean", tvd("batchmean", False), F32, BF16),
    *calls("tvd none, labels", tvd("none", True), F32),
    *calls("tvd mean, labels", tvd("mean", True), F32),
    *calls("rope", rope, F32, BF16),
]
