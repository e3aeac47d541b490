"""For whom a configuration is: stock PyTorch, or the vendor's plug-in (and npuscope's agent) and which part of it."""

from __future__ import annotations

from npuscope.monitor.protocol.config import loosely_read
from npuscope.monitor.protocol.fabric import Dialect

MONITOR_KEY = "NPU_MONITOR_START"
PLUGIN_KEYS = frozenset({"PROFILE_START_STEP", "PROFILE_ACTIVITIES", "PROFILE_PROFILER_LEVEL", "PROFILE_IS_RANK"})
"""What stock PyTorch knows nothing of."""


def is_for_monitor(config: str) -> bool:
    """Whether a text starts, changes or stops the plug-in's monitor: its first key tells."""
    return config.startswith(MONITOR_KEY)


def names_ranks(config: str) -> bool:
    """Whether a trace is for some ranks only, which tell by themselves whether they are meant."""
    return "PROFILE_IS_RANK" in config and loosely_read(config).get("PROFILE_IS_RANK", "").lower() == "true"


def audience(config: str) -> Dialect:
    """Who is to read a text."""
    keys = {line.partition("=")[0].strip() for line in config.split("\n")}
    return Dialect.MSMONITOR if is_for_monitor(config) or keys & PLUGIN_KEYS else Dialect.KINETO
