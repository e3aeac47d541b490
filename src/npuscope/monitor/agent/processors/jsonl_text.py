"""Columns as JSON lines, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.processors.texts import sound


@dataclass(frozen=True)
class Named:
    """A column of texts, by their numbers in the run's strings."""

    numbers: Column


Value = str | Column | Named
Fields = Sequence[tuple[str, Value]]


@dataclass(frozen=True)
class Sheet:
    """Lines of one form. Each field is a key and what stands behind it: the same text in every line, whole numbers, or
    texts; the keys stand in the order in which they are to be written."""

    fields: Fields
    count: int

    def part(self, begin: int, end: int) -> Sheet:
        """Some of the lines."""
        return Sheet([(key, _part(value, begin, end)) for key, value in self.fields], min(end, self.count) - begin)


def _part(value: Value, begin: int, end: int) -> Value:
    if isinstance(value, Named):
        return Named(value.numbers[begin:end])
    return value if isinstance(value, str) else value[begin:end]


class Scribe:
    """Writes sheets. A text of the run is made into JSON once for each place in a line where it stands, together with
    what stands there around it; numbers are made into text a column at a time."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._known: dict[tuple[bytes, bytes], tuple[Column, Column]] = {}

    def text(self, sheet: Sheet) -> bytes:
        """The lines, UTF-8."""
        pieces = self._pieces(sheet)
        matrix = np.empty((sheet.count, len(pieces)), object)
        for place, piece in enumerate(pieces):
            matrix[:, place] = piece
        return b"".join(matrix.ravel().tolist())

    def _pieces(self, sheet: Sheet) -> list[bytes | Column]:
        """What a line consists of: bytes that are the same in every line, and columns of bytes."""
        pieces: list[bytes | Column] = []
        fixed, before, named = b"", b"", None
        for place, (key, value) in enumerate(sheet.fields):
            fixed += b'%c"%s":' % (b"," if place else b"{", key.encode())
            if isinstance(value, str):
                fixed += orjson.dumps(value)
                continue
            if named is not None:
                pieces.append(self._texts(named, before, fixed))
                fixed, named = b"", None
            if isinstance(value, Named):
                before, fixed, named = fixed, b"", value
            elif (value == value[0]).all():
                # Not part of `fixed`: what surrounds a text must not be new in every sheet.
                _append(pieces, fixed + b"%d" % int(value[0]))
                fixed = b""
            else:
                _append(pieces, fixed)
                pieces.append(_digits(value))
                fixed = b""
        fixed += b"}\n"
        if named is None:
            _append(pieces, fixed)
        else:
            pieces.append(self._texts(named, before, fixed))
        return pieces

    def _texts(self, named: Named, before: bytes, after: bytes) -> Column:
        known, made = self._table(before, after)
        numbers = named.numbers
        if not known[numbers].all():
            for number in np.unique(numbers[~known[numbers]]).tolist():
                made[number] = before + orjson.dumps(sound(self._strings.texts[number])) + after
                known[number] = True
        found: Column = made[numbers]
        return found

    def _table(self, before: bytes, after: bytes) -> tuple[Column, Column]:
        """Which strings are made for this place, and what they are."""
        found = self._known.get((before, after))
        if found is None or len(found[0]) < len(self._strings):
            known, made = np.zeros(2 * len(self._strings), bool), np.empty(2 * len(self._strings), object)
            if found is not None:
                known[: len(found[0])], made[: len(found[1])] = found
            found = self._known[before, after] = known, made
        return found


def _append(pieces: list[bytes | Column], fixed: bytes) -> None:
    if pieces and isinstance(pieces[-1], bytes):
        pieces[-1] += fixed
    elif fixed:
        pieces.append(fixed)


def _digits(column: Column) -> Column:
    """Whole numbers as bytes objects."""
    text = orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)
    found = np.empty(len(column), object)
    found[:] = text[1:-1].split(b",")
    return found
