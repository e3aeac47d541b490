"""Accesses that leave a tensor, as findings: which elements, lanes and programs, why, and what to do."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from npuscope.sanitizer.access import ROLE_WORDS
from npuscope.sanitizer.findings import Access, Finding, Owner, Severity
from npuscope.sanitizer.programs.forms import finding, where
from npuscope.sanitizer.programs.places import are, described, element, number, span, strides_of
from npuscope.sanitizer.programs.sides import UPDATE
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Buffer, Fault, Role

KINDS = {Role.READ: "illegal-read", Role.WRITE: "illegal-write", Role.ATOMIC: "illegal-write"}
OPCODES = {Role.READ: "tl.load", Role.WRITE: "tl.store", Role.ATOMIC: "a tl.atomic operation"}
DONE = {Role.READ: "read", Role.WRITE: "written", Role.ATOMIC: "updated"}


def outside(batch: Batch, fault: Fault) -> Finding:
    """An access outside the tensor that the pointer came from."""
    facts, role = fault.facts, Role(fault.facts["role"])
    lines = [where(batch, fault)]
    if "buffer" not in facts:
        count = facts["lanes"]
        summary = f"{number(count, 'address', 'addresses')} {are(count)} {DONE[role]} that no argument holds, "
        summary += f"{facts['address']:#x} first"
        advice = "Keep pointers within the tensors that were passed; what tl.cast makes of a number must lie in one."
        cause, cured = _cause(batch, facts)
        return finding(batch, fault, KINDS[role], summary, cured or advice, *lines, *cause)
    owner = batch.buffers[facts["buffer"]]
    count = facts["elements"]
    verb = f"{number(count, 'element')} {are(count)} {DONE[role]}"
    kind = KINDS[role]
    if facts["gap"]:
        name = owner.name
        summary = f"{verb} in the gaps between the rows of {name} ({described(owner)})"
        advice = f"Use the strides of {name} and mask what lies beyond its rows, or pass {name}.contiguous()."
        lines += _moves(owner, facts)
    else:
        summary = f"{verb} {_side(owner, facts)} {owner.name} ({described(owner)})"
        summary += ", where its storage holds other data" if facts["stored"] else ""
        advice = _mask(owner, facts)
        lines += _rows(owner, facts)
    summary += f", {element(owner, facts['first'])} first" if count > 1 else f": {element(owner, facts['first'])}"
    cause, cured = _cause(batch, facts)
    if "overflow" in facts:
        kind = "integer-overflow"
    severity = Severity.ERROR
    if facts["stored"] and _repeats(owner) and kind == KINDS[role]:
        severity = Severity.ADVISORY
        cured = f"{owner.name} shows elements again and again (stride 0), so its extents do not say what a kernel may "
        cured += "reach. Pass the tensor itself where that is to be checked."
    found = finding(batch, fault, kind, summary, cured or advice, *lines, *cause, severity=severity)
    return _about(batch, fault, found, owner)


def elsewhere(batch: Batch, fault: Fault) -> Finding:
    """An access to an element of the right tensor that only an overflow has led to."""
    facts, role = fault.facts, Role(fault.facts["role"])
    owner = batch.buffers[facts["buffer"]]
    cause, advice = _cause(batch, facts)
    verb = {Role.READ: "reads", Role.WRITE: "writes", Role.ATOMIC: "updates"}[role]
    count = facts["lanes"]
    summary = f"{number(count, 'lane')} {are(count)} led astray: one {verb} {element(owner, facts['first'])}"
    summary += f" instead of element {facts['meant']}"
    return finding(batch, fault, "integer-overflow", summary, advice, where(batch, fault), *cause)


def masked(batch: Batch, fault: Fault) -> Finding:
    """Lanes that a mask leaves out, but whose addresses leave the tensor."""
    facts = fault.facts
    owner = batch.buffers[facts["buffer"]]
    total = prod(owner.shape)
    before = facts["first"] < 0
    side = "before the start of" if before else "past the end of"
    last = str(total - 1) if len(owner.shape) < 2 else "extent - 1"
    cure = "tl.maximum(index, 0)" if before else f"tl.minimum(index, {last})"
    count = facts["lanes"]
    summary = f"{number(count, 'masked-out lane')} point{'s' * (count == 1)} {side} {owner.name} ({described(owner)})"
    advice = (
        "Under Triton's rules these lanes touch nothing. A compiler for Ascend may move the whole block and apply the "
        f"mask to the values: keep the addresses inside with {cure}."
    )
    lines = (where(batch, fault), f"The first would be {element(owner, facts['first'])}.")
    return finding(batch, fault, "masked-outside", summary, advice, *lines, severity=Severity.ADVISORY)


def _repeats(owner: Buffer) -> bool:
    """Whether a view shows elements more than once, as libraries make them that only want to pass strides on."""
    return any(count > 1 and not stride for count, stride in zip(owner.shape, owner.strides, strict=False))


def _side(owner: Buffer, facts: Any) -> str:
    if facts["last"] < 0:
        return "before the start of"
    return "on both sides of" if facts["first"] < 0 else "past the end of"


def _mask(owner: Buffer, facts: Any) -> str:
    """What to do when the index itself is wrong."""
    name, total = owner.name, prod(owner.shape)
    if facts["first"] < 0:
        return f"Mask the lanes whose index is below 0: {name} begins at element 0."
    if len(owner.shape) > 1:
        return f"Mask what lies beyond the extents {tuple(owner.shape)} of {name}, with one comparison for each axis."
    return f"Mask the lanes from element {total} on (mask=offsets < {total}), or make {name} {facts['last'] + 1} long."


def _rows(owner: Buffer, facts: Any) -> list[str]:
    """Where only the last row can be seen to overrun."""
    if len(owner.shape) < 2 or owner.strides or facts["first"] < prod(owner.shape):
        return []
    row = owner.shape[-1]
    if facts["last"] - prod(owner.shape) >= row or row < 2:
        return []
    return [f"Rows before the last may run into the next one: that is inside {owner.name}, and is not counted."]


def _moves(owner: Buffer, facts: Any) -> list[str]:
    """The strides that the kernel uses, where they are none of the tensor's."""
    known = strides_of(owner)
    programs, *lanes = facts.get("moves", (0,))
    used = [(step, "program") for step in (programs,) if step] + [(step, "lane") for step in lanes if step]
    wrong = [f"{step} from {what} to {what}" for step, what in used if step not in known and step > 1]
    if not wrong:
        return []
    return [f"The address moves by {', '.join(wrong)}; the strides of {owner.name} are {tuple(known)}."]


def _cause(batch: Batch, facts: Any) -> tuple[list[str], str]:
    """Why the address is what it is, as notes and what to do about it."""
    if "overflow" in facts:
        overflow = facts["overflow"]
        frames = batch.sites[overflow["site"]].frames
        line = f"line {frames[0].line}: " if frames else ""
        sum_ = f"{overflow['one']} {overflow['operation']} {overflow['other']} = {overflow['exact']}"
        note = f"{line}{sum_} does not fit int{overflow['bits']} and becomes {overflow['wrapped']}."
        advice = "Widen one side before: tl.program_id(0).to(tl.int64), or annotate the stride as tl.int64."
        if overflow["bits"] == 64:
            advice = "No integer of a kernel is wider: the factors themselves must be wrong."
        return [note], advice
    origin = facts.get("cause")
    if origin is None:
        return [], ""
    source = batch.buffers[origin["buffer"]]
    frames = batch.sites[origin["site"]].frames
    line = f", loaded in line {frames[0].line}" if frames else ""
    place = element(source, origin["element"])
    note = f"The address comes from {place} = {origin['value']}{line}"
    if origin["outside"]:
        return [f"{note}; that element is outside {source.name} itself."], f"Mask the load of {source.name} first."
    return [f"{note}."], (
        f"Check what {source.name} holds before it is an index, or mask the lanes where it is out of range "
        "(mask=(index >= 0) & (index < n))."
    )


def _about(batch: Batch, fault: Fault, found: Finding, owner: Buffer) -> Finding:
    """With the access and the tensor."""
    facts, role = fault.facts, Role(fault.facts["role"])
    first, end = facts["first"], facts["last"] + 1
    site = batch.sites[fault.site]
    size = facts["elements"] * facts["size"]
    access = Access(
        site.name, OPCODES[role], "", UPDATE if role is Role.ATOMIC else ROLE_WORDS[role], facts["address"], size,
        first, end, site.frames, batch.launch.cores[fault.core].name, fault.instruction, fault.site, owner.name,
        owner.space.name, span(owner, first, end),
    )  # fmt: skip
    made = batch.sites[owner.site].frames
    return replace(
        found, access=access, element=first, size=size, frames=site.frames,
        owner=Owner(
            owner.name, owner.kind, owner.space.name, owner.base, owner.size, owner.dtype, owner.shape, made
        ),
    )  # fmt: skip
