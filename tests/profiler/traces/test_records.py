"""The decoder of on-board records: every kind made by hand (opprof.md 3.6, T47)."""

import struct

import numpy as np
import pytest

from npuscope.profiler.instruction_timeline.records import (
    FINAL,
    STATE,
    Event,
    channels,
    decode,
    encode,
)
from npuscope.trace.timeline import Lane


def raw(*records):
    """Records of (cycles, top four bits, low twelve bits)."""
    return b"".join(struct.pack("<HH", cycles, nibble << 12 | value) for cycles, nibble, value in records)


def told(records):
    return list(zip(records.cycle.tolist(), records.event.tolist(), records.lane.tolist(), records.number.tolist(), strict=True))


def test_a_state_is_a_mask_of_the_pipes() -> None:
    found = decode(raw((5, 15, 0b0000010), (7, 15, 0b1110101), (1, 15, 0)))
    assert told(found) == [(5, Event.STATE, -1, 2), (12, Event.STATE, -1, 0b1110101), (13, Event.STATE, -1, 0)]


@pytest.mark.parametrize(
    ("nibble", "lane"),
    [(0, Lane.SCALAR), (1, Lane.VECTOR), (2, Lane.CUBE), (3, Lane.MTE1), (4, Lane.MTE2), (5, Lane.MTE3), (10, Lane.FIXP)],
)
def test_points_of_every_pipe(nibble, lane) -> None:
    found = decode(raw((3, nibble, 0x600 | 17), (4, nibble, 0xE00 | 17)))
    assert told(found) == [(3, Event.INSTRUCTION, lane, 17), (7, Event.INSTRUCTION_END, lane, 17)]


def test_the_users_own_points() -> None:
    found = decode(raw((1, 1, 0x3FF), (1, 1, 0x800 | 5), (1, 1, 0x400 | 9), (1, 1, 0xC00 | 9)))
    assert [row[1:] for row in told(found)] == [
        (Event.STAMP, Lane.VECTOR, 0x3FF), (Event.STAMP, Lane.VECTOR, 0x805), (Event.REGION, Lane.VECTOR, 9),
        (Event.REGION_END, Lane.VECTOR, 9),
    ]  # fmt: skip


def test_regions_have_ten_bits_where_no_instructions_are_timed() -> None:
    found = decode(raw((1, 4, 0x400 | 1023), (1, 4, 0xC00 | 1023)), instructions=False)
    assert [row[1:] for row in told(found)] == [(Event.REGION, Lane.MTE2, 1023), (Event.REGION_END, Lane.MTE2, 1023)]


def test_unknown_kinds_are_counted_and_take_their_time() -> None:
    found = decode(raw((10, 15, 1), *((1, nibble, 0x123) for nibble in (6, 7, 8, 9, 11, 12, 13, 14)), (2, 15, 0)))
    assert found.unknown == 8 and told(found.only(Event.STATE)) == [(10, Event.STATE, -1, 1), (20, Event.STATE, -1, 0)]


def test_time_that_overflows_a_record_is_carried() -> None:
    found = decode(raw((0xFFFF, 15, 3), (0xFFFF, 15, 3), (2, 15, 0)))
    assert found.carried == 2 and found.cycle[-1] == 2 * 0xFFFF + 2


def test_the_points_that_end_a_stream() -> None:
    found = decode(raw((4, 1, 0x600), (4, 1, 0xE00), *((1, 0, number) for number in FINAL), (1, 15, 0)))
    assert found.event.tolist() == [Event.INSTRUCTION, Event.INSTRUCTION_END, *[Event.FINAL] * 8, Event.STATE]
    assert found.only(Event.FINAL).number.tolist() == [0xD88, 0xD99, 0xDAA, 0xDBB, 0xDCC, 0xDDD, 0xDEE, 0xDFF]


def test_a_users_region_may_have_the_number_of_such_a_point() -> None:
    found = decode(raw((1, 0, 0x400 | 0x188), (1, 0, 0xD88), *((1, 0, number) for number in FINAL[1:7])))
    assert found.event.tolist()[:2] == [Event.REGION, Event.REGION_END] and Event.FINAL not in found.event


def test_bytes_that_are_no_record() -> None:
    found = decode(raw((1, 15, 1)) + b"\x01\x02\x03")
    assert len(found) == 1 and found.torn == 3
    assert len(decode(b"")) == 0


def test_what_was_encoded_is_decoded() -> None:
    generator = np.random.default_rng(5)
    cycle = np.sort(generator.integers(0, 3_000_000, 400))
    nibble = generator.choice([0, 1, 2, 3, 4, 5, 10, STATE], 400)
    value = np.where(nibble == STATE, generator.integers(0, 128, 400), 0x600 | generator.integers(0, 512, 400))
    found = decode(encode(cycle, nibble, value))
    kept = ~((found.event == Event.STATE) & np.isin(np.arange(len(found)), _carriers(cycle)))
    assert found.cycle[kept].tolist() == cycle.tolist()
    assert found.number[kept].tolist() == np.where(nibble == STATE, value, value & 0x1FF).tolist()
    assert found.carried == len(_carriers(cycle))


def _carriers(cycle):
    """The places of the records that only carry time over: as many before each event as full counts fit."""
    places, at = [], 0
    for gap in np.diff(cycle, prepend=0).tolist():
        places += range(at, at + gap // 0xFFFF)
        at += gap // 0xFFFF + 1
    return places


def test_a_carrier_repeats_the_state() -> None:
    found = decode(encode(np.array([1, 200_000]), np.array([STATE, STATE]), np.array([5, 0])))
    assert found.number.tolist() == [5, 5, 5, 5, 0] and found.cycle.tolist()[-1] == 200_000


def test_a_file_holds_the_streams_of_several_cores() -> None:
    def block(core, kind, content, used=None):
        return struct.pack("<HHI", core, kind, len(content) if used is None else used) + content.ljust(64, b"\xff")

    one, two = raw((1, 15, 1)), raw((2, 15, 2))
    data = block(3, 1, one) + block(0, 0, two) + block(3, 1, two) + block(1, 7, one) + block(2, 2, one)[:12]
    found = {channel.name: channel.raw for channel in channels(data, 64)}
    assert found == {"core0.cubecore0": two, "core2.veccore1": one, "core3.veccore0": one + two}
