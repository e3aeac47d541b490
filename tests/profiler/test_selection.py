"""Groups and launches: what is chosen (opprof.md 1.4, 1.6)."""

from __future__ import annotations

import pytest

from npuscope.errors import UserError
from npuscope.npu.chip import load_chip
from npuscope.profiler.choice import Choice
from npuscope.profiler.selection import A2, A5, P310, TABLES, Refused, columns_of, select


@pytest.mark.parametrize(
    ("names", "tables"),
    [
        ([], TABLES), (["Default"], TABLES), (["BasicInfo"], ()), (["MemoryUB", "L2Cache"], ("L2Cache", "MemoryUB")),
        (["Roofline"], TABLES), (["MemoryDetail"], TABLES), (["KernelScale"], TABLES),
        (["KernelScale", "Memory"], ("Memory",)), (["Occupancy"], ()), (["basic", "Memory"], ("Memory",)),
    ],
)  # fmt: skip
def test_tables(names: list[str], tables: tuple[str, ...]) -> None:
    """Those of the groups, OpBasicInfo always, in the order of the specification."""
    assert select(names, A2).tables == ("OpBasicInfo", *tables)


def test_what_a_group_brings() -> None:
    """Implications, and what the simulator hides."""
    assert select(["PCSAMPLING"], A5).source and select(["pcsampling"], A5).stalls
    assert select(["TimelineDetail"], A2).simulated_timeline and not select([], A2).simulated_timeline
    assert not select(["BasicInfo"], A2).counters and select(["BasicInfo", "Memory"], A2).counters
    everything = select([], A2, simulator=True)
    assert everything.waits and everything.throughput and everything.source and everything.tables == ()
    alone = select(["PipeUtilization"], A2, simulator=True)
    assert not alone.waits and not alone.throughput
    assert select(["PipeUtilization", "ResourceConflictRatio"], A2, simulator=True).waits
    assert select(["PMSampling"], A5, simulator=True).throughput


@pytest.mark.parametrize(
    ("names", "kind", "simulator"),
    [
        (["Occupancy"], P310, False), (["PipeTimeline"], A2, False), (["PMSampling"], P310, True),
        (["PipeTimeline", "InstrTimeline"], A5, False), ([""], A2, False), (["TimelineDetail"], A2, True),
    ],
)  # fmt: skip
def test_what_is_refused(names: list[str], kind: str, simulator: bool) -> None:
    """Groups of other chips and modes, and two that exclude each other."""
    with pytest.raises(Refused):
        select(names, kind, simulator)


def test_kinds_of_chips() -> None:
    """By architecture."""
    kinds = {
        name: columns_of(load_chip(name))
        for name in ("Ascend910B1", "Ascend910_9391", "Ascend950PR_9599", "Ascend310P3")
    }
    assert list(kinds.values()) == [A2, A2, A5, P310]


@pytest.mark.parametrize(
    ("names", "fits", "other"),
    [
        ("", "anything", None), ("add", "add_custom", "my_add"), ("a*c", "add_custom", "bad_c"), ("*mul", "matmul_kernel", "add"),
        ("add|mul*x", "mul_1x", "mulls"), ("regex:^a.d$", "add", "added"), ("regex:k|l", "kernel", "ade"),
    ],
)  # fmt: skip
def test_names(names: str, fits: str, other: str | None) -> None:
    """Prefixes with wildcards, and expressions."""
    assert Choice(names).fits(fits)
    assert other is None or not Choice(names).fits(other)


def test_ranges_and_a_bad_expression() -> None:
    """No ranges asked for, any range, named ones."""
    assert Choice().inside(()) and not Choice(ranges=()).inside(()) and Choice(ranges=()).inside(("x",))
    assert Choice(ranges=("a", "b")).inside(("x", "b")) and not Choice(ranges=("a",)).inside(("x",))
    with pytest.raises(UserError):
        Choice("regex:(")
