"""The operands of each instruction as text, in the manner of the vendor's logs, made when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.npu.timing.detail_keys import COLUMNS, SHAPE, operand_keys
from npuscope.npu.timing.operands import Operands
from npuscope.trace.events import HardEvent
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Pipe, Space

VENDOR_SPACES = {Space.GM: "OUT"}
VENDOR_PIPES = {Pipe.S: "SCALAR", Pipe.V: "VEC", Pipe.M: "CUBE", Pipe.FIX: "FIXP"}
FLAGS = {"set_flag", "wait_flag"}
COUNTER = 1


GM = int(Space.GM)
SPACES = {int(space): VENDOR_SPACES.get(space, space.name) for space in Space}
PIPES = {int(pipe): VENDOR_PIPES.get(pipe, pipe.name) for pipe in Pipe}
NO_MOVES = frozenset(int(pipe) for pipe in (Pipe.V, Pipe.M, Pipe.S))


def _pipe(pipe: int) -> str:
    return PIPES[pipe]


class Details(Sequence[str]):
    """Text of the operands of slice number i, which is row ``row[i]`` of the trace."""

    def __init__(self, rows: LaunchRows, operands: Operands, row: np.ndarray) -> None:
        self._rows = rows
        self._operands = operands
        self._row = row
        self._columns = [rows.column(name) for name in COLUMNS]
        self._facts = [operands.space, operands.writes, operands.address, *(operands.shape[part] for part in SHAPE)]

    def __len__(self) -> int:
        return int(self._row.size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._texts(np.arange(*index.indices(len(self))))
        row = int(self._row[range(len(self))[int(index)]])
        values = {name: int(column[row]) for name, column in zip(COLUMNS, self._columns, strict=True)}
        between = range(*self._operands.first[row : row + 2].tolist())
        return _text(values, [tuple(int(fact[access]) for fact in self._facts) for access in between])

    def distinct(self, which: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The texts that differ among those of slices `which`, and (those,) int64 which of them each has."""
        keys = operand_keys(self._rows, self._operands, self._row[which])
        _, examples, place = np.unique(keys, return_index=True, return_inverse=True)
        return self._texts(which[examples]), place

    def _texts(self, which: np.ndarray) -> list[str]:
        """The texts of some slices; columns become plain numbers all at once."""
        rows = self._row[which]
        columns = [column[rows].tolist() for column in self._columns]
        first = self._operands.first[rows]
        counts = self._operands.first[rows + 1] - first
        bounds = np.concatenate(([0], np.cumsum(counts)))
        place = np.repeat(first - bounds[:-1], counts) + np.arange(bounds[-1])
        accesses = list(zip(*(fact[place].tolist() for fact in self._facts), strict=True))
        limits = bounds.tolist()
        return [
            _text(dict(zip(COLUMNS, values, strict=True)), accesses[limits[number] : limits[number + 1]])
            for number, values in enumerate(zip(*columns, strict=True))
        ]


def _text(values: dict[str, int], accesses: list[tuple[Any, ...]]) -> str:
    name = OPCODES.names[values["opcode"]]
    if name in FLAGS:
        return _flag(values)
    if name in ("cross_core_set", "cross_core_wait"):
        return f"PIPE:{_pipe(values['pipe'])},FLAGID:{values['a']},MODE:{values['b']}"
    if name == "pipe_barrier":
        return f"PIPE:{_pipe(values['pipe'])}"
    return ",".join([*_accesses(values["pipe"], accesses), *_numbers(name, values)])


def _accesses(pipe: int, accesses: list[tuple[Any, ...]]) -> list[str]:
    """Where an instruction reads and writes: the first access of each side."""
    target: list[str] = []
    sources: list[str] = []
    reads, moves = 0, pipe not in NO_MOVES
    for space, writes, address, run, count, total in accesses:
        found = target if writes else sources
        if (writes or moves) and found:
            continue
        side = "Dst" if writes else "Src" if moves else f"Src{reads}"
        reads += not (writes or moves)
        found.append(f"{side}:{SPACES[space]},{'XD' if writes else 'XN' if reads < 2 else 'XM'}:0x{address:x}")
        if moves and space == GM:
            found.append(f"lenBurst:{run},nBurst:{count},bytes:{total}")
    return target + sources


def _flag(values: dict[str, int]) -> str:
    event = HardEvent(values["a"])
    return f"PIPE:{_pipe(event.source)},TRIGGERPIPE:{_pipe(event.target)},FLAGID:{values['b']}"


def _numbers(name: str, values: dict[str, int]) -> list[str]:
    """Sizes and masks."""
    if name.startswith("mmad"):
        return [f"m:{values['a']}", f"n:{values['b']}", f"k:{values['c']}", f"unitFlag:{values['d'] & 3}"]
    if name == "fixpipe":
        return [f"mSize:{values['a']}", f"nSize:{values['b']}", f"bytes:{values['work']}"]
    if values["pipe"] == Pipe.V and name.startswith("v"):
        if values["b"] == COUNTER:
            return [f"count:{values['c']}"]
        words = values["d"] & (1 << 64) - 1, values["c"] & (1 << 64) - 1
        return [f"repeat:{values['a']}", f"mask:0x{words[0]:016x}{words[1]:016x}"]
    return [f"bytes:{values['work']}"] if values["work"] and values["pipe"] not in (Pipe.S, Pipe.V) else []
