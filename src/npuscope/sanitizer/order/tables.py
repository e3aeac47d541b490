"""What a batch brings to the compiled loop: its rows, the tables that they refer to, and what their columns mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from npuscope.sanitizer.order.access import WRITE
from npuscope.sanitizer.order.state import PAGE_BITS

SPOIL, REWRITE = 3, 4
"""Roles of writes that leave their bytes undefined, and that change nothing."""
FRAMEWORK = 1
"""Origin of a row that the Ascend C library made."""
GM = 0

ROW_CORE, ROW_PIPE, ROW_OPCODE, ROW_SITE, ROW_ORIGIN, ROW_A, ROW_B, ROW_C, ROW_D = range(9)
"""Rows of the instruction table."""
OF, AS, IN_BUFFER, AT, SHAPE = range(5)
"""Rows of the access table: instruction, role, buffer, address, footprint."""
ACTION, USE, DRAINS, GIVES, TAKES, SIGNAL, OPERAND = range(7)
"""Rows of `Tables.opcodes`."""
BUFFER_SPACE, BUFFER_CORE, BUFFER_PAGE, REGION_LOW, REGION_HIGH = range(5)
"""Rows of `Tables.buffers`: space, core, and of a GM buffer the first page and the bounds of the stretch of memory that
it lies in."""
FIRST_ROW, EXPLICIT_LOWEST, VECTOR_ORDERED, RACES, UNWRITTEN, CORES = range(6)
"""Places in `Tables.settings`: row number of the batch's first instruction; which of the launch's explicit footprints
is the first in the table; whether the chip orders V with itself; what to look for; how many cores there are."""


class Tables(NamedTuple):
    """What a batch brings: its rows, and the tables that they refer to."""

    instruction: np.ndarray
    access: np.ndarray
    opcodes: np.ndarray
    pipes: np.ndarray
    shapes: np.ndarray  # (2, n + 1): where the runs of a footprint begin in `merged` and in `in_order`
    merged: np.ndarray
    in_order: np.ndarray
    explicit_first: np.ndarray
    explicit: np.ndarray
    buffers: np.ndarray
    settings: np.ndarray


@njit(cache=True)
def is_write(role: int) -> bool:
    """Whether an access writes and does not read."""
    return role == WRITE or role == SPOIL or role == REWRITE


@njit(cache=True)
def place_of(
    core_page: np.ndarray, buffers: np.ndarray, settings: np.ndarray, table: np.ndarray, core: int, access: int
) -> tuple[int, int, int, int, int]:
    """(space, first page, lowest address of that page, bounds) of the memory that an access goes to; page -1: it has
    none here."""
    buffer = table[IN_BUFFER, access]
    space = buffers[BUFFER_SPACE, buffer]
    if space == GM:
        low = buffers[REGION_LOW, buffer]
        return space, buffers[BUFFER_PAGE, buffer], low >> PAGE_BITS << PAGE_BITS, low, buffers[REGION_HIGH, buffer]
    owner = buffers[BUFFER_CORE, buffer]
    if owner < 0:
        owner = core
    return space, core_page[owner, space], 0, 0, core_page[settings[CORES], space]


@njit(cache=True)
def sequence_length(shapes: np.ndarray, in_order: np.ndarray, shape: int) -> int:
    """Bytes of a footprint, those that it touches twice counted twice; 0 for an explicit one."""
    size = 0
    if shape >= 0:
        for run in range(shapes[1, shape], shapes[1, shape + 1]):
            size += in_order[1, run] - in_order[0, run]
    return size
