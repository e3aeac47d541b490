"""Global memory that several cores of a launch write, with nothing to say which write comes last (sanitizer.md 3.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npuscope.sanitizer.access import width_of
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.hazards import Found, HazardCheck
from npuscope.sanitizer.order.state import SAME, WAW
from npuscope.trace.schema import Role


class Overwrites(HazardCheck):
    """The memory check's part that asks the happens-before engine: an overwrite that is ordered is meant."""

    name = "memory"

    def finding_of(self, found: Found) -> tuple[tuple[Any, ...], Finding] | None:
        """The finding of two plain writes of different cores."""
        later, earlier = found.later, found.earlier
        if found.kind not in (WAW, SAME) or earlier is None or later.core == earlier.core:
            return None
        if Role.ATOMIC in (later.role, earlier.role):
            return None
        owner = later.buffer
        size = found.high - found.low
        names = tuple(later.batch.launch.cores[view.core].name for view in (earlier, later))
        finding = later.finding(
            "overwrite",
            Severity.WARNING,
            f"{size} bytes of {owner.name} are written by {names[0]} and by {names[1]}, "
            "and nothing in the kernel orders the two",
            "Give each core a part of its own, add atomically, or order the cores (sync_all).",
            size=size,
            element=(found.low - owner.base) // width_of(owner),
        )
        finding = replace(finding, other=earlier.side(), count=found.times, cores=names)
        return (later.batch.launch.kernel, later.site_number, earlier.site_number, owner.name), finding
