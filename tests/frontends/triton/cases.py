"""The table of kernels whose results are compared: with torch or numpy, and with Triton's own interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

TABLE: list[Case] = []


@dataclass
class Case:
    """One launch. `make` gives the arguments by name; `expect` gets copies of them, as they are before the launch, and
    gives what tensors must hold afterwards, within `tolerance`. Where Triton's interpreter is no judge, `interpreter`
    says why not; with `near` its results are compared within that tolerance instead of bit by bit."""

    name: str
    kernel: Any
    make: Callable[[], dict[str, Any]]
    grid: tuple[int, ...] = (1,)
    expect: Callable[..., dict[str, Any]] | None = None
    tolerance: float = 0.0
    interpreter: str = ""
    near: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, torch.Tensor]:
        """Launch it; returns all its tensors."""
        torch.manual_seed(0)
        arguments = self.make()
        self.kernel[self.grid](**arguments, **self.options)
        return {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}

    def expected(self) -> dict[str, Any]:
        """What `expect` says."""
        torch.manual_seed(0)
        arguments = self.make()
        assert self.expect is not None
        return self.expect(**arguments)


def case(kernel: Any, make: Callable[[], dict[str, Any]], grid: tuple[int, ...] = (1,), **more: Any) -> None:
    """Add a launch to the table; `name` tells apart those of one kernel."""
    name = kernel.fn.__name__ + more.pop("name", "")
    assert all(known.name != name for known in TABLE), name
    TABLE.append(Case(name, kernel, make, grid, **more))
