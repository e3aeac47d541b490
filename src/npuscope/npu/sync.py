"""What orders what on the device: event flags inside a core, flags between cores, barriers.

This is the only module that knows; race check, deadlock report, debugger and timing ask it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from npuscope.trace.schema import Pipe


class HardEvent(IntEnum):
    """Ordered pipe pairs of set_flag and wait_flag, numbered as Ascend C does (frontends.md 2)."""

    MTE2_MTE1 = 0
    MTE1_MTE2 = 1
    MTE1_M = 2
    M_MTE1 = 3
    MTE2_V = 4
    V_MTE2 = 5
    MTE3_V = 6
    V_MTE3 = 7
    M_V = 8
    V_M = 9
    V_V = 10
    MTE3_MTE1 = 11
    MTE1_MTE3 = 12
    MTE1_V = 13
    MTE2_M = 14
    M_MTE2 = 15
    V_MTE1 = 16
    M_FIX = 17
    FIX_M = 18
    MTE3_MTE2 = 19
    MTE2_MTE3 = 20
    S_V = 21
    V_S = 22
    S_MTE2 = 23
    MTE2_S = 24
    S_MTE3 = 25
    MTE3_S = 26
    MTE2_FIX = 27
    FIX_MTE2 = 28
    FIX_S = 29
    M_S = 30
    FIX_MTE3 = 31
    MTE1_FIX = 32
    FIX_MTE1 = 33
    FIX_FIX = 34

    @property
    def source(self) -> Pipe:
        """The pipe that sets."""
        return Pipe[self.name.split("_")[0]]

    @property
    def target(self) -> Pipe:
        """The pipe that waits."""
        return Pipe[self.name.split("_")[1]]


SOURCE_PIPE = {int(event): int(event.source) for event in HardEvent}
TARGET_PIPE = {int(event): int(event.target) for event in HardEvent}

AIC_PIPES = frozenset({Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX})
AIV_PIPES = frozenset({Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3})


@dataclass(frozen=True, slots=True)
class Wait:
    """What a core is waiting for, for the deadlock report."""

    core: int
    pipe: int
    what: str  # for people: "flag MTE2_V id 0", "cross-core flag 3 (mode 2)", "SyncAll"
    site: int


class CoreFlags:
    """The binary event flags of one core: one per (event, id) (hardware.md 3.2)."""

    __slots__ = ("set_rows",)

    def __init__(self) -> None:
        self.set_rows: dict[tuple[int, int], int] = {}

    def set(self, event: int, number: int, row: int) -> bool:
        """Raise a flag; False when it was already up (undefined on the device, saturates here)."""
        key = (event, number)
        fresh = key not in self.set_rows
        self.set_rows[key] = row
        return fresh

    def take(self, event: int, number: int) -> int:
        """Lower a flag that is up and return the row that set it; -1 when it is down."""
        return self.set_rows.pop((event, number), -1)
