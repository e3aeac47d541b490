"""The records of an on-board timeline: four bytes each, as the hardware leaves them (opprof.md 3.6).

A record is two little-endian 16-bit words: the cycles since the record before it, and what happened. The top four bits
of the second say what kind of event it is: 15 is a new state mask of the pipes, 0 to 5 and 10 a point on that pipe. The
low twelve bits are the mask, or the number of the point: bit 11 set where it is an end, bit 10 where it belongs to a
pair, bits 9 and 10 both where the pair is an instruction (then nine bits of number are left).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from npuscope.trace.timeline import Lane

RECORD = 4
STATE = 0xF
CARRY = 0xFFFF
"""The most that a record can count: a record with this many cycles says that more time passed than fits in one."""
PIPE_OF = {0: Lane.SCALAR, 1: Lane.VECTOR, 2: Lane.CUBE, 3: Lane.MTE1, 4: Lane.MTE2, 5: Lane.MTE3, 10: Lane.FIXP}
NIBBLE_OF = {int(lane): nibble for nibble, lane in PIPE_OF.items()}
END_BIT, PAIR_BIT, INSTRUCTION_BITS = 0x800, 0x400, 0x600
FINAL = (0xD88, 0xD99, 0xDAA, 0xDBB, 0xDCC, 0xDDD, 0xDEE, 0xDFF)
"""The points that end a stream, in this order: they push what is still buffered out of the hardware."""
BLOCK = 2 << 20
"""Bytes of records behind each head of a file; not all of them need be in use."""


class Event(IntEnum):
    """What a record tells."""

    STATE = 0  # the pipes that are busy from now on
    INSTRUCTION = 1
    INSTRUCTION_END = 2
    REGION = 3  # a region that the user marked
    REGION_END = 4
    STAMP = 5  # a moment that the user marked
    FINAL = 6
    UNKNOWN = 7


@dataclass(frozen=True, slots=True)
class Records:
    """One stream. Columns are (records,) int64: `cycle` since the stream began, `event`, `lane` (-1 for a state), and
    `number`: the mask of a state, else the number of what is marked. `unknown` counts records of a kind that is not
    known (their time counts), `carried` those that only carry time over, `torn` bytes at the end that are no record."""

    cycle: np.ndarray
    event: np.ndarray
    lane: np.ndarray
    number: np.ndarray
    unknown: int = 0
    carried: int = 0
    torn: int = 0

    def __len__(self) -> int:
        return int(self.cycle.size)

    def only(self, *events: Event) -> Records:
        """The records of some kinds."""
        rows = np.isin(self.event, events)
        return Records(self.cycle[rows], self.event[rows], self.lane[rows], self.number[rows])


def decode(raw: bytes, instructions: bool = True) -> Records:
    """The records in a stream of raw bytes. Nothing in it is an error. `instructions` false is for a run without
    instruction points, in which regions have ten bits of number."""
    torn = len(raw) % RECORD
    words = np.frombuffer(raw, "<u2", count=(len(raw) - torn) // 2).astype(np.int64).reshape(-1, 2)
    nibble, value = words[:, 1] >> 12, words[:, 1] & 0xFFF
    lanes = np.full(16, -1, np.int64)
    for key, lane in PIPE_OF.items():
        lanes[key] = lane
    lane = lanes[nibble]
    event = np.select(
        [nibble == STATE, lane < 0, value & PAIR_BIT == 0],
        [Event.STATE, Event.UNKNOWN, Event.STAMP],
        Event.REGION + (value >> 11),
    )
    number = np.where(value & PAIR_BIT != 0, value & 0x3FF, value)
    pair = (event == Event.REGION) | (event == Event.REGION_END)
    if instructions:
        timed = pair & (value & INSTRUCTION_BITS == INSTRUCTION_BITS)
        event[timed] = Event.INSTRUCTION + (value[timed] >> 11)
        number[timed] = value[timed] & 0x1FF
    final = _final(event, value)
    event[final], number[final] = Event.FINAL, value[final]
    number[event == Event.STATE] = value[event == Event.STATE]
    carried = (event == Event.STATE) & (words[:, 0] == CARRY)
    unknown = int((event == Event.UNKNOWN).sum())
    return Records(np.cumsum(words[:, 0]), event.astype(np.int64), lane, number, unknown, int(carried.sum()), torn)


def _final(event: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The records of the points that end the stream: only the last points are, and only all of them in order. A region
    of the user's may well have one of their numbers."""
    points = np.flatnonzero((event != Event.STATE) & (event != Event.UNKNOWN))
    last = points[-len(FINAL) :]
    return last if tuple(value[last].tolist()) == FINAL else points[:0]


def encode(cycle: np.ndarray, nibble: np.ndarray, value: np.ndarray) -> bytes:
    """A stream from events in the order of time, (events,) each: when, the kind's four bits, the twelve bits. Where
    more cycles pass than a record can count, records that repeat the last state carry the time over."""
    delta = np.diff(cycle, prepend=0)
    carries = delta // CARRY
    total = int(cycle.size + carries.sum())
    words = np.zeros((total, 2), "<u2")
    place = np.arange(cycle.size) + np.cumsum(carries)
    state = np.maximum.accumulate(np.where(nibble == STATE, np.arange(cycle.size), -1)) if cycle.size else cycle
    before = np.concatenate(([-1], state[:-1])) if cycle.size else state
    mask = np.where(before >= 0, value[np.maximum(before, 0)], 0) if cycle.size else value
    words[:, 0] = CARRY
    words[:, 1] = STATE << 12 | np.repeat(mask, carries + 1)
    words[place, 0] = delta - carries * CARRY
    words[place, 1] = nibble << 12 | value
    return words.tobytes()


@dataclass(frozen=True, slots=True)
class Channel:
    """The stream of one core: `kind` 0 is its cube, 1 and 2 its vector cores."""

    core: int
    kind: int
    raw: bytes

    @property
    def name(self) -> str:
        """The vendor's name of the core."""
        return f"core{self.core}.{('cubecore0', 'veccore0', 'veccore1')[self.kind]}"


def channels(raw: bytes, block: int = BLOCK) -> Iterator[Channel]:
    """The streams in a file: blocks of a head (core, kind, bytes in use; 16, 16 and 32 bits) and `block` bytes. A
    core's blocks are joined; one of an unknown kind is left out, one that the file's end cuts short keeps what is
    there."""
    streams: dict[tuple[int, int], list[bytes]] = {}
    for at in range(0, len(raw) - 7, 8 + block):
        core, kind = (int.from_bytes(raw[at + place : at + place + 2], "little") for place in (0, 2))
        used = min(int.from_bytes(raw[at + 4 : at + 8], "little"), block)
        if kind <= 2:
            streams.setdefault((core, kind), []).append(raw[at + 8 : at + 8 + used])
    for (core, kind), parts in sorted(streams.items()):
        yield Channel(core, kind, b"".join(parts))
