"""flash-linear-attention: activations, norms, convolutions, losses and the small kernels that its operations share."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fla.modules.activations import ops as activations
from fla.modules.causal_conv1d import causal_conv1d
from fla.modules.fused_cross_entropy.ops import cross_entropy_loss
from fla.modules.fused_kl_div.ops import fused_kl_div_loss
from fla.modules.fused_linear_cross_entropy.ops import fused_linear_cross_entropy_loss
from fla.modules.grpo.ops import fused_grpo_loss, grpo_loss_torch
from fla.modules.norm import fused_norm_gate, l2norm, layernorm, layernorm_gated
from fla.modules.rotary.ops import rotary_embedding
from fla.modules.token_shift import token_shift
from fla.ops import utils
from fla.ops.utils.sinkhorn import sinkhorn
from fla.ops.utils.sinkhorn.naive import naive_sinkhorn

from libraries.call import BF16, F32, TF32, Call, Made, calls, randn
from libraries.fla_recurrences import from_library
from libraries.liger_parts import labels, mean_square

ROWS, COLUMNS, VOCABULARY = 48, 200, 1000


def rows(dtype: torch.dtype) -> torch.Tensor:
    """Random rows."""
    return randn(ROWS, COLUMNS, dtype=dtype)


def columns(dtype: torch.dtype) -> torch.Tensor:
    """A random row."""
    return randn(COLUMNS, dtype=dtype)


def root(x: Any, w: Any, b: Any) -> Any:
    """RMS norm."""
    return x * mean_square(x, 1e-5) * w + b


def gated_norm(x: Any, g: Any, w: Any, b: Any) -> Any:
    """Layer norm, gated."""
    return F.layer_norm(x, (COLUMNS,), w, b, 1e-6) * F.silu(g)


def rotary(dtype: torch.dtype) -> Made:
    turns = torch.outer(torch.arange(60.0), 10000 ** (-torch.arange(0, 32, 2) / 32))

    def plain(x: Any, cos: Any, sin: Any) -> Any:
        cos, sin = cos[:, None], sin[:, None]
        one, other = x[..., :16], x[..., 16:]
        return torch.cat((one * cos - other * sin, other * cos + one * sin), -1)

    return rotary_embedding, plain, (randn(2, 60, 4, 32, dtype=dtype), turns.cos().to(dtype), turns.sin().to(dtype))


def convolution(activation: str | None) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(x: Any, w: Any, b: Any) -> Any:
            found = F.conv1d(x.mT, w[:, None], b, padding=3, groups=96)[..., :60].mT
            return F.silu(found) if activation else found

        arguments = randn(2, 60, 96, dtype=dtype), randn(96, 4, dtype=dtype), randn(96, dtype=dtype)
        return lambda x, w, b: causal_conv1d(x, w, b, activation=activation)[0], plain, arguments

    return make


def shifted(x: Any) -> Any:
    """The token before, less the token."""
    return F.pad(x, (0, 0, 1, -1)) - x


def cross_entropy(dtype: torch.dtype) -> Made:
    def ours(x: Any, target: Any) -> Any:
        found = cross_entropy_loss(x, target, label_smoothing=0.1)
        return found[0]

    def plain(x: Any, target: Any) -> Any:
        return F.cross_entropy(x, target, label_smoothing=0.1, reduction="none")

    return ours, plain, (randn(ROWS, VOCABULARY, dtype=dtype), labels(ROWS, VOCABULARY))


def linear_cross_entropy(dtype: torch.dtype) -> Made:
    arguments = rows(dtype), labels(ROWS, VOCABULARY), randn(VOCABULARY, COLUMNS, dtype=dtype, scale=0.1)
    return fused_linear_cross_entropy_loss, lambda x, target, w: F.cross_entropy(F.linear(x, w), target), arguments


def kl_div(dtype: torch.dtype) -> Made:
    def plain(x: Any, y: Any, w: Any, v: Any) -> Any:
        return F.kl_div(F.linear(x, w).log_softmax(-1), F.linear(y, v).softmax(-1), reduction="batchmean")

    weight = [randn(VOCABULARY, COLUMNS, dtype=dtype, scale=0.1) for _ in range(2)]
    arguments = rows(dtype), rows(dtype).detach(), weight[0], weight[1].detach()
    return fused_kl_div_loss, plain, arguments


def grpo(dtype: torch.dtype) -> Made:
    ids, mask = torch.randint(0, VOCABULARY, (3, 20)), torch.ones(3, 12, dtype=torch.int32)
    reference = torch.randn(3, 12).abs().neg()
    return (
        lambda logits, r, gains: fused_grpo_loss(logits, r, ids.clone(), gains, completion_mask=mask.clone()),
        lambda logits, r, gains: grpo_loss_torch(logits, r, ids[:, -12:], gains, completion_mask=mask),
        (randn(3, 13, VOCABULARY, dtype=dtype), reference, torch.randn(3)),
    )


def cumulated(reverse: bool, *shape: int) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(x: Any) -> Any:
            chunks = [part.flip(1).cumsum(1).flip(1) if reverse else part.cumsum(1) for part in x.split(32, 1)]
            return torch.cat(chunks, 1)

        given = torch.randn(2, 100, 4, *shape).to(dtype)
        return lambda x: utils.chunk_local_cumsum(x, 32, reverse=reverse), plain, (given,)

    return make


def cumulated_all(*shape: int) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return utils.chunk_global_cumsum, lambda x: x.cumsum(1), (torch.randn(2, 100, 4, *shape).to(dtype),)

    return make


def inverse(dtype: torch.dtype) -> Made:
    """(I + A)^-1 of strictly lower triangles."""
    triangles = torch.randn(2, 128, 2, 64).to(dtype) * 0.2
    place = torch.arange(128) % 64
    triangles = triangles * (place[:, None, None] > torch.arange(64))

    def plain(a: Any) -> Any:
        blocks = a.unflatten(1, (2, 64)).transpose(2, 3)
        return torch.linalg.inv(torch.eye(64, dtype=a.dtype) + blocks).transpose(2, 3).flatten(1, 2)

    return utils.solve_tril, plain, (triangles,)


def pooled(dtype: torch.dtype) -> Made:
    def plain(x: Any) -> Any:
        return torch.stack([part.mean(1) for part in x.split(32, 1)], 1)

    return lambda x: utils.mean_pooling(x, 32), plain, (randn(2, 100, 2, 48, dtype=dtype),)


def products(dtype: torch.dtype) -> Made:
    arguments = torch.randn(40, 60).to(dtype), torch.randn(60, 72).to(dtype)
    return utils.matmul, torch.matmul, arguments


def softmax_backward(dtype: torch.dtype) -> Made:
    def plain(p: Any, d: Any) -> Any:
        return p * (d - (p * d).sum(-1, keepdim=True))

    return (
        utils.softmax_bwd,
        plain,
        (torch.randn(ROWS, COLUMNS).softmax(-1).to(dtype), torch.randn(ROWS, COLUMNS).to(dtype)),
    )


def square(dtype: torch.dtype) -> torch.Tensor:
    return randn(20, 4, 4, dtype=dtype)


def sequence(dtype: torch.dtype) -> torch.Tensor:
    return randn(2, 60, 96, dtype=dtype)


def still(make: Any) -> Any:
    return lambda dtype: make(dtype).detach()


MODULES: list[Call] = [
    *calls("sigmoid", from_library(activations.sigmoid, torch.sigmoid, rows), F32, BF16),
    *calls("logsigmoid", from_library(activations.logsigmoid, F.logsigmoid, rows), F32),
    *calls("swish", from_library(activations.swish, F.silu, rows), F32, BF16),
    *calls("elu_p1", from_library(activations.elu_p1, lambda x: F.elu(x) + 1, rows), F32),
    *calls("swiglu", from_library(activations.swiglu, lambda x, y: F.silu(x) * y, rows, rows), F32, BF16),
    *calls("sigmoidglu", from_library(activations.sigmoidglu, lambda x, y: torch.sigmoid(x) * y, rows, rows), F32),
    *calls(
        "l2norm",
        from_library(l2norm.l2norm, lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6), rows),
        F32,
        BF16,
    ),
    *calls(
        "layer_norm",
        from_library(layernorm.layer_norm, lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), rows, columns, columns),
        F32,
        BF16,
    ),
    *calls("rms_norm", from_library(layernorm.rms_norm, root, rows, columns, columns), F32),
    *calls(
        "group_norm",
        from_library(
            lambda x, w, b: layernorm.group_norm(x, w, b, num_groups=4),
            lambda x, w, b: F.group_norm(x, 4, w, b),
            rows,
            columns,
            columns,
        ),
        F32,
    ),
    *calls(
        "layer_norm_gated",
        from_library(fused_norm_gate.layer_norm_gated, gated_norm, rows, rows, columns, columns),
        F32,
    ),
    *calls(
        "layernorm_fn",
        from_library(
            layernorm_gated.layernorm_fn,
            lambda x, w, b, z: F.layer_norm(x, (COLUMNS,), w, b, 1e-6) * F.silu(z),
            rows,
            columns,
            columns,
            rows,
        ),
        F32,
    ),
    *calls("rotary_embedding", rotary, F32, BF16),
    *calls("causal_conv1d", convolution(None), F32),
    *calls("causal_conv1d swish", convolution("swish"), F32, BF16),
    *calls("token_shift", from_library(token_shift, shifted, sequence), F32),
    *calls("cross_entropy_loss", cross_entropy, F32, BF16),
    *calls("fused_linear_cross_entropy_loss", linear_cross_entropy, F32),
    *calls("fused_kl_div_loss", kl_div, F32),
    *calls("fused_grpo_loss", grpo, F32),
    *calls("chunk_local_cumsum scalars", cumulated(False), F32),
    *calls("chunk_local_cumsum reverse", cumulated(True, 24), F32, tolerance=TF32),
    *calls("chunk_global_cumsum scalars", cumulated_all(), F32),
    *calls("chunk_global_cumsum vectors", cumulated_all(24), F32, tolerance=TF32),
    *calls("solve_tril", inverse, F32, tolerance=2 * TF32),
    *calls("mean_pooling", pooled, F32),
    *calls("matmul", products, F32, BF16),
    *calls("logsumexp_fwd", from_library(utils.logsumexp_fwd, lambda x: x.logsumexp(-1), still(rows)), F32),
    *calls("softmax_fwd", from_library(utils.softmax_fwd, lambda x: x.softmax(-1), still(rows)), F32),
    *calls("softmax_bwd", softmax_backward, F32),
    *calls("sinkhorn", from_library(sinkhorn, naive_sinkhorn, square), F32),
]
