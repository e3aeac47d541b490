"""The check of initialisation: bytes that matter and that nothing has written.

On-chip memory holds nothing when a kernel starts, GM what the host put there. Bytes that were never written may pass
through element-wise instructions, as the tail of a tile often does; they are reported where they come to matter: where
they leave the core, decide something, or mix with other elements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npuscope.sanitizer.access import AccessView, width_of
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.hazards import Found, HazardCheck
from npuscope.sanitizer.order.state import USED_UNDEFINED
from npuscope.trace.schema import Space

KIND = "uninitialised-read"


class InitCheck(HazardCheck):
    """Reports uses of bytes that were never written."""

    name = "init"

    def finding_of(self, found: Found) -> tuple[tuple[Any, ...], Finding] | None:
        """The finding of a use."""
        if found.kind != USED_UNDEFINED:
            return None
        use, source = found.later, found.earlier
        owner = use.buffer
        size = found.high - found.low
        finding = use.finding(
            KIND, Severity.ERROR, _summary(use, source, size), _advice(use, source), size=size,
            element=(found.low - owner.base) // width_of(owner),
        )
        finding = replace(finding, count=found.times, other=source.side() if source is not None else None)
        origin = source.site_number if source is not None else -1
        return (use.batch.launch.kernel, use.site_number, use.opcode, owner.space, origin), finding


def _summary(use: AccessView, source: AccessView | None, size: int) -> str:
    name = use.buffer.name or f"{use.buffer.space.name} {use.address:#x}"
    if source is None:
        return f"{size} bytes of {name} are read that nothing has written"
    before = source.buffer.name or f"{source.buffer.space.name} {source.address:#x}"
    return f"{size} bytes of {name} come from bytes of {before} that nothing has written"


def _advice(use: AccessView, source: AccessView | None) -> str:
    first = source or use
    name = first.buffer.name or "the buffer"
    if first.buffer.space is Space.GM:
        return f"Fill {name} on the host (zeros instead of empty), or read only the part that was filled."
    if source is None:
        return f"Load or fill (duplicate) {name} before, or shorten the access to what was written."
    return (
        f"Load or fill (duplicate) {name} before it is read, or let this instruction leave out the elements that were "
        "computed from what was not written."
    )
