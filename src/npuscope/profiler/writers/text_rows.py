"""Many lines of text from whole columns: the fast way to a JSON file of a million events.

Every row of a :class:`Sheet` is written by one of its forms; a form is a sequence of literal bytes and of fields that
take their value from a column of the row. One compiled loop does it all, so that a row costs what copying it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

CHUNK, ROOM = 1 << 12, 1 << 21
"""Rows that are laid out at a time, and bytes that they may take (one row may take more): so little that they are still
in the processor's cache when the system takes them over."""
LONGEST_NUMBER = 28
LITERAL, TEXT, WHOLE, MICROS, NANOS, HEX = range(6)


@dataclass(frozen=True, slots=True)
class Text:
    """A field that is one of the texts of the sheet; the column holds its number."""

    column: int


@dataclass(frozen=True, slots=True)
class Whole:
    """A field that is the column's integer."""

    column: int


@dataclass(frozen=True, slots=True)
class Micros:
    """A field that is the column's integer divided by a million, with all six decimals: picoseconds as microseconds."""

    column: int


@dataclass(frozen=True, slots=True)
class Nanos:
    """A field that is the column's integer divided by a thousand, with three decimals: nanoseconds as microseconds."""

    column: int


@dataclass(frozen=True, slots=True)
class Hex:
    """A field that is the column's integer in hexadecimal digits, nothing where it is negative."""

    column: int


Field = bytes | Text | Whole | Micros | Nanos | Hex
_KINDS = {Text: TEXT, Whole: WHOLE, Micros: MICROS, Nanos: NANOS, Hex: HEX}


class Texts:
    """Texts by number. They are written as they are: escape them first (`quoted`)."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, text: bytes) -> int:
        """The number of a text; equal texts share one."""
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return known

    def numbers(self, texts: Iterable[bytes]) -> np.ndarray:
        """The numbers of several texts, (texts,) int64."""
        return np.array([self.number(text) for text in texts], np.int64)

    def more(self, texts: Sequence[bytes]) -> int:
        """Add texts without asking whether they are known; the number of the first, the others follow."""
        first = len(self._texts)
        self._texts.extend(texts)
        return first

    def packed(self) -> tuple[np.ndarray, np.ndarray]:
        """All texts joined, (bytes,) uint8, and where each begins, (texts + 1,) int64."""
        starts = np.zeros(len(self._texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self._texts), np.int64, len(self._texts)), out=starts[1:])
        return np.frombuffer(b"".join(self._texts) or b"\0", np.uint8), starts


def quoted(text: str) -> bytes:
    """A JSON string, with its quotes; text that is no Unicode (a file name of odd bytes) is written with escapes."""
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError:
        return orjson.dumps(text.encode("utf-8", "backslashreplace").decode())


@dataclass(slots=True)
class Sheet:
    """Rows to write. `columns` is (columns, rows) int64, `form` (rows,) says which of `forms` writes a row, None that
    the first writes them all."""

    texts: Texts
    forms: Sequence[Sequence[Field]]
    columns: np.ndarray
    form: np.ndarray | None = None

    def chunks(self) -> Iterator[memoryview]:
        """The text of all rows in order, a piece at a time; each is gone when the next one comes."""
        from npuscope.profiler.writers.text_loop import fill

        parts, bounds = self._parts()
        blob, starts = self.texts.packed()
        count = self.columns.shape[1]
        form = self.form if self.form is not None else np.zeros(count, np.int64)
        columns = np.ascontiguousarray(self.columns)
        width = max(self._width(parts, bounds, np.diff(starts)), 1)
        rows = max(min(CHUNK, ROOM // width, count), 1)
        out = np.empty(rows * width, np.uint8)
        for first in range(0, count, rows):
            last = min(first + rows, count)
            yield out.data[: fill(parts, bounds, form, columns, first, last, blob, starts, out)]

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The forms as numbers: (parts, 2) of kind and argument (a text for literals, else a column), and the bounds of
        each form in it, (forms + 1,)."""
        parts: list[tuple[int, int]] = []
        bounds = [0]
        for form in self.forms:
            for field in form:
                if isinstance(field, bytes):
                    parts.append((LITERAL, self.texts.number(field)))
                else:
                    parts.append((_KINDS[type(field)], field.column))
            bounds.append(len(parts))
        return np.array(parts, np.int64).reshape(-1, 2), np.array(bounds, np.int64)

    def _width(self, parts: np.ndarray, bounds: np.ndarray, sizes: np.ndarray) -> int:
        """Bytes that no row exceeds."""
        longest: dict[int, int] = {}  # text of each column
        widths = [0]
        for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            width = 0
            for kind, argument in parts[first:end].tolist():
                if kind == LITERAL:
                    width += int(sizes[argument])
                elif kind == TEXT:
                    if argument not in longest:  # where another form takes a number from the column, this is too much
                        longest[argument] = int(sizes.take(self.columns[argument], mode="clip").max(initial=0))
                    width += longest[argument]
                else:
                    width += LONGEST_NUMBER
            widths.append(width)
        return max(widths)
