"""arith: scalar arithmetic on the scalar unit. Signless integers are kept as signed Python integers, wrapped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.mlir.attributes import parse_int, parse_number
from npuscope.mlir.types import bit_width, is_float, is_integer

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op


def is_unsigned(type_text: str) -> bool:
    """True for ``ui32`` and the like."""
    return type_text.startswith("ui")


def wrapped(expression: str, type_text: str) -> str:
    """`expression` reduced to the range of an integer type; `index` has 64 bits and is left to Python."""
    if type_text == "index":
        return expression
    width = bit_width(type_text)
    if is_unsigned(type_text):
        return f"({expression}) & {(1 << width) - 1}"
    if width == 1:
        return f"({expression}) & 1"
    half = 1 << (width - 1)
    return f"((({expression}) + {half}) & {(1 << width) - 1}) - {half}"


def unsigned(expression: str, type_text: str) -> str:
    """A signed representation read as unsigned."""
    if is_unsigned(type_text):
        return expression
    return f"(({expression}) & {(1 << bit_width(type_text)) - 1})"


def round_float(value: float, type_text: str) -> float:
    """`value` rounded to the precision of a float type."""
    if type_text == "f64":
        return float(value)
    if type_text == "f32":
        return float(np.float32(value))
    if type_text == "f16":
        return float(np.float16(value))
    import ml_dtypes

    return float(ml_dtypes.bfloat16(value))


def float_literal(value: float) -> str:
    """A Python expression for any float."""
    return repr(value) if math.isfinite(value) else f"float('{value}')"


def constant(writer: Writer, op: Op) -> None:
    """Constants are written where they are used."""
    text = op.attributes["value"]
    value: Any = parse_number(text)
    if isinstance(value, bool):
        value = int(value)
    writer.alias(op.results[0], float_literal(value) if isinstance(value, float) else f"({value})")


def _integer(template: str) -> Any:
    def lower(writer: Writer, op: Op) -> None:
        a, b = writer.uses(op.operands)
        expression = wrapped(template.format(a=a, b=b), op.results[0].type)
        writer.emit(f"{writer.define(op.results[0])} = {expression}")

    return lower


def _unsigned(template: str) -> Any:
    def lower(writer: Writer, op: Op) -> None:
        kind = op.operands[0].type
        a, b = (unsigned(text, kind) for text in writer.uses(op.operands))
        expression = wrapped(template.format(a=a, b=b), op.results[0].type)
        writer.emit(f"{writer.define(op.results[0])} = {expression}")

    return lower


def _float(template: str) -> Any:
    def lower(writer: Writer, op: Op) -> None:
        texts = dict(zip("abc", writer.uses(op.operands), strict=False))
        kind = op.results[0].type
        rounder = writer.constant(round_float, "round_float")
        safe = template.format(**texts, helper=writer.constant(_FloatOps, "float"))
        writer.emit(f"{writer.define(op.results[0])} = {rounder}({safe}, {kind!r})")

    return lower


class _FloatOps:
    """IEEE results where Python would raise."""

    @staticmethod
    def divide(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))

    @staticmethod
    def remainder(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.fmod(a, b))

    @staticmethod
    def maximum(a: float, b: float) -> float:
        return float(np.maximum(a, b))

    @staticmethod
    def minimum(a: float, b: float) -> float:
        return float(np.minimum(a, b))

    @staticmethod
    def maxnum(a: float, b: float) -> float:
        return float(np.fmax(a, b))

    @staticmethod
    def minnum(a: float, b: float) -> float:
        return float(np.fmin(a, b))


class _IntegerOps:
    """Division that truncates, as the scalar unit does; division by zero gives 0."""

    @staticmethod
    def divide(a: int, b: int) -> int:
        if b == 0:
            return 0
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    @staticmethod
    def remainder(a: int, b: int) -> int:
        return a - b * _IntegerOps.divide(a, b)

    @staticmethod
    def ceildiv(a: int, b: int) -> int:
        return -(-a // b) if b else 0

    @staticmethod
    def floordiv(a: int, b: int) -> int:
        return a // b if b else 0


def _helper(name: str, signed: bool = True) -> Any:
    def lower(writer: Writer, op: Op) -> None:
        kind = op.operands[0].type
        a, b = writer.uses(op.operands)
        if not signed:
            a, b = unsigned(a, kind), unsigned(b, kind)
        helper = writer.constant(_IntegerOps, "int")
        writer.emit(f"{writer.define(op.results[0])} = {wrapped(f'{helper}.{name}({a}, {b})', op.results[0].type)}")

    return lower


INTEGER_COMPARE = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


def compare_integers(writer: Writer, op: Op) -> None:
    """arith.cmpi: predicates 0-9; 6-9 are unsigned."""
    predicate = parse_int(op.attributes["predicate"])
    a, b = writer.uses(op.operands)
    if predicate >= 6:
        a, b = unsigned(a, op.operands[0].type), unsigned(b, op.operands[0].type)
    writer.emit(f"{writer.define(op.results[0])} = 1 if {a} {INTEGER_COMPARE[predicate]} {b} else 0")


FLOAT_COMPARE = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 6: "!="}


def compare_floats(writer: Writer, op: Op) -> None:
    """arith.cmpf: 1-7 ordered, 8-14 unordered (true when either is NaN), 0 false, 15 true."""
    predicate = parse_int(op.attributes["predicate"])
    a, b = writer.uses(op.operands)
    ordered = f"({a} == {a} and {b} == {b})"
    if predicate in (0, 15):
        text = str(predicate == 15)
    elif predicate == 7:
        text = ordered
    elif predicate == 14:
        text = f"not {ordered}"
    elif predicate < 7:
        text = f"{ordered} and {a} {FLOAT_COMPARE[predicate]} {b}"
    else:
        text = f"not {ordered} or {a} {FLOAT_COMPARE[predicate - 7]} {b}"
    writer.emit(f"{writer.define(op.results[0])} = 1 if {text} else 0")


def select(writer: Writer, op: Op) -> None:
    """arith.select."""
    condition, a, b = writer.uses(op.operands)
    writer.emit(f"{writer.define(op.results[0])} = {a} if {condition} else {b}")


def convert(writer: Writer, op: Op) -> None:
    """Every scalar conversion, from the operand's type and the result's; the name tells how bits are read."""
    source, target = op.operands[0].type, op.results[0].type
    text = writer.use(op.operands[0])
    if is_integer(source) and is_integer(target):
        if op.name in ("arith.extui", "arith.index_castui"):
            text = unsigned(text, source)
        writer.emit(f"{writer.define(op.results[0])} = {wrapped(text, target)}")
        return
    if is_integer(source):
        if op.name == "arith.uitofp":
            text = unsigned(text, source)
        rounder = writer.constant(round_float, "round_float")
        writer.emit(f"{writer.define(op.results[0])} = {rounder}(float({text}), {target!r})")
        return
    if is_float(target):
        rounder = writer.constant(round_float, "round_float")
        writer.emit(f"{writer.define(op.results[0])} = {rounder}({text}, {target!r})")
        return
    helper = writer.constant(float_to_integer, "float_to_integer")
    writer.emit(f"{writer.define(op.results[0])} = {helper}({text}, {target!r})")


def float_to_integer(value: float, type_text: str) -> int:
    """Truncate toward zero; NaN gives 0 and what does not fit saturates."""
    width = 64 if type_text == "index" else bit_width(type_text)
    low, high = (0, (1 << width) - 1) if is_unsigned(type_text) else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    if value != value:
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def bitcast(writer: Writer, op: Op) -> None:
    """arith.bitcast between an integer and a float of the same width."""
    helper = writer.constant(reinterpret_scalar, "reinterpret")
    text = writer.use(op.operands[0])
    writer.emit(
        f"{writer.define(op.results[0])} = {helper}({text}, {op.operands[0].type!r}, {op.results[0].type!r})"
    )


def reinterpret_scalar(value: Any, source: str, target: str) -> Any:
    """The bits of a scalar of MLIR type `source` read as `target`."""
    from npuscope.npu.numbers import dtype_of

    raw = np.array(value).astype(dtype_of(source))
    return raw.view(dtype_of(target)).item()


def negate(writer: Writer, op: Op) -> None:
    """arith.negf."""
    writer.emit(f"{writer.define(op.results[0])} = -({writer.use(op.operands[0])})")


LOWERINGS = {
    "arith.constant": constant,
    "arith.addi": _integer("{a} + {b}"),
    "arith.subi": _integer("{a} - {b}"),
    "arith.muli": _integer("{a} * {b}"),
    "arith.andi": _integer("{a} & {b}"),
    "arith.ori": _integer("{a} | {b}"),
    "arith.xori": _integer("{a} ^ {b}"),
    "arith.shli": _integer("{a} << ({b} & 63)"),
    "arith.shrsi": _integer("{a} >> ({b} & 63)"),
    "arith.shrui": _unsigned("{a} >> ({b} & 63)"),
    "arith.maxsi": _integer("max({a}, {b})"),
    "arith.minsi": _integer("min({a}, {b})"),
    "arith.maxui": _unsigned("max({a}, {b})"),
    "arith.minui": _unsigned("min({a}, {b})"),
    "arith.divsi": _helper("divide"),
    "arith.remsi": _helper("remainder"),
    "arith.divui": _helper("divide", signed=False),
    "arith.remui": _helper("remainder", signed=False),
    "arith.ceildivsi": _helper("ceildiv"),
    "arith.ceildivui": _helper("ceildiv", signed=False),
    "arith.floordivsi": _helper("floordiv"),
    "arith.addf": _float("{a} + {b}"),
    "arith.subf": _float("{a} - {b}"),
    "arith.mulf": _float("{a} * {b}"),
    "arith.divf": _float("{helper}.divide({a}, {b})"),
    "arith.remf": _float("{helper}.remainder({a}, {b})"),
    "arith.maximumf": _float("{helper}.maximum({a}, {b})"),
    "arith.minimumf": _float("{helper}.minimum({a}, {b})"),
    "arith.maxnumf": _float("{helper}.maxnum({a}, {b})"),
    "arith.minnumf": _float("{helper}.minnum({a}, {b})"),
    "arith.negf": negate,
    "arith.cmpi": compare_integers,
    "arith.cmpf": compare_floats,
    "arith.select": select,
    "arith.bitcast": bitcast,
    **{
        f"arith.{name}": convert
        for name in ("index_cast", "index_castui", "extsi", "extui", "trunci", "extf", "truncf", "sitofp", "uitofp",
                     "fptosi", "fptoui")
    },
}
