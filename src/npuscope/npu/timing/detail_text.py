"""The operands of one instruction as text, in the manner of the vendor's logs (opprof.md 2.5, 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from npuscope.trace.events import HardEvent
from npuscope.trace.schema import OPCODES, Pipe, Space

SPACES = {int(space): space.name for space in Space} | {int(Space.GM): "OUT"}
PIPES = {int(pipe): pipe.name for pipe in Pipe} | {
    int(Pipe.S): "SCALAR", int(Pipe.V): "VEC", int(Pipe.M): "CUBE", int(Pipe.FIX): "FIXP",
}  # fmt: skip
NO_MOVES = frozenset(int(pipe) for pipe in (Pipe.V, Pipe.M, Pipe.S))
FLAG, CROSS, BARRIER, MMAD, FIXPIPE, VECTOR, OTHER = range(7)
GM, V = int(Space.GM), int(Pipe.V)
COUNTER = 1
WORD = (1 << 64) - 1

Access = tuple[int, int, int, int, int, int]
"""Space, whether it writes, address, bytes of a run, runs, bytes in all."""


def operand_text(opcode: int, pipe: int, a: int, b: int, c: int, d: int, work: int, accesses: Sequence[Access]) -> str:
    """The operands of a row with these columns and accesses."""
    kind = _kind(opcode)
    if kind == FLAG:
        source, target = _flag_pipes(a)
        return f"PIPE:{source},TRIGGERPIPE:{target},FLAGID:{b}"
    if kind == CROSS:
        return f"PIPE:{PIPES[pipe]},FLAGID:{a},MODE:{b}"
    if kind == BARRIER:
        return f"PIPE:{PIPES[pipe]}"
    moves = pipe not in NO_MOVES
    found = _copied(accesses) if moves else _computed(accesses)
    if kind == MMAD:
        found.append(f"m:{a},n:{b},k:{c},unitFlag:{d & 3}")
    elif kind == FIXPIPE:
        found.append(f"mSize:{a},nSize:{b},bytes:{work}")
    elif kind == VECTOR and pipe == V:
        found.append(f"count:{c}" if b == COUNTER else f"repeat:{a},mask:0x{d & WORD:016x}{c & WORD:016x}")
    elif work and (moves or pipe == int(Pipe.M)):
        found.append(f"bytes:{work}")
    return ",".join(found)


@cache
def _kind(opcode: int) -> int:
    """How the operands of an instruction are written."""
    name = OPCODES.names[opcode]
    known = {"set_flag": FLAG, "wait_flag": FLAG, "cross_core_set": CROSS, "cross_core_wait": CROSS,
             "pipe_barrier": BARRIER, "fixpipe": FIXPIPE}  # fmt: skip
    return known.get(name, MMAD if name.startswith("mmad") else VECTOR if name.startswith("v") else OTHER)


@cache
def _flag_pipes(event: int) -> tuple[str, str]:
    known = HardEvent(event)
    return PIPES[known.source], PIPES[known.target]


def _copied(accesses: Sequence[Access]) -> list[str]:
    """Where a copy writes and reads, and what of GM."""
    target = source = ""
    for space, writes, address, run, count, total in accesses:
        burst = f",lenBurst:{run},nBurst:{count},bytes:{total}" if space == GM else ""
        if writes and not target:
            target = f"Dst:{SPACES[space]},XD:0x{address:x}{burst}"
        elif not writes and not source:
            source = f"Src:{SPACES[space]},XN:0x{address:x}{burst}"
    return [side for side in (target, source) if side]


def _computed(accesses: Sequence[Access]) -> list[str]:
    """Where an instruction that computes writes and reads."""
    target: list[str] = []
    sources: list[str] = []
    for space, writes, address, _, _, _ in accesses:
        if writes:
            if not target:
                target = [f"Dst:{SPACES[space]},XD:0x{address:x}"]
        else:
            register = "XM" if sources else "XN"
            sources.append(f"Src{len(sources)}:{SPACES[space]},{register}:0x{address:x}")
    return target + sources
