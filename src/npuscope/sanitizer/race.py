"""The race check: two accesses of the same bytes, one of them a write, that nothing on the device orders.

What orders what is :mod:`npuscope.sanitizer.order`'s business; here its pairs become findings with a cure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npuscope.sanitizer.access import AccessView, width_of
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.hazards import Found, HazardCheck
from npuscope.sanitizer.order.state import RAW, SAME, USED_UNDEFINED, WAR, WAW
from npuscope.trace.schema import CoreType, Pipe, Role

KINDS = {RAW: "race-raw", WAR: "race-war", WAW: "race-waw", SAME: "race-same-value"}
RELIES = "relies-on-auto-sync"


class RaceCheck(HazardCheck):
    """Reports unordered pairs: inside a core, on every core, and between cores."""

    name = "race"

    def finding_of(self, found: Found) -> tuple[tuple[Any, ...], Finding] | None:
        """The finding of a pair."""
        if found.kind == USED_UNDEFINED:
            return None
        assert found.earlier is not None
        later, earlier = found.later, found.earlier
        kind, severity = KINDS[found.kind], Severity.ERROR
        if found.kind == SAME:
            severity = Severity.WARNING
        if found.compiler:
            kind, severity = RELIES, Severity.ADVISORY
        owner = later.buffer
        first, size = common(later, earlier)
        finding = later.finding(
            kind, severity, _summary(later, earlier), _advice(later, earlier, found),
            size=size, element=(first - owner.base) // width_of(owner),
            notes=_notes(later, earlier),
        )
        names = [later.batch.launch.cores[view.core].name for view in (later, earlier)]
        finding = replace(
            finding, other=earlier.side(), edge=_edge(later, earlier), count=found.times,
            cores=tuple(dict.fromkeys(names)),
        )
        crossing = later.core != earlier.core
        launch = later.batch.launch
        return (kind, found.kind, launch.kernel, later.site_number, earlier.site_number, later.opcode, earlier.opcode,
                crossing), finding


def _doing(view: AccessView) -> str:
    verb = {Role.READ: "reads", Role.ATOMIC: "adds to"}.get(view.role, "writes")
    return f"{view.pipe.name} {verb} {view.buffer.name or 'memory'}"


def _summary(later: AccessView, earlier: AccessView) -> str:
    cores = later.batch.launch.cores
    if later.core != earlier.core:
        one, other = cores[later.core].name, cores[earlier.core].name
        return f"{_doing(later)} on {one} while {earlier.pipe.name} of {other} may not have finished with it"
    if later.pipe is earlier.pipe:
        return f"{_doing(later)} while an earlier instruction of the same pipe may not have finished with it"
    return f"{_doing(later)} while {earlier.pipe.name} may not have finished with it"


def _edge(later: AccessView, earlier: AccessView) -> str:
    """The order that is missing: ``MTE2_V``, ``pipe_barrier(V)``, ``AIV 0 -> AIV 1``."""
    if later.core != earlier.core:
        cores = later.batch.launch.cores
        return f"{cores[earlier.core].name} -> {cores[later.core].name}"
    if later.pipe is earlier.pipe:
        return f"pipe_barrier({later.pipe.name})"
    return f"{earlier.pipe.name}_{later.pipe.name}"


def _line(view: AccessView) -> str:
    frames = view.site.frames
    return f"line {frames[0].line}" if frames else "the first access"


def _advice(later: AccessView, earlier: AccessView, found: Found) -> str:
    between = _between(later, earlier)
    if found.kind == SAME:
        return (
            "The later write changes nothing, so the result is the same whichever comes last, as long as the values "
            "are equal. Let one core do the work, or give each a part of its own."
        )
    if found.compiler:
        return (
            "The device compiler's auto-sync orders this pair. "
            f"Without it, {_order(later, earlier)} {between} is needed."
        )
    if later.core != earlier.core:
        first, second = _line(earlier), _line(later)
        if first == second:
            return (
                "Nothing orders the two cores. Give each core a part of its own, or let them add to it atomically "
                "(set_atomic_add)."
            )
        return (
            f"Nothing orders the two cores. Use sync_all {between}, "
            f"or set a cross-core flag on pipe {earlier.pipe.name} after {first} and wait for it before {second}."
        )
    if later.pipe is earlier.pipe:
        return f"Instructions of one pipe overlap. Put pipe_barrier({later.pipe.name}) {between}."
    if later.pipe is Pipe.S or earlier.pipe is Pipe.S:
        kind = later.batch.launch.cores[later.core].type
        if kind is CoreType.AIC:
            return f"Put pipe_barrier(ALL) {between}."
    text = f"Set HardEvent.{_edge(later, earlier)} after {_line(earlier)} and wait for it before {_line(later)}"
    if _comes_round(later, earlier):
        return text + " in the next turn of the loop: the buffer is used again before its last user is done."
    return text + "."


def _between(later: AccessView, earlier: AccessView) -> str:
    first, second = _line(earlier), _line(later)
    if first == second:
        return f"before {second} in the next turn of the loop"
    return f"between {first} and {second}"


def common(later: AccessView, earlier: AccessView) -> tuple[int, int]:
    """(first, number) of the bytes that both accesses touch."""
    both = np.intersect1d(_touched(later), _touched(earlier))
    return (int(both[0]), both.size) if both.size else (later.address, 0)


def _touched(view: AccessView) -> np.ndarray:
    return view.address + view.footprint.offsets()


def _order(later: AccessView, earlier: AccessView) -> str:
    edge = _edge(later, earlier)
    return edge if later.pipe is earlier.pipe else f"HardEvent.{edge}"


def _comes_round(later: AccessView, earlier: AccessView) -> bool:
    """Whether the later access stands above the earlier one in the source, as in a loop."""
    if not later.site.frames or not earlier.site.frames:
        return False
    one, other = later.site.frames[-1], earlier.site.frames[-1]
    return one.file == other.file and one.line < other.line


def _notes(later: AccessView, earlier: AccessView) -> tuple[str, ...]:
    one, other = later.buffer, earlier.buffer
    if one is not other and one.kind == other.kind == "argument" and one.name != other.name:
        return (f"The arguments {other.name} and {one.name} share memory.",)
    return ()
