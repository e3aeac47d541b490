"""Meetings of programs as pairs of lines: one for all that say the same, whoever came first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npuscope.sanitizer.programs.rows import Rows
from npuscope.sanitizer.programs.sides import RAW, SAME, WAR, WAW, Pair, kind_of
from npuscope.trace.schema import AGREES, REWRITES, Role

RANK = {RAW: 0, WAR: 1, WAW: 2, SAME: 3}
WORDS = {RAW: "read after write", WAR: "write after read", WAW: "write after write"}
LOST = "Both write it as well (write after write): one of the two results is lost."


def by_line(rows: Rows, meetings: np.ndarray) -> list[Pair]:
    """The pairs to report. Of two lines that meet in both orders, the read after the write is told; writes of one line
    among each other are told with the read that belongs to them."""
    groups: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in _by_site(rows, meetings):
        lines = frozenset((rows.line(pair.earlier), rows.line(pair.later)))
        groups.setdefault((lines, _memory(rows, pair)), []).append(pair)
    merged = {key: _merged(rows, pairs) for key, pairs in groups.items()}
    for key in [key for key, pair in merged.items() if len(key[0]) == 1 and kind_of(rows, pair) == WAW]:
        for other, pair in merged.items():
            if other != key and other[1] == key[1] and key[0] < other[0] and kind_of(rows, pair) in (RAW, WAR):
                merged[other] = replace(pair, also=(*pair.also, LOST))
                del merged[key]
                break
    return list(merged.values())


def _memory(rows: Rows, pair: Pair) -> int:
    """A number for the memory in which a pair meets: the first buffer that overlaps the later access's."""
    buffer = rows.buffers[int(rows.buffer[pair.later])]
    return next(
        number
        for number, that in enumerate(rows.buffers)
        if that.base < buffer.base + buffer.size and buffer.base < that.base + that.size
    )


def _merged(rows: Rows, pairs: list[Pair]) -> Pair:
    pairs = sorted(pairs, key=lambda pair: RANK[kind_of(rows, pair)])
    first = pairs[0]
    kinds = {kind_of(rows, pair) for pair in pairs} - {SAME}
    also: tuple[str, ...] = ()
    if kinds == {RAW, WAR}:
        also = ("Other programs do it the other way round (write after read).",)
    elif WAW in kinds and len(kinds) > 1:
        also = (LOST,)
    return replace(
        first, times=sum(pair.times for pair in pairs), programs=max(pair.programs for pair in pairs), also=also
    )


def _by_site(rows: Rows, meetings: np.ndarray) -> list[Pair]:
    """One pair for all meetings of the same two operations in the same buffers that are as harmful."""
    earlier, later, address = meetings
    if not earlier.size:
        return []
    same = harmless(rows, earlier, later)
    keys = np.stack((rows.site[earlier], rows.site[later], rows.buffer[earlier], rows.buffer[later], same))
    _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    found = []
    for number, at in enumerate(first.tolist()):
        members = inverse == number
        programs = np.union1d(rows.program[earlier[members]], rows.program[later[members]])
        found.append(
            Pair(
                int(later[at]), int(earlier[at]), int(address[at]), bool(same[at]), times=int(members.sum()),
                programs=int(programs.size),
            )
        )  # fmt: skip
    return found


def harmless(rows: Rows, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
    """Which pairs leave memory the same whoever comes first: a write of what is there, or all programs agree."""
    bits, role, operations = rows.semantics, rows.role, rows.operations()
    both = (role[earlier] == Role.WRITE) & (role[later] == Role.WRITE)
    together = operations[earlier] == operations[later]
    agree = together & ((bits[earlier] & bits[later] & AGREES) != 0)
    again = (bits[later] & REWRITES) != 0
    result: np.ndarray = both & (agree | (again & ~together))
    return result
