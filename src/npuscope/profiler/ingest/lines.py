"""A popped or retire log as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from npuscope.profiler.ingest import scan
from npuscope.profiler.ingest.text import LogText, read_parts


@dataclass(frozen=True)
class Lines:
    """The instructions of a log in its order: `columns` are those of `scan.scan_instructions`, `words` the (pipe,
    mnemonic) pairs that column WORD numbers, `held` what operands hold (scan.BRACKETS, scan.QUOTES). `cut` says that
    the last line was cut off and is left out."""

    text: LogText
    columns: np.ndarray
    words: Sequence[tuple[str, str]]
    held: int = 0
    cut: bool = False

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @property
    def tick(self) -> np.ndarray:
        """Cycle of each line."""
        return self.columns[scan.TICK]

    @property
    def pc(self) -> np.ndarray:
        """Address of each instruction."""
        return self.columns[scan.PC]

    @property
    def ident(self) -> np.ndarray:
        """The ``(ID: n)`` of each line, -1 where it has none."""
        return self.columns[scan.IDENT]

    @property
    def word(self) -> np.ndarray:
        """Which pipe and mnemonic each line has."""
        return self.columns[scan.WORD]

    @property
    def starts(self) -> np.ndarray:
        """Where the operands of each line begin."""
        return self.columns[scan.START]

    @property
    def ends(self) -> np.ndarray:
        """Where they end."""
        return self.columns[scan.END]

    @cached_property
    def mnemonics(self) -> list[str]:
        """The mnemonic of each word."""
        return [mnemonic for _, mnemonic in self.words]

    def named(self, wanted: Callable[[str], bool]) -> np.ndarray:
        """Which lines have a mnemonic that is `wanted`, (lines,) bool."""
        return np.array([wanted(mnemonic) for mnemonic in self.mnemonics], np.bool_)[self.word]

    def only(self, keep: np.ndarray) -> Lines:
        """The lines that a mask (lines,) keeps."""
        return self if keep.all() else replace(self, columns=self.columns[:, keep])

    def numbers(self, keys: Sequence[bytes], rows: np.ndarray) -> np.ndarray:
        """The number after the first of `keys` that the operands of each of `rows` have, UNKNOWN without."""
        return self.text.first_numbers(keys, self.starts[rows], self.ends[rows])

    def holding(self, pattern: bytes, rows: np.ndarray) -> np.ndarray:
        """Those of `rows` whose operands have `pattern`."""
        return rows[self.text.spans_with(pattern, self.starts[rows], self.ends[rows])]

    def detail(self, row: int) -> str:
        """The operands of one line as they stand."""
        return self.text.word(int(self.starts[row]), int(self.ends[row]))


def read_lines(parts: Sequence[Path]) -> Lines:
    """The instructions of a log. Raises OSError."""
    text = read_parts(parts)
    columns, spans, held = scan.scan_instructions(text.letters)
    words = [
        (text.word(pipe, pipe_end), text.word(name, name_end)) for pipe, pipe_end, name, name_end in spans.T.tolist()
    ]
    cut = text.cut and not (columns.shape[1] and columns[scan.START, -1] >= text.last_line)
    return Lines(text, columns, words, held, cut)
