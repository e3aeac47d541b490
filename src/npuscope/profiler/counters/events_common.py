"""Rules that several chips share, each under the number that the chip gives it."""

from __future__ import annotations

from npuscope.profiler.counters.event import Event
from npuscope.trace.schema import CoreType, Space
from npuscope.trace.timeline import Lane

AIC, AIV = CoreType.AIC, CoreType.AIV
_PIPES = {
    "MTE1": Lane.MTE1, "MTE2": Lane.MTE2, "MTE3": Lane.MTE3, "FIXP": Lane.FIXP, "cube": Lane.CUBE,
    "vector unit": Lane.VECTOR,
}  # fmt: skip


def instructions(number: int, pipe: str, core: CoreType | None = None) -> Event:
    """Instructions of a pipe."""
    lane = _PIPES[pipe]
    return Event(
        number, f"{pipe} instructions", f"slices of lane {lane.name} that are neither flags nor waits",
        lambda reader: reader.instructions(lane), core,
    )  # fmt: skip


def busy(number: int, pipe: str, core: CoreType | None = None) -> Event:
    """Busy cycles of a pipe."""
    lane = _PIPES[pipe]
    return Event(
        number, f"{pipe} busy cycles", f"cycles that slices of lane {lane.name} cover, waits left out",
        lambda reader: reader.busy(lane), core,
    )  # fmt: skip


def waiting(number: int, pipe: str, core: CoreType | None = None) -> Event:
    """Cycles that a pipe waits."""
    lane = _PIPES[pipe]
    return Event(
        number, f"{pipe} wait cycles", f"cycles that wait slices and barriers of lane {lane.name} cover",
        lambda reader: reader.waiting(lane), core,
    )  # fmt: skip


def scalar(number: int, meaning: str, column: str, core: CoreType | None = None) -> Event:
    """A figure of the scalar unit that the cores' table has."""
    return Event(number, meaning, f"column `{column}` of the cores' table", lambda reader: reader.scalar(column), core)


def moved(
    number: int, meaning: str, source: Space | tuple[Space, ...] | None, target: Space | tuple[Space, ...] | None,
    size: int, core: CoreType | None = None, lane: Lane | None = None,
) -> Event:  # fmt: skip
    """Requests on the way between two memories."""
    pipe = f" by {lane.name}" if lane is not None else ""
    rule = f"bytes from {_names(source)} to {_names(target)}{pipe} over {size}, rounded up for each stretch of data"
    return Event(number, meaning, rule, lambda reader: reader.flows.requests(source, target, size, lane), core)


def unit(number: int, meaning: str, lane: Lane, column: str, size: int, core: CoreType | None = None) -> Event:
    """Requests of a computing unit to its own memory."""
    rule = f"`{column}` of lane {lane.name} in the table of units over {size}, rounded up for each instruction"
    return Event(number, meaning, rule, lambda reader: reader.units.requests(lane, column, size), core)


def simt_only(number: int, meaning: str) -> Event:
    """A figure of SIMT instructions that a timeline does not hold."""
    return Event(
        number, meaning, "0 on a core without SIMT instructions; not known on others",
        lambda reader: reader.none_without_simt(), AIV,
    )  # fmt: skip


SCALAR_BUSY_RULE = "column `scalar_busy` of the cores' table; else cycles that slices of lane SCALAR cover"
SCALAR_WAIT_RULE = "column `scalar_wait` of the cores' table; else cycles that wait slices of lane SCALAR cover"


def _names(spaces: Space | tuple[Space, ...] | None) -> str:
    if spaces is None:
        return "any memory"
    return spaces.name if isinstance(spaces, Space) else " or ".join(space.name for space in spaces)
