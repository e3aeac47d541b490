"""Faults of single operations of a tile kernel as findings."""

from __future__ import annotations

from typing import Any

from npuscope.sanitizer.findings import Finding, Severity, launched
from npuscope.sanitizer.programs.places import lanes, number
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import INSIDE_BLOCK, Fault, Role

OPERATIONS = {
    "arith.addf": "an addition", "arith.subf": "a subtraction", "arith.mulf": "a multiplication",
    "arith.divf": "a division", "arith.remf": "a remainder", "tt.precise_divf": "a division",
    "tt.reduce": "a reduction", "tt.scan": "a scan", "arith.truncf": "a conversion", "arith.extf": "a conversion",
    "tt.fp_to_fp": "a conversion",
}  # fmt: skip
"""What operations are called that are no function of tl."""
DOES = {Role.READ: "read", Role.WRITE: "write", Role.ATOMIC: "update"}


def finding(
    batch: Batch, fault: Fault, kind: str, summary: str, advice: str, *notes: str, severity: Severity = Severity.ERROR,
) -> Finding:  # fmt: skip
    """A finding about a line of a launch of programs; empty notes are left out."""
    launch = batch.launch
    return Finding(
        kind, severity, summary, advice, launch.kernel, launch.index, (), launched=launched(launch),
        launch_frame=launch.frame, notes=tuple(note for note in notes if note), facts=dict(fault.facts),
        frames=batch.sites[fault.site].frames,
    )  # fmt: skip


def where(batch: Batch, fault: Fault) -> str:
    """In which lanes of which program, as a note."""
    which = lanes(fault.facts)
    if not which or fault.core < 0:
        return ""
    return f"In {batch.launch.cores[fault.core].name}: {which}."


def misaligned(batch: Batch, fault: Fault) -> Finding:
    """An access at an address that is no multiple of its size."""
    facts = fault.facts
    size, count = facts["size"], facts["lanes"]
    name = facts["argument"] or "memory"
    return finding(
        batch, fault, "misaligned",
        f"{number(count, 'lane')} {DOES[Role(facts['role'])]}{'s' * (count == 1)} {size} bytes of {name} at an address "
        f"that is no multiple of {size}: {facts['address']:#x} is {facts['rest']} too far",
        "A device faults here, or takes other bytes. Move pointers by whole elements of their type.",
        where(batch, fault),
    )  # fmt: skip


def division(batch: Batch, fault: Fault) -> Finding:
    """An integer division by zero; in lanes that a mask leaves out it does no harm by itself."""
    count = fault.facts["lanes"]
    padding = fault.facts.get("padding", False)
    return finding(
        batch, fault, "division-by-zero",
        f"an integer is divided by 0 in {number(count, 'lane')}" + (", which a mask leaves out" if padding else ""),
        "Give the load other=1, so that lanes without data divide by 1." if padding else
        "The result is undefined: mask the lanes, or replace the zeros (tl.where(y == 0, 1, y)).",
        where(batch, fault), severity=Severity.ADVISORY if padding else Severity.ERROR,
    )  # fmt: skip


def read_only(batch: Batch, fault: Fault) -> Finding:
    """A store into an array that may not be written."""
    name = fault.facts["argument"]
    return finding(
        batch, fault, "write-to-read-only", f"{name} is read-only, and the store is dropped",
        f"Pass a copy of {name} that may be written.", where(batch, fault),
    )  # fmt: skip


def asserted(batch: Batch, fault: Fault) -> Finding:
    """A device_assert that does not hold."""
    facts = fault.facts
    if facts["message"] == INSIDE_BLOCK:
        return _outside_block(batch, fault)
    count = f" in {number(facts['lanes'], 'lane')}" if facts.get("tile") else ""
    message = str(facts["message"]).strip()
    return finding(
        batch, fault, "device-assert", f"the assertion does not hold{count}" + (f": {message}" if message else ""),
        "A device stops here when assertions are on (TRITON_DEBUG=1), and goes on with the wrong values when not.",
        where(batch, fault),
    )  # fmt: skip


def _outside_block(batch: Batch, fault: Fault) -> Finding:
    """A block that reaches beyond the shape of its pointer."""
    count = fault.facts["lanes"]
    return finding(
        batch, fault, "outside-block",
        f"{number(count, 'lane')} of a block lie{'s' * (count == 1)} outside the shape that its pointer was made with",
        "Without boundary_check the whole block counts as valid: what lies beside the shape is read or written. Name "
        "the axes that the block may leave in boundary_check.", where(batch, fault),
    )  # fmt: skip


def hint(batch: Batch, fault: Fault) -> Finding:
    """A promise to the compiler that is not kept."""
    facts = fault.facts
    values = facts["value"]
    promised = f"tl.{facts['hint']}({values[0] if len(values) == 1 else list(values)})"
    return finding(
        batch, fault, "false-hint", f"{promised} is promised, but {facts['found']}",
        "The compiler takes the promise for granted and moves whole vectors: correct it, or leave it out.",
    )  # fmt: skip


def not_a_number(batch: Batch, fault: Fault) -> Finding:
    """The first NaN of a launch."""
    facts = fault.facts
    name = batch.sites[fault.site].name
    what = OPERATIONS.get(name, f"tl.{name.rpartition('.')[2]}")
    if "argument" in facts:
        summary = f"the first NaN of the launch is loaded from {facts['argument']}[{_place(batch, facts)}]"
        advice = f"Look for what wrote {facts['argument']}, or for memory of torch.empty that nothing wrote."
    else:
        operands = _operands(facts)
        summary = f"the first NaN of the launch is made by {what}{operands}"
        advice = "No input of this operation is a NaN in this program: look at the values that come in here."
    return finding(
        batch, fault, "nan-origin", summary, advice, where(batch, fault), severity=Severity.WARNING
    )


def _place(batch: Batch, facts: Any) -> str:
    from npuscope.sanitizer.programs.places import index_of

    return ", ".join(map(str, index_of(batch.buffers[facts["buffer"]], facts["element"])))


def _operands(facts: Any) -> str:
    values = [f"{value:g}" for value in facts.get("values", ())]
    return f" from {' and '.join(values)}" if values else ""
