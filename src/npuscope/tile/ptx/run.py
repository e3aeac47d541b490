"""Runs PTX instructions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from npuscope.tile.ptx.convert import convert
from npuscope.tile.ptx.numbers import OPERATIONS, compare
from npuscope.tile.ptx.parse import Instruction, PtxError
from npuscope.tile.ptx.registers import TYPES, Registers

CLOCKS = {"%globaltimer", "%clock64", "%clock"}
COMBINED: dict[str, np.ufunc] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
SPECIAL = ("mov", "cvt", "setp", "selp")


def known(instruction: Instruction) -> bool:
    """Whether the instruction can be run."""
    return instruction.name in OPERATIONS or instruction.name in SPECIAL


def run(instructions: Sequence[Instruction], registers: Registers) -> None:
    """Execute straight code. Raises PtxError for what is not known."""
    for instruction in instructions:
        guard = None
        if instruction.guard:
            guard = registers.read(instruction.guard, "pred") ^ instruction.unless
        _step(instruction, registers, guard)


def _step(instruction: Instruction, registers: Registers, guard: np.ndarray | None) -> None:
    name, kind = instruction.name, instruction.suffixes[-1] if instruction.suffixes else ""
    if name == "mov":
        _move(instruction, registers, guard, kind)
        return
    if name == "setp":
        _set_predicate(instruction, registers, guard, kind)
        return
    target, *sources = (operand for operand in instruction.operands if isinstance(operand, str))
    if len(sources) + 1 != len(instruction.operands):
        raise PtxError(f"has the PTX instruction {instruction.text} with a vector operand, which is not supported")
    reads = [partial(registers.read, word) for word in sources]
    if name == "cvt":
        result = convert(instruction, reads)
    elif name == "selp":
        one, other = (registers.read(source, kind) for source in sources[:2])
        holds = registers.read(sources[2], "pred")
        result = np.where(holds[:, None] if one.ndim == 2 else holds, one, other)
    elif name in OPERATIONS:
        result = OPERATIONS[name](instruction, reads)
    else:
        raise PtxError(f"has the PTX instruction {instruction.text}, which is not supported")
    registers.write(target, result, guard)


def _move(instruction: Instruction, registers: Registers, guard: np.ndarray | None, kind: str) -> None:
    target, source = instruction.operands
    if isinstance(target, tuple):
        assert isinstance(source, str)
        whole = np.ascontiguousarray(registers.read(source, kind))
        parts = whole[:, None].view(f"u{whole.dtype.itemsize // len(target)}")
        for place, name in enumerate(target):
            if name != "_":
                registers.write(name, parts[:, place], guard)
    elif isinstance(source, tuple):
        width = TYPES[kind].itemsize // len(source)
        parts = np.stack([registers.read(word, f"b{8 * width}") for word in source], axis=1)
        registers.write(target, parts.view(f"u{TYPES[kind].itemsize}")[:, 0], guard)
    elif source in CLOCKS:
        registers.write(target, np.full(registers.groups, time.monotonic_ns(), np.uint64), guard)
    else:
        registers.write(target, registers.read(source, kind), guard)


def _set_predicate(instruction: Instruction, registers: Registers, guard: np.ndarray | None, kind: str) -> None:
    target, one, other, *more = instruction.operands
    assert isinstance(target, str) and isinstance(one, str) and isinstance(other, str)
    holds = compare(instruction.suffixes[0], registers.read(one, kind), registers.read(other, kind))
    names = [word.strip() for word in target.split("|")]
    results = [holds[:, 0], holds[:, 1]] if holds.ndim == 2 else [holds, ~holds]
    for name, result in zip(names, results, strict=False):
        for word in more:
            third = registers.read(str(word), "pred")
            result = COMBINED[instruction.suffixes[1]](result, third)
        registers.write(name, result, guard)
