"""The steps of a job, told by PyTorch's optimizers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any


class StepHook:
    """Calls back once for each round of the optimizers: where several take turns, one round is one step."""

    def __init__(self, stepped: Callable[[], None]) -> None:
        self._stepped = stepped
        self._handle: Any = None
        self._round: set[int] = set()
        self._off = False

    def install(self) -> None:
        """Hook in, once torch is there. Costs nothing until then, and imports nothing."""
        if self._handle is not None or self._off:
            return
        module = sys.modules.get("torch.optim.optimizer")
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            return
        with contextlib.suppress(Exception):  # it is being imported
            self._handle = register(self._after)

    def yield_to_the_job(self) -> None:
        """The job counts its steps itself."""
        self._off = True

    def remove(self) -> None:
        """Hook out."""
        self._off = True
        with contextlib.suppress(Exception):
            if self._handle is not None:
                self._handle.remove()

    def _after(self, optimizer: Any, *_: Any) -> None:
        if self._off:
            return
        one = id(optimizer)
        if one in self._round:
            self._round.clear()
        first = not self._round
        self._round.add(one)
        if first:
            self._stepped()
