"""The `mstx` module that a script gets."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from npuscope.frontends.host_ranges import Ranges, supply_mstx


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranges]:
    """Supplied to this process until the test is over."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "mstx", raising=False)
    found = Ranges()
    supply_mstx(found)
    yield found
    sys.modules.pop("mstx", None)


def test_ranges_open_and_close(ranges: Ranges) -> None:
    """Numbers from 1 on; ranges may overlap; what is no range is let pass; marks hold nothing."""
    import mstx

    assert mstx.range_start("a") == 1 and mstx.range_start("b", None) == 2
    assert mstx.range_start("c", stream=None, domain="d") == 3
    assert ranges.messages == ("a", "b", "c")
    mstx.range_end(2)
    mstx.range_end(2)
    mstx.range_end(9)
    mstx.mark("m", None)
    assert ranges.messages == ("a", "c")
    assert mstx.range_start("") == 0 and mstx.range_start(None) == 0  # the vendor's sign of failure


def test_a_block_and_a_decorator(ranges: Ranges) -> None:
    """As torch_npu has it; closed also where something is raised."""
    import mstx

    seen = []

    @mstx.mstx_range("call")
    def called() -> None:
        seen.append(ranges.messages)

    called()
    with pytest.raises(KeyError), mstx.mstx_range("block"):
        seen.append(ranges.messages)
        raise KeyError
    assert seen == [("call",), ("block",)] and ranges.messages == ()


def test_a_later_session_has_its_own(ranges: Ranges) -> None:
    """The module is supplied anew."""
    import mstx

    mstx.range_start("old")
    second = Ranges()
    supply_mstx(second)
    import mstx as again

    again.range_start("new")
    assert ranges.messages == ("old",) and second.messages == ("new",)
