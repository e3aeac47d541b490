"""How the agent runs, as the environment says it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

PERIOD_VARIABLE = "NPUSCOPE_POLL_SECONDS"
PERIOD = 1.0
SHORTEST, LONGEST = 0.05, 50.0
"""The daemon forgets a process that is silent for a minute."""


def period(environment: Mapping[str, str] = os.environ) -> float:
    """Seconds between two polls; what is no number counts as not said."""
    try:
        seconds = float(environment.get(PERIOD_VARIABLE) or PERIOD)
    except ValueError:
        return PERIOD
    return min(max(seconds, SHORTEST), LONGEST) if math.isfinite(seconds) else PERIOD
