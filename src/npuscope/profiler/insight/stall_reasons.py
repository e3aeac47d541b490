"""Block TOP_STALL_REASON: why the warps of a SIMT operator waited, the most frequent reason first (opprof.md 3.7)."""

from __future__ import annotations

from collections import Counter

from npuscope.profiler.insight.instruction_api import ACTIVE, Stalls
from npuscope.profiler.insight.plain import Json, whole


def stall_reasons(stalls: Stalls) -> Json | None:
    """The document; None where nothing waited."""
    total: Counter[str] = Counter()
    for reasons in stalls.values():
        total.update({reason: times for reason, times in reasons.items() if reason != ACTIVE and times})
    if not total:
        return None
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return {"top_stall_reason_table": {reason: whole(times) for reason, times in ranked}}
