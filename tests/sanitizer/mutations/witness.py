"""Whether a mutant can misbehave on a device, judged without the sanitizer.

* unordered: the brute-force model finds two accesses that may take place in either order (other than those that the
  device compiler would order, and writes of equal values),
* out of bounds: the bytes of an access, spelled out, leave the buffer that it was made through,
* overlapping operands: a vector instruction writes what a later repeat of it reads,
* undefined data: the results depend on what on-chip memory held before, or bytes of it that nothing has written are
  copied to global memory,
* stale data: a scalar kernel's comparison with numpy fails in the simulated caches,
* what the machine itself refused or could not go on with: the codes of its faults.

Wrong values alone are no symptom: an offset that stays inside its array is a mistake that only the author can see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from scenarios.model import program
from scenarios.running import Ran, run_poisoned
from scenarios.witness import launches

from mutations.oracle import Row, hazards, rows_of
from mutations.rewrite import Mutant
from npuscope.trace.schema import Pipe, Role, Space

SEEDS = (1, 2)
"""Of two fillings of on-chip memory."""
REPEAT = 256


def symptoms(mutant: Mutant, ran: Ran) -> tuple[str, ...]:
    """What goes wrong, in one or two words each; empty when nothing can."""
    groups = list(launches(ran.batches))
    rows = [rows_of(group) for group in groups]
    found = sorted({fault.code for group in groups for fault in group[-1].faults})
    if any(_leaves(row) for part in rows for row in part):
        found.append("out of bounds")
    pairs = [hazard for group, part in zip(groups, rows, strict=True) for hazard in hazards(group, part)]
    if any(not hazard.auto and hazard.kind != "race-same-value" for hazard in pairs):
        found.append("unordered")
    if any(_overlaps(row) for part in rows for row in part):
        found.append("overlapping operands")
    if ran.code and mutant.kind == "drop a DCCI":
        found.append("stale data")
    if not found and (any(_copies_undefined(part) for part in rows) or _undefined(mutant)):
        found.append("undefined data")
    return tuple(found)


def _undefined(mutant: Mutant) -> bool:
    results = [run_poisoned(program(mutant.text), seed) for seed in SEEDS]
    return results[0] != results[1]


def _copies_undefined(rows: Sequence[Row]) -> bool:
    written: dict[tuple[Space, int], set[int]] = defaultdict(set)
    for row in rows:
        reads = [touch for touch in row.touches if touch.role == Role.READ and touch.place[0] != Space.GM]
        out = any(touch.role != Role.READ and touch.place[0] == Space.GM for touch in row.touches)
        if out and any(not touch.bytes <= written[touch.place] for touch in reads):
            return True
        for touch in row.touches:
            if touch.role != Role.READ:
                written[touch.place] |= touch.bytes
    return False


def _leaves(row: Row) -> bool:
    return any(
        touch.low < touch.buffer.base or touch.high > touch.buffer.base + touch.buffer.size for touch in row.touches
    )


def _overlaps(row: Row) -> bool:
    """Whether source and destination of the same shape lie askew, so that a repeat reads what an earlier one wrote."""
    writes = [touch for touch in row.touches if touch.role == Role.WRITE]
    reads = [touch for touch in row.touches if touch.role == Role.READ]
    return row.pipe == Pipe.V and any(
        len(one.bytes) == len(two.bytes) and one.meets(two) and -REPEAT < one.low - two.low != 0
        for one in writes
        for two in reads
    )
