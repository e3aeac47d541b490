"""Two accesses of programs as a finding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from npuscope.sanitizer.access import AccessView, describe, footprint_of, width_of
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.programs.rows import Rows
from npuscope.trace.schema import Pipe, Role

WAW, RAW, WAR, SAME, LANES = "race-waw", "race-raw", "race-war", "race-same-value", "race-lanes"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rows that meet at `address`. `same`: both write the same value; `lanes`: they are of one program."""

    later: int
    earlier: int
    address: int
    same: bool = False
    lanes: bool = False
    times: int = 1


def view(rows: Rows, row: int) -> AccessView:
    """A row with everything it refers to."""
    return describe(
        rows.batch, int(rows.site[row]), int(rows.program[row]), int(rows.opcode[row]), Pipe.S,
        rows.buffers[int(rows.buffer[row])], Role(int(rows.role[row])), int(rows.address[row]),
        footprint_of(rows.batch, int(rows.footprint[row])), int(rows.serial[row]),
    )  # fmt: skip


def pair_finding(rows: Rows, pair: Pair) -> tuple[tuple[Any, ...], Finding]:
    """(what makes it the same as another, the finding)."""
    later, earlier = view(rows, pair.later), view(rows, pair.earlier)
    kind = _kind(pair, later, earlier)
    owner = later.buffer
    element = (pair.address - owner.base) // width_of(owner)
    cores = rows.batch.launch.cores
    names = [cores[one.core].name for one in (later, earlier)]
    severity = Severity.WARNING if kind == SAME else Severity.ERROR
    finding = later.finding(
        kind, severity, _summary(kind, later, earlier, names, element), _advice(kind, later, earlier), 0, element,
        notes=_notes(later, earlier),
    )  # fmt: skip
    finding = replace(
        finding, other=earlier.side(), count=pair.times, cores=tuple(dict.fromkeys(names)),
        edge="tl.debug_barrier()" if kind == LANES else f"{names[1]} -> {names[0]}",
    )  # fmt: skip
    key = (kind, rows.batch.launch.kernel, later.site_number, earlier.site_number, later.opcode, earlier.opcode)
    return key, finding


def _kind(pair: Pair, later: AccessView, earlier: AccessView) -> str:
    if pair.lanes:
        return LANES
    if pair.same:
        return SAME
    if later.role is Role.READ:
        return RAW
    return WAR if earlier.role is Role.READ else WAW


_VERBS = {Role.READ: "reads", Role.ATOMIC: "updates"}


def _summary(kind: str, later: AccessView, earlier: AccessView, names: list[str], element: int) -> str:
    name = later.buffer.name
    if kind == LANES:
        return f"lanes read what other lanes of the same program stored, {name}[{element}] first, and no barrier is between"
    verb, other = (_VERBS.get(one.role, "writes") for one in (later, earlier))
    return f"{names[0]} {verb} {name}[{element}], which {names[1]} {other}; nothing orders the two"


def _advice(kind: str, later: AccessView, earlier: AccessView) -> str:
    if kind == LANES:
        return "Put tl.debug_barrier() between the two lines, or keep the values in the program instead of in memory."
    if kind == SAME:
        return (
            "Every program writes the same value here, so the result is the same whichever comes last. Let one program "
            "do it: if tl.program_id(0) == 0."
        )
    if later.buffer.name != earlier.buffer.name or Role.READ in (later.role, earlier.role):
        return (
            "Programs of a grid run in any order and at the same time. Write to another tensor than the one that is read, "
            "or use an atomic operation."
        )
    return "Give each program elements of its own, or combine them with an atomic operation (tl.atomic_add)."


def _notes(later: AccessView, earlier: AccessView) -> tuple[str, ...]:
    one, other = later.buffer, earlier.buffer
    if one.name != other.name:
        return (f"The arguments {other.name} and {one.name} share storage.",)
    return ()
