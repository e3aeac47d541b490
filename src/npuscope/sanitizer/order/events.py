"""What an instruction orders, told from its trace row, as small numbers for compiled code.

An agent is a pipe of a core. Agents know of each other through messages: a row that *releases* leaves a message with
all that its agent knows and has completed, a row that *acquires* takes one up. Which row takes which message is in the
trace: event flags by (event, id), cross-core flags by ticket, exchanges through memory by the slot's address.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from npuscope.trace.schema import OPCODES, Pipe

PIPES = (Pipe.S, Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
"""The agents of a core, by their number in the engine."""
S, V, M, MTE1, MTE2, MTE3, FIX = range(len(PIPES))
ALL = len(PIPES)

SLOT_OF_PIPE = np.full(max(Pipe) + 1, S, np.int64)
"""The engine's number of a trace pipe."""
for _slot, _pipe in enumerate(PIPES):
    SLOT_OF_PIPE[_pipe] = _slot
SLOT_OF_PIPE[Pipe.ALL] = ALL


class Action(IntEnum):
    """What a row does to the order of things."""

    NONE = 0
    SET_FLAG = 1
    WAIT_FLAG = 2
    BARRIER = 3
    CROSS_SET = 4
    CROSS_WAIT = 5
    SYNC_ALL = 6
    EXCHANGE = 7  # IBSet and IBWait: one hands a slot in memory to the other, both ways
    PASS_ON = 8  # NotifyNextBlock
    TAKE_OVER = 9  # WaitPreBlock
    POST = 10  # a Matmul client's message
    NOTIFY = 11  # its server's answer
    WAIT_NOTIFY = 12
    DATA_BARRIER = 13
    KERNEL_END = 14
    MULTIPLY = 15
    FIXPIPE = 16
    POLL = 17  # a scalar load; a of its row says whether a loop asks for it again and again


_ACTIONS = {
    "set_flag": Action.SET_FLAG,
    "wait_flag": Action.WAIT_FLAG,
    "pipe_barrier": Action.BARRIER,
    "cross_core_set": Action.CROSS_SET,
    "cross_core_wait": Action.CROSS_WAIT,
    "sync_all": Action.SYNC_ALL,
    "ib_set": Action.EXCHANGE,
    "ib_wait": Action.EXCHANGE,
    "notify_next_block": Action.PASS_ON,
    "wait_pre_block": Action.TAKE_OVER,
    "kfc_post": Action.POST,
    "kfc_notify": Action.NOTIFY,
    "kfc_wait": Action.WAIT_NOTIFY,
    "data_sync_barrier": Action.DATA_BARRIER,
    "kernel_end": Action.KERNEL_END,
    "mmad": Action.MULTIPLY,
    "mmad_sparse": Action.MULTIPLY,
    "fixpipe": Action.FIXPIPE,
    "scalar_load": Action.POLL,
}



@dataclass(frozen=True, slots=True)
class Signal:
    """How a row takes part in a message between cores: whether it gives or takes, the message's kind, and which row of
    the instruction table (0: the core, 5 to 8: a to d) tells messages of one kind apart."""

    kind: int
    operand: int
    gives: bool = False
    takes: bool = False


_SIGNALS = {
    Action.CROSS_SET: Signal(2, 8, gives=True),
    Action.CROSS_WAIT: Signal(2, 8, takes=True),
    Action.SYNC_ALL: Signal(3, 7, gives=True, takes=True),  # arriving gives, leaving takes
    Action.EXCHANGE: Signal(4, 8, gives=True, takes=True),
    Action.PASS_ON: Signal(5, 8, gives=True),
    Action.TAKE_OVER: Signal(5, 8, takes=True),
    Action.NOTIFY: Signal(6, 6, gives=True),
    Action.WAIT_NOTIFY: Signal(6, 0, takes=True),
}
_DRAINS = frozenset({Action.EXCHANGE, Action.PASS_ON, Action.TAKE_OVER})
"""Actions before which the scalar unit waits for all pipes."""
CROSSING = frozenset({*_SIGNALS, Action.POST, Action.POLL})
"""Actions that let one core know of another."""


class Use(IntEnum):
    """What an instruction makes of bytes that were never written."""

    FINAL = 0  # they decide something, or leave the core
    LANES = 1  # the n-th element of a result comes from the n-th of its sources; results and sources come in groups
    EACH = 2  # the same, of every result and every source
    BLOCKS = 3  # elements change places
    NONE = 4  # nothing: the row only shows memory


_LANES = frozenset(
    {
        "copy_gm_to_ub",
        "vabs", "vabssub", "vadd", "vadddeqrelu", "vaddrelu", "vaddreluconv", "vadds", "vand", "vaxpy", "axpy",
        "vcmp", "vcmpv", "vcmpvs", "vconv", "vconv_deq", "vcopy", "vdiv", "vexp", "vexpsub", "vln", "vlrelu",
        "vmadd", "vmaddrelu", "vmax", "vmaxs", "vmin", "vmins", "vmla", "vmul", "vmulconv", "vmuls", "vneg",
        "vnot", "vor", "vprelu", "vrec", "vrelu", "vrsqrt", "vsel", "vshl", "vshr", "vsqrt", "vsub", "vsubrelu",
        "vsubreluconv", "copy_ub_to_ub", "copy_ub_to_l1", "copy_l1_to_bt", "copy_l1_to_fb", "copy_l1_to_ub",
        "copy_l1_to_l0a", "copy_l1_to_l0b", "load_data",
    }
)
_EACH = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "clamp_max", "clamp_min", "cos", "cosh",
        "digamma", "erf", "erfc", "exp", "floor", "frac", "lgamma", "log", "power", "quant", "round", "sign",
        "sin", "sinh", "tan", "tanh", "trunc", "xor",
    }
)
_BLOCKS = ("load_data_transposed", "load_data_3d", "vtranspose", "vnchwconv", "transpose_4d", "load_data_sparse")
_SHOWN = ("dump_tensor", "printf", "dcci", "dcache_preload")

FULL_TILE = 10
"""Mmads that accumulate into one L0C tile need a barrier below this many fractals (hardware.md 3.2)."""


class OpcodeTable:
    """`table` (7, opcodes): action, use, whether it drains, and the signal: gives, takes, kind << 60, operand."""

    def __init__(self) -> None:
        self.table = np.empty((7, 0), np.int64)

    def grow(self) -> None:
        """Take in the opcodes that are new."""
        names = OPCODES.names[self.table.shape[1] :]
        if names:
            fresh = np.array([_column(name) for name in names], np.int64).T
            self.table = np.ascontiguousarray(np.concatenate([self.table, fresh], axis=1))


def _column(name: str) -> tuple[int, ...]:
    action = _ACTIONS.get(name, Action.NONE)
    signal = _SIGNALS.get(action, Signal(0, 0))
    return action, _use(name), action in _DRAINS, signal.gives, signal.takes, signal.kind << 60, signal.operand


def _use(name: str) -> Use:
    for use, names in ((Use.LANES, _LANES), (Use.EACH, _EACH), (Use.BLOCKS, _BLOCKS), (Use.NONE, _SHOWN)):
        if name in names:
            return use
    return Use.FINAL
