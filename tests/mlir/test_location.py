"""Locations: every form of `loc(...)`, whose frames count as the user's, and what an op without one inherits."""

from __future__ import annotations

import pytest

from npuscope.mlir import UNKNOWN, Frame, inherit_locations, parse_module, user_frames


def location_of(text: str) -> object:
    """The location of one op written with `text`."""
    module = parse_module(f'"builtin.module"() ({{\n  "t.a"() : () -> () {text}\n}}) : () -> ()\n#l = loc("al.py":4:2)')
    return module.regions[0].blocks[0].operations[0].location


@pytest.mark.parametrize(
    ("text", "frames", "names"),
    [
        ('loc("k.py":7:3)', [("k.py", 7)], ()),
        ('loc("x"("k.py":7:3))', [("k.py", 7)], ("x",)),
        ('loc(callsite("h.py":2:1 at "k.py":9:5))', [("h.py", 2), ("k.py", 9)], ()),
        ('loc(callsite("h.py":2:1 at callsite("m.py":3:1 at "k.py":9:5)))', [("h.py", 2), ("m.py", 3), ("k.py", 9)], ()),
        ("loc(unknown)", [], ()),
        ("loc(#l)", [("al.py", 4)], ()),
        ('loc(fused["a.py":1:1, "b.py":2:1])', [("a.py", 1)], ()),
        ('loc(fused<"meta">[unknown, "b.py":2:1])', [("b.py", 2)], ()),
    ],
)
def test_forms(text: str, frames: list[tuple[str, int]], names: tuple[str, ...]) -> None:
    """Innermost frame first."""
    location = location_of(text)
    found = user_frames(location, lambda file: False)
    assert [(frame.file, frame.line) for frame in found] == frames
    assert location.names == names


def test_library_frames_do_not_count() -> None:
    """The innermost frame outside the DSL's own files is the user's; its callers stay."""
    location = location_of('loc(callsite("/dsl/add.py":2:1 at callsite("help.py":3:1 at "k.py":9:5)))')
    frames = user_frames(location, lambda file: file.startswith("/dsl/"))
    assert [(frame.file, frame.line) for frame in frames] == [("help.py", 3), ("k.py", 9)]


def test_an_operation_without_a_position_takes_the_one_before_it() -> None:
    """In its block: the previous located op; at the front: the next; in an empty-handed block: the enclosing op."""
    module = parse_module(
        '''"builtin.module"() ({
  "t.front"() : () -> () loc(unknown)
  "t.a"() : () -> () loc("k.py":5:1)
  "t.between"() : () -> () loc("/dsl/x.py":1:1)
  "t.outer"() ({
    "t.inner"() : () -> () loc(unknown)
  }) : () -> () loc("k.py":8:1)
}) : () -> () loc(unknown)'''
    )
    inherit_locations(module, lambda file: file.startswith("/dsl/"))
    lines = {
        op.name: [frame.line for frame in user_frames(op.location, lambda file: file.startswith("/dsl/"))]
        for op in module.walk()
    }
    assert lines["t.front"] == [5]
    assert lines["t.between"] == [5]
    assert lines["t.inner"] == [8]


def test_unknown_has_no_frames() -> None:
    """And compares equal to itself alone."""
    assert UNKNOWN.frames == ()
    assert Frame("k.py", 1, 2) != Frame("k.py", 1, 3)
