"""What each class of finding is called and what it means, for headlines, SARIF rules and the vendor's report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of finding: its name in a headline, and one sentence for a rule's help."""

    title: str
    help: str


KINDS: dict[str, Kind] = {
    "illegal-read": Kind("illegal read", "Bytes outside the buffer or argument are read."),
    "illegal-write": Kind("illegal write", "Bytes outside the buffer or argument are written."),
    "misaligned": Kind("misaligned access", "An operand starts where its instruction cannot start."),
    "operand-overlap": Kind("operand overlap", "The destination of a vector instruction overlaps a source in part."),
    "write-to-read-only": Kind("write to read-only memory", "A kernel writes an array that the host holds read-only."),
    "use-after-free": Kind("use after free", "Memory is used after it was given back."),
    "illegal-free": Kind("illegal free", "What is freed is not the start of a live allocation."),
    "leak": Kind("leak", "Device memory is still allocated when the program ends."),
    "unused-memory": Kind("unused memory", "Device memory is allocated and never touched."),
    "overwrite": Kind("overwrite", "Two cores write the same bytes of global memory."),
    "over-capacity": Kind("over capacity", "The buffers of a kernel do not fit in the memory."),
    "queue-state": Kind("queue misuse", "A queue is used in an order that it does not allow."),
    "queue-limit": Kind("queue limit", "Queues need more event ids than the device has."),
    "copy-truncated": Kind("truncated copy", "A copy's length is no multiple of the block, so its tail stays behind."),
    "launch-too-large": Kind("launch too large", "The grid has more blocks than a launch takes."),
    "bad-operand": Kind("bad operand", "A parameter that the instruction does not take."),
    "trap": Kind("trap", "The kernel called trap."),
    "uninitialised-read": Kind("uninitialised read", "Bytes are used that nothing has written."),
    "race-raw": Kind("race (read after write)", "Nothing makes a read wait for the write before it."),
    "race-war": Kind("race (write after read)", "Nothing makes a write wait for the read before it."),
    "race-waw": Kind("race (write after write)", "Nothing orders two writes of the same bytes."),
    "race-same-value": Kind(
        "race of equal values", "Nothing orders two writes of the same bytes; the later one changes nothing."
    ),
    "race-lanes": Kind("race between lanes", "Lanes of one program meet in memory, and no barrier is between."),
    "integer-overflow": Kind("integer overflow", "An address is computed in an integer too narrow for it."),
    "division-by-zero": Kind("division by zero", "An integer is divided by zero."),
    "device-assert": Kind("failed assertion", "A device_assert does not hold."),
    "false-hint": Kind("false hint", "A promise to the compiler about numbers is not kept."),
    "masked-outside": Kind("masked-out lanes outside", "Lanes that a mask leaves out point outside their tensor."),
    "outside-block": Kind("block outside its shape", "A block reaches beyond the shape of its block pointer."),
    "nan-origin": Kind("first NaN", "An operation makes a NaN of inputs that are none."),
    "lost-result": Kind("lost result", "A launch writes over what an earlier one wrote and nothing read."),
    "unwritten-output": Kind("unwritten output", "A launch leaves elements of an output without a value."),
    "relies-on-auto-sync": Kind("relies on auto-sync", "Only the device compiler's automatic flags order the two."),
    "unpaired-flag": Kind("unpaired flag", "A flag is set and never waited for."),
    "redundant-flag": Kind("redundant flag", "Two identical flag operations follow each other with nothing between."),
    "flag-set-twice": Kind("flag set twice", "A flag is set again before anything waited for it."),
    "reserved-event-id": Kind("reserved event id", "A flag uses an id that automatic sync takes for itself."),
    "cross-core-mode": Kind("mixed cross-core modes", "One cross-core flag is set in two modes at a time."),
    "bad-event": Kind("bad event", "A flag that the device does not have, such as one from a pipe to itself."),
    "event-elsewhere": Kind("event of other pipes", "A flag of pipes that no core of the launch has."),
    "cross-core-left-set": Kind("cross-core flag left set", "A cross-core flag is still raised when the kernel ends."),
    "cross-core-overflow": Kind("cross-core flag overflow", "A cross-core flag is set more often than it can count."),
    "deadlock": Kind("deadlock", "No core can go on and the kernel never ends."),
    "register-not-reset": Kind("register not reset", "A mask or mode is left changed when the kernel ends."),
    "non-default-mask": Kind("non-default mask", "A vector instruction runs under a mask that is not the default."),
    "dcci-missing": Kind("missing DCCI", "A scalar access and another core's access lack cache maintenance."),
    "stale-write-back": Kind("stale write-back", "A dirty cache line is written back over newer bytes."),
    "false-sharing": Kind("false sharing", "Two cores change parts of one cache line, and one change is lost."),
}


def title(kind: str) -> str:
    """A class as a headline names it; its id in words when it has no name of its own."""
    known = KINDS.get(kind)
    return known.title if known is not None else kind.replace("-", " ")


def help_of(kind: str) -> str:
    """One sentence on what a class means."""
    known = KINDS.get(kind)
    return known.help if known is not None else f"The check reports {kind.replace('-', ' ')}."
