"""A byte-by-byte model of what is undefined, for programs whose instructions read and write runs of one length: byte n
of a result is undefined when byte n of a source is. Independent of the sanitizer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from mutations.oracle import Row, Touch
from npuscope.trace.schema import Role, Space


def undefined_stores(rows: Sequence[Row]) -> list[Row]:
    """The rows that copy undefined bytes of on-chip memory to global memory, which counts as defined from then on."""
    defined: dict[tuple[Space, int], set[int]] = defaultdict(set)
    found = []
    for row in rows:
        reads = [touch for touch in row.touches if touch.role == Role.READ]
        for target in (touch for touch in row.touches if touch.role == Role.WRITE):
            holes = {at for touch in reads for at in _holes(touch, defined)}
            if target.place[0] == Space.GM:
                if holes:
                    found.append(row)
                continue
            known = defined[target.place]
            known |= target.bytes
            known -= target.bytes if target.spoils else {target.low + at for at in holes}
    return found


def _holes(touch: Touch, defined: dict[tuple[Space, int], set[int]]) -> set[int]:
    """Offsets of the undefined bytes of a source; all of global memory is defined."""
    if touch.place[0] == Space.GM:
        return set()
    return {byte - touch.low for byte in touch.bytes if byte not in defined[touch.place]}
