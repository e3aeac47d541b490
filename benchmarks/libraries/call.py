"""A call of a library's function, what torch makes of the same arguments, and how the two are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
TOLERANCES = {F64: 1e-4, F32: 1e-4, F16: 5e-3, BF16: 4e-2}
"""Of the largest expected value, by the lowest precision among arguments and results; a kernel may keep float32
intermediates of float64 tensors."""

TF32 = 2e-3
"""Tolerance of calls whose kernels multiply matrices of float32: Triton's default rounds the factors to tf32."""

Made = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
"""(the library's function, the same in torch, arguments); those that want gradients say so."""


@dataclass(frozen=True)
class Call:
    """One row of the table. `make` is called with the data type."""

    name: str
    make: Callable[[torch.dtype], Made]
    dtype: torch.dtype = F32
    tolerance: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} {str(self.dtype).removeprefix('torch.')}"


def calls(name: str, make: Callable[[torch.dtype], Made], *dtypes: torch.dtype, tolerance: float = 0.0) -> list[Call]:
    """The call in several data types."""
    return [Call(name, make, dtype, tolerance) for dtype in dtypes or (F32,)]


def leaf(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that wants a gradient."""
    return tensor.detach().requires_grad_()


def randn(*shape: int, dtype: torch.dtype = F32, scale: float = 1.0) -> torch.Tensor:
    """Random numbers that want a gradient."""
    return leaf((torch.randn(shape) * scale).to(dtype))


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    """What a function returns, then the gradients of the arguments that want one."""
    found = list(tensors(function(*arguments)))
    results = [item.detach() for item in found]
    wanted = [item for item in tensors(arguments) if item.requires_grad]
    ends = [item for item in found if item.grad_fn is not None]
    if wanted and ends:
        source = torch.Generator().manual_seed(1)
        begin = [torch.randn(item.shape, generator=source, dtype=F32).to(item.dtype) for item in ends]
        torch.autograd.backward(ends, begin)
        results += [item.grad for item in wanted if item.grad is not None]
    return results


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists and tuples."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors(item)


def copied(value: Any, wide: bool) -> Any:
    """Arguments of their own; `wide`: with floating numbers in double precision."""
    if isinstance(value, torch.Tensor):
        if wide and value.dtype in (F16, BF16, F32):
            copy = value.detach().to(F64, copy=True)
        else:
            copy = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype).copy_(value.detach())
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, tuple | list):
        return type(value)(copied(item, wide) for item in value)
    return value


def judge(call: Call, found: list[torch.Tensor], expected: list[torch.Tensor]) -> str:
    """What is wrong with results, or ""."""
    if len(found) != len(expected):
        return f"{len(found)} results for {len(expected)}"
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours.shape != theirs.shape:
            return f"result {index}: shape {tuple(ours.shape)} for {tuple(theirs.shape)}"
        complaint = compare(ours, theirs, call.tolerance or TOLERANCES[lowest(call.dtype, ours.dtype)])
        if complaint:
            return f"result {index}: {complaint}"
    return ""


def lowest(*dtypes: torch.dtype) -> torch.dtype:
    """The least precise of floating types."""
    return max((dtype for dtype in dtypes if dtype in TOLERANCES), key=lambda dtype: TOLERANCES[dtype], default=F32)


def compare(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> str:
    """How a tensor differs from the expected one, or "". Whole numbers have to be equal."""
    if not (found.is_floating_point() or found.is_complex()):
        different = int((found != expected.to(found.dtype)).sum())
        return f"{different} of {found.numel()} differ" if different else ""
    wide = torch.complex128 if found.is_complex() else F64
    ours, theirs = found.to(wide), expected.to(wide)
    plain = torch.isfinite(theirs)
    if not torch.equal(torch.isfinite(ours), plain):
        return f"{int((torch.isfinite(ours) != plain).sum())} of {found.numel()} infinite or NaN where the other is not"
    ours, theirs = ours[plain], theirs[plain]
    scale = float(theirs.abs().max()) if theirs.numel() else 0.0
    error = float((ours - theirs).abs().max()) if theirs.numel() else 0.0
    return f"error {error:.3g} at {scale:.3g}" if error > tolerance * max(scale, 1e-3) else ""
