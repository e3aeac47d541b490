"""Accesses of programs, alone or in pairs, as findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from npuscope.sanitizer.access import AccessView, describe, footprint_of, width_of
from npuscope.sanitizer.findings import Access, Finding, Severity
from npuscope.sanitizer.programs.places import element, span
from npuscope.sanitizer.programs.rows import Rows
from npuscope.trace.schema import Pipe, Role

WAW, RAW, WAR, SAME, LANES = "race-waw", "race-raw", "race-war", "race-same-value", "race-lanes"
UPDATE = "update"
CALLS = {"load": "tl.load", "store": "tl.store"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rows that meet at `address`. `same`: the later one stores what is there; `lanes`: they are of one program;
    `also`: what else their two lines do to each other; `programs`: how many have a part in it."""

    later: int
    earlier: int
    address: int
    same: bool = False
    lanes: bool = False
    times: int = 1
    also: tuple[str, ...] = ()
    programs: int = 0


def view(rows: Rows, row: int) -> AccessView:
    """A row with everything it refers to."""
    return describe(
        rows.batch, int(rows.site[row]), int(rows.program[row]), int(rows.opcode[row]), Pipe.S,
        rows.buffers[int(rows.buffer[row])], Role(int(rows.role[row])), int(rows.address[row]),
        footprint_of(rows.batch, int(rows.footprint[row])), int(rows.serial[row]),
    )  # fmt: skip


def side(access: AccessView) -> Access:
    """The access as a finding of a tile kernel shows it: there are no pipes, and elements have an index."""
    plain = access.side()
    opcode = CALLS.get(plain.opcode, f"tl.{plain.opcode}")
    role = UPDATE if access.role is Role.ATOMIC else plain.role
    return replace(plain, pipe="", role=role, opcode=opcode, shown=span(access.buffer, plain.first, plain.last))


def row_finding(access: AccessView, *words: Any, **more: Any) -> Finding:
    """A finding about one access; the arguments are those of AccessView.finding."""
    return replace(access.finding(*words, **more), access=side(access))


def kind_of(rows: Rows, pair: Pair) -> str:
    """The class of a pair."""
    if pair.lanes:
        return LANES
    if pair.same:
        return SAME
    if rows.role[pair.later] == Role.READ:
        return RAW
    return WAR if rows.role[pair.earlier] == Role.READ else WAW


def pair_finding(rows: Rows, pair: Pair) -> Finding:
    """The finding for a pair."""
    later, earlier = view(rows, pair.later), view(rows, pair.earlier)
    kind = kind_of(rows, pair)
    owner = later.buffer
    place = (pair.address - owner.base) // width_of(owner)
    cores = rows.batch.launch.cores
    names = [cores[one.core].name for one in (later, earlier)]
    severity = Severity.WARNING if kind == SAME else Severity.ERROR
    finding = row_finding(
        later, kind, severity, _summary(kind, later, earlier, names, place), _advice(kind, later, earlier), 0, place,
        notes=(*_notes(later, earlier), *pair.also),
    )
    facts = {"in_programs": pair.programs} if pair.programs else {}
    return replace(
        finding, other=side(earlier), count=pair.times, cores=tuple(dict.fromkeys(names)), facts=facts,
        edge="tl.debug_barrier()" if kind == LANES else "",
    )


_VERBS = {Role.READ: "reads", Role.ATOMIC: "updates"}


def _summary(kind: str, later: AccessView, earlier: AccessView, names: list[str], place: int) -> str:
    where = element(later.buffer, place)
    if kind == LANES:
        return f"lanes read what other lanes of the same program stored, {where} first, and no barrier is between"
    verb, other = (_VERBS.get(one.role, "writes") for one in (later, earlier))
    if kind == SAME:
        return f"{names[0]} and {names[1]} both write {where}, the same value; nothing orders the two"
    if verb == other:
        return f"{names[0]} and {names[1]} both {verb[:-1]} {where}; nothing orders the two"
    return f"{names[0]} {verb} {where}, which {names[1]} {other}; nothing orders the two"


def _advice(kind: str, later: AccessView, earlier: AccessView) -> str:
    if kind == LANES:
        return "Put tl.debug_barrier() between the two lines, or keep the values in the program instead of in memory."
    if kind == SAME:
        return (
            "The result is the same whichever comes last. Let one program do it (if tl.program_id(0) == 0), so that "
            "it stays so."
        )
    if Role.READ in (later.role, earlier.role):
        return (
            "Programs of a grid run in any order and at the same time: read from one tensor and write to another, use "
            "an atomic operation, or launch twice."
        )
    if Role.ATOMIC in (later.role, earlier.role):
        return (
            "A plain store is not atomic, even beside operations that are: use tl.atomic_xchg, or store before the "
            "launch."
        )
    return "Give each program elements of its own, or combine them with an atomic operation (tl.atomic_add)."


def _notes(later: AccessView, earlier: AccessView) -> tuple[str, ...]:
    one, other = later.buffer, earlier.buffer
    if one.name != other.name:
        return (f"The arguments {other.name} and {one.name} share storage.",)
    return ()
