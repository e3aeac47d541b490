"""What the tile machine refused or found strange, as findings of the memory check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npuscope.sanitizer.access import ROLE_WORDS
from npuscope.sanitizer.findings import Access, Collector, Finding, Owner, Severity, launched
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault, Role

KINDS = {Role.READ: "illegal-read", Role.WRITE: "illegal-write", Role.ATOMIC: "illegal-write"}
OPCODES = {Role.READ: "tl.load", Role.WRITE: "tl.store", Role.ATOMIC: "an atomic operation"}


class ProgramMemory:
    """The memory check of tile kernels: takes the faults of launches of programs."""

    name = "memory"
    limits: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._collector = Collector()
        self._seen = 0

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._collector.findings

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        if batch.first == 0:
            self._seen = 0
        for fault in batch.faults[self._seen :]:
            make = FORMS.get(fault.code)
            if make is not None:
                finding = make(batch, fault)
                key = (finding.kind, batch.launch.kernel, fault.site, str(fault.facts.get("argument", "")))
                self._collector.add(key, finding)
        self._seen = len(batch.faults)


def outside(batch: Batch, fault: Fault) -> Finding:
    """An access outside the tensor that the pointer came from."""
    facts = fault.facts
    role = Role(facts["role"])
    if "buffer" not in facts:
        return _finding(
            batch, fault, KINDS[role], f"{_lanes(facts)} of an address that belongs to no argument ({facts['address']:#x})",
            "Keep pointers within the tensors that were passed; an address from int_to_ptr must lie in one of them.",
        )  # fmt: skip
    owner = batch.buffers[facts["buffer"]]
    element, last = facts["first"], facts["last"]
    total = _total(owner.shape)
    shape = f"{owner.dtype}{list(owner.shape)}"
    if facts["gap"]:
        where = f"lies in the gaps between the rows of {owner.name} ({shape}): elements of its storage that it does not show"
        advice = f"Use the strides of {owner.name} and mask what is beyond its rows, or pass {owner.name}.contiguous()."
    else:
        side = "before the start" if last < 0 else "past the end" if element >= total else "outside"
        where = f"lies {side} of {owner.name} ({shape})"
        if facts["stored"]:
            where += ", in other data of the same storage"
        advice = _advice(facts, owner.name, total, last)
    overflow = facts.get("overflow")
    notes: tuple[str, ...] = ()
    kind = KINDS[role]
    if overflow is not None:
        kind, notes, advice = _overflowed(batch, overflow)
    finding = _finding(batch, fault, kind, f"{_lanes(facts)} {where}", advice)
    access = Access(
        batch.sites[fault.site].name, OPCODES[role], "", ROLE_WORDS[role], facts["address"],
        facts["elements"] * facts["size"], element, last + 1, batch.sites[fault.site].frames,
        batch.launch.cores[fault.core].name, fault.instruction, fault.site, owner.name, owner.space.name,
    )  # fmt: skip
    return replace(
        finding, access=access, element=element, size=facts["elements"] * facts["size"], notes=(*notes, *_programs(facts)),
        owner=Owner(
            owner.name, owner.kind, owner.space.name, owner.base, owner.size, owner.dtype, owner.shape,
            batch.sites[owner.site].frames,
        ),
    )  # fmt: skip


def _advice(facts: Any, name: str, total: int, last: int) -> str:
    if facts["first"] < 0:
        return f"Mask the lanes whose index is below 0: {name} begins at element 0."
    return f"Mask the lanes from element {total} on (mask=offsets < {total}), or make {name} at least {last + 1} long."


def _overflowed(batch: Batch, overflow: dict[str, Any]) -> tuple[str, tuple[str, ...], str]:
    frames = batch.sites[overflow["site"]].frames
    line = f"line {frames[0].line}: " if frames else ""
    sum_ = f"{overflow['one']} {overflow['operation']} {overflow['other']} = {overflow['exact']}"
    note = f"{line}{sum_} does not fit int{overflow['bits']} and becomes {overflow['wrapped']}."
    advice = "Widen one side before: tl.program_id(0).to(tl.int64), or annotate the stride as tl.int64."
    return "integer-overflow", (note,), advice


def misaligned(batch: Batch, fault: Fault) -> Finding:
    """An access at an address that is no multiple of its size."""
    facts = fault.facts
    return _finding(
        batch, fault, "misaligned",
        f"{_lanes(facts)} of {facts['argument'] or 'memory'} of {facts['size']} bytes is at address % {facts['size']} == "
        f"{facts['rest']}",
        "A device faults here: move pointers by whole elements of their type.", notes=_programs(facts),
    )  # fmt: skip


def division(batch: Batch, fault: Fault) -> Finding:
    """An integer division by zero."""
    lanes = fault.facts["lanes"]
    return _finding(
        batch, fault, "division-by-zero", f"the divisor is 0 in {lanes} lane{'s' * (lanes > 1)}",
        "The result is undefined: mask the lanes or replace the zeros (tl.where(y == 0, 1, y)).",
        notes=_programs(fault.facts),
    )  # fmt: skip


def read_only(batch: Batch, fault: Fault) -> Finding:
    """A store into an array that may not be written."""
    name = fault.facts["argument"]
    return _finding(batch, fault, "write-to-read-only", f"{name} is read-only", f"Pass a copy of {name} that may be written.")


def asserted(batch: Batch, fault: Fault) -> Finding:
    """A device_assert that does not hold."""
    return _finding(
        batch, fault, "device-assert", f"the assertion does not hold: {fault.facts['message']}", "",
        notes=_programs(fault.facts),
    )  # fmt: skip


def hint(batch: Batch, fault: Fault) -> Finding:
    """A promise to the compiler that is not kept."""
    facts = fault.facts
    return _finding(
        batch, fault, "false-hint", f"{facts['hint']}({facts['value']}) is promised, and {facts['found']}",
        "A device reads whole vectors on the strength of this promise: correct it or leave it out.", notes=_programs(facts),
    )  # fmt: skip


FORMS = {
    "tile_outside": outside, "tile_misaligned": misaligned, "tile_division": division, "tile_read_only": read_only,
    "tile_assert": asserted, "tile_hint": hint,
}  # fmt: skip


def _finding(
    batch: Batch, fault: Fault, kind: str, summary: str, advice: str, notes: tuple[str, ...] = ()
) -> Finding:
    launch = batch.launch
    cores = tuple(launch.cores[number].name for number in fault.facts.get("programs", ()))
    return Finding(
        kind, Severity.ERROR, summary, advice, launch.kernel, launch.index, cores, launched=launched(launch),
        launch_frame=launch.frame, notes=notes, facts=dict(fault.facts), frames=batch.sites[fault.site].frames,
    )  # fmt: skip


def _lanes(facts: Any) -> str:
    lanes = facts["lanes"]
    return f"{lanes} lane{'s' * (lanes > 1)}:" if "elements" not in facts else (
        f"{facts['elements']} element{'s' * (facts['elements'] > 1)}"
    )


def _programs(facts: Any) -> tuple[str, ...]:
    return (f"In {facts['among']} programs.",) if facts["among"] > len(facts["programs"]) else ()


def _total(shape: tuple[int, ...]) -> int:
    total = 1
    for count in shape:
        total *= count
    return total
