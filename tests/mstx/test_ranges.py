"""The `mstx` module that a script gets, and who is told of its calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from npuscope import mstx as ours
from npuscope.mstx import calls
from npuscope.mstx.module import supply_missing_mstx, supply_mstx
from npuscope.mstx.ranges import END, MARK, START, Ranges, listen
from npuscope.mstx.supply import supply, withdraw


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranges]:
    """Supplied to this process until the test is over."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "mstx", raising=False)
    before, found = calls.current(), Ranges()
    supply_mstx(found)
    yield found
    listen(None)
    calls.use(before)
    sys.modules.pop("mstx", None)


@pytest.fixture
def heard(ranges: Ranges) -> list[tuple[Any, ...]]:
    """What the listener was told."""
    told: list[tuple[Any, ...]] = []
    listen(lambda *what: told.append(what))
    return told


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


def test_the_vendors_names_for_arguments(ranges: Ranges) -> None:
    """As in the tests of the vendor's `mstx` and in the documentation of `torch_npu.npu.mstx`."""
    import mstx

    mstx.range_end(rangeId=mstx.range_start(message="a", stream=1))
    mstx.range_end(range_id=mstx.range_start("b", domain="d"), domain="d")
    assert ranges.messages == () and mstx.mark(message="m", stream=1) is None and mstx.get_tool_id() == 0


def test_annotate(ranges: Ranges) -> None:
    """As a decorator without a message it takes the function's name; it may be entered again while it is open."""
    import mstx

    seen = []

    @mstx.annotate()
    def fall(depth: int) -> int:
        """Doc."""
        seen.append(ranges.messages)
        return fall(depth - 1) if depth else 7

    assert fall(1) == 7 and fall.__doc__ == "Doc." and seen == [("fall",), ("fall", "fall")]
    block = mstx.annotate("block")
    with block, block:
        assert ranges.messages == ("block", "block")
    assert ranges.messages == ()


def test_who_listens_is_told(heard: list[tuple[Any, ...]]) -> None:
    """The end comes with what the start said; what is refused, or stands for no range, is not told."""
    import mstx

    number = mstx.range_start("a", None, "mine")
    mstx.mark("m")
    mstx.range_end(number)
    mstx.range_end(number)
    mstx.mark("")
    mstx.range_start(None)
    assert heard == [
        (START, 1, "a", "mine", None), (MARK, 2, "m", "default", None), (END, 1, "a", "mine", None)
    ]  # fmt: skip


def test_a_range_may_end_in_another_thread(heard: list[tuple[Any, ...]]) -> None:
    number = ours.range_start("handed over")
    thread = threading.Thread(target=ours.range_end, args=(number,))
    thread.start()
    thread.join()
    assert [told[0] for told in heard] == [START, END]


def test_numbers_are_used_once(ranges: Ranges) -> None:
    """Also where threads open ranges at the same time."""
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.extend([ours.range_start("x") for _ in range(2000)])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 8001)) and len(ranges.messages) == 8000


def test_the_vendors_module_is_left_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The monitor gives a module only where there is none; a checked run gives its own in any case."""
    others = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("npuscope")]
    monkeypatch.setattr(sys, "meta_path", others)
    monkeypatch.delitem(sys.modules, "mstx", raising=False)
    (tmp_path / "mstx.py").write_text("vendor = True")
    monkeypatch.syspath_prepend(tmp_path)
    supply_missing_mstx()
    import mstx

    assert mstx.vendor
    before = calls.current()
    del sys.modules["mstx"]
    supply_mstx(Ranges())
    import mstx as again

    assert not hasattr(again, "vendor") and again.range_start("a") == 1
    calls.use(before)
    sys.modules.pop("mstx", None)


def test_a_module_is_given_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    supply("no_such_module_here", lambda name: type(sys)(name, "made"))
    import no_such_module_here

    assert no_such_module_here.__doc__ == "made"
    withdraw("no_such_module_here")
    with pytest.raises(ImportError):
        __import__("no_such_module_here")
