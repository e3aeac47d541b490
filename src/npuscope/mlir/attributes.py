"""Values of raw MLIR attribute text: numbers, strings, arrays, dictionaries and enumerations.

Every function raises Mismatch, which is a UserError, when the text is not of its kind.
"""

from __future__ import annotations

import re
import struct

import ml_dtypes
import numpy as np

from npuscope.mlir.types import (
    STRING_PATTERN,
    Mismatch,
    MlirSyntaxError,
    balanced_end,
    bit_width,
    element_type,
    expected,
    is_float,
    is_integer,
    split_top,
)

UNIT = "unit"

_DECIMAL_INTEGER = re.compile(r"[+-]?\d{1,1000}", re.ASCII)
_HEXADECIMAL = re.compile(r"(-?)0x([0-9A-Fa-f]{1,1000})", re.ASCII)
_DECIMAL_FLOAT = re.compile(r"[+-]?\d+\.\d*(?:[eE][+-]?\d+)?", re.ASCII)
_STRING = re.compile(STRING_PATTERN)
_SYMBOL = re.compile(r'@(?:[A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*")', re.ASCII)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_NAMED_ESCAPES = {b"n": b"\n", b"t": b"\t"}
_KEY = re.compile(r"[A-Za-z_][\w$.]*|" + STRING_PATTERN, re.ASCII)
_DENSE_ARRAY = re.compile(r"array<\s*([^:<>]+?)\s*(?::(.*))?>", re.ASCII | re.DOTALL)
_ALIAS_USE = re.compile(rf"{STRING_PATTERN}|([#!][A-Za-z_$][\w$]*)(?![\w$.<])", re.ASCII)
_DEEPEST_ALIAS = 200
_ENUM = re.compile(r"#?[\w$.]*<(.*)>", re.ASCII | re.DOTALL)
_SMALL_FLOATS: dict[str, type] = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}


def parse_int(text: str) -> int:
    """`512 : i32` -> 512, `true` -> 1. A hexadecimal integer of a signless or signed type is in two's complement."""
    value = parse_number(text)
    if isinstance(value, float):
        raise Mismatch(f"expected an integer attribute, found {_short(text)}")
    return int(value)


def parse_number(text: str) -> int | float:
    """A number or boolean attribute, or the value that a splat `dense<v> : tensor<...>` repeats.

    A decimal float comes as written (not rounded to its type); a hexadecimal one is the bit pattern of its type.
    """
    text = text.strip()
    if text.startswith("dense<"):
        return _splat(text)
    literal, _, kind = text.partition(":")
    return _number(literal.strip(), kind.strip(), text)


def _number(literal: str, kind: str, text: str) -> int | float:
    """The value of `literal` of type `kind` ("" when not given); `text` is what an error shows."""
    if kind and not (is_integer(kind) or is_float(kind)):
        raise Mismatch(f"expected a number, found {_short(text)}")
    if literal in ("true", "false"):
        return literal == "true"
    if _DECIMAL_INTEGER.fullmatch(literal):
        return float(literal) if is_float(kind) else int(literal)
    if _DECIMAL_FLOAT.fullmatch(literal) and not is_integer(kind):
        return float(literal)
    match = _HEXADECIMAL.fullmatch(literal)
    if match is None:
        raise Mismatch(f"expected a number, found {_short(text)}")
    bits = int(match.group(2), 16)
    if is_float(kind):
        return _float_of_bits(bits, kind, text)
    signed = _integer_of_bits(bits, kind)
    return -signed if match.group(1) else signed


def _integer_of_bits(bits: int, kind: str) -> int:
    """Two's complement in the width of a signless or signed integer type; unchanged for `ui`, `index` and no type."""
    if kind[:1] not in ("i", "s") or kind == "index":
        return bits
    width = bit_width(kind)
    return bits - (1 << width) if width and bits >> (width - 1) == 1 else bits


def _float_of_bits(bits: int, kind: str, text: str) -> float:
    """The value of an IEEE 754 (or bf16, or 8-bit) bit pattern."""
    width = bit_width(kind)
    if bits >> width:
        raise Mismatch(f"{_short(text)} has more bits than its type")
    if kind == "f32":
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    if kind == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if kind == "f16":
        return float(struct.unpack("<e", struct.pack("<H", bits))[0])
    if kind == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    if kind in _SMALL_FLOATS:
        return float(np.array([bits], np.uint8).view(_SMALL_FLOATS[kind])[0])
    raise Mismatch(f"the bit pattern {_short(text)} is of a float type that has no decoder")


def _splat(text: str) -> int | float:
    """The one value of `dense<v> : tensor<...>`, or of `dense<"0x...">` with the bytes of one element."""
    end = balanced_end(text, len("dense"))
    inner = text[len("dense<") : end - 1].strip()
    kind = text[end:].lstrip(" :").strip()
    element = element_type(kind) if kind else ""
    if inner.startswith('"0x'):
        data = bytes.fromhex(inner[3:-1]) if re.fullmatch(r'"0x(?:[0-9A-Fa-f]{2})+"', inner) else b""
        if element and 8 * len(data) == max(8, bit_width(element)):
            return _number(f"0x{int.from_bytes(data, 'little'):x}", element, text)
    if inner.startswith(("[", '"')) or not inner:
        raise Mismatch(f"expected one repeated value, found {_short(text)}")
    return _number(inner, element, text)


def unescape(text: str) -> str:
    r"""The characters of a quoted MLIR string; `\\`, `\"`, `\n`, `\t`, and two hexadecimal digits are a byte."""
    body = text[1:-1]
    if "\\" not in body:
        return body
    raw = _ESCAPE.sub(_escaped_bytes, body.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "surrogateescape")


def _escaped_bytes(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    return bytes.fromhex(code.decode()) if len(code) == 2 else _NAMED_ESCAPES.get(code, code)


def parse_string(text: str) -> str:
    """The characters of `"add"`, and the name of a symbol reference `@main` or `@"my kernel"`."""
    text = text.strip()
    if _STRING.fullmatch(text):
        return unescape(text)
    if _SYMBOL.fullmatch(text):
        return unescape(text[1:]) if text[1] == '"' else text[1:]
    raise Mismatch(f"expected a string attribute, found {_short(text)}")


def parse_array(text: str) -> list[str]:
    """The raw elements of `[1, 2]`, `array<i32: 1, 2>` or `dense<[1, 2]> : tensor<2xi32>`.

    Elements of an `array<f32: ...>` get their type appended, which a hexadecimal one needs for parse_number.
    """
    text = text.strip()
    if text.startswith("[") and balanced_end(text, 0) == len(text):
        return split_top(text[1:-1])
    match = _DENSE_ARRAY.fullmatch(text)
    if match is not None:
        kind, elements = match.group(1), split_top(match.group(2) or "")
        return [f"{element} : {kind}" for element in elements] if is_float(kind) else elements
    if text.startswith("dense<["):
        end = balanced_end(text, len("dense"))
        return parse_array(text[len("dense<") : end - 1])
    raise Mismatch(f"expected an array attribute, found {_short(text)}")


def parse_integers(text: str) -> tuple[int, ...]:
    """The integers of an array attribute: `array<i32: 1, 2, 0>` -> (1, 2, 0)."""
    return tuple(parse_int(element) for element in parse_array(text))


def parse_dictionary(text: str) -> dict[str, str]:
    """`{a = 1 : i32, b}` -> {"a": "1 : i32", "b": "unit"}: keys without quotes, values raw, in the order written."""
    text = text.strip()
    if not text.startswith("{") or balanced_end(text, 0) != len(text):
        raise Mismatch(f"expected a dictionary attribute, found {_short(text)}")
    entries: dict[str, str] = {}
    for entry in split_top(text[1:-1]):
        match = _KEY.match(entry)
        if match is None:
            raise expected(text, text.find(entry, 1), "the name of an attribute")
        name = unescape(match.group()) if entry[0] == '"' else match.group()
        rest = entry[match.end() :].lstrip()
        if rest and not (rest.startswith("=") and rest[1:].strip()):
            what = "a value" if rest == "=" else "'=' and a value"
            raise expected(text, text.find(entry, 1) + len(entry) - len(rest.lstrip("=")), f"{what} for {name!r}")
        if name in entries:
            raise Mismatch(f"attribute {name!r} is given twice")
        entries[name] = rest[1:].strip() if rest else UNIT
    return entries


def parse_enum(text: str) -> str:
    """What an enumeration attribute encloses: `#arith.overflow<none>` -> "none"; also without its name, `<none>`."""
    text = text.strip()
    match = _ENUM.fullmatch(text)
    if match is None or balanced_end(text, text.index("<")) != len(text):
        raise Mismatch(f"expected an enumeration attribute such as #dialect.kind<value>, found {_short(text)}")
    return match.group(1).strip()


class Aliases:
    """The aliases of a module's `text` (`#map = ...`, `!t = ...`), put in the place of their uses in raw text.

    `definitions` maps each name to the offset of its definition and what it means.
    """

    def __init__(self, text: str, definitions: dict[str, tuple[int, str]]) -> None:
        self._text = text
        self._definitions = definitions
        self._expanded: dict[str, str] = {}
        self._open: list[str] = []  # the aliases whose meaning is being expanded

    def expand(self, raw: str) -> str:
        """`raw` without aliases; a `#name` or `!name` that is none stays. Raises MlirSyntaxError for a circular one."""
        known = self._expanded.get(raw)
        if known is None:
            known = _ALIAS_USE.sub(self._meaning, raw) if "#" in raw or "!" in raw else raw
            self._expanded[raw] = known
        return known

    def _meaning(self, use: re.Match[str]) -> str:
        name = use.group(1)
        if name is None or name not in self._definitions:
            return use.group()
        meaning = self._expanded.get(name)
        if meaning is None:
            offset, value = self._definitions[name]
            if name in self._open:
                raise MlirSyntaxError(self._text, offset, f"{name} is defined by itself")
            if len(self._open) == _DEEPEST_ALIAS:
                raise MlirSyntaxError(self._text, offset, f"aliases are nested deeper than {_DEEPEST_ALIAS} levels")
            self._open.append(name)
            meaning = self._expanded[name] = _ALIAS_USE.sub(self._meaning, value)
            self._open.pop()
        return meaning


def _short(text: str) -> str:
    shown = text.strip().replace("\n", " ")
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")
