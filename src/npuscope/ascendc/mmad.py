"""Mmad and the registers that change how it computes."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.cube import Multiply, multiply, multiply_sparse
from npuscope.npu.isa.move import runs_here
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

_LEGACY = ("m", "n", "k", "is_bias", "fm_offset", "en_ssparse", "en_winograd_a", "en_winograd_b")
_CURRENT = ("m", "n", "k", "unit_flag", "cmatrix_source", "cmatrix_init_val")
FIELDS.update({"mmad_params": {"m": 0, "n": 0, "k": 0}})
"""MmadParams has two constructors, told apart by the number of arguments."""

S = int(Pipe.S)
SET_HF32, SET_LAYOUT = opcode("set_hf32"), opcode("set_mm_layout")
MM_LAYOUT = "mm_row_major"
"""Register: whether Mmad walks n before m (SetMMRowMajor); a matter of the order of writes only."""


def _given(params: Record) -> dict[str, Any]:
    """The fields that the constructor was given; the legacy ones beside isBias mean nothing on the chips simulated here
    (vendor's Mmad page)."""
    names = _LEGACY if len(params.values) == len(_LEGACY) else _CURRENT
    return dict(zip(names, params.values, strict=False))


def _shape(params: Record) -> Multiply:
    """MmadParams with the vendor's defaults; isBias (accumulate onto L0C) is the older spelling of cmatrixInitVal
    off."""
    given = _given(params)
    return Multiply(
        params.m, params.n, params.k,
        zero=bool(given.get("cmatrix_init_val", True)) and not given.get("is_bias", False),
        from_bias=bool(given.get("cmatrix_source", False)),
        unit_flag=int(given.get("unit_flag", 0)),
    )


@operation("ascendc.mmad")
def mmad(core: Core, site: int, target: Tensor, left: Tensor, right: Tensor, params: Record) -> None:
    """C = init + A B (MmadParams): init is 0, or the row at the start of BT (cmatrixSource), or C itself."""
    if runs_here(core, target, left, right):
        multiply(core, site, target, left, right, None, _shape(params))


@operation("ascendc.mmad_with_bias")
def mmad_with_bias(
    core: Core, site: int, target: Tensor, left: Tensor, right: Tensor, bias: Tensor, params: Record
) -> None:
    """C = bias + A B with the bias row in BT; it is used where cmatrixInitVal is false (the vendor's default, true,
    starts from 0). A bias in L0C stands for C itself."""
    if not runs_here(core, target, left, right, bias):
        return
    space = bias.memory.space
    if space not in (Space.BT, Space.L0C):
        raise UserError(f"Mmad takes its bias from BT (TPosition C2) or L0C (CO1), not from {space.name}")
    if bias.dtype != target.dtype:
        raise UserError(f"Mmad needs a bias of the type of its result, {target.dtype}, not {bias.dtype}")
    given = _given(params)  # isBias means nothing in this form
    shape = Multiply(
        params.m, params.n, params.k, bool(given.get("cmatrix_init_val", True)), space == Space.BT,
        int(given.get("unit_flag", 0)),
    )
    multiply(core, site, target, left, right, bias, shape)


@operation("ascendc.mmad_with_sparse")
def mmad_with_sparse(core: Core, site: int, target: Tensor, left: Tensor, right: Tensor, params: Record) -> None:
    """C = init + A B where B was loaded with its index matrix by LoadDataWithSparse."""
    if runs_here(core, target, left, right):
        multiply_sparse(core, site, target, left, right, _shape(params))


@operation("ascendc.set_hf32_mode")
def set_hf32_mode(core: Core, site: int, mode: bool) -> None:
    """Whether Mmad shortens float operands to HF32."""
    if core.chip.split and core.is_aiv:
        return
    core.begin(site, S, SET_HF32, int(mode))
    core.registers.hf32 = bool(mode)


@operation("ascendc.set_hf32_trans_mode")
def set_hf32_trans_mode(core: Core, site: int, mode: bool) -> None:
    """How HF32 rounds: true to nearest with ties toward zero, false to nearest even (`numbers.Hf32Mode` on the
    sources)."""
    if core.chip.split and core.is_aiv:
        return
    core.begin(site, S, SET_HF32, int(mode), 1)
    core.registers.hf32_toward_zero = bool(mode)


@operation("ascendc.set_mm_layout_transform")
def set_mm_layout_transform(core: Core, site: int, mode: bool) -> None:
    """Whether Mmad walks along n first. It changes the order in which L0C is written, not what is written."""
    if core.chip.split and core.is_aiv:
        return
    core.begin(site, S, SET_LAYOUT, int(mode))
    core.registers.values[MM_LAYOUT] = bool(mode)
