"""Runs a grid: batches of programs in the order of their numbers, or one by one where they wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from math import prod
from typing import Any

import numpy as np

from npuscope.tile.machine import Machine
from npuscope.tile.overdue import Overdue
from npuscope.tile.stuck import Stuck, Watch, place_of

BATCH_ELEMENTS = 1 << 18
"""Elements of the largest tile that a batch of programs may hold together: what still fits the second-level cache."""
MOST_PROGRAMS = 4096
WINDOW = 64
"""Programs that run by turns when they may wait for each other."""


def run(
    machine: Machine, entry: Callable[..., Any], arguments: Sequence[Any], largest: int, yields: bool,
    parts: Sequence[range] = (),
) -> None:  # fmt: skip
    """Run the programs of the machine's grid: all, or those of `parts`.

    Raises Overdue when that takes longer than the machine's clock allows, and Stuck when it can never end.
    """
    chosen = parts or [range(prod(machine.grid))]
    with np.errstate(all="ignore"):
        if yields:
            _by_turns(machine, entry, arguments, chain.from_iterable(chosen))
            return
        batch = max(1, min(MOST_PROGRAMS, BATCH_ELEMENTS // largest))
        for part in chosen:
            for first in range(part.start, part.stop, batch):
                machine.begin(first, min(batch, part.stop - first))
                try:
                    entry(machine, *arguments)
                    machine.look_at_clock()
                except Overdue as overdue:
                    overdue.stand(_together(machine, first, overdue))
                    raise


def _together(machine: Machine, first: int, overdue: Overdue) -> Iterator[tuple[int, str]]:
    """Where the programs of a batch stand: those that take part at the same line, where the others wait for them."""
    place = overdue.place()
    for number in range(machine.count):
        active = machine.active is None or bool(machine.active.reshape(-1)[number])
        yield first + number, place if active else f"{place} (waiting for the others)"


def _by_turns(machine: Machine, entry: Callable[..., Any], arguments: Sequence[Any], programs: Iterator[int]) -> None:
    """Each program runs until its loop has to wait for others; then the next has its turn."""
    running = [(number, entry(machine, *arguments)) for number in islice(programs, WINDOW)]
    watch = Watch()
    while running:
        count = len(running)
        machine.changed = False
        for number, steps in list(running):
            machine.begin(number, 1)
            try:
                next(steps)
            except StopIteration:
                running.remove((number, steps))
                running.extend((other, entry(machine, *arguments)) for other in islice(programs, 1))
            except Overdue as overdue:
                places = ((other, _place(steps_) or overdue.place()) for other, steps_ in running)
                overdue.stand(places)
                raise
        ended = len(running) != count or machine.changed
        if running and watch.stuck(ended, [steps for _, steps in running]):
            more = [(number, entry(machine, *arguments)) for number in islice(programs, WINDOW)]
            if not more:  # else the one that all wait for may be among them
                raise Stuck([(number, place_of(steps)) for number, steps in running])
            running += more


def _place(steps: Any) -> str:
    """Where a program waits, "" for one that has ended."""
    frame = steps.gi_frame
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
