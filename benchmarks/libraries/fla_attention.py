"""flash-linear-attention: attention, and recurrences with a plain form in the library."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fla import ops
from fla.ops.abc.naive import naive_recurrent_abc
from fla.ops.attnres.naive import naive_attnres
from fla.ops.based.naive import naive_parallel_based
from fla.ops.forgetting_attn.naive import naive_forgetting_attn
from fla.ops.gated_delta_product import chunk_gated_delta_product
from fla.ops.gated_delta_product.naive import naive_recurrent_gated_delta_product
from fla.ops.gdn2.naive import naive_recurrent_gdn2
from fla.ops.gsa.naive import naive_recurrent_gsa
from fla.ops.log_linear_attn.naive import naive_log_linear_attn
from fla.ops.mesa_net.naive import naive_mesa_net_exact
from fla.ops.momentum_delta_rule.naive import recurrent_momentum_delta_rule_ref
from fla.ops.parallax.naive import naive_parallax
from fla.ops.path_attn.naive import naive_path_attn
from fla.ops.precond_gated_delta_rule.naive import naive_recurrent_precond_gated_delta_rule
from fla.ops.precond_kda.naive import naive_recurrent_precond_kda
from fla.ops.rebased.naive import naive_parallel_rebased
from fla.ops.rebased.parallel import parallel_rebased
from fla.ops.stickbreaking_attn.naive import naive_stickbreaking_attn
from fla.ops.ttt import chunk_ttt_linear, fused_chunk_ttt_linear
from fla.ops.ttt.naive import chunk_ttt_linear_ref

from libraries.call import BF16, F16, F32, Call, Made, calls, leaf, randn
from libraries.fla_recurrences import (
    BATCH,
    HEADS,
    LENGTH,
    NEAR,
    WIDTH,
    alone,
    from_library,
    gates,
    tokens,
    unit,
    weights,
)


def heads_first(reference: Any) -> Any:
    """A plain form that takes heads before tokens."""

    def turned(*arguments: Any, **named: Any) -> Any:
        found = reference(*(argument.transpose(1, 2) for argument in arguments), **named)
        return (found[0] if isinstance(found, tuple) else found).transpose(1, 2)

    return turned


def of_unit_length(reference: Any) -> Any:
    """A plain form whose queries and keys are normalized first, as the library's kernels do."""
    return lambda q, k, *rest: reference(F.normalize(q, dim=-1), F.normalize(k, dim=-1), *rest)


def queries(dtype: torch.dtype) -> torch.Tensor:
    """Twice as many heads as keys have."""
    return tokens(dtype, heads=2 * HEADS)


def attention(**options: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        window = options.get("window_size")

        def plain(q: Any, k: Any, v: Any) -> Any:
            k, v = (x.repeat_interleave(2, 2) for x in (k, v))
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * WIDTH**-0.5
            behind = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]
            seen = (behind >= 0) & (behind < (window or LENGTH))
            return torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), v)

        return (
            lambda q, k, v: ops.parallel_attn(q, k, v, **options),
            plain,
            (queries(dtype), tokens(dtype), tokens(dtype)),
        )

    return make


def forgetting(dtype: torch.dtype) -> Made:
    return (
        ops.parallel_forgetting_attn,
        naive_forgetting_attn,
        (queries(dtype), tokens(dtype), tokens(dtype), leaf(F.logsigmoid(torch.randn(BATCH, LENGTH, 2 * HEADS)))),
    )


def selected(dtype: torch.dtype) -> Made:
    """Native sparse attention: every query's choice of blocks."""
    blocks = -(-LENGTH // 16)
    own = torch.arange(LENGTH) // 16
    chosen = torch.stack([torch.randint(0, int(last) + 1, (BATCH, 1, 2)).sort(-1).values for last in own], 1)
    chosen[:, :, :, -1] = own[None, :, None]
    chosen = torch.where(
        (chosen == own[None, :, None, None]) & (torch.arange(2) == 0) & (own[None, :, None, None] > 0), 0, chosen
    )
    chosen[:, own == 0] = torch.tensor([0, blocks])  # the second block does not exist yet

    def plain(q: Any, k: Any, v: Any) -> Any:
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k.expand(-1, -1, 16, -1)) * WIDTH**-0.5
        tokens_ = torch.arange(LENGTH)
        seen = (chosen[:, :, 0, :, None] == (tokens_ // 16)[None, None, None]).any(2)
        seen = seen & (tokens_[None, :, None] >= tokens_[None, None])
        return torch.einsum(
            "bhqk,bkhd->bqhd", scores.masked_fill(~seen[:, None], -torch.inf).softmax(-1), v.expand(-1, -1, 16, -1)
        )

    return (
        lambda q, k, v: ops.parallel_nsa(
            q, k, v, g_slc=torch.ones(BATCH, LENGTH, 16), block_indices=chosen.clone(), block_counts=2, block_size=16
        ),
        plain,
        (tokens(dtype, heads=16), tokens(dtype, heads=1), tokens(dtype, heads=1)),
    )


def path(dtype: torch.dtype) -> Made:
    w, beta = leaf(F.normalize(torch.randn(BATCH, LENGTH, HEADS, WIDTH), dim=-1)), weights()
    gate = leaf(F.logsigmoid(torch.randn(BATCH, LENGTH, HEADS)))

    def ours(q: Any, k: Any, v: Any, w: Any, beta: Any, g: Any) -> Any:
        found = ops.parallel_path_attn(q, k, v, w, beta, g)
        return found[0] if isinstance(found, tuple) else found

    def plain(q: Any, k: Any, v: Any, w: Any, beta: Any, g: Any) -> Any:
        pad = [F.pad(x, (0,) * (2 * (x.dim() - 2)) + (0, 128 - LENGTH)) for x in (q, k, v, w, beta, g)]
        return naive_path_attn(*pad, WIDTH**-0.5)[:, :LENGTH]

    return ours, plain, (tokens(dtype), tokens(dtype), tokens(dtype), w, beta, gate)


def walled(dtype: torch.dtype) -> Made:
    """Attention whose keys decay, each of their elements at its own pace."""

    def plain(q: Any, k: Any, v: Any, g: Any) -> Any:
        fallen = g.cumsum(1)
        decay = (fallen[:, :, None] - fallen[:, None]).clamp(max=0).exp()
        scores = torch.einsum("bqhd,bkhd,bqkhd->bhqk", q, k, decay) * WIDTH**-0.5
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        return torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(future, -torch.inf).softmax(-1), v)

    return ops.parallel_wall_attn, plain, (tokens(dtype), tokens(dtype), tokens(dtype), gates(WIDTH, low=-0.2))


def time_test_training(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        eta = leaf(torch.rand(BATCH, 96, HEADS, 1) * 0.05)
        given = [leaf(x.detach()[:, :96]) for x in (unit(dtype), unit(dtype), tokens(dtype))]

        def plain(q: Any, k: Any, v: Any, w: Any, b: Any, eta: Any) -> Any:
            found = chunk_ttt_linear_ref(q.clone(), k, v, w, b, eta, mini_batch_size=16)
            return found[0]

        arguments = (*given, randn(HEADS, WIDTH), randn(HEADS, WIDTH), eta)
        return lambda *a: function(*a, chunk_size=16)[0], plain, arguments

    return make


def log_linear(dtype: torch.dtype) -> Made:
    levels = 8

    def plain(q: Any, k: Any, v: Any, g: Any, scales: Any) -> Any:
        return naive_log_linear_attn(q, k, v, g, scales)

    def cut(x: torch.Tensor) -> torch.Tensor:
        return leaf(x.detach()[:, :64])

    def ours(*given: Any) -> Any:
        return ops.chunk_log_linear_attn(*given)[0]

    arguments = (
        cut(tokens(dtype, 64, 1)), cut(tokens(dtype, 64, 1)), cut(tokens(dtype, 64)), cut(gates()),
        leaf(torch.rand(BATCH, 64, HEADS, levels)),
    )  # fmt: skip
    return ours, plain, arguments


def mesa(dtype: torch.dtype) -> Made:
    ridge = leaf(torch.rand(HEADS, WIDTH) + 0.5)

    def plain(q: Any, k: Any, v: Any, g: Any, beta: Any, ridge: Any) -> Any:
        return naive_mesa_net_exact(q, k, v, g, ridge, beta)[0]

    return (
        lambda q, k, v, g, beta, ridge: ops.chunk_mesa_net(q, k, v, g, beta, ridge)[0],
        plain,
        (unit(dtype), unit(dtype), tokens(dtype), gates(), weights(dtype), ridge),
    )


def product(dtype: torch.dtype) -> Made:
    """Two reflections for every token."""
    arguments = (
        tokens(dtype), leaf(F.normalize(torch.randn(BATCH, 2 * LENGTH, HEADS, WIDTH), dim=-1).to(dtype)),
        randn(BATCH, 2 * LENGTH, HEADS, WIDTH, dtype=dtype), gates(),
        leaf(torch.rand(BATCH, 2 * LENGTH, HEADS).to(dtype)),
    )  # fmt: skip
    return (
        lambda q, k, v, g, beta: chunk_gated_delta_product(q, k, v, g, beta, 2)[0],
        lambda q, k, v, g, beta: naive_recurrent_gated_delta_product(q, k, v, g, beta, WIDTH**-0.5, num_householder=2)[
            0
        ],
        arguments,
    )


def depth(dtype: torch.dtype) -> Made:
    layers = tuple(randn(2, 30, 64, dtype=dtype) for _ in range(4))
    arguments = randn(64, dtype=dtype), layers, randn(64, dtype=dtype)
    return ops.fused_attnres, naive_attnres, arguments


def momentum(q: Any, k: Any, v: Any, forget: Any, keep: Any, p: Any, beta: Any, eta: Any) -> Any:
    """The library's kernels normalize queries and keys, and let what is read back with decay first."""
    p = F.normalize(p, dim=-1) * forget.exp()[..., None]
    return of_unit_length(recurrent_momentum_delta_rule_ref)(q, k, v, forget, keep, p, beta, eta)


def narrow(dtype: torch.dtype) -> torch.Tensor:
    return tokens(dtype, 16)


def slots(dtype: torch.dtype) -> torch.Tensor:
    """Weights of slots for every token."""
    return tokens(dtype, 16)


def ones_below(dtype: torch.dtype) -> torch.Tensor:
    return weights(dtype)


def a_gate(dtype: torch.dtype) -> torch.Tensor:
    return gates()


def key_gate(dtype: torch.dtype) -> torch.Tensor:
    return gates(WIDTH)


def slot_gate(dtype: torch.dtype) -> torch.Tensor:
    return gates(16)


def key_weights(dtype: torch.dtype) -> torch.Tensor:
    return leaf(torch.rand(BATCH, LENGTH, HEADS, WIDTH).to(dtype))


QKV = (tokens, tokens, tokens)
QUV = (tokens, unit, tokens)
ATTENTION: list[Call] = [
    *calls("parallel_attn", attention(), F32, tolerance=NEAR),
    *calls("parallel_attn", attention(), F16, BF16),
    *calls("parallel_attn window", attention(window_size=20), F32, tolerance=NEAR),
    *calls("parallel_forgetting_attn", forgetting, F32, tolerance=NEAR),
    *calls(
        "parallel_stickbreaking_attn",
        from_library(ops.parallel_stickbreaking_attn, naive_stickbreaking_attn, *QKV),
        F32,
        tolerance=NEAR,
    ),
    *calls(
        "parallel_based",
        from_library(ops.parallel_based, heads_first(naive_parallel_based), *(narrow,) * 3),
        F32,
        tolerance=2 * NEAR,
    ),
    *calls(
        "fused_chunk_based",
        from_library(ops.fused_chunk_based, heads_first(naive_parallel_based), *(narrow,) * 3),
        F32,
        tolerance=2 * NEAR,
    ),
    *calls(
        "parallel_rebased",
        from_library(parallel_rebased, heads_first(naive_parallel_rebased), *(narrow,) * 3),
        F32,
        tolerance=2 * NEAR,
    ),
    *calls("parallel_nsa selection", selected, F32, tolerance=NEAR),
    *calls("parallel_path_attn", path, F32, tolerance=NEAR),
    *calls("parallel_wall_attn", walled, F32, tolerance=NEAR),
    *calls("parallel_parallax", from_library(ops.parallel_parallax, naive_parallax, *(tokens,) * 4), BF16),
    *calls(
        "chunk_abc", from_library(ops.chunk_abc, heads_first(naive_recurrent_abc), *QKV, slots), F32, tolerance=NEAR
    ),
    *calls("chunk_gsa", from_library(ops.chunk_gsa, naive_recurrent_gsa, *QKV, slots, slot_gate), F32, tolerance=NEAR),
    *calls(
        "fused_recurrent_gsa", from_library(ops.fused_recurrent_gsa, naive_recurrent_gsa, *QKV, slots, slot_gate), F32
    ),
    *calls("chunk_ttt_linear", time_test_training(chunk_ttt_linear), F32, tolerance=2e-2),
    *calls("fused_chunk_ttt_linear", time_test_training(fused_chunk_ttt_linear), F32, tolerance=2e-2),
    *calls("chunk_log_linear_attn", log_linear, F32, tolerance=NEAR),
    *calls("chunk_mesa_net", mesa, BF16),
    *calls("chunk_gated_delta_product", product, BF16),
    *calls("fused_attnres", depth, F32),
    *calls(
        "chunk_gdn2",
        from_library(ops.gdn2.chunk_gdn2, naive_recurrent_gdn2, *QUV, key_gate, key_weights, key_weights),
        F32,
        tolerance=NEAR,
    ),
    *calls(
        "fused_recurrent_gdn2",
        alone(
            from_library(ops.gdn2.fused_recurrent_gdn2, naive_recurrent_gdn2, *QUV, key_gate, key_weights, key_weights)
        ),
        F32,
    ),
    *calls(
        "chunk_precond_gated_delta_rule",
        from_library(
            ops.chunk_precond_gated_delta_rule,
            naive_recurrent_precond_gated_delta_rule,
            unit,
            unit,
            tokens,
            a_gate,
            a_gate,
            ones_below,
            ones_below,
        ),
        F32,
        tolerance=NEAR,
    ),
    *calls(
        "chunk_precond_kda",
        from_library(
            ops.chunk_precond_kda,
            of_unit_length(naive_recurrent_precond_kda),
            unit,
            unit,
            tokens,
            key_gate,
            a_gate,
            ones_below,
            ones_below,
        ),
        F32,
        tolerance=NEAR,
    ),
    *calls(
        "chunk_momentum_delta_rule",
        from_library(
            ops.chunk_momentum_delta_rule, momentum, unit, unit, tokens, a_gate, a_gate, unit, ones_below, ones_below
        ),
        BF16,
    ),
]
