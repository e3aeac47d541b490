"""The events of set_flag and wait_flag: which pipe signals which. Operand a of their rows is the number of one."""

from __future__ import annotations

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
