"""Runs a grid: batches of programs in the order of their numbers, or one by one where they wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npuscope.tile.machine import Machine

BATCH_ELEMENTS = 1 << 18
"""Elements of the largest tile that a batch of programs may hold together: what still fits the second-level cache."""
MOST_PROGRAMS = 4096
WINDOW = 64
"""Programs that run by turns when they may wait for each other."""


def run(machine: Machine, entry: Callable[..., Any], arguments: Sequence[Any], largest: int, yields: bool) -> None:
    """Run all programs of the machine's grid."""
    width, height, depth = machine.grid
    total = width * height * depth
    with np.errstate(all="ignore"):
        if yields:
            _by_turns(machine, entry, arguments, total)
            return
        batch = max(1, min(MOST_PROGRAMS, BATCH_ELEMENTS // largest))
        for first in range(0, total, batch):
            machine.begin(first, min(batch, total - first))
            entry(machine, *arguments)


def _by_turns(machine: Machine, entry: Callable[..., Any], arguments: Sequence[Any], total: int) -> None:
    """Each program runs until its loop has to wait for others; then the next has its turn."""
    running: list[tuple[int, Any]] = []
    following = 0
    while running or following < total:
        while following < total and len(running) < WINDOW:
            machine.begin(following, 1)
            running.append((following, entry(machine, *arguments)))
            following += 1
        for program, steps in list(running):
            machine.begin(program, 1)
            try:
                next(steps)
            except StopIteration:
                running.remove((program, steps))
