"""Blocks of device memory that the host allocated, by address, and what became of each."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from dataclasses import dataclass, field

from npuscope.sanitizer.findings import Owner
from npuscope.trace.schema import AFTER_LAUNCH, NO_BLOCK, Site

REMEMBERED = 1 << 16
"""Freed blocks that are kept in mind."""


@dataclass(slots=True)
class Block:
    """One allocation and what became of it."""

    serial: int
    base: int
    size: int
    made: Site
    freed: Site | None = None
    touched: bool = False
    unseen: set[int] = field(default_factory=set)  # launches that received it and were not looked at to their end

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.base + self.size

    def notes(self) -> tuple[str, ...]:
        """Where it was allocated and where freed."""
        lines = [f"The block of {self.size} bytes was allocated {place(self.made)}."]
        if self.freed is not None:
            lines.append(f"It was freed {place(self.freed)}.")
        return tuple(lines)

    def owner(self) -> Owner:
        """The block as the owner of bytes in a finding."""
        return Owner("", "heap", "GM", self.base, self.size, "", (), self.made.frames)


def place(site: Site) -> str:
    """``by rt.malloc at run.py:7``."""
    where = f" at {site.frames[0].file}:{site.frames[0].line}" if site.frames else ""
    if site.name == AFTER_LAUNCH:
        return f"with all other runtime memory when the launch{where} had ended"
    return f"by {site.name}{where}"


class Blocks:
    """Live and freed blocks by device address, which is never used twice."""

    def __init__(self) -> None:
        self.live: dict[int, Block] = {}
        self.freed: OrderedDict[int, Block] = OrderedDict()
        self.by_serial: dict[int, Block] = {}
        self._bases: list[int] = []

    def add(self, block: Block) -> None:
        """A new live block."""
        self.live[block.base] = self.by_serial[block.serial] = block
        insort(self._bases, block.base)

    def free(self, base: int) -> Block | None:
        """Take the live block that starts at `base` out of use, None when there is none."""
        block = self.live.pop(base, None)
        if block is not None:
            self.freed[base] = block
            if len(self.freed) > REMEMBERED:
                self._forget(self.freed.popitem(last=False)[1])
        return block

    def find(self, address: int) -> Block | None:
        """The block, live or freed, that holds an address."""
        if address == NO_BLOCK:
            return None
        at = bisect_right(self._bases, address) - 1
        if at < 0:
            return None
        base = self._bases[at]
        block = self.live.get(base) or self.freed[base]
        return block if address < block.end else None

    def _forget(self, block: Block) -> None:
        del self._bases[bisect_right(self._bases, block.base) - 1]
        del self.by_serial[block.serial]
