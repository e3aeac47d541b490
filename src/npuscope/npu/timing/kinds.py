"""What the timing model makes of an instruction, told from the name of its row."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from npuscope.trace.schema import OPCODES, Pipe


class Kind(IntEnum):
    """How an instruction runs."""

    SCALAR = 0  # on the scalar unit, in a fixed time
    WORK = 1  # on a pipe, in a time that its operands give
    COPY = 2  # on a pipe, through the memory that all cores share
    SET = 3  # fires when what its pipe did before is done
    WAIT = 4  # lets its pipe go on when what it waits for has fired
    BARRIER = 5  # lets its pipe go on when what it did before is done
    DRAIN = 6  # the scalar unit waits for all pipes
    END = 7  # the same, at the kernel's end
    LOAD_UB = 8  # scalar access to UB
    STORE_UB = 9
    LOAD_GM = 10  # scalar access to GM through the data cache
    STORE_GM = 11
    RESULT = 12  # the scalar unit reads what the vector unit left in a register


PIPES = (Pipe.S, Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
S, V, M, MTE1, MTE2, MTE3, FIX = range(len(PIPES))
SLOTS = len(PIPES)
"""The scalar unit and the pipes of a core, by their number in the model."""

SLOT_OF_PIPE = np.zeros(max(Pipe) + 1, np.int64)
"""The model's number of a trace pipe; ALL counts as S, which is what issues it."""
for _slot, _pipe in enumerate(PIPES):
    SLOT_OF_PIPE[_pipe] = _slot

_KINDS = {
    "set_flag": Kind.SET, "cross_core_set": Kind.SET, "kfc_post": Kind.SET, "kfc_notify": Kind.SET,
    "wait_flag": Kind.WAIT, "cross_core_wait": Kind.WAIT, "kfc_wait": Kind.WAIT, "ib_set": Kind.WAIT,
    "ib_wait": Kind.WAIT, "wait_pre_block": Kind.WAIT, "notify_next_block": Kind.WAIT,
    "pipe_barrier": Kind.BARRIER, "data_sync_barrier": Kind.DRAIN, "sync_all": Kind.DRAIN, "kernel_end": Kind.END,
    "get_rsvd_cnt": Kind.RESULT, "get_vms4_sr": Kind.RESULT,
    "scalar_load": Kind.LOAD_UB, "scalar_store": Kind.STORE_UB,
}  # fmt: skip

_SPECIAL = {"vexp", "vln", "vsqrt", "vdiv", "vexpsub"}
_MULTIPLY_ADD = {"vmla", "vmadd", "vmaddrelu", "vreducev2"}
_RATES = {
    "vcadd": "reduce", "vcmax": "reduce", "vcmin": "reduce",
    "vcgadd": "reduce_block", "vcgmax": "reduce_block", "vcgmin": "reduce_block",
    "vgather": "gather", "vscatter": "gather", "vgatherb": "gather_block",
    "vbitsort": "sort", "vmrgsort4": "sort",
    **dict.fromkeys(_SPECIAL, "special"), **dict.fromkeys(_MULTIPLY_ADD, "multiply_add"),
}  # fmt: skip
"""Class of a vector instruction where it is not ``plain`` (hardware.md 6.2)."""

COMPOSED = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "floor",
        "frac", "lgamma", "log", "round", "sign", "sin", "sinh", "tan", "tanh", "trunc", "exp", "power", "xor", "axpy",
        "clamp_max", "clamp_min", "rmsnorm", "quant", "softmax", "simple_softmax", "cumsum", "reduce_sum",
        "reduce_max", "reduce_min", "sort", "extract", "vconcat", "vextract", "transpose_4d", "bilinear_interpolation",
    }
)  # fmt: skip
"""Calls that the library makes of several vector instructions, in one row."""

_CALLS = {
    "que_alloc": "queue", "que_free": "queue", "que_enque": "queue", "que_deque": "queue",
    "set_flag": "flag", "wait_flag": "flag", "cross_core_set": "flag", "cross_core_wait": "flag",
    "pipe_barrier": "barrier", "data_sync_barrier": "barrier", "mmad": "mmad", "mmad_sparse": "mmad",
    "fixpipe": "fixpipe", "scalar_load": "scalar", "scalar_store": "scalar",
    "set_mask_count": "mask", "set_mask_norm": "mask", "set_vector_mask": "mask", "reset_mask": "mask",
    "kfc_post": "matmul", "kfc_notify": "matmul", "kfc_wait": "matmul",
}  # fmt: skip


def kind_of(name: str) -> Kind:
    """How an instruction of that name runs; WORK where only its pipe tells."""
    return _KINDS.get(name, Kind.WORK)


def rate_class(name: str) -> str:
    """The class of a vector instruction in the chip's table of rates."""
    return _RATES.get(name, "plain")


def call_class(name: str, pipe: int) -> str:
    """The class of a call in the chip's table of what calls cost the scalar unit; `pipe` as in the trace."""
    if name in _CALLS:
        return _CALLS[name]
    if name in COMPOSED:
        return "composed"
    if pipe == Pipe.V:
        return "vector"
    if name.startswith("load_data") or pipe == Pipe.MTE1:
        return "load"
    return "copy" if pipe in (Pipe.MTE2, Pipe.MTE3, Pipe.FIX) else "other"


_MNEMONICS = {
    "copy_gm_to_ub": "MOV_OUT_TO_UB", "copy_ub_to_gm": "MOV_UB_TO_OUT", "copy_gm_to_l1": "MOV_OUT_TO_L1",
    "copy_l1_to_gm": "MOV_L1_TO_OUT", "copy_ub_to_ub": "MOV_UB_TO_UB", "copy_ub_to_l1": "MOV_UB_TO_L1",
    "copy_l1_to_ub": "MOV_L1_TO_UB", "copy_l1_to_bt": "MOV_L1_TO_BT", "copy_l1_to_fb": "MOV_L1_TO_FB",
    "copy_gm_to_l0a": "LOAD_OUT_TO_L0A", "copy_gm_to_l0b": "LOAD_OUT_TO_L0B", "copy_l1_to_l0a": "LOAD_L1_TO_L0A",
    "copy_l1_to_l0b": "LOAD_L1_TO_L0B", "copy_l0c_to_gm": "FIX_L0C_TO_OUT", "copy_l0c_to_l1": "FIX_L0C_TO_L1",
    "copy_l0c_to_ub": "MOV_L0C_TO_UB", "load_data": "LOAD_2D", "load_data_3d": "LOAD_3D",
    "load_data_transposed": "LOAD_2D_TRANSPOSE", "load_data_sparse": "LOAD_SPARSE", "fixpipe": "FIX_L0C_TO_OUT",
    "pipe_barrier": "BAR", "data_sync_barrier": "DSB", "scalar_load": "LD", "scalar_store": "ST",
    "vector_dup": "VECTOR_DUP", "kernel_end": "END", "cross_core_set": "SET_CROSS_CORE",
    "cross_core_wait": "WAIT_FLAG_DEV",
}  # fmt: skip


def mnemonic(name: str) -> str:
    """An instruction as the vendor's logs spell it where that is known, else its name in capitals."""
    return _MNEMONICS.get(name, name.upper())


def by_opcode(opcodes: np.ndarray, value: Callable[[str], float], dtype: Any = np.int64) -> np.ndarray:
    """``value(name)`` for each row of an opcode column."""
    table = np.array([value(name) for name in OPCODES.names], dtype)
    return table[opcodes] if opcodes.size else np.empty(0, dtype)
