"""Which instructions only raise a flag for others: they pass through a pipe without being work of it."""

from __future__ import annotations

import re

from npuscope.trace.timeline import Step

SIGNALS = re.compile(r"^H?SET_FLAG|CROSS_CORE_SET|SET_CROSS_CORE|FFTS_CROSS_CORE|SET_INTRA_BLOCK|^RLS_BUF")
"""In the text of a step: set_flag and its kin inside a core and between cores."""


def is_signal(step: Step) -> bool:
    """Whether a step does nothing but raise a flag."""
    return SIGNALS.search(step.text.upper()) is not None
