"""Device memory that the host allocates: wrong frees, copies beyond a block, late uses, leaks, memory for nothing.

The host's events come in order with the launches, so that a block is live or freed exactly when a kernel uses it.
Arrays that a script merely passes to kernels are no blocks: nothing is said about them here, except, when asked, that
no kernel touched them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from npuscope.sanitizer.blocks import Block, Blocks
from npuscope.sanitizer.findings import Collector, Finding, Owner, Severity, launched
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import (
    AFTER_LAUNCH,
    HOST_MEMORY,
    NO_BLOCK,
    NO_LAUNCH,
    Buffer,
    HostEvent,
    HostKind,
    Launch,
    Site,
    SourceFrame,
)

UNFINISHED = frozenset(["stopped", "deadlock", "trap", "launch_too_large"])
"""Faults after which it is not known what the kernel would have touched."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with one operation of the host."""

    kind: str
    address: int
    block: Block | None
    size: int
    summary: str
    advice: str


@dataclass(slots=True)
class Heap:
    """Takes every batch of a trace (`host`), and of the launches that are looked at what they touched (`touch`)."""

    collector: Collector
    leaks: bool = False
    unused: bool = False
    blocks: Blocks = field(default_factory=Blocks)
    _arguments: dict[tuple[str, str], tuple[Launch, Buffer]] = field(default_factory=dict)
    _used: set[tuple[str, str]] = field(default_factory=set)

    # -- host ----------------------------------------------------------------------------------------------------

    def host(self, batch: Batch) -> None:
        """The host's events before a batch, and the blocks that its launch receives."""
        act = {HostKind.MALLOC: self._malloc, HostKind.FREE: self._free, HostKind.COPY: self._copy,
               HostKind.SET: self._copy}
        for event in batch.host:
            act[event.kind](event, batch.sites)
        if self.blocks.by_serial and batch.first == 0:  # a launch has its arguments from the start
            received = {item.block for item in batch.buffers if item.block != NO_BLOCK}
            for serial in received & self.blocks.by_serial.keys():
                self.blocks.by_serial[serial].unseen.add(batch.launch.index)

    def _malloc(self, event: HostEvent, sites: Sequence[Site]) -> None:
        self.blocks.add(Block(event.serial, event.target, event.size, sites[event.site]))

    def _free(self, event: HostEvent, sites: Sequence[Site]) -> None:
        site = sites[event.site]
        block = self.blocks.free(event.target)
        if block is not None:
            block.freed = site
            return
        known = self.blocks.find(event.target)
        self._add(event, site, Wrong("illegal-free", event.target, known, 0, *_wrong_free(event, known)))

    def _copy(self, event: HostEvent, sites: Sequence[Site]) -> None:
        for address, kind, does in (event.source, "illegal-read", "reads"), (event.target, "illegal-write", "writes"):
            if address != HOST_MEMORY:
                for wrong in self._side(event, address, kind, f"the copy {does}"):
                    self._add(event, sites[event.site], wrong)

    def _side(self, event: HostEvent, address: int, kind: str, does: str) -> Iterator[Wrong]:
        """One side of a copy against the block that it is meant for."""
        block = self.blocks.find(address)
        if block is None:
            summary = f"{does} {event.size} bytes of device memory that no block holds"
            yield Wrong(kind, address, None, event.size, summary, "Pass a pointer that rt.malloc returned.")
            return
        block.touched = True
        if block.freed is not None:
            summary = f"{does} a block that is free already"
            yield Wrong("use-after-free", address, block, event.size, summary, "Copy before the free.")
        over = address + event.size - block.end
        if over > 0:
            summary = f"{does} {over} bytes past the end of a block of {block.size}"
            advice = f"Copy at most {block.end - address} bytes, or allocate more."
            yield Wrong(kind, address, block, over, summary, advice)

    def _add(self, event: HostEvent, site: Site, wrong: Wrong) -> None:
        block = wrong.block
        finding = Finding(
            wrong.kind, Severity.ERROR, wrong.summary, wrong.advice, "", NO_LAUNCH, (),
            owner=block.owner() if block else None, size=wrong.size, notes=block.notes() if block else (),
            facts={"address": wrong.address, "serial": event.serial}, frames=site.frames,
        )
        self.collector.add(("host", wrong.kind, site, block.made if block else None, wrong.summary), finding)

    # -- kernels -------------------------------------------------------------------------------------------------

    def touch(self, batch: Batch, touched: np.ndarray) -> np.ndarray:
        """Take in which access rows of a batch touch bytes; returns those that touch a block which is free."""
        if not self.unused and not self.blocks.by_serial:
            return np.empty(0, np.int64)
        numbers = np.unique(batch.access_column("buffer")[touched])
        owners = [batch.buffers[int(number)] for number in numbers]
        if self.unused:
            self._used.update((batch.launch.kernel, item.name) for item in owners if item.kind == "argument")
        stale = [int(number) for number, item in zip(numbers, owners, strict=True) if self._take(item.block)]
        rows: np.ndarray = np.flatnonzero(touched & np.isin(batch.access_column("buffer"), stale))
        return rows

    def _take(self, serial: int) -> bool:
        """Note that a kernel touches a block; whether it is free."""
        block = self.blocks.by_serial.get(serial) if serial != NO_BLOCK else None
        if block is None:
            return False
        block.touched = True
        return block.freed is not None

    def end(self, batch: Batch) -> None:
        """A launch that was looked at has ended."""
        if any(fault.code in UNFINISHED for fault in batch.faults):
            return
        for item in batch.buffers:
            block = self.blocks.by_serial.get(item.block)
            if block is not None:
                block.unseen.discard(batch.launch.index)
            if self.unused and item.kind == "argument" and item.size and block is None:
                self._arguments.setdefault((batch.launch.kernel, item.name), (batch.launch, item))

    # -- what is known at the end --------------------------------------------------------------------------------

    @property
    def findings(self) -> list[Finding]:
        """Leaks and unused memory, as things stand now."""
        found = []
        if self.leaks:
            found += [self._leak(*group) for group in _by_line(list(self.blocks.live.values()))]
        if self.unused:
            everything = [*self.blocks.live.values(), *self.blocks.freed.values()]
            waste = [block for block in everything if not block.touched and not block.unseen]
            found += [self._unused(*group) for group in _by_line(waste)]
            found += [_unused_argument(*self._arguments[key]) for key in self._arguments if key not in self._used]
        return found

    def _leak(self, site: Site, blocks: list[Block]) -> Finding:
        return _about_blocks(
            "leak", Severity.ERROR, site, blocks, lambda size: f"{size} bytes of device memory are never freed",
            "Free the block with rt.free when nothing uses it any more.",
        )

    def _unused(self, site: Site, blocks: list[Block]) -> Finding:
        return _about_blocks(
            "unused-memory", Severity.WARNING, site, blocks,
            lambda size: f"{size} bytes of device memory are allocated, but no copy and no kernel touches them",
            "Remove the allocation, or use it.",
        )


def _wrong_free(event: HostEvent, known: Block | None) -> tuple[str, str]:
    """What is wrong with a free and what to do, from the block that holds the pointer."""
    if known is None:
        return "what is freed is no block of device memory that is in use", "Free once, what rt.malloc returned."
    if known.freed is None:
        inside = event.target - known.base
        return f"the pointer is {inside} bytes into a block, not its start", "Free the pointer that rt.malloc returned."
    if known.freed.name == AFTER_LAUNCH:
        return "the block was freed before", "pyasc frees all runtime memory after a launch: remove this free."
    return "the block was freed before", "Remove the second free."


def _by_line(blocks: list[Block]) -> list[tuple[Site, list[Block]]]:
    """Blocks grouped by where they were allocated, in order of allocation."""
    groups: dict[Site, list[Block]] = {}
    for block in sorted(blocks, key=lambda block: block.serial):
        groups.setdefault(block.made, []).append(block)
    return list(groups.items())


def _about_blocks(
    kind: str, severity: Severity, site: Site, blocks: list[Block], summary: Callable[[int], str], advice: str
) -> Finding:
    size = sum(block.size for block in blocks)
    return Finding(
        kind, severity, summary(size), advice, "", NO_LAUNCH, (), owner=blocks[0].owner(), size=size, count=len(blocks),
        facts={"blocks": [[block.base, block.size, block.serial] for block in blocks]}, frames=site.frames,
    )


def _unused_argument(launch: Launch, buffer: Buffer) -> Finding:
    frames: tuple[SourceFrame, ...] = (launch.frame,) if launch.frame is not None else ()
    return Finding(
        "unused-memory", Severity.WARNING, f"{buffer.name} is passed to the kernel, which never reads or writes it",
        "Remove the argument, or use it.", launch.kernel, launch.index, (),
        owner=Owner(buffer.name, buffer.kind, buffer.space.name, buffer.base, buffer.size, buffer.dtype, buffer.shape),
        size=buffer.size, launched=launched(launch), launch_frame=launch.frame, frames=frames,
    )
