"""Locations: every form of `loc(...)`, whose frames count as the user's, and what an op without one inherits."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from npuscope.mlir import UNKNOWN, Frame, Location, MlirSyntaxError, Op, inherit_locations, parse_module, user_frames
from npuscope.mlir.location import NameMeaning

ALIASES = """
#l = loc("al.py":4:2)
#named = loc("outer"(#l))
#call = loc(callsite(#l at #top))
#top = loc("k.py":9:5)
#pair = loc(fused[#lib, #top])
#lib = loc("/dsl/add.py":2:1)
#self = loc("s"(#self))
"""


def in_library(file: str) -> bool:
    """Whether the file belongs to the front end of these tests."""
    return file.startswith("/dsl/")


def nothing(file: str) -> bool:
    """No file belongs to a front end."""
    return file == ""


def location_of(text: str, names: NameMeaning = "variable") -> Location:
    """The location of one op written with `text`."""
    module = parse_module(f'"builtin.module"() ({{\n  "t.a"() : () -> () {text}\n}}) : () -> ()\n{ALIASES}', names=names)
    return module.regions[0].blocks[0].operations[0].location


def places(frames: Iterable[Frame]) -> list[tuple[str, int]]:
    """File and line of each frame."""
    return [(frame.file, frame.line) for frame in frames]


@pytest.mark.parametrize(
    ("text", "frames", "names"),
    [
        ('loc("k.py":7:3)', [("k.py", 7)], ()),
        ('loc("k.py":7:3 to 8:12)', [("k.py", 7)], ()),
        ('loc("k.py":7:3 to :12)', [("k.py", 7)], ()),
        ('loc( "k.py" : 7 : 3 )', [("k.py", 7)], ()),
        ('loc("x"("k.py":7:3))', [("k.py", 7)], ("x",)),
        ('loc("x"("y"("k.py":7:3)))', [("k.py", 7)], ("x", "y")),
        ('loc("ffts_addr")', [], ("ffts_addr",)),
        ('loc("x"(unknown))', [], ("x",)),
        ('loc(callsite("h.py":2:1 at "k.py":9:5))', [("h.py", 2), ("k.py", 9)], ()),
        ('loc(callsite("h.py":2:1 at callsite("m.py":3:1 at "k.py":9:5)))', [("h.py", 2), ("m.py", 3), ("k.py", 9)], ()),
        ('loc(callsite(callsite("h.py":2:1 at "m.py":3:1) at "k.py":9:5))', [("h.py", 2), ("m.py", 3), ("k.py", 9)], ()),
        ('loc(callsite("a"("h.py":2:1) at "b"("k.py":9:5)))', [("h.py", 2), ("k.py", 9)], ("a", "b")),
        ('loc(callsite(unknown at "k.py":9:5))', [("k.py", 9)], ()),
        ('loc(callsite("h.py":2:1 at unknown))', [("h.py", 2)], ()),
        ("loc(unknown)", [], ()),
        ("", [], ()),
        ("loc(#l)", [("al.py", 4)], ()),
        ("loc(#named)", [("al.py", 4)], ("outer",)),
        ('loc("x"(#named))', [("al.py", 4)], ("x", "outer")),
        ("loc(#call)", [("al.py", 4), ("k.py", 9)], ()),
        ('loc(loc("k.py":7:3))', [("k.py", 7)], ()),
        ('loc(fused["a.py":1:1, "b.py":2:1])', [("a.py", 1)], ()),
        ('loc(fused<"meta)>">[unknown, "n", "x"("b.py":2:1)])', [("b.py", 2)], ("x",)),
        ("loc(fused<#di.sub<a = [1]>>[#l])", [("al.py", 4)], ()),
        ("loc(fused[])", [], ()),
        (r'loc("a\\b\22\C3\A4(1).py":1:1)', [('a\\b"ä(1).py', 1)], ()),
    ],
)
def test_forms(text: str, frames: list[tuple[str, int]], names: tuple[str, ...]) -> None:
    """Innermost frame first, outermost name first."""
    location = location_of(text)
    assert places(location.frames) == frames
    assert places(user_frames(location, nothing)) == frames
    assert location.names == names


def test_a_frame_has_line_and_column() -> None:
    """As they stand in the text; the function is not known."""
    assert location_of('loc("k.py":7:3)').frames == (Frame("k.py", 7, 3),)
    assert Frame("k.py", 7, 3).function is None


def test_names_as_functions() -> None:
    """Where a front end writes the enclosing function around a position; other names stay names."""
    location = location_of('loc("v"(callsite("helper"("h.py":2:1) at "kernel"("k.py":9:5))))', "function")
    assert location.frames == (Frame("h.py", 2, 1, "helper"), Frame("k.py", 9, 5, "kernel"))
    assert location.names == ("v",)


def test_library_frames_do_not_count() -> None:
    """The innermost frame outside the DSL's own files is the user's; its callers stay."""
    location = location_of('loc(callsite("/dsl/add.py":2:1 at callsite("help.py":3:1 at "k.py":9:5)))')
    assert places(user_frames(location, in_library)) == [("help.py", 3), ("k.py", 9)]
    assert places(location.frames) == [("/dsl/add.py", 2), ("help.py", 3), ("k.py", 9)]
    assert user_frames(location_of("loc(#lib)"), in_library) == ()


def test_of_a_fused_location_the_first_one_of_the_user_counts() -> None:
    """Also where it is a callee or a caller; the alternatives are no callers of each other."""
    fused = location_of("loc(#pair)")
    assert places(fused.frames) == [("/dsl/add.py", 2)]
    assert places(user_frames(fused, in_library)) == [("k.py", 9)]
    callee = location_of('loc(callsite(#pair at "m.py":1:1))')
    assert places(user_frames(callee, nothing)) == [("/dsl/add.py", 2), ("m.py", 1)]
    assert places(user_frames(location_of('loc(fused["/dsl/a.py":1:1, #call])'), in_library)) == [("al.py", 4), ("k.py", 9)]
    caller = location_of('loc(callsite("/dsl/x.py":5:1 at #pair))')
    assert places(user_frames(caller, in_library)) == [("k.py", 9)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("loc(#absent)", "location #absent is not defined"),
        ("loc(#self)", "locations are nested deeper than"),
        ("loc(" + '"n"(' * 300 + "unknown" + ")" * 301, "locations are nested deeper than"),
        ("loc(nowhere)", r"expected a location, found 'nowhere\)'"),
        ("loc()", r"expected a location, found '\)'"),
        ('loc("k.py":7:3 4)', r"expected '\)' after a location, found '4\)'"),
        ('loc(callsite("k.py":7:3))', "expected 'at' of a call site"),
        ('loc(callsite("k.py":7:3 at "k.py":8:3 5))', r"expected '\)' after a location"),
        ("loc(fused(unknown))", r"expected '\[' of a fused location"),
        ('loc(fused["k.py":7:3 "k.py":8:3])', r"expected ',' or '\]' in a fused location"),
    ],
)
def test_errors(text: str, problem: str) -> None:
    """They name the line of the text."""
    with pytest.raises(MlirSyntaxError, match=problem) as caught:
        location_of(text)
    assert "\n" not in str(caught.value)


def ops_by_name(module: Op) -> dict[str, Op]:
    """All ops of a module whose names are unique."""
    return {op.name: op for op in module.walk()}


def test_an_operation_without_a_position_takes_the_one_before_it() -> None:
    """In its block: the previous located op; at the front: the enclosing op, or the next when that has none."""
    module = parse_module(
        """"builtin.module"() ({
  "t.front"() : () -> () loc(unknown)
  "t.front2"() : () -> () loc("/dsl/x.py":3:1)
  "t.a"() : () -> () loc("k.py":5:1)
  "t.between"() : () -> () loc("/dsl/x.py":1:1)
  "t.outer"() ({
    "t.inner"() : () -> () loc(unknown)
    "t.deep"() ({
      "t.deepest"() : () -> ()
    }, {
      "t.other"() : () -> ()
    ^bb1:
      "t.own"() : () -> () loc("k.py":10:1)
      "t.after"() : () -> ()
    ^bb2:
      "t.fresh"() : () -> ()
    }) : () -> () loc(unknown)
    "t.late"() : () -> () loc("k.py":9:1)
  }) : () -> () loc("k.py":8:1)
  "t.last"() : () -> () loc(unknown)
}) : () -> () loc(unknown)"""
    )
    inherit_locations(module, in_library)
    lines = {name: [frame.line for frame in user_frames(op.location, in_library)] for name, op in ops_by_name(module).items()}
    assert lines == {
        "builtin.module": [],
        "t.front": [5],
        "t.front2": [5],
        "t.a": [5],
        "t.between": [5],
        "t.outer": [8],
        "t.inner": [8],
        "t.deep": [8],
        "t.deepest": [8],
        "t.other": [8],
        "t.own": [10],
        "t.after": [10],
        "t.fresh": [8],
        "t.late": [9],
        "t.last": [8],
    }


def test_what_is_inherited_is_the_whole_chain_but_not_the_names() -> None:
    """A constant between two assignments is not the variable of the one before it."""
    module = parse_module(
        """"builtin.module"() ({
  %0 = "t.a"() : () -> i32 loc("x"(callsite("h.py":2:1 at "k.py":5:1)))
  %1 = "t.b"() : () -> i32 loc(unknown)
  %2 = "t.c"() : () -> i32 loc("y")
}) : () -> ()"""
    )
    inherit_locations(module, in_library)
    ops = ops_by_name(module)
    for name, names in (("t.a", ("x",)), ("t.b", ()), ("t.c", ("y",))):
        assert places(ops[name].location.frames) == [("h.py", 2), ("k.py", 5)]
        assert ops[name].location.names == names


def test_where_nothing_is_located_nothing_changes() -> None:
    """And a location that knows only a library keeps it."""
    module = parse_module('"builtin.module"() ({\n  "t.a"() : () -> ()\n  "t.b"() : () -> () loc("/dsl/x.py":1:1)\n}) : () -> ()')
    inherit_locations(module, in_library)
    ops = ops_by_name(module)
    assert ops["t.a"].location == UNKNOWN
    assert places(ops["t.b"].location.frames) == [("/dsl/x.py", 1)]
