"""Where the ways of the programs part: everybody walks through, and those that take no part keep what they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npuscope.tile.affine import Affine, dense
from npuscope.tile.machine import Machine
from npuscope.tile.pointer import Pointer
from npuscope.tile.shapes import choose


class Branch:
    """An `if`: asked first for those that hold the condition, then for the others."""

    __slots__ = ("_machine", "_outer", "_chosen", "_some", "_rest")

    def __init__(self, machine: Machine, condition: Any) -> None:
        self._machine = machine
        self._outer = machine.active
        chosen = dense(condition).reshape(-1)
        if self._outer is not None:
            taken = chosen & self._outer
            self._some, self._rest = bool(taken.any()), bool((self._outer & ~chosen).any())
        else:
            self._some, self._rest = bool(chosen.any()), not chosen.all()
        self._chosen = chosen

    def holds(self) -> bool:
        """Whether the first part is for anybody; it is theirs from now on."""
        if self._some and self._rest:
            self._machine.active = self._chosen if self._outer is None else self._chosen & self._outer
        return self._some

    def fails(self) -> bool:
        """Whether the second part is for anybody; it is theirs from now on."""
        if self._some and self._rest:
            self._machine.active = ~self._chosen if self._outer is None else ~self._chosen & self._outer
        return self._rest

    def end(self) -> None:
        """Everybody goes on together."""
        self._machine.active = self._outer

    def merge(self, one: Any, other: Any) -> Any:
        """The value of the first part for those who took it, of the second for the others."""
        if not self._rest:
            return one
        if not self._some:
            return other
        return blend(self._chosen, one, other)


class Loop:
    """A counted loop; programs that have done all their turns wait for the others."""

    __slots__ = ("_machine", "_outer", "_low", "_high", "_step", "_bits", "_parts")

    def __init__(self, machine: Machine, low: Any, high: Any, step: Any) -> None:
        self._machine = machine
        self._outer = machine.active
        self._bits = low.bits if isinstance(low, Affine) else dense(low).dtype.itemsize * 8
        self._low, self._high, self._step = (_numbers(bound, self._outer) for bound in (low, high, step))
        self._parts = not all(isinstance(bound, int) for bound in (self._low, self._high, self._step))

    def __iter__(self) -> Iterator[Affine]:
        if not self._parts:
            look = self._machine.look_at_clock
            for value in range(self._low, self._high, self._step):
                look()
                yield Affine(value, (), (), self._bits)
            return
        low, step = self._low, self._step
        turns = np.broadcast_to(np.maximum(-((low - self._high) // step), 0), (self._machine.count,))
        outer = self._outer
        for turn in range(int((turns if outer is None else turns[outer]).max(initial=0))):
            self._machine.look_at_clock()
            left = turn < turns
            self._machine.active = left if outer is None else left & outer
            yield Affine(low + turn * step, (), (), self._bits)
        self._machine.active = outer

    def carry(self, new: Any, old: Any) -> Any:
        """What a value becomes at the end of a turn."""
        active = self._machine.active
        return new if not self._parts or active is None or new is old else blend(active, new, old)


class Turns:
    """A loop that goes on while a condition holds; programs for which it fails wait for the others."""

    __slots__ = ("_machine", "_outer", "_parts")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._outer = machine.active
        self._parts = False

    def keep(self, new: Any, old: Any) -> Any:
        """What is passed on by those who are still in the loop."""
        return new if old is None or not self._parts else blend(_active(self._machine), new, old)

    def go_on(self, condition: Any) -> bool:
        """Whether anybody takes another turn; it is theirs from now on."""
        self._machine.look_at_clock()
        holds = dense(condition).reshape(-1)
        active = self._machine.active
        left = holds if active is None else holds & active
        if not left.any():
            self._machine.active = self._outer
            return False
        if not left.all() and (active is None or (left != active).any()):
            self._parts = True
            self._machine.active = np.broadcast_to(left, (self._machine.count,))
        return True

    def carry(self, new: Any, old: Any) -> Any:
        """What a value becomes at the end of a turn."""
        return new if not self._parts or new is old else blend(_active(self._machine), new, old)


class Paths:
    """Blocks that jump forward only: who is to enter which."""

    __slots__ = ("_machine", "_outer", "_waiting")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._outer = machine.active
        self._waiting: dict[int, np.ndarray] = {}

    def _here(self) -> np.ndarray:
        return _active(self._machine)

    def jump(self, block: int) -> None:
        """Those who are here enter `block`."""
        self._add(block, self._here())

    def part(self, condition: Any, block: int, other: int) -> None:
        """Those for whom the condition holds enter `block`, the rest `other`."""
        holds = np.broadcast_to(dense(condition).reshape(-1), (self._machine.count,))
        here = self._here()
        self._add(block, here & holds)
        self._add(other, here & ~holds)

    def _add(self, block: int, who: np.ndarray) -> None:
        known = self._waiting.get(block)
        self._waiting[block] = who if known is None else known | who

    def enter(self, block: int) -> bool:
        """Whether anybody enters; the block is theirs from now on."""
        who = self._waiting.pop(block, None)
        if who is None or not who.any():
            return False
        self._machine.active = None if who.all() else who
        return True

    def pass_on(self, new: Any, old: Any, condition: Any = None, holds: bool = True) -> Any:
        """A block's argument: the new value for those who go there from here."""
        if old is None:
            return new
        who = self._here()
        if condition is not None:
            taken = np.broadcast_to(dense(condition).reshape(-1), (self._machine.count,))
            who = who & (taken if holds else ~taken)
        return blend(who, new, old)

    def end(self) -> None:
        """Everybody is through."""
        self._machine.active = self._outer


def blend(who: np.ndarray, one: Any, other: Any) -> Any:
    """One value for some programs, another for the rest."""
    if one is other:
        return one
    if isinstance(one, Pointer):
        rank = len(one.address.shape) if isinstance(one.address, Affine) else one.address.ndim - 1
    else:
        rank = len(one.shape) if not isinstance(one, np.ndarray) else one.ndim - 1
    if isinstance(one, Affine) and isinstance(other, Affine) and one.strides == other.strides:
        return Affine(np.where(who, one.base, other.base), one.strides, one.shape, one.bits)
    return choose(who.reshape((-1,) + (1,) * rank), one, other)


def _active(machine: Machine) -> np.ndarray:
    return np.ones(machine.count, np.bool_) if machine.active is None else machine.active


def _numbers(value: Any, active: np.ndarray | None) -> Any:
    """A bound as one number where those who take part agree, else as an array."""
    base = value.base if isinstance(value, Affine) else dense(value).reshape(-1).astype(np.int64)
    if isinstance(base, int):
        return base
    seen = base if active is None or base.size == 1 else base[active]
    if seen.size and (seen == seen[0]).all():
        return int(seen[0])
    return base
