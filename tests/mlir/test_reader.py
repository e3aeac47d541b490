"""The reader of generic MLIR text: every production of the grammar, scoping of names, aliases, errors with a position."""

from __future__ import annotations

import random

import pytest

from npuscope.errors import UserError
from npuscope.mlir import Block, Frame, MlirSyntaxError, Op, parse_module
from npuscope.mlir.location import UNKNOWN

KERNEL = """\
#loc = loc(unknown)
#loc1 = loc("scale.py":7:0)
#loc4 = loc("x"(#loc1))
// what MLIR prints for a module that has a block argument
"builtin.module"() ({
^bb0(%arg0: i32 loc(unknown)):
  "func.func"() <{function_type = (memref<?xf32, 22>, i32) -> (), sym_name = "scale"}> ({
  ^bb0(%arg1: memref<?xf32, 22> loc(#loc4), %arg2: i32 loc("n"(#loc1))):
    %0 = "arith.constant"() <{value = 64 : i32}> : () -> i32 loc(#loc)
    %1 = "arith.cmpi"(%arg2, %0) <{predicate = 2 : i64}> : (i32, i32) -> i1 loc(#loc2)
    %2:2 = "scf.if"(%1) ({
      %3 = "arith.muli"(%arg2, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc3)
      "scf.yield"(%3, %0) : (i32, i32) -> () loc(#loc3)
    }, {
      %3 = "arith.subi"(%0, %arg2) : (i32, i32) -> i32 loc(#loc3)
      "scf.yield"(%0, %3) : (i32, i32) -> () loc(#loc3)
    }) : (i1) -> (i32, i32) loc(#loc2)
    "toy.use"(%2#0, %2#1, %arg1) {asc.flag, note = "a } \\"quote\\" (->"} : (i32, i32, memref<?xf32, 22>) -> () loc(#loc3)
    "func.return"() : () -> () loc(#loc)
  }) {ascendc.aicore, ascendc.global} : () -> () loc(#loc1)
}) : () -> () loc(#loc)
#loc2 = loc("scale.py":9:4)
#loc3 = loc("y"("scale.py":10:8))
"""


def module_of(body: str, after: str = "") -> Op:
    """A module around `body`."""
    return parse_module(f'"builtin.module"() ({{\n{body}\n}}) : () -> ()\n{after}')


def body_of(module: Op) -> list[Op]:
    """The ops of a module with one block."""
    (region,) = module.regions
    (block,) = region.blocks
    return block.operations


def named(module: Op, name: str) -> Op:
    """The first op of that name."""
    return next(op for op in module.walk() if op.name == name)


def failure(text: str) -> MlirSyntaxError:
    """The error that reading `text` raises."""
    with pytest.raises(MlirSyntaxError) as caught:
        parse_module(text)
    return caught.value


def test_walk_is_in_the_order_of_the_text() -> None:
    names = [op.name for op in parse_module(KERNEL).walk()]
    assert names == [
        "builtin.module",
        "func.func",
        "arith.constant",
        "arith.cmpi",
        "scf.if",
        "arith.muli",
        "scf.yield",
        "arith.subi",
        "scf.yield",
        "toy.use",
        "func.return",
    ]


def test_the_argument_of_the_module_is_dropped_and_those_of_the_kernel_stay() -> None:
    module = parse_module(KERNEL)
    assert module.regions[0].blocks[0].arguments == []
    arguments = named(module, "func.func").regions[0].blocks[0].arguments
    assert [(value.name, value.type, value.hint) for value in arguments] == [
        ("%arg1", "memref<?xf32, 22>", "x"),
        ("%arg2", "i32", "n"),
    ]


def test_operands_are_the_very_values_that_were_defined() -> None:
    module = parse_module(KERNEL)
    arguments = named(module, "func.func").regions[0].blocks[0].arguments
    constant, compare = named(module, "arith.constant"), named(module, "arith.cmpi")
    assert compare.operands[0] is arguments[1]
    assert compare.operands[1] is constant.results[0]
    assert len({compare.operands[0], compare.operands[1]}) == 2


def test_result_groups() -> None:
    module = parse_module(KERNEL)
    branch, use = named(module, "scf.if"), named(module, "toy.use")
    assert [value.name for value in branch.results] == ["%2#0", "%2#1"]
    assert [value.type for value in branch.results] == ["i32", "i32"]
    assert use.operands[0] is branch.results[0]
    assert use.operands[1] is branch.results[1]


def test_several_groups_before_one_op_and_the_short_name_of_a_first_result() -> None:
    first, second = body_of(
        module_of(
            '%a:2, %b = "t.three"() : () -> (i1, i2, i3)\n"t.use"(%a, %a#0, %a#1, %b, %b#0) : (i1, i1, i2, i3, i3) -> ()'
        )
    )
    assert [value.name for value in first.results] == ["%a#0", "%a#1", "%b"]
    one, two, three = first.results
    assert second.operands == [one, one, two, three, three]


def test_sibling_regions_may_use_the_same_name() -> None:
    module = parse_module(KERNEL)
    yes, no = named(module, "scf.if").regions
    times, minus = yes.blocks[0].operations[0], no.blocks[0].operations[0]
    assert yes.blocks[0].operations[1].operands[0] is times.results[0]
    assert no.blocks[0].operations[1].operands[1] is minus.results[0]
    assert times.results[0] is not minus.results[0]


def test_a_name_means_again_what_it_meant_before_an_isolated_region() -> None:
    outer, function, use = body_of(
        module_of(
            '%0 = "t.outer"() : () -> i1\n'
            '"func.func"() ({\n  %0 = "t.inner"() : () -> i2\n  "t.in"(%0) : (i2) -> ()\n}) : () -> ()\n'
            '"t.out"(%0) : (i1) -> ()'
        )
    )
    inner, inside = function.regions[0].blocks[0].operations
    assert inside.operands == inner.results
    assert use.operands == outer.results


def test_properties_and_attributes_merge() -> None:
    (op,) = body_of(module_of('"t.op"() <{pos = 9 : i32, u}> {b = [1, {c = 2}], "quoted key" = "x, y"} : () -> ()'))
    assert op.attributes == {"pos": "9 : i32", "u": "unit", "b": "[1, {c = 2}]", "quoted key": '"x, y"'}
    assert op.has("u")
    assert not op.has("v")


def test_attributes_of_ops_are_independent_although_their_text_is_the_same() -> None:
    first, second = body_of(module_of('"t.op"() <{a = 1 : i32}> : () -> ()\n"t.op"() <{a = 1 : i32}> : () -> ()'))
    first.attributes["a"] = "2 : i32"
    assert second.attributes == {"a": "1 : i32"}


def test_attribute_accessors() -> None:
    use, compare = named(parse_module(KERNEL), "toy.use"), named(parse_module(KERNEL), "arith.cmpi")
    assert compare.attr_int("predicate") == 2
    assert compare.attr_int("absent", 5) == 5
    assert use.attr_str("note") == 'a } "quote" (->'
    assert use.attr_str("absent", "none") == "none"
    with pytest.raises(UserError, match=r"scale\.py:9: attribute 'absent' of arith\.cmpi: it is missing"):
        compare.attr_int("absent")
    with pytest.raises(UserError, match=r"scale\.py:10: attribute 'note' of toy\.use: expected a number"):
        use.attr_int("note")
    with pytest.raises(UserError, match=r"attribute 'predicate' of arith\.cmpi: expected a string"):
        compare.attr_str("predicate")


@pytest.mark.parametrize(
    "value",
    [
        "affine_map<(d0, d1) -> (d0 floordiv 2, d1)>",
        "affine_set<(d0) : (d0 - 1 >= 0)>",
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>",
        "(memref<4x?xf32, strided<[?, 1], offset: ?>, 22>) -> ((i32) -> i32)",
        '#llvm.di_file<"a>b.c" in "/d(ir">',
        "@outer::@inner",
        'loc("f.py":1:2)',
        r'"\22 \\ }> \""',
        "[{}, {x = #a.b<c, d>}]",
    ],
)
def test_attributes_stay_raw_balanced_text(value: str) -> None:
    for text in (f"<{{v = {value}, last}}>", f"<{{v = {value}, last}}> {{w = {value}}}"):
        (op,) = body_of(module_of(f'"t.op"() {text} : () -> ()'))
        assert op.attributes["v"] == value
        assert op.attributes["last"] == "unit"


@pytest.mark.parametrize(
    ("signature", "types"),
    [
        ("() -> i32", ["i32"]),
        ("() -> (i32)", ["i32"]),
        ("() -> (i32, memref<?x4xf32, 22>)", ["i32", "memref<?x4xf32, 22>"]),
        ("() -> ((i32) -> (i1, i2))", ["(i32) -> (i1, i2)"]),
        ('() -> !emitasc.py_struct<"A->B", [i32, i8], ["x)", "y"]>', ['!emitasc.py_struct<"A->B", [i32, i8], ["x)", "y"]>']),
        ("() -> !t.f<(i32) -> i32>", ["!t.f<(i32) -> i32>"]),
    ],
)
def test_result_types(signature: str, types: list[str]) -> None:
    for tail in ("", ' loc("f.py":1:1)'):
        names = ", ".join(f"%r{i}" for i in range(len(types)))
        (op,) = body_of(module_of(f'{names} = "t.op"() : {signature}{tail}'))
        assert [value.type for value in op.results] == types
        assert len(op.location.frames) == bool(tail)


def test_results_that_nothing_names() -> None:
    (op,) = body_of(module_of('"t.op"() : () -> (i32, i1)'))
    assert [(value.name, value.type) for value in op.results] == [("", "i32"), ("", "i1")]


def test_an_op_without_location_and_one_on_several_lines_with_comments() -> None:
    first, second = body_of(
        module_of('"t.a"() : () -> ()\n  // between\n%0 = "t.b" ( ) // after\n  { x = 1 : i8 }\n : () -> i8 loc( unknown )\n')
    )
    assert first.location == second.location == UNKNOWN
    assert second.attributes == {"x": "1 : i8"}


def test_line_ends_of_another_system() -> None:
    module = parse_module(KERNEL.replace("\n", "\r\n"))
    assert named(module, "arith.cmpi").location.frames == (Frame("scale.py", 9, 4),)
    assert len(list(module.walk())) == 11


BRANCHES = """
"func.func"() ({
^bb0(%c: i1):
  "cf.cond_br"(%c, %late)[^bb2, ^bb1] : (i1, i32) -> ()  // %late is defined in ^bb3
^bb1:  // pred: ^bb0
  %0 = "t.nest"() ({
    "t.inner"(%late, %far#1) : (i32, i64) -> ()
  }) : () -> i8
  "cf.br"(%0)[^bb3] : (i8) -> ()
^bb2:  // pred: ^bb0
  "func.return"() : () -> ()
^bb3(%1: i8):
  %late = "t.late"() : () -> i32
  %far:2 = "t.far"() : () -> (i32, i64)
  "cf.br"()[^bb2] : () -> ()
}) : () -> ()
"""


def test_successors_are_blocks_of_the_region() -> None:
    (function,) = body_of(module_of(BRANCHES))
    entry, one, two, three = function.regions[0].blocks
    assert [block.label for block in (entry, one, two, three)] == ["^bb0", "^bb1", "^bb2", "^bb3"]
    assert entry.operations[-1].successors == [two, one]
    assert one.operations[-1].successors == [three]
    assert three.operations[-1].successors == [two]
    assert [value.type for value in three.arguments] == ["i8"]


def test_a_value_may_be_used_before_the_block_that_defines_it() -> None:
    module = module_of(BRANCHES)
    late, far, inner = named(module, "t.late").results[0], named(module, "t.far").results[1], named(module, "t.inner")
    assert named(module, "cf.cond_br").operands[1] is late
    assert inner.operands == [late, far]
    assert (late.name, late.type, far.name, far.type) == ("%late", "i32", "%far#1", "i64")


def test_an_empty_region_has_no_block_and_an_unlabelled_entry_block_is_bb0() -> None:
    first, second = body_of(module_of('"t.a"() ({}, {\n}) : () -> ()\n"t.b"() ({\n"t.c"() : () -> ()\n}) : () -> ()'))
    assert [region.blocks for region in first.regions] == [[], []]
    (block,) = second.regions[0].blocks
    assert (block.label, block.arguments, len(block.operations)) == ("^bb0", [], 1)
    assert isinstance(block, Block)


def test_aliases_after_their_use_inside_each_other_and_not_inside_strings() -> None:
    module = parse_module(
        "#map = affine_map<(d0) -> (d0)>\n"
        '"builtin.module"() ({\n'
        '  %0 = "t.a"() {m = #map, n = [#map, #set1], s = "#map !t", d = #arith.overflow<none>} : () -> !t\n'
        '  "t.b"(%0) ({\n  ^bb0(%1: memref<4xf32, #map>):\n  }) : (!t) -> ()\n'
        "}) : () -> ()\n"
        "!t = !toy.pair<!u, \n  i32>\n"
        "!u = memref<?xf32, #map>  // the innermost\n"
        "#set1 = affine_set<(d0) : (d0 >= 0)>\n"
    )
    first, second = body_of(module)
    identity = "affine_map<(d0) -> (d0)>"
    assert first.attributes == {
        "m": identity,
        "n": f"[{identity}, affine_set<(d0) : (d0 >= 0)>]",
        "s": '"#map !t"',
        "d": "#arith.overflow<none>",
    }
    assert first.results[0].type == f"!toy.pair<memref<?xf32, {identity}>, \n  i32>"
    assert second.operands[0] is first.results[0]
    assert second.regions[0].blocks[0].arguments[0].type == f"memref<4xf32, {identity}>"


def test_location_aliases_after_their_use_and_hints() -> None:
    module = parse_module(KERNEL)
    assert named(module, "arith.cmpi").location.frames == (Frame("scale.py", 9, 4),)
    times = named(module, "arith.muli")
    assert times.location.frames == (Frame("scale.py", 10, 8),)
    assert times.location.names == ("y",)
    assert times.results[0].hint == "y"
    assert named(module, "arith.constant").results[0].hint is None


def test_names_that_are_functions() -> None:
    text = '"t.a"() ({\n  %0 = "t.b"() : () -> i32 loc("kernel"("k.py":3:5))\n}) : () -> ()\n'
    (op,) = parse_module(text, names="function").regions[0].blocks[0].operations
    assert op.location.frames == (Frame("k.py", 3, 5, "kernel"),)
    assert op.location.names == ()
    assert op.results[0].hint is None


def test_resources_of_a_file_are_passed_over() -> None:
    module = module_of('"t.a"() : () -> ()', '{-#\n  dialect_resources: { builtin: { r: "0x0400" } }\n#-}\n')
    assert len(body_of(module)) == 1


def test_nesting_has_no_limit() -> None:
    depth = 3000
    module = parse_module('"t.a"() ({\n' * depth + "}) : () -> ()\n" * depth)
    assert sum(1 for _ in module.walk()) == depth


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "expected an op in generic form"),
        ("module {\n}\n", 1, 1, "found 'module {'"),
        ('"a.b"() : () -> ()\n"a.b"() : () -> ()\n', 2, 1, "expected the end after the outermost op"),
        ('"a.b"(%x) : (i32) -> ()\n', 1, 7, "value %x is used but never defined"),
        ('"a.b"() ({\n  "func.func"() ({\n    "t.c"(%1, %10) : (i1, i1) -> ()\n  }) : () -> ()\n'
         '  %1 = "t.d"() : () -> i1\n}) : () -> ()', 3, 11, "value %1 is used but never defined"),
        ('"a.b"() ({\n  %a = "t.c"() : () -> i1\n  %a = "t.c"() : () -> i1\n}) : () -> ()', 3, 3, "%a is defined twice"),
        ('"a.b"() ({\n^bb0(%a: i1, %a: i1):\n}) : () -> ()', 2, 14, "%a is defined twice"),
        ('"a.b"() ({\n  "cf.br"()[^bb1, ^bb7] : () -> ()\n^bb1:\n}) : () -> ()', 2, 19, "block ^bb7 is not defined"),
        ('"a.b"() ({\n^bb1:\n^bb1:\n}) : () -> ()', 3, 1, "block ^bb1 is defined twice"),
        ('"a.b"() ({\n^bb1(%a i1):\n}) : () -> ()', 2, 6, "expected a block argument"),
        ('"a.b"() ({\n^bb1(%a: i1 i2):\n}) : () -> ()', 2, 13, "expected ',' or ')' after a block argument"),
        ('"a.b"() ({\n^bb1\n}) : () -> ()', 3, 1, "expected ':' after ^bb1"),
        ('"a.b"() ({\n^ :\n}) : () -> ()', 2, 1, "expected a block label"),
        ('%0 "a.b"() : () -> i1', 1, 1, "expected results followed by '='"),
        ('%0 = a.b() : () -> i1', 1, 6, "expected the name of an op in quotes, found 'a.b() : () -> i1'"),
        ('%0, 1 = "a.b"() : () -> (i1, i1)', 1, 1, "expected results such as %0"),
        ('%0:3 = "a.b"() : () -> (i1, i1)', 1, 1, "a.b has 2 result types"),
        ('%0 = "a.b"() : () -> ()', 1, 1, "a.b has 0 result types"),
        ('"a.b" : () -> ()', 1, 7, "expected '(' before the operands of a.b"),
        ('"a.b"("x") : () -> ()', 1, 7, "expected operands of a.b"),
        ('"a.b"() ({\n  "t.c"(%0, ) : (i1) -> ()\n}) : () -> ()', 2, 13, "expected an operand"),
        ('"a.b"()[^a b] : () -> ()', 1, 9, "expected a successor"),
        ('"a.b"() <{a = 1> : () -> ()', 1, 16, "expected '}', found '>"),
        ('"a.b"() <{a = 1} : () -> ()', 1, 18, "expected '>' after the properties of a.b"),
        ('"a.b"() <{a =}> : () -> ()', 1, 14, "expected a value for 'a', found '}'"),
        ('"a.b"() {a 1} : () -> ()', 1, 12, "expected '=' and a value for 'a', found '1}'"),
        ('"a.b"() {1 = 2} : () -> ()', 1, 10, "expected the name of an attribute"),
        ('"a.b"() {a, a} : () -> ()', 1, 9, "attribute 'a' is given twice"),
        ('"a.b"() <{a}> {a} : () -> ()', 1, 15, "attribute 'a' of a.b is given twice"),
        ('"a.b"() (x) : () -> ()', 1, 10, "expected '{' of a region of a.b"),
        ('"a.b"() ({}, ) : () -> ()', 1, 12, "expected ',' and a region, or ')'"),
        ('"a.b"() ({\n  what\n}) : () -> ()', 2, 3, "expected an op in generic form"),
        ('"a.b"()\n', 2, 1, "expected ':' before the types of a.b, found the end"),
        ('"a.b"() : i32 -> ()', 1, 11, "expected '(' of a function type"),
        ('"a.b"() : () ()', 1, 14, "expected '->' of a function type"),
        ('"a.b"() : () -> 5', 1, 17, "expected a type"),
        ('"a.b"() : (i32 i32) -> ()', 1, 12, "is not a type"),
        ('"a.b"() : (memref<=4xf32) -> ()', 1, 18, "'<' is never closed"),
        ('"a.b"() : (memref<4xf32) -> ()', 1, 24, "expected '>', found ')"),
        ('"a.b"() : (i32) -> ()', 1, 9, "a.b has 0 operands but types for 1"),
        ('"a.b"() : () -> () loc("f.py":1)', 1, 30, "expected ')' after a location"),
        ('"a.b"() : () -> () loc(#loc1)', 1, 24, "location #loc1 is not defined"),
        ('"a.b"() : () -> () loc(', 1, 23, "'(' is never closed"),
        ('"a.b"() {a = "x} : () -> ()\n', 1, 14, "this string does not end on its line"),
        ('"a.b"() : () -> ()\n#loc1 loc(unknown)', 2, 1, "expected an alias definition"),
        ('"a.b"() : () -> ()\n#map = \n', 2, 8, "#map stands for nothing"),
        ('#map = 1\n"a.b"() : () -> ()\n#map = 1\n', 3, 1, "#map is defined twice"),
        ('#a = [#b]\n#b = [#a]\n"a.b"() {x = #a} : () -> ()\n', 1, 1, "#a is defined by itself"),
        ('"a.b"() : () -> ()\n{-# x', 2, 1, "'{-#' is never closed"),
        ('"a.b"() ({\n  "t.c"() : () -> ()\n', 3, 1, "expected '}' to close the region of a.b, found the end"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(text: str, line: int, column: int, problem: str) -> None:
    error = failure(text)
    assert problem in str(error)
    assert (error.line, error.column) == (line, column)
    assert str(error).startswith(f"MLIR text, line {line}, column {column}: ")
    assert "\n" not in str(error)
    assert error.exit_code == 2


def texts_for_damage() -> list[str]:
    """Small right texts that together hold every production."""
    around = f'#map = affine_map<(d0) -> (d0)>\n"builtin.module"() ({{{BRANCHES}\n}}) {{m = #map, t = !u}} : () -> ()\n'
    locations = '#loc9 = loc(fused<"m">["a.py":1:2, callsite("v"("b.py":3:4) at #loc8)])\n#loc8 = loc("c.py":5:6)\n'
    return [KERNEL, around + "!u = memref<?xf32, #map>\n", '"a.b"() : () -> () loc(#loc9)\n' + locations]


def test_text_cut_anywhere_raises_nothing_but_syntax_errors() -> None:
    complete = refused = 0
    for text in texts_for_damage():
        assert parse_module(text).name
        for size in range(len(text)):
            try:
                parse_module(text[:size])
                complete += 1
            except MlirSyntaxError:
                refused += 1
    assert refused > 10 * complete  # only what follows the outermost op may be missing without notice


def test_text_damaged_anywhere_raises_nothing_but_syntax_errors() -> None:
    source = random.Random(20240607)
    refused = 0
    for text in texts_for_damage():
        for _ in range(1200):
            at = source.randrange(len(text))
            other = source.choice('()[]{}<>"\\,:=#!%^@-0x1 \n/') * source.randrange(2)
            try:
                parse_module(text[:at] + other + text[at + source.randrange(3) :])
            except MlirSyntaxError:
                refused += 1
    assert refused > 1000
