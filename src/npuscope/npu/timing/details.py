"""The operands of each instruction as text, in the manner of the vendor's logs, made when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.npu.timing.operands import Operands
from npuscope.npu.timing.shapes import COUNT2, RUN, TOTAL
from npuscope.trace.events import HardEvent
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Pipe, Space

VENDOR_SPACES = {Space.GM: "OUT"}
VENDOR_PIPES = {Pipe.S: "SCALAR", Pipe.V: "VEC", Pipe.M: "CUBE", Pipe.FIX: "FIXP"}
FLAGS = {"set_flag", "wait_flag"}
COUNTER = 1


def _pipe(pipe: Pipe) -> str:
    return VENDOR_PIPES.get(pipe, pipe.name)


class Details(Sequence[str]):
    """Text of the operands of slice number i, which is row ``row[i]`` of the trace."""

    def __init__(self, rows: LaunchRows, operands: Operands, row: np.ndarray) -> None:
        self._rows = rows
        self._operands = operands
        self._row = row

    def __len__(self) -> int:
        return int(self._row.size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row = int(self._row[int(index)])
        values = {name: int(self._rows.column(name)[row]) for name in ("opcode", "a", "b", "c", "d", "work", "pipe")}
        name = OPCODES.names[values["opcode"]]
        if name in FLAGS:
            return _flag(values)
        if name in ("cross_core_set", "cross_core_wait"):
            return f"PIPE:{_pipe(Pipe(values['pipe']))},FLAGID:{values['a']},MODE:{values['b']}"
        if name == "pipe_barrier":
            return f"PIPE:{_pipe(Pipe(values['pipe']))}"
        return ",".join([*self._accesses(row, values), *_numbers(name, values)])

    def _accesses(self, row: int, values: dict[str, int]) -> list[str]:
        """Where an instruction reads and writes."""
        found, reads = [], 0
        operands = self._operands
        moves = values["pipe"] not in (Pipe.V, Pipe.M, Pipe.S)
        sides: dict[str, str] = {}
        for access in range(*operands.first[row : row + 2]):
            space = Space(int(operands.space[access]))
            side = "Dst" if operands.writes[access] else "Src"
            place = f"0x{int(operands.address[access]):x}"
            if side == "Src" and not moves:
                side, reads = f"Src{reads}", reads + 1
            if side in sides:
                continue
            sides[side] = place
            found.append(f"{side}:{VENDOR_SPACES.get(space, space.name)}")
            found.append(f"{'XD' if side == 'Dst' else 'XN' if reads < 2 else 'XM'}:{place}")
            if moves and space is Space.GM:
                run, count = int(operands.shape[RUN, access]), int(operands.shape[COUNT2, access])
                found.append(f"lenBurst:{run},nBurst:{count},bytes:{int(operands.shape[TOTAL, access])}")
        return sorted(found, key=lambda text: not text.startswith("Dst"))


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
