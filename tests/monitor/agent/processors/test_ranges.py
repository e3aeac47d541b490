"""Ranges out of their two ends."""

from __future__ import annotations

from processor_records import Maker

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Flag, Side
from npuscope.monitor.agent.processors.ranges import Ranges, instants, of_side


def halves(maker: Maker, *rows: tuple[str, int, int]) -> Batch:
    flags = {"start": Flag.START, "end": Flag.END, "mark": Flag.INSTANT}
    return maker.marks(*((flags[what], Side.HOST, time, number, what, "") for what, number, time in rows))


def pairs(ranges: Ranges, batch: Batch) -> list[tuple[int, int, int]]:
    starts, ends = ranges.pair(batch)
    assert starts["id"].tolist() == ends["id"].tolist()
    return list(zip(starts["id"].tolist(), starts["time"].tolist(), ends["time"].tolist(), strict=True))


def test_nested_and_crossing_ranges() -> None:
    batch = halves(
        Maker(), ("start", 1, 10), ("start", 2, 20), ("end", 2, 30), ("start", 3, 40), ("end", 1, 50), ("end", 3, 60)
    )
    assert pairs(Ranges(), batch) == [(2, 20, 30), (1, 10, 50), (3, 40, 60)]


def test_the_end_may_come_in_a_later_round() -> None:
    maker, ranges = Maker(), Ranges()
    assert pairs(ranges, halves(maker, ("start", 1, 10))) == []
    assert ranges.open == 1
    assert pairs(ranges, halves(maker, ("mark", 5, 11))) == []
    assert pairs(ranges, halves(maker, ("end", 1, 90))) == [(1, 10, 90)]
    assert ranges.open == 0


def test_the_end_may_come_one_round_before_its_start() -> None:
    """Each thread delivers its own records, and a range may end in another thread than it started in."""
    maker, ranges = Maker(), Ranges()
    assert pairs(ranges, halves(maker, ("end", 1, 90))) == []
    assert pairs(ranges, halves(maker, ("start", 1, 10))) == [(1, 10, 90)]


def test_an_end_without_a_start_is_forgotten() -> None:
    maker, ranges = Maker(), Ranges()
    assert pairs(ranges, halves(maker, ("end", 1, 90))) == []
    assert pairs(ranges, halves(maker, ("mark", 5, 11))) == []
    assert pairs(ranges, halves(maker, ("start", 1, 100))) == []
    assert ranges.open == 1


def test_an_id_that_is_used_again() -> None:
    batch = halves(Maker(), ("start", 1, 10), ("end", 1, 20), ("start", 1, 30), ("end", 1, 40), ("start", 1, 50))
    ranges = Ranges()
    assert pairs(ranges, batch) == [(1, 10, 20), (1, 30, 40)]
    assert ranges.open == 1


def test_starts_without_an_end_are_bounded() -> None:
    ranges = Ranges(most_open=10)
    maker = Maker()
    assert pairs(ranges, halves(maker, *(("start", number, number) for number in range(25)))) == []
    assert (ranges.open, ranges.given_up) == (10, 15)
    assert pairs(ranges, halves(maker, ("end", 14, 99), ("end", 15, 99))) == [(15, 15, 99)]


def test_sides_and_moments() -> None:
    batch = Maker().four()
    assert of_side(batch, Side.DEVICE)["time"].tolist() == [110, 170]
    assert len(instants(batch)) == 0
    assert instants(halves(Maker(), ("start", 1, 10), ("mark", 2, 20)))["time"].tolist() == [20]
