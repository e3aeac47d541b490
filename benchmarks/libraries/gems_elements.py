"""FlagGems: operations of single elements."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from flag_gems.utils import codegen_config_utils

from libraries.call import BF16, F16, F32, Call, Made, calls

# This version knows Triton up to 3.6: launches have taken their constants as then ever since, and block pointers, which
# it prefers, are gone.
entry = sys.modules["flag_gems.utils.libentry"]  # the package has a function of that name
entry.major_version, entry.minor_version = 3, 6  # type: ignore[attr-defined]
codegen_config_utils.get_codegen_config().prefer_block_pointer = False
from flag_gems import fused, ops  # noqa: E402

SHAPE = (37, 130)
Maker = Callable[[torch.dtype], Any]


def some(dtype: torch.dtype) -> torch.Tensor:
    """Random numbers."""
    return torch.randn(SHAPE).to(dtype)


def positive(dtype: torch.dtype) -> torch.Tensor:
    """Random numbers above 0."""
    return (torch.rand(SHAPE) * 3 + 0.1).to(dtype)


def fractions(dtype: torch.dtype) -> torch.Tensor:
    """Random numbers between 0 and 1."""
    return (torch.rand(SHAPE) * 0.98 + 0.01).to(dtype)


def whole(dtype: torch.dtype) -> torch.Tensor:
    """Random integers."""
    return torch.randint(-100, 100, SHAPE, dtype=torch.int32)


def shifts(dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(0, 8, SHAPE, dtype=torch.int32)


def truths(dtype: torch.dtype) -> torch.Tensor:
    return torch.rand(SHAPE) > 0.5


def strange(dtype: torch.dtype) -> torch.Tensor:
    """With infinities and NaN."""
    numbers = torch.randn(SHAPE).to(dtype)
    numbers[::5], numbers[1::5], numbers[2::7] = torch.inf, -torch.inf, torch.nan
    return numbers


def column(dtype: torch.dtype) -> torch.Tensor:
    """Broadcast along rows."""
    return torch.randn(SHAPE[0], 1).to(dtype)


def turned(dtype: torch.dtype) -> torch.Tensor:
    """Not contiguous."""
    return torch.randn(SHAPE[::-1]).to(dtype).T


def op(function: Callable[..., Any], reference: Callable[..., Any], *makers: Maker, **named: Any) -> Any:
    """The library's function and torch's."""

    def make(dtype: torch.dtype) -> Made:
        return (
            lambda *given: function(*given, **named),
            lambda *given: reference(*given, **named),
            tuple(maker(dtype) for maker in makers),
        )

    return make


def constant(value: Any) -> Maker:
    """An argument that is no tensor."""
    return lambda dtype: value


def alike(names: str, *makers: Maker, dtypes: tuple[torch.dtype, ...] = (F32,), where: Any = torch) -> list[Call]:
    """Functions whose names are torch's."""
    found = []
    for name in names.split():
        reference = getattr(where, name.rstrip("_"), None) or getattr(torch.Tensor, name)
        found += calls(name, op(getattr(ops, name), reference, *makers), *dtypes)
    return found


def backward(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a function of one tensor, from (gradient of its result, tensor)."""

    def gradient(grad: Any, x: Any) -> Any:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(reference(x), x, grad)[0]

    return gradient


BOTH = (F32, BF16)
ELEMENTS: list[Call] = [
    *alike(
        "abs neg relu sigmoid tanh silu exp sin cos",
        some,
        dtypes=(F32, F16, BF16),
        where=type("F", (), {**vars(torch), "silu": F.silu}),
    ),
    *alike(
        "erf exp2 expm1 ceil square tan atan cosh angle signbit sgn_ floor_ hardsigmoid i0",
        some,
        where=type("F", (), {**vars(torch), "hardsigmoid": F.hardsigmoid}),
    ),
    *alike("rsqrt sqrt log log10 reciprocal log1p_ digamma_", positive, dtypes=(F32,)),
    *alike("logit acos", fractions),
    *alike("arcsinh sinh_ asinh_", some),
    *alike("arctanh_", fractions),
    *alike("isfinite isinf isnan isneginf", strange),
    *calls("nan_to_num", op(ops.nan_to_num, torch.nan_to_num, strange, constant(1.0), constant(9.0), constant(-9.0))),
    *calls("special_i0e", op(ops.special_i0e, torch.special.i0e, some)),
    *calls("special_i1", op(ops.special_i1, torch.special.i1, some)),
    *calls("round", op(ops.round, torch.round, some)),
    *calls("gelu", op(ops.gelu, F.gelu, some), *BOTH),
    *calls("gelu tanh", op(ops.gelu, F.gelu, some, approximate="tanh"), F32),
    *calls("elu", op(ops.elu, F.elu, some)),
    *calls("celu", op(ops.celu, F.celu, some)),
    *calls("selu", op(ops.selu, F.selu, some)),
    *calls("softplus", op(ops.softplus, F.softplus, some)),
    *calls("softshrink", op(ops.softshrink, F.softshrink, some)),
    *calls("log_sigmoid", op(ops.log_sigmoid, F.logsigmoid, some)),
    *calls("hardswish_", op(ops.hardswish_, F.hardswish, some)),
    *calls("relu6", op(ops.relu6, F.relu6, some)),
    *calls("threshold", op(ops.threshold, F.threshold, some, constant(0.1), constant(7.0))),
    *calls("prelu", op(ops.prelu, F.prelu, some, lambda dtype: torch.rand(SHAPE[1]).to(dtype))),
    *calls("glu", op(ops.glu, F.glu, some)),
    *calls("gelu_backward", op(ops.gelu_backward, backward(F.gelu), some, some)),
    *calls("silu_backward", op(ops.silu_backward, backward(F.silu), some, some), *BOTH),
    *calls(
        "sigmoid_backward",
        op(lambda g, x: ops.sigmoid_backward(g, torch.sigmoid(x)), backward(torch.sigmoid), some, some),
    ),
    *calls("tanh_backward", op(lambda g, x: ops.tanh_backward(g, torch.tanh(x)), backward(torch.tanh), some, some)),
    *calls("add", op(ops.add, torch.add, some, some), F32, F16, BF16),
    *calls("add broadcast, alpha", op(ops.add, torch.add, turned, column, alpha=2)),
    *alike("sub mul maximum minimum fmin hypot copysign atan2 logaddexp", some, some, dtypes=BOTH),
    *calls("true_divide", op(ops.true_divide, torch.true_divide, some, positive), *BOTH),
    *calls("div_mode floor", op(ops.div_mode, torch.div, some, positive, rounding_mode="floor")),
    *calls("div_mode trunc", op(ops.div_mode, torch.div, some, positive, rounding_mode="trunc")),
    *calls("floor_divide int", op(ops.floor_divide, torch.floor_divide, whole, lambda dtype: shifts(dtype) + 1)),
    *calls("remainder int", op(ops.remainder, torch.remainder, whole, lambda dtype: shifts(dtype) + 1)),
    *calls("remainder", op(ops.remainder, torch.remainder, some, positive)),
    *calls("pow_tensor_tensor", op(ops.pow_tensor_tensor, torch.pow, positive, some), *BOTH),
    *calls("pow_tensor_scalar", op(ops.pow_tensor_scalar, torch.pow, some, constant(3))),
    *calls("pow_scalar", op(ops.pow_scalar, torch.pow, constant(2.0), some)),
    *alike("eq ne lt le gt ge", some, column),
    *calls("eq_scalar", op(ops.eq_scalar, torch.eq, whole, constant(3))),
    *alike("logical_and logical_or logical_xor", whole, truths),
    *alike("logical_not", whole),
    *alike("bitwise_not", whole),
    *calls("bitwise_and_tensor", op(ops.bitwise_and_tensor, torch.bitwise_and, whole, whole)),
    *calls("bitwise_or_tensor", op(ops.bitwise_or_tensor, torch.bitwise_or, whole, shifts)),
    *calls("clamp", op(ops.clamp, torch.clamp, some, constant(-0.5), constant(0.7)), *BOTH),
    *calls("clamp_tensor", op(ops.clamp_tensor, torch.clamp, some, column, positive)),
    *calls("where_self", op(ops.where_self, torch.where, truths, some, column), *BOTH),
    *calls("lerp_tensor", op(ops.lerp_tensor, torch.lerp, some, some, fractions)),
    *calls("addcmul", op(ops.addcmul, torch.addcmul, some, some, some)),
    *calls("addcdiv", op(ops.addcdiv, torch.addcdiv, some, some, positive)),
    *calls("masked_fill", op(ops.masked_fill, torch.masked_fill, some, truths, constant(3.0)), *BOTH),
    *calls("isclose", op(ops.isclose, torch.isclose, some, some)),
    *calls("polar", op(ops.polar, torch.polar, positive, some)),
    *calls("to_copy", op(lambda x: ops.to_copy(x, dtype=BF16), lambda x: x.to(BF16), some)),
    *calls("fused gelu_and_mul", op(fused.gelu_and_mul, lambda x, y: F.gelu(x) * y, some, some), *BOTH),
    *calls("fused silu_and_mul", op(fused.silu_and_mul, lambda x, y: F.silu(x) * y, some, some), *BOTH),
    *calls("fused swiglu", op(fused.swiglu, lambda x: F.silu(x[:, :65]) * x[:, 65:], some)),
    *calls("fused reglu", op(fused.reglu, lambda x: F.relu(x[:, :65]) * x[:, 65:], some)),
    *calls("fused geglu", op(fused.geglu, lambda x: F.gelu(x[:, :65], approximate="tanh") * x[:, 65:], some)),
]
