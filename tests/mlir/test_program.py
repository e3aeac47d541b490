"""Lowering: scalar values against numpy, control flow, user lines in tracebacks, errors that name the operation."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

from npuscope.errors import Unsupported
from npuscope.mlir.program import Program, lower
from npuscope.trace.schema import Site

HEAD = '''
"builtin.module"() ({{
  "func.func"() <{{function_type = ({types}) -> ({result}), sym_name = "f"}}> ({{
  ^bb0({arguments}):
{body}
  }}) : () -> () loc("user.py":10:0)
}}) : () -> ()
'''


def program(body: str, types: list[str], result: str = "") -> Program:
    """A function `f` with parameters %a0, %a1, ... and the given body."""
    arguments = ", ".join(f"%a{index}: {kind}" for index, kind in enumerate(types))
    text = HEAD.format(types=", ".join(types), result=result, arguments=arguments, body=body)
    sites: list[Site] = []

    def add(site: Site) -> int:
        sites.append(site)
        return len(sites)

    return lower(text, lambda file: False, add)


def call(lowered: Program, *arguments: Any) -> Any:
    """Drive the function to its end and give what it returns."""
    routine = lowered.entry(None, *arguments)
    try:
        while True:
            next(routine)
    except StopIteration as stop:
        return stop.value


def binary(name: str, kind: str, a: Any, b: Any, attributes: str = "", result: str | None = None) -> Any:
    """Value of one two-operand operation."""
    out = result or kind
    body = f'''    %0 = "{name}"(%a0, %a1) {attributes} : ({kind}, {kind}) -> {out}
    "func.return"(%0) : ({out}) -> ()'''
    return call(program(body, [kind, kind], out), a, b)


def unary(name: str, source: str, target: str, value: Any) -> Any:
    """Value of one conversion."""
    body = f'''    %0 = "{name}"(%a0) : ({source}) -> {target}
    "func.return"(%0) : ({target}) -> ()'''
    return call(program(body, [source], target), value)


NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32,
         "ui64": np.uint64}
INTEGER_OPS = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
}


def samples(kind: str) -> list[int]:
    """Edge values of an integer type."""
    info = np.iinfo(NUMPY[kind])
    return sorted({int(info.min), int(info.max), 0, 1, 7, max(int(info.min), -7), int(info.max) // 2 + 1})


SIGNED_ONLY = ("arith.maxsi", "arith.minsi")
INTEGER_CASES = [(name, kind) for name in INTEGER_OPS for kind in NUMPY if kind[0] != "u" or name not in SIGNED_ONLY]


@pytest.mark.parametrize(("name", "kind"), INTEGER_CASES)
def test_integer_arithmetic_wraps_as_numpy(name: str, kind: str) -> None:
    """Every pair of edge values."""
    dtype = NUMPY[kind]
    lowered = program(
        f'''    %0 = "{name}"(%a0, %a1) : ({kind}, {kind}) -> {kind}
    "func.return"(%0) : ({kind}) -> ()''', [kind, kind], kind)
    with np.errstate(all="ignore"):
        for a in samples(kind):
            for b in samples(kind):
                expected = INTEGER_OPS[name](np.array(a, dtype), np.array(b, dtype))
                assert call(lowered, a, b) == int(expected)


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (5, 7)])
def test_signed_division_truncates(a: int, b: int) -> None:
    """C semantics: toward zero, remainder with the sign of the dividend; the other forms round as named."""
    quotient = int(a / b)
    assert binary("arith.divsi", "i32", a, b) == quotient
    assert binary("arith.remsi", "i32", a, b) == a - b * quotient
    assert binary("arith.floordivsi", "i32", a, b) == a // b
    assert binary("arith.ceildivsi", "i32", a, b) == -(-a // b)


def test_unsigned_operations_read_the_bits() -> None:
    """-1 is the largest unsigned value."""
    assert binary("arith.divui", "i32", -1, 2) == 0x7FFFFFFF
    assert binary("arith.remui", "i32", -1, 10) == 0xFFFFFFFF % 10
    assert binary("arith.shrui", "i32", -1, 28) == 15
    assert binary("arith.shrsi", "i32", -16, 2) == -4
    assert binary("arith.shli", "i32", 1, 31) == -(2**31)
    assert binary("arith.maxui", "i32", -1, 1) == -1
    assert binary("arith.minui", "i32", -1, 1) == 1
    assert binary("arith.ceildivui", "i32", 7, 2) == 4


@pytest.mark.parametrize(("predicate", "expected"), list(enumerate([0, 1, 1, 1, 0, 0, 0, 0, 1, 1])))
def test_integer_compare(predicate: int, expected: int) -> None:
    """-1 against 1 under every predicate (eq ne slt sle sgt sge ult ule ugt uge)."""
    attributes = f"<{{predicate = {predicate} : i64}}>"
    assert binary("arith.cmpi", "i32", -1, 1, attributes, "i1") == expected


@pytest.mark.parametrize("predicate", range(16))
@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (float("nan"), 1.0)])
def test_float_compare(predicate: int, a: float, b: float) -> None:
    """Ordered and unordered predicates, in MLIR's numbering."""
    unordered = a != a or b != b
    basic = {1: a == b, 2: a > b, 3: a >= b, 4: a < b, 5: a <= b, 6: a != b and not unordered}
    table = {0: False, 15: True, 7: not unordered, 14: unordered,
             **{key: value and not unordered for key, value in basic.items()},
             **{key + 7: value or unordered for key, value in basic.items()}}
    attributes = f"<{{predicate = {predicate} : i64}}>"
    assert binary("arith.cmpf", "f32", a, b, attributes, "i1") == int(table[predicate])


FLOAT_OPS = {"arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
             "arith.remf": np.fmod, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
             "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin}


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", FLOAT_OPS)
def test_float_arithmetic_rounds_to_its_type(name: str, kind: str) -> None:
    """One rounding per operation; division by zero and NaN follow IEEE."""
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    with np.errstate(all="ignore"):
        for a in (0.1, -3.7, 65504.0, 0.0, float("nan")):
            for b in (0.3, 7.0, 0.0, -0.5):
                x, y = dtype(a), dtype(b)
                np.testing.assert_equal(binary(name, kind, float(x), float(y)), float(FLOAT_OPS[name](x, y)))


def test_conversions() -> None:
    """Between integers and floats of every width."""
    assert unary("arith.trunci", "i32", "i8", 200) == -56
    assert unary("arith.extui", "i8", "i32", -1) == 255
    assert unary("arith.extsi", "i8", "i32", -1) == -1
    assert unary("arith.sitofp", "i32", "f32", 16777217) == 16777216.0
    assert unary("arith.uitofp", "i32", "f32", -1) == 4294967296.0
    assert unary("arith.fptosi", "f32", "i32", -2.9) == -2
    assert unary("arith.fptosi", "f32", "i8", 1e9) == 127
    assert unary("arith.fptoui", "f32", "ui8", -5.0) == 0
    assert unary("arith.fptosi", "f32", "i32", float("nan")) == 0
    assert unary("arith.truncf", "f32", "f16", 0.1) == float(np.float16(0.1))
    assert unary("arith.index_cast", "i32", "index", -5) == -5
    assert unary("arith.bitcast", "f32", "i32", 1.0) == 0x3F800000
    assert unary("arith.bitcast", "i32", "f32", 0x40490FDB) == float(np.float32(np.pi))
    assert unary("arith.negf", "f32", "f32", 1.5) == -1.5


def test_select() -> None:
    """arith.select takes the first value when the condition holds."""
    body = '''    %0 = "arith.select"(%a0, %a1, %a2) : (i1, i32, i32) -> i32
    "func.return"(%0) : (i32) -> ()'''
    lowered = program(body, ["i1", "i32", "i32"], "i32")
    assert (call(lowered, 1, 5, 6), call(lowered, 0, 5, 6)) == (5, 6)


LOOP = '''    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %2:2 = "scf.for"(%0, %a0, %1, %0, %1) ({
    ^bb0(%i: i32, %a: i32, %b: i32):
      %3 = "arith.addi"(%a, %b) : (i32, i32) -> i32
      "scf.yield"(%b, %3) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "func.return"(%2#0) : (i32) -> ()'''


def test_for_assigns_carried_values_at_once() -> None:
    """Fibonacci numbers need the old value of both."""
    lowered = program(LOOP, ["i32"], "i32")
    assert [call(lowered, count) for count in range(10)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


WHILE = '''    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %3:2 = "scf.while"(%a0, %0) ({
    ^bb0(%n: i32, %steps: i32):
      %4 = "arith.cmpi"(%n, %2) <{predicate = 4 : i64}> : (i32, i32) -> i1
      "scf.condition"(%4, %n, %steps) : (i1, i32, i32) -> ()
    }, {
    ^bb0(%m: i32, %taken: i32):
      %5 = "arith.andi"(%m, %2) : (i32, i32) -> i32
      %6 = "arith.cmpi"(%5, %0) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %7 = "scf.if"(%6) ({
        %8 = "arith.shrsi"(%m, %2) : (i32, i32) -> i32
        "scf.yield"(%8) : (i32) -> ()
      }, {
        %9 = "arith.muli"(%m, %1) : (i32, i32) -> i32
        %10 = "arith.addi"(%9, %2) : (i32, i32) -> i32
        "scf.yield"(%10) : (i32) -> ()
      }) : (i1) -> i32
      %11 = "arith.addi"(%taken, %2) : (i32, i32) -> i32
      "scf.yield"(%7, %11) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    "func.return"(%3#1) : (i32) -> ()'''


def test_while_and_if() -> None:
    """Collatz: the number of steps from 27 is 111."""
    lowered = program(WHILE, ["i32"], "i32")
    assert [call(lowered, n) for n in (1, 2, 3, 27)] == [0, 1, 7, 111]


SWITCH = '''    %0 = "arith.constant"() <{value = 10 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 20 : i32}> : () -> i32
    %2 = "scf.index_switch"(%a0) <{cases = array<i64: 4, 7>}> ({
      "scf.yield"(%a1) : (i32) -> ()
    }, {
      "scf.yield"(%0) : (i32) -> ()
    }, {
      "scf.yield"(%1) : (i32) -> ()
    }) : (index) -> i32
    "func.return"(%2) : (i32) -> ()'''


def test_index_switch() -> None:
    """The first region is the default."""
    lowered = program(SWITCH, ["index", "i32"], "i32")
    assert [call(lowered, value, 5) for value in (4, 7, 0)] == [10, 20, 5]


def test_stack_arrays() -> None:
    """memref.alloca, store and load with a two-dimensional index."""
    body = '''    %0 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x3xi32>
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "arith.constant"() <{value = 2 : index}> : () -> index
    "memref.store"(%a0, %0, %1, %2) : (i32, memref<2x3xi32>, index, index) -> ()
    %3 = "memref.load"(%0, %1, %2) : (memref<2x3xi32>, index, index) -> i32
    %4 = "memref.load"(%0, %2, %1) : (memref<2x3xi32>, index, index) -> i32
    "func.return"(%3) : (i32) -> ()'''
    body = body.replace('%4 = "memref.load"(%0, %2, %1)', '%4 = "memref.load"(%0, %1, %1)')
    assert call(program(body, ["i32"], "i32"), 42) == 42


def test_calls_between_functions() -> None:
    """func.call of a helper with two results."""
    text = '''
"builtin.module"() ({
  "func.func"() <{function_type = (i32) -> (i32, i32), sym_name = "helper"}> ({
  ^bb0(%n: i32):
    %0 = "arith.addi"(%n, %n) : (i32, i32) -> i32
    "func.return"(%0, %n) : (i32, i32) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (i32) -> (i32), sym_name = "kernel"}> ({
  ^bb0(%n: i32):
    %0:2 = "func.call"(%n) <{callee = @helper}> : (i32) -> (i32, i32)
    %1 = "arith.subi"(%0#0, %0#1) : (i32, i32) -> i32
    "func.return"(%1) : (i32) -> ()
  }) {ascendc.global} : () -> ()
}) : () -> ()
'''
    assert call(lower(text, lambda file: False, lambda site: 1), 21) == 21


def test_a_traceback_names_the_users_line() -> None:
    """The generated code has the user's file and line."""
    body = '''    %0 = "memref.alloca"() : () -> memref<2xi32> loc("user.py":11:4)
    %1 = "arith.constant"() <{value = 9 : index}> : () -> index
    %2 = "memref.load"(%0, %1) : (memref<2xi32>, index) -> i32 loc("user.py":12:8)
    "func.return"(%2) : (i32) -> ()'''
    with pytest.raises(IndexError) as caught:
        call(program(body, [], "i32"))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.name) == ("user.py", 12, "f")


def test_an_unknown_operation_is_named_with_its_line() -> None:
    """One line: where, what."""
    body = '''    "ascendc.warp_drive"(%a0) : (i32) -> () loc("user.py":33:4)
    "func.return"() : () -> ()'''
    with pytest.raises(Unsupported, match=r"user\.py:33: operation ascendc\.warp_drive has no lowering"):
        program(body, ["i32"])


def test_opaque_constants_come_from_the_chip() -> None:
    """A library constant that the chip fixes."""
    from types import SimpleNamespace

    from npuscope.npu.chip import load_chip

    body = '''    %0 = "emitc.constant"() <{value = #emitc.opaque<"::AscendC::TOTAL_L1_SIZE">}> : () -> i32
    "func.return"(%0) : (i32) -> ()'''
    routine = program(body, [], "i32").entry(SimpleNamespace(chip=load_chip("910B1")))
    with pytest.raises(StopIteration) as stop:
        next(routine)
    assert stop.value.value == 524288
