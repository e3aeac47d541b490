"""What `import torch` calls: PyTorch loads the entry points of the group `torch.backends`.

Nearly every process that comes by here wants no agent, so nothing is imported before that is known.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

OURS, VENDORS = "NPUSCOPE_AGENT", "MSMONITOR_USE_DAEMON"
ON = "1"
STARTING = "npuscope.monitor.agent.starting"
SPAWNED = "--multiprocessing-fork"
"""A word in the command line of the processes that multiprocessing starts."""


def on_torch_import() -> None:
    """Start the agent where the environment asks for one. Never raises: a job must start."""
    try:
        if (starting := sys.modules.get(STARTING)) is not None:  # the program has started an agent before
            starting.torch_is_there()
        if wanted(os.environ):
            _start(sys.orig_argv)
    except Exception:
        return


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for an agent. The vendor's own variable does where torch_npu, which would obey it
    itself, is not installed."""
    if OURS in environment:
        return environment[OURS] == ON
    return environment.get(VENDORS) == ON and not _has_torch_npu()


def _has_torch_npu() -> bool:
    from importlib.util import find_spec

    return find_spec("torch_npu") is not None


def _start(words: Sequence[str]) -> None:
    from npuscope.monitor.agent.launchers import is_launcher
    from npuscope.monitor.agent.starting import start, start_when_training

    if "RANK" not in os.environ and is_launcher(words):
        return
    if SPAWNED in words:  # it may load data only
        start_when_training()
    else:
        start()
