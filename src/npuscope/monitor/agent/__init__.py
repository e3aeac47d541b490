"""The part of the monitor that lives inside a training process: `start()` is all that a program has to call.

Nothing heavy is imported until an agent starts: every `import torch` comes by here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuscope.monitor.agent.agent import Agent

__all__ = ["start", "step"]


def start() -> Agent:
    """Start this process's agent, or return the one that runs. Never raises for want of a daemon: it is waited for."""
    from npuscope.monitor.agent.starting import start as begin

    return begin()


def step() -> None:
    """Tell the agent that the job has taken a step, where no optimizer of PyTorch's does; no agent, nothing happens."""
    from npuscope.monitor.agent.starting import step as take

    take()
