"""flash-linear-attention: everything that is a recurrence of a state of keys by values."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from fla import ops

from libraries.call import BF16, F32, Call, Made, calls, leaf, randn

BATCH, LENGTH, HEADS, WIDTH = 2, 100, 2, 32
NEAR = 5e-3
"""Kernels of this library multiply in tf32, many times one after the other."""


def recurrence(
    q: Any, k: Any, v: Any, *, g: Any = None, keys: Any = None, values: Any = None, beta: Any = None, a: Any = None,
    b: Any = None, bonus: Any = None, state: Any = None, scale: float | None = None, remove: Any = None,
) -> Any:  # fmt: skip
    """Outputs and last state.

    The state decays by exp(g) (a number a head), exp(keys) or exp(values). `beta` weighs what a delta rule writes
    (`remove`: the key that it reads back with, before the decay), `a` and `b` are those of a generalized one, `bonus`
    favours the newest pair."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = q.new_zeros(q.shape[0], q.shape[2], q.shape[-1], v.shape[-1]) if state is None else state
    outputs = []
    for t in range(q.shape[1]):
        qt, kt, vt = q[:, t] * scale, k[:, t], v[:, t]
        if bonus is not None:
            outputs.append(torch.einsum("bhk,bhkv->bhv", qt, s + (bonus * kt)[..., None] * vt[..., None, :]))
        old = s
        if g is not None:
            s = s * g[:, t].exp()[..., None, None]
        if keys is not None:
            s = s * keys[:, t].exp()[..., None]
        if values is not None:
            s = s * values[:, t].exp()[..., None, :]
        if a is not None:
            s = s + b[:, t][..., None] * torch.einsum("bhk,bhkv->bhv", a[:, t], old)[..., None, :]
        if beta is not None:
            known = torch.einsum("bhk,bhkv->bhv", *((kt, s) if remove is None else (remove[:, t], old)))
            vt = (vt - known) * beta[:, t][..., None]
        s = s + kt[..., None] * vt[..., None, :]
        if bonus is None:
            outputs.append(torch.einsum("bhk,bhkv->bhv", qt, s))
    return torch.stack(outputs, 1), s


def tokens(dtype: torch.dtype, width: int = WIDTH, heads: int = HEADS) -> torch.Tensor:
    """A random vector for every token and head."""
    return randn(BATCH, LENGTH, heads, width, dtype=dtype)


def unit(dtype: torch.dtype) -> torch.Tensor:
    """Keys of length one."""
    return leaf(F.normalize(torch.randn(BATCH, LENGTH, HEADS, WIDTH), dim=-1).to(dtype))


def gates(*shape: int, low: float = -1.0) -> torch.Tensor:
    """Logarithms of decays."""
    return leaf(F.logsigmoid(torch.randn(BATCH, LENGTH, HEADS, *shape)).clamp(min=low))


def weights(dtype: torch.dtype = F32) -> torch.Tensor:
    """Numbers between 0 and 1, one a token and head."""
    return leaf(torch.rand(BATCH, LENGTH, HEADS).to(dtype))


def first_state() -> torch.Tensor:
    """A state to begin with."""
    return randn(BATCH, HEADS, WIDTH, WIDTH)


def alone(make: Any) -> Any:
    """The call without gradients, where the library has none."""

    def made(dtype: torch.dtype) -> Made:
        function, reference, arguments = make(dtype)
        return function, reference, tuple(argument.detach() for argument in arguments)

    return made


def linear(function: Any, **fixed: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, s: function(q, k, v, initial_state=s, output_final_state=True, normalize=False, **fixed),
            lambda q, k, v, s: recurrence(q, k, v, state=s),
            (tokens(dtype), tokens(dtype), tokens(dtype), first_state()),
        )

    return make


def simple(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, g, s: function(q, k, v, g, initial_state=s, output_final_state=True),
            lambda q, k, v, g, s: recurrence(q, k, v, g=g, state=s),
            (tokens(dtype), tokens(dtype), tokens(dtype), gates(), first_state()),
        )

    return make


def simple_parallel(dtype: torch.dtype) -> Made:
    return (
        lambda q, k, v, g: ops.parallel_simple_gla(q, k, v, g)[0],
        lambda q, k, v, g: recurrence(q, k, v, g=g)[0],
        (tokens(dtype), tokens(dtype), tokens(dtype), gates()),
    )


def fading(function: Any, slopes: Any, *more: Any, state: bool = True) -> Any:
    """Decays that are fixed for a head."""

    def make(dtype: torch.dtype) -> Made:
        def plain(q: Any, k: Any, v: Any, *s: Any) -> Any:
            g = slopes.to(q.dtype).expand(BATCH, LENGTH, HEADS)
            found = recurrence(q, k, v, g=g, state=s[0] if s else None)
            return found if state else found[0]

        def ours(q: Any, k: Any, v: Any, *s: Any) -> Any:
            if state:
                return function(q, k, v, *more, initial_state=s[0], output_final_state=True)
            return function(q, k, v, *more)[0]

        return ours, plain, (tokens(dtype), tokens(dtype), tokens(dtype), *([first_state()] if state else []))

    return make


RETENTION = torch.log2(1 - 2.0 ** (-5.0 - torch.arange(HEADS))) * math.log(2)
LIGHTNING = -(8 / HEADS * (1 - 1 / 4)) * torch.arange(HEADS)


def gated(function: Any, name: str = "g", **fixed: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, g, s: function(q, k, v, **{name: g}, initial_state=s, output_final_state=True, **fixed),
            lambda q, k, v, g, s: recurrence(q, k, v, keys=g, state=s),
            (tokens(dtype), tokens(dtype), tokens(dtype), gates(WIDTH), first_state()),
        )

    return make


def gated_packed(dtype: torch.dtype) -> Made:
    """Sequences of several lengths, one behind the other."""
    ends = torch.tensor([0, 30, 73, 100])

    def cut(x: torch.Tensor) -> torch.Tensor:
        return leaf(x.detach()[:1])

    def plain(q: Any, k: Any, v: Any, g: Any) -> Any:
        parts = [slice(int(low), int(high)) for low, high in zip(ends[:-1], ends[1:], strict=True)]
        return torch.cat([recurrence(q[:, p], k[:, p], v[:, p], keys=g[:, p])[0] for p in parts], 1)

    return (
        lambda q, k, v, g: ops.chunk_gla(q, k, v, g, cu_seqlens=ends.clone())[0],
        plain,
        tuple(map(cut, (tokens(dtype), tokens(dtype), tokens(dtype), gates(WIDTH)))),
    )


def delta(function: Any, **fixed: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, w, s: function(q, k, v, w, initial_state=s, output_final_state=True, **fixed),
            lambda q, k, v, w, s: recurrence(q, k, v, beta=w, state=s),
            (tokens(dtype), unit(dtype), tokens(dtype), weights(dtype), first_state()),
        )

    return make


def gated_delta(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, g, w, s: function(q, k, v, g=g, beta=w, initial_state=s, output_final_state=True),
            lambda q, k, v, g, w, s: recurrence(q, k, v, g=g, beta=w, state=s),
            (tokens(dtype), unit(dtype), tokens(dtype), gates(), weights(dtype), first_state()),
        )

    return make


def kimi_delta(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, g, w, s: function(q, k, v, g=g, beta=w, initial_state=s, output_final_state=True),
            lambda q, k, v, g, w, s: recurrence(q, k, v, keys=g, beta=w, state=s),
            (tokens(dtype), unit(dtype), tokens(dtype), gates(WIDTH), weights(dtype), first_state()),
        )

    return make


def comba(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        return (
            lambda q, k, v, p, g, w: function(q=q, k=k, v=v, p=p, g=g, beta=w, output_final_state=True),
            lambda q, k, v, p, g, w: recurrence(q, k, v, g=g, beta=w, remove=p),
            (tokens(dtype), unit(dtype), tokens(dtype), unit(dtype), gates(), weights(dtype)),
        )

    return make


def generalized(function: Any, decays: bool) -> Any:
    """S decays, then S += b (a S) + k v."""

    def make(dtype: torch.dtype) -> Made:
        a, b = unit(dtype), unit(dtype)
        a = leaf(-a)

        def ours(q: Any, k: Any, v: Any, a: Any, b: Any, *g: Any) -> Any:
            return function(q, k, v, a, b, *g, output_final_state=True)

        def plain(q: Any, k: Any, v: Any, a: Any, b: Any, *g: Any) -> Any:
            return recurrence(q, k, v, a=a, b=b, keys=g[0] if g else None)

        extra = (gates(WIDTH),) if decays else ()
        return ours, plain, (tokens(dtype), tokens(dtype), tokens(dtype), a, b, *extra)

    return make


def rwkv6(function: Any) -> Any:
    """Without the last state: the fused form takes no gradient of it."""

    def make(dtype: torch.dtype) -> Made:
        return (
            lambda r, k, v, w, u, s: function(r, k, v, w, u, initial_state=s)[0],
            lambda r, k, v, w, u, s: recurrence(r, k, v, keys=w, bonus=u, state=s)[0],
            (
                tokens(dtype),
                tokens(dtype),
                tokens(dtype),
                gates(WIDTH),
                randn(HEADS, WIDTH, dtype=dtype),
                first_state(),
            ),
        )

    return make


def rwkv7(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        a, b = leaf(-unit(dtype)), unit(dtype)
        return (
            lambda r, w, k, v, a, b: function(r, w, k, v, a, b, scale=1.0, output_final_state=True),
            lambda r, w, k, v, a, b: recurrence(r, k, v, keys=w, a=a, b=b, scale=1.0),
            (tokens(dtype), gates(WIDTH, low=-0.6), tokens(dtype), tokens(dtype), a, b),
        )

    return make


def rwkv4(dtype: torch.dtype) -> Made:
    from fla.ops.rwkv4 import fused_recurrent_rwkv4

    def plain(w: Any, u: Any, k: Any, v: Any, state: Any) -> Any:
        w = -w.exp()
        top, bottom = state[:, 0, 0], state[:, 1, 0]
        largest, outputs = state[:, 2, 0], []
        for t in range(k.shape[1]):
            high = torch.maximum(largest, u + k[:, t])
            one, other = (largest - high).exp(), (u + k[:, t] - high).exp()
            outputs.append((one * top + other * v[:, t]) / (one * bottom + other))
            high = torch.maximum(largest + w, k[:, t])
            one, other = (largest + w - high).exp(), (k[:, t] - high).exp()
            top, bottom, largest = one * top + other * v[:, t], one * bottom + other, high
        return torch.stack(outputs, 1), torch.stack((top, bottom, largest), 1)[:, :, None]

    state = torch.zeros(2, 3, 1, 48)
    state[:, 2] = -1e30
    arguments = leaf(torch.rand(48)), randn(48), randn(2, 40, 48), randn(2, 40, 48), state
    return fused_recurrent_rwkv4, plain, arguments


def hgrn(function: Any) -> Any:
    def make(dtype: torch.dtype) -> Made:
        def plain(x: Any, g: Any) -> Any:
            h, outputs = torch.zeros_like(x[:, 0]), []
            for t in range(x.shape[1]):
                h = g[:, t].exp() * h + x[:, t]
                outputs.append(h)
            return torch.stack(outputs, 1)

        arguments = randn(2, LENGTH, 96, dtype=dtype), leaf(F.logsigmoid(torch.randn(2, LENGTH, 96)).to(dtype))
        return lambda x, g: function(x, g)[0], plain, arguments

    return make


def oja(function: Any) -> Any:
    """The values' own decay, and a key corrected by the values that the state gives back."""

    def make(dtype: torch.dtype) -> Made:
        def plain(q: Any, k: Any, v: Any, g: Any, w: Any) -> Any:
            s, outputs = q.new_zeros(BATCH, HEADS, WIDTH, WIDTH), []
            for t in range(LENGTH):
                s = s * g[:, t].exp()[..., None, :]
                rest = (k[:, t] - torch.einsum("bhkv,bhv->bhk", s, v[:, t])) * w[:, t][..., None]
                s = s + rest[..., None] * v[:, t][..., None, :]
                outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * WIDTH**-0.5, s))
            return torch.stack(outputs, 1)

        return (
            lambda q, k, v, g, w: function(q, k, v, gv=g, beta=w)[0],
            plain,
            (tokens(dtype), tokens(dtype), unit(dtype), gates(WIDTH), weights(dtype)),
        )

    return make


def from_library(function: Any, reference: Any, *arguments: Any, first: bool = True, **named: Any) -> Any:
    """Functions to which the library has a plain form in torch. `arguments` make the arguments from the data type."""

    def make(dtype: torch.dtype) -> Made:
        def only(found: Any) -> Any:
            return found[0] if first and isinstance(found, tuple) else found

        given = tuple(argument(dtype) for argument in arguments)
        return lambda *a: only(function(*a, **named)), lambda *a: only(reference(*a, **named)), given

    return make


RECURRENCES: list[Call] = [
    *calls("chunk_linear_attn", linear(ops.chunk_linear_attn), F32, tolerance=NEAR),
    *calls("chunk_linear_attn", linear(ops.chunk_linear_attn), BF16),
    *calls("fused_chunk_linear_attn", linear(ops.fused_chunk_linear_attn), F32, tolerance=NEAR),
    *calls("fused_recurrent_linear_attn", linear(ops.fused_recurrent_linear_attn), F32),
    *calls("chunk_simple_gla", simple(ops.chunk_simple_gla), F32, tolerance=NEAR),
    *calls("fused_chunk_simple_gla", simple(ops.fused_chunk_simple_gla), F32, tolerance=NEAR),
    *calls("fused_recurrent_simple_gla", simple(ops.fused_recurrent_simple_gla), F32),
    *calls("parallel_simple_gla", simple_parallel, F32, tolerance=NEAR),
    *calls("chunk_retention", fading(ops.chunk_retention, RETENTION), F32, tolerance=NEAR),
    *calls("fused_chunk_retention", fading(ops.fused_chunk_retention, RETENTION), F32, tolerance=NEAR),
    *calls("fused_recurrent_retention", fading(ops.fused_recurrent_retention, RETENTION), F32),
    *calls("parallel_retention", fading(ops.parallel_retention, RETENTION, state=False), F32, tolerance=NEAR),
    *calls("chunk_lightning_attn", fading(ops.chunk_lightning_attn, LIGHTNING, 1, 4), F32, tolerance=NEAR),
    *calls("fused_recurrent_lightning_attn", fading(ops.fused_recurrent_lightning_attn, LIGHTNING, 1, 4), F32),
    *calls("chunk_gla", gated(ops.chunk_gla), F32, tolerance=NEAR),
    *calls("chunk_gla", gated(ops.chunk_gla), BF16),
    *calls("chunk_gla packed", gated_packed, F32, tolerance=NEAR),
    *calls("fused_recurrent_gla", gated(ops.fused_recurrent_gla, "gk"), F32),
    *calls("chunk_delta_rule", delta(ops.chunk_delta_rule), BF16),
    *calls("fused_recurrent_delta_rule", delta(ops.fused_recurrent_delta_rule), F32),
    *calls("chunk_gated_delta_rule", gated_delta(ops.chunk_gated_delta_rule), F32, tolerance=NEAR),
    *calls("chunk_gated_delta_rule", gated_delta(ops.chunk_gated_delta_rule), BF16),
    *calls("fused_recurrent_gated_delta_rule", alone(gated_delta(ops.fused_recurrent_gated_delta_rule)), F32),
    *calls("chunk_kda", kimi_delta(ops.chunk_kda), F32, tolerance=NEAR),
    *calls("fused_recurrent_kda", alone(kimi_delta(ops.fused_recurrent_kda)), F32),
    *calls("chunk_comba", comba(ops.chunk_comba), F32, tolerance=NEAR),
    *calls("fused_recurrent_comba", alone(comba(ops.fused_recurrent_comba)), F32),
    *calls("chunk_dplr_delta_rule", generalized(ops.chunk_dplr_delta_rule, True), F32, tolerance=NEAR),
    *calls("fused_recurrent_dplr_delta_rule", alone(generalized(ops.fused_recurrent_dplr_delta_rule, True)), F32),
    *calls("chunk_iplr_delta_rule", alone(generalized(ops.chunk_iplr_delta_rule, False)), F32, tolerance=NEAR),
    *calls("fused_recurrent_iplr_delta_rule", generalized(ops.fused_recurrent_iplr_delta_rule, False), F32),
    *calls("chunk_rwkv6", rwkv6(ops.chunk_rwkv6), F32, tolerance=NEAR),
    *calls("fused_recurrent_rwkv6", rwkv6(ops.fused_recurrent_rwkv6), F32),
    *calls("chunk_rwkv7", rwkv7(ops.chunk_rwkv7), F32, tolerance=NEAR),
    *calls("fused_recurrent_rwkv7", alone(rwkv7(ops.fused_recurrent_rwkv7)), F32),
    *calls("fused_recurrent_rwkv4", rwkv4, F32),
    *calls("fused_recurrent_hgrn", hgrn(ops.fused_recurrent_hgrn), F32),
    *calls("chunk_gated_oja_rule", oja(ops.gated_oja_rule.chunk_gated_oja_rule), F32, tolerance=NEAR),
    *calls("fused_recurrent_gated_oja_rule", alone(oja(ops.gated_oja_rule.fused_recurrent_gated_oja_rule)), F32),
]
