"""The steps of a job, told by PyTorch's optimizers.

One hook is registered in a process and stays: PyTorch goes through its hooks with every step, in the job's thread, and
to take one away meanwhile, or to add one, would break the job. Who listens is exchanged instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

OPTIMIZER = "torch.optim.optimizer"


class _Rounds:
    """Where several optimizers take turns, one round is one step."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.listener: Callable[[], None] | None = None
        self.seen: set[int] = set()

    def after(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has taken a step. Never raises."""
        listener = self.listener
        if listener is None:
            return
        one, seen = id(optimizer), self.seen
        if one in seen:
            seen.clear()
        first = not seen
        seen.add(one)
        if first:
            try:
                listener()
            except Exception:  # the job has nothing to do with it
                return


_rounds = _Rounds()


def install(*, from_elsewhere: bool = False) -> None:
    """Register the hook, once torch is imported; nothing is imported for it. Called on the thread that starts the
    agent or imports torch, or, `from_elsewhere`, while a job may be in the midst of a step: then only where PyTorch has
    no other hook to go through."""
    module = sys.modules.get(OPTIMIZER)
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if _rounds.handle is not None or register is None:
        return
    if from_elsewhere and len(getattr(module, "_global_optimizer_post_hooks", "?")):
        return
    _rounds.handle = register(_rounds.after)


def listen(listener: Callable[[], None] | None) -> None:
    """Have this called with each step from now on, and nobody else."""
    _rounds.seen.clear()
    _rounds.listener = listener
