"""FlagGems: reductions, scans, sorting, gathering, joining and making of tensors."""

from __future__ import annotations

import torch
from flag_gems import fused, ops

from libraries.call import BF16, F32, Call, calls
from libraries.gems_elements import SHAPE, alike, constant, fractions, op, some, truths, whole

BOTH = (F32, BF16)
ROWS, COLUMNS = SHAPE


def cube(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(6, 20, 33).to(dtype)


def mixed(dtype: torch.dtype) -> torch.Tensor:
    """All different, in no order."""
    return torch.randperm(ROWS * COLUMNS).view(SHAPE).to(dtype)


def places(dtype: torch.dtype) -> torch.Tensor:
    """An index of columns for every element."""
    return torch.randint(0, COLUMNS, SHAPE)


def apart(dtype: torch.dtype) -> torch.Tensor:
    """As above, no two the same in a row."""
    return torch.stack([torch.randperm(COLUMNS) for _ in range(ROWS)])


def chosen(dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(0, ROWS, (15,))


def one_of_each(dtype: torch.dtype) -> torch.Tensor:
    return torch.randperm(ROWS)[:15]


def fifteen(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(15, COLUMNS).to(dtype)


def vector(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(500).to(dtype)


def few(dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(0, 40, (600,))


def square(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(40, 40).to(dtype)


ARRAYS: list[Call] = [
    *alike("sum mean max min argmax argmin amax", some, dtypes=BOTH),
    *calls("prod", op(ops.prod, torch.prod, lambda dtype: fractions(dtype)[:3] + 0.5)),
    *calls("sum_dim", op(ops.sum_dim, torch.sum, cube, constant([1])), *BOTH),
    *calls("sum_dim two", op(ops.sum_dim, torch.sum, cube, constant([0, 2]))),
    *calls("mean_dim", op(ops.mean_dim, torch.mean, cube, constant([2])), *BOTH),
    *calls("max_dim", op(ops.max_dim, torch.max, cube, constant(1))),
    *calls("min_dim", op(ops.min_dim, torch.min, cube, constant(2))),
    *calls("argmax dim", op(ops.argmax, torch.argmax, lambda dtype: torch.randn(6, 32, 33).to(dtype), constant(1))),
    *calls("prod_dim", op(ops.prod_dim, torch.prod, cube, constant(1))),
    *calls("amax dim", op(ops.amax, torch.amax, cube, constant([0, 1]))),
    *calls("aminmax", op(ops.aminmax, torch.aminmax, some)),
    *alike("all any", truths),
    *calls("all_dim", op(ops.all_dim, torch.all, truths, constant(1))),
    *calls("any_dim", op(ops.any_dim, torch.any, truths, constant(0))),
    *calls("count_nonzero", op(ops.count_nonzero, torch.count_nonzero, whole)),
    *calls("var_mean", op(ops.var_mean, torch.var_mean, cube, constant([1]))),
    *calls("std", op(ops.std, torch.std, cube, constant([2]))),
    *calls("var", op(ops.var, torch.var, cube, constant([2]))),
    *calls("vector_norm", op(ops.vector_norm, torch.linalg.vector_norm, cube, constant(2), constant([1]))),
    *calls(
        "quantile",
        op(ops.quantile, torch.quantile, some, lambda dtype: torch.tensor([0.25, 0.5]).to(dtype), constant(1)),
    ),
    *calls("trace", op(ops.trace, torch.trace, square)),
    *calls("cumsum", op(ops.cumsum, torch.cumsum, cube, constant(1)), *BOTH),
    *calls("cumsum long", op(ops.cumsum, torch.cumsum, lambda dtype: torch.randn(2, 5000).to(dtype), constant(1))),
    *calls("cummax", op(ops.cummax, torch.cummax, mixed, constant(1))),
    *calls("cummin", op(ops.cummin, torch.cummin, mixed, constant(1))),
    *calls("sort", op(ops.sort, torch.sort, mixed)),
    *calls("sort descending", op(ops.sort, torch.sort, mixed, descending=True)),
    *calls("topk", op(ops.topk, torch.topk, mixed, constant(5))),
    *calls("isin", op(ops.isin, torch.isin, few, lambda dtype: torch.arange(0, 40, 3))),
    *calls("unique_consecutive", op(ops.unique_consecutive, torch.unique_consecutive, lambda dtype: few(dtype) // 10)),
    *calls("_unique2", op(lambda x: ops._unique2(x)[0], torch.unique, few)),
    *calls("bincount", op(fused.bincount, torch.bincount, few)),
    *calls("nonzero", op(ops.nonzero, torch.nonzero, truths)),
    *calls("masked_select", op(ops.masked_select, torch.masked_select, some, truths)),
    *calls("gather", op(ops.gather, torch.gather, some, constant(1), places), *BOTH),
    *calls("scatter", op(ops.scatter, torch.scatter, some, constant(1), apart, some)),
    *calls(
        "scatter add",
        op(
            lambda x, dim, index, y: ops.scatter(x, dim, index, y, "add"),
            lambda x, dim, index, y: x.scatter_add(dim, index, y),
            some,
            constant(1),
            places,
            some,
        ),
    ),
    *calls("scatter_add_", op(ops.scatter_add_, torch.scatter_add, some, constant(1), places, some)),
    *calls("index_select", op(ops.index_select, torch.index_select, some, constant(0), chosen), *BOTH),
    *calls("index_add", op(ops.index_add, torch.index_add, some, constant(0), one_of_each, fifteen)),
    *calls("index_put", op(ops.index_put, torch.index_put, some, lambda dtype: [one_of_each(dtype)], fifteen)),
    *calls(
        "index_put accumulate",
        op(
            lambda x, at, y: ops.index_put(x, at, y, True),
            lambda x, at, y: torch.index_put(x, at, y, True),
            some,
            lambda dtype: [chosen(dtype)],
            fifteen,
        ),
    ),
    *calls("index", op(ops.index, lambda x, at: x[tuple(at)], some, lambda dtype: [chosen(dtype)])),
    *calls("masked_scatter", op(ops.masked_scatter, torch.masked_scatter, some, truths, some)),
    *calls(
        "select_scatter",
        op(
            ops.select_scatter,
            torch.select_scatter,
            some,
            lambda dtype: torch.randn(COLUMNS).to(dtype),
            constant(0),
            constant(3),
        ),
    ),
    *calls(
        "slice_scatter",
        op(
            ops.slice_scatter,
            torch.slice_scatter,
            some,
            lambda dtype: torch.randn(5, COLUMNS).to(dtype),
            constant(0),
            constant(2),
            constant(12),
            constant(2),
        ),
    ),
    *calls(
        "repeat_interleave", op(ops.repeat_interleave_self_int, torch.repeat_interleave, some, constant(3), constant(0))
    ),
    *calls(
        "repeat_interleave tensor",
        op(
            ops.repeat_interleave_self_tensor,
            torch.repeat_interleave,
            fifteen,
            lambda dtype: torch.randint(0, 4, (15,)),
            constant(0),
        ),
    ),
    *calls(
        "cat",
        op(
            lambda *x: ops.cat(x, 1),
            lambda *x: torch.cat(x, 1),
            some,
            some,
            lambda dtype: some(dtype)[:, :9].contiguous(),
        ),
        *BOTH,
    ),
    *calls("stack", op(lambda *x: ops.stack(x, 1), lambda *x: torch.stack(x, 1), some, some)),
    *calls("hstack", op(lambda *x: ops.hstack(x), lambda *x: torch.hstack(x), some, some)),
    *calls("vstack", op(lambda *x: ops.vstack(x), lambda *x: torch.vstack(x), some, some)),
    *calls("flip", op(ops.flip, torch.flip, cube, constant([0, 2]))),
    *calls("roll", op(ops.roll, torch.roll, some, constant(5), constant(1))),
    *calls("tile", op(ops.tile, torch.tile, fifteen, constant([2, 3]))),
    *calls("repeat", op(ops.repeat, lambda x, times: x.repeat(*times), fifteen, constant([2, 1, 2]))),
    *alike("tril triu", square),
    *calls("diag", op(ops.diag, torch.diag, square)),
    *calls("diag_embed", op(ops.diag_embed, torch.diag_embed, square)),
    *calls(
        "kron",
        op(
            ops.kron,
            torch.kron,
            lambda dtype: square(dtype)[:6, :7].contiguous(),
            lambda dtype: square(dtype)[:5].contiguous(),
        ),
    ),
    *calls("pad constant", op(ops.constant_pad_nd, torch.constant_pad_nd, some, constant([1, 2, 3, 0]), constant(5.0))),
    *calls(
        "pad reflect",
        op(lambda x: ops.pad(x, [3, 2], "reflect"), lambda x: torch.nn.functional.pad(x, [3, 2], "reflect"), some),
    ),
    *calls(
        "pixel_unshuffle",
        op(ops.pixel_unshuffle, torch.pixel_unshuffle, lambda dtype: torch.randn(2, 3, 8, 12).to(dtype), constant(2)),
    ),
    *calls("one_hot", op(ops.one_hot, torch.nn.functional.one_hot, few, constant(40))),
    *calls("copy", op(lambda x: ops.contiguous(x.T), lambda x: x.T.contiguous(), some)),
    *calls("arange", op(lambda: ops.arange_start(3, 300, 7), lambda: torch.arange(3, 300, 7))),
    *calls("linspace", op(lambda: ops.linspace(0.0, 5.0, 77), lambda: torch.linspace(0.0, 5.0, 77))),
    *calls("eye", op(lambda: ops.eye_m(20, 30), lambda: torch.eye(20, 30))),
    *calls("full", op(lambda: ops.full([20, 30], 2.5, dtype=F32), lambda: torch.full([20, 30], 2.5))),
    *calls(
        "zeros ones",
        op(lambda: (ops.zeros([99], dtype=F32), ops.ones([99], dtype=F32)), lambda: (torch.zeros(99), torch.ones(99))),
    ),
]
