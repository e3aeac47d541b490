"""FlagGems: products, norms, losses, attention, convolution, pooling, random numbers, language models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from flag_gems import fused, ops

from libraries.call import BF16, F16, F32, TF32, Call, Made, calls
from libraries.gems_elements import op
from libraries.liger_parts import labels, mean_square

BOTH = (F32, BF16)
COLUMNS, VOCABULARY = 200, 1000


def of(*shape: int) -> Callable[[torch.dtype], torch.Tensor]:
    """Random numbers of a shape."""
    return lambda dtype: torch.randn(shape).to(dtype)


def targets(dtype: torch.dtype) -> torch.Tensor:
    return labels(48, VOCABULARY)


def log_probabilities(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(48, VOCABULARY).log_softmax(-1).to(dtype)


def attention(causal: bool) -> Any:
    def make(dtype: torch.dtype) -> Made:
        arguments = tuple(torch.randn(2, 4, 70, 64).to(dtype) for _ in range(3))
        return (
            lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, is_causal=causal),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            arguments,
        )

    return make


def normed(dtype: torch.dtype) -> Made:
    def ours(x: Any, w: Any, b: Any) -> Any:
        y, mean, rstd = ops.layer_norm(x, [COLUMNS], w, b, 1e-5)
        return y, ops.layer_norm_backward(y, x, [COLUMNS], mean, rstd, w, b, [True, True, True])

    def plain(x: Any, w: Any, b: Any) -> Any:
        given = [item.detach().requires_grad_() for item in (x, w, b)]
        y = F.layer_norm(given[0], (COLUMNS,), *given[1:])
        return y.detach(), torch.autograd.grad(y, given, y.detach())

    return ours, plain, tuple(maker(dtype) for maker in (of(48, COLUMNS), of(COLUMNS), of(COLUMNS)))


def batch_normed(dtype: torch.dtype) -> Made:
    def ours(x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
        return ops.batch_norm(x, w, b, mean, var, training=True)[0], mean, var

    def plain(x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
        return F.batch_norm(x, mean, var, w, b, training=True), mean, var

    makers = of(6, 20, 9, 9), of(20), of(20), of(20), lambda dtype: torch.rand(20).to(dtype)
    return ours, plain, tuple(maker(dtype) for maker in makers)


def group_normed(dtype: torch.dtype) -> Made:
    return (
        lambda x, w, b: ops.group_norm(x, w, b, 4, 12, 30, 3)[0],
        lambda x, w, b: F.group_norm(x, 3, w, b),
        tuple(maker(dtype) for maker in (of(4, 12, 30), of(12), of(12))),
    )


def skipped_norm(dtype: torch.dtype) -> Made:
    return (
        lambda x, r, w, b: fused.skip_layer_norm(x, r, [COLUMNS], w, b),
        lambda x, r, w, b: F.layer_norm(x + r, (COLUMNS,), w, b),
        tuple(maker(dtype) for maker in (of(48, COLUMNS), of(48, COLUMNS), of(COLUMNS), of(COLUMNS))),
    )


def added_norm(dtype: torch.dtype) -> Made:
    def plain(x: Any, r: Any, w: Any) -> Any:
        return (x + r) * mean_square(x + r, 1e-5) * w, x + r

    return (
        lambda x, r, w: fused.fused_add_rms_norm(x, r, [COLUMNS], w),
        plain,
        tuple(maker(dtype) for maker in (of(48, COLUMNS), of(48, COLUMNS), of(COLUMNS))),
    )


def nll(dtype: torch.dtype) -> Made:
    return (
        lambda x, target: ops.nll_loss_forward(x, target)[0],
        F.nll_loss,
        (log_probabilities(dtype), targets(dtype)),
    )


def dropped(dtype: torch.dtype) -> Made:
    """Every element is 0 or doubled, and about half of them are."""

    def ours(x: Any) -> Any:
        y, mask = ops.dropout(x, 0.5, True)
        share = float((y != 0).double().mean())
        return torch.equal(y, torch.where(mask, 2 * x, 0)) and torch.tensor([0.45 < share < 0.55])

    return ours, lambda x: torch.tensor([True]), (torch.randn(100, 200).to(dtype),)


def drawn(draw: Callable[[], torch.Tensor], mean: float, deviation: float, different: int = 9900) -> Any:
    """Moments of random numbers, and how many `different` ones there are at least among 10,000."""

    def make(dtype: torch.dtype) -> Made:
        def ours() -> Any:
            numbers = draw().double()
            near = abs(float(numbers.mean()) - mean) < 0.05 and abs(float(numbers.std()) - deviation) < 0.05
            return torch.tensor([near, numbers.unique().numel() > different])

        return ours, lambda: torch.tensor([True, True]), ()

    return make


def pooled(dtype: torch.dtype) -> Made:
    return (
        lambda x: ops.max_pool2d_with_indices(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        (torch.randperm(2 * 3 * 17 * 15).view(2, 3, 17, 15).to(dtype),),
    )


def picked_experts(dtype: torch.dtype) -> Made:
    def ours(gates: Any) -> Any:
        weights, chosen, rows = (
            torch.empty(30, 2),
            torch.empty(30, 2, dtype=torch.int32),
            torch.empty(30, 2, dtype=torch.int32),
        )
        fused.topk_softmax(weights, chosen, rows, gates)
        return weights, chosen

    def plain(gates: Any) -> Any:
        weights, chosen = gates.softmax(-1).topk(2)
        return weights, chosen.int()

    return ours, plain, (torch.randn(30, 8).to(dtype),)


def expert_mix(dtype: torch.dtype) -> Made:
    def plain(x: Any, up: Any, down: Any, weights: Any, chosen: Any) -> Any:
        gate, value = torch.einsum("th,enh->ten", x, up).chunk(2, -1)
        each = torch.einsum("tei,ehi->teh", F.silu(gate) * value, down)
        return (each.gather(1, chosen.long()[..., None].expand(-1, -1, 64)) * weights[..., None]).sum(1)

    chosen = torch.stack([torch.randperm(4)[:2] for _ in range(20)]).int()
    arguments = (
        of(20, 64)(dtype), of(4, 128, 64)(dtype) * 0.2, of(4, 64, 64)(dtype) * 0.2, torch.rand(20, 2), chosen,
    )  # fmt: skip
    return fused.outplace_fused_experts, plain, arguments


def cached(dtype: torch.dtype) -> Made:
    slots = torch.randperm(8 * 16)[:20]
    one = torch.tensor(1.0)

    def ours(key: Any, value: Any, keys: Any, values: Any) -> Any:
        fused.reshape_and_cache_flash(key, value, keys, values, slots.clone(), "auto", one, one)
        return keys, values

    def plain(key: Any, value: Any, keys: Any, values: Any) -> Any:
        keys.flatten(0, 1)[slots], values.flatten(0, 1)[slots] = key, value
        return keys, values

    return (
        ours,
        plain,
        tuple(maker(dtype) for maker in (of(20, 2, 32), of(20, 2, 32), of(8, 16, 2, 32), of(8, 16, 2, 32))),
    )


def rotated(dtype: torch.dtype) -> Made:
    turns = torch.outer(torch.arange(60.0), 10000 ** (-torch.arange(0, 64, 2) / 64))

    def plain(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        def turned(x: Any) -> Any:
            one, other = x.chunk(2, -1)
            return torch.cat((one * cos[:, None] - other * sin[:, None], other * cos[:, None] + one * sin[:, None]), -1)

        return turned(q), turned(k)

    arguments = of(2, 60, 4, 64)(dtype), of(2, 60, 2, 64)(dtype), turns.cos().to(dtype), turns.sin().to(dtype)
    return fused.apply_rotary_pos_emb, plain, arguments


def hadamard(dtype: torch.dtype) -> Made:
    def plain(x: Any) -> Any:
        matrix = torch.ones(1, 1, dtype=x.dtype)
        while len(matrix) < 64:
            matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
        return x @ matrix.T

    return lambda x: ops.hadamard_transform(x, 1.0), plain, (of(9, 64)(dtype),)


def penalized(dtype: torch.dtype) -> Made:
    prompt, output = torch.rand(4, 300) > 0.7, torch.rand(4, 300) > 0.7

    def ours(logits: Any, penalty: Any) -> Any:
        fused.apply_repetition_penalties(logits, prompt.clone(), output.clone(), penalty)
        return logits

    def plain(logits: Any, penalty: Any) -> Any:
        factor = torch.where(prompt | output, penalty[:, None], 1.0)
        return torch.where(logits > 0, logits / factor, logits * factor)

    return ours, plain, (of(4, 300)(dtype), torch.rand(4) + 1)


LAYERS: list[Call] = [
    *calls("mm", op(ops.mm, torch.mm, of(70, 90), of(90, 50)), F32, tolerance=TF32),
    *calls("mm", op(ops.mm, torch.mm, of(70, 90), of(90, 50)), F16, BF16),
    *calls("bmm", op(ops.bmm, torch.bmm, of(3, 40, 90), of(3, 90, 50)), F16),
    *calls("addmm", op(ops.addmm, torch.addmm, of(50), of(70, 90), of(90, 50)), F16),
    *calls("baddbmm", op(ops.baddbmm, torch.baddbmm, of(3, 40, 50), of(3, 40, 90), of(3, 90, 50)), F16),
    *calls("mv", op(ops.mv, torch.mv, of(70, 90), of(90)), *BOTH),
    *calls("addmv", op(ops.addmv, torch.addmv, of(70), of(70, 90), of(90)), F32),
    *calls("dot", op(ops.dot, torch.dot, of(5000), of(5000)), F32),
    *calls("vdot", op(ops.vdot, torch.vdot, of(5000), of(5000)), F32),
    *calls("addr", op(ops.addr, torch.addr, of(40, 50), of(40), of(50)), F32),
    *calls("outer", op(fused.outer, torch.outer, of(40), of(50)), F32),
    *calls("softmax", op(lambda x: ops.softmax(x, 1), lambda x: x.softmax(1), of(48, VOCABULARY)), *BOTH),
    *calls("softmax inner", op(lambda x: ops.softmax(x, 1), lambda x: x.softmax(1), of(6, 70, 20)), F32),
    *calls("log_softmax", op(lambda x: ops.log_softmax(x, 1), lambda x: x.log_softmax(1), of(48, VOCABULARY)), *BOTH),
    *calls("layer_norm and backward", normed, *BOTH),
    *calls("batch_norm", batch_normed, F32),
    *calls("group_norm", group_normed, F32),
    *calls(
        "rms_norm",
        op(
            lambda x, w: ops.rms_norm(x, [COLUMNS], w),
            lambda x, w: x * mean_square(x, 1e-5) * w,
            of(48, COLUMNS),
            of(COLUMNS),
        ),
        *BOTH,
    ),
    *calls("skip_layer_norm", skipped_norm, F32),
    *calls("fused_add_rms_norm", added_norm, F32),
    *calls(
        "instance_norm",
        op(fused.instance_norm, lambda x, w, b: F.instance_norm(x, None, None, w, b), of(4, 6, 50), of(6), of(6)),
        F32,
    ),
    *calls("weight_norm", op(fused.weight_norm, lambda v, g: torch._weight_norm(v, g, 0), of(20, 30), of(20, 1)), F32),
    *calls("cross_entropy_loss", op(fused.cross_entropy_loss, F.cross_entropy, of(48, VOCABULARY), targets), *BOTH),
    *calls(
        "cross_entropy_loss smoothing",
        op(
            lambda x, t: fused.cross_entropy_loss(x, t, label_smoothing=0.1),
            lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
            of(48, VOCABULARY),
            targets,
        ),
    ),
    *calls("nll_loss", nll, F32),
    *calls("mse_loss", op(ops.mse_loss, F.mse_loss, of(40, 50), of(40, 50)), F32),
    *calls(
        "soft_margin_loss",
        op(ops.soft_margin_loss, F.soft_margin_loss, of(40, 50), lambda dtype: torch.randn(40, 50).sign().to(dtype)),
        F32,
    ),
    *calls(
        "embedding",
        op(ops.embedding, lambda w, i: F.embedding(i, w), of(300, 100), lambda dtype: torch.randint(0, 300, (4, 33))),
        *BOTH,
    ),
    *calls(
        "embedding_backward",
        op(
            lambda g, i: ops.embedding_backward(g, i, 300),
            lambda g, i: torch.zeros(300, 100, dtype=g.dtype).index_add(0, i.flatten(), g.flatten(0, 1)),
            of(4, 33, 100),
            lambda dtype: torch.randint(0, 300, (4, 33)),
        ),
        F32,
    ),
    *calls("scaled_dot_product_attention", attention(False), F16, BF16),
    *calls("scaled_dot_product_attention causal", attention(True), F16),
    *calls(
        "conv1d",
        op(
            lambda x, w, b: ops.conv1d(x, w, b, padding=1),
            lambda x, w, b: F.conv1d(x, w, b, padding=1),
            of(2, 6, 40),
            of(8, 6, 3),
            of(8),
        ),
        F32,
        tolerance=TF32,
    ),
    *calls(
        "conv2d",
        op(
            lambda x, w, b: ops.conv2d(x, w, b, 2, 1),
            lambda x, w, b: F.conv2d(x, w, b, 2, 1),
            of(2, 6, 20, 18),
            of(8, 6, 3, 3),
            of(8),
        ),
        F32,
        tolerance=TF32,
    ),
    *calls("max_pool2d_with_indices", pooled, F32),
    *calls(
        "avg_pool2d",
        op(lambda x: ops.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1), of(2, 3, 17, 15)),
        F32,
    ),
    *calls(
        "upsample_nearest2d",
        op(lambda x: ops.upsample_nearest2d(x, (25, 31)), lambda x: F.interpolate(x, (25, 31)), of(2, 3, 9, 11)),
        F32,
    ),
    *calls(
        "upsample_bicubic2d_aa",
        op(
            lambda x: ops._upsample_bicubic2d_aa(x, (25, 31), False),
            lambda x: F.interpolate(x, (25, 31), mode="bicubic", antialias=True),
            of(1, 2, 40, 44),
        ),
        F32,
    ),
    *calls("dropout", dropped, F32),
    *calls("rand", drawn(lambda: ops.rand([100, 100]), 0.5, 0.2887), F32),
    *calls("randn", drawn(lambda: ops.randn([100, 100]), 0.0, 1.0), F32),
    # Its programs draw the second half of their numbers from where the next one's first half begins.
    *calls("exponential_", drawn(lambda: ops.exponential_(torch.empty(100, 100)), 1.0, 1.0, 5000), F32),
    *calls("uniform_", drawn(lambda: ops.uniform_(torch.empty(100, 100)), 0.5, 0.2887), F32),
    *calls("randperm", op(lambda: ops.randperm(1000).sort().values, lambda: torch.arange(1000))),
    *calls("topk_softmax", picked_experts, F32),
    *calls("fused_experts", expert_mix, BF16),
    *calls(
        "moe_sum",
        op(lambda x: (y := torch.empty(20, 64), fused.moe_sum(x, y))[0], lambda x: x.sum(1), of(20, 2, 64)),
        F32,
    ),
    *calls("reshape_and_cache_flash", cached, F16),
    *calls("apply_rotary_pos_emb", rotated, *BOTH),
    *calls("hadamard_transform", hadamard, F32),
    *calls("apply_repetition_penalties", penalized, F32),
    *calls(
        "margin_ranking_loss",
        op(
            ops.margin_ranking_loss,
            F.margin_ranking_loss,
            of(500),
            of(500),
            lambda dtype: torch.randn(500).sign().to(dtype),
        ),
        F32,
    ),
]
