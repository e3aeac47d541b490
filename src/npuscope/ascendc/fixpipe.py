"""Fixpipe: results out of L0C (hardware.md 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.fixpipe import FIXPIPE, PRE_QUANT, VECTOR_MODES, Output, write_out
from npuscope.npu.isa.move import Blocks, copy_runs, runs_here
from npuscope.npu.layout import BLOCK
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Origin, Pipe, Space

FIELDS.update(
    {
        "fixpipe_params_v220": {
            "n_size": 0, "m_size": 0, "src_stride": 0, "dst_stride": 0, "relu_en": False, "quant_pre": 0,
            "deq_scalar": 0, "nd_num": 1, "src_nd_stride": 0, "dst_nd_stride": 0, "unit_flag": 0,
            "is_channel_split": False,
        },
        "fixpipe_config": {"layout": 1},
    }
)

S, FIX = int(Pipe.S), int(Pipe.FIX)
SET_PRE_QUANT, BARRIER = opcode("set_fixpipe_pre_quant"), opcode("pipe_barrier")
NZ, ROW_MAJOR = 0, 1
WORDS_AT_ONCE = 256
"""Quantisation words that fit FB; for more columns the library takes half as many at a time (vendor's library)."""


def _output(core: Core, destination: Tensor, params: Record, config: Record) -> Output:
    layout = int(config.layout)
    if layout not in (NZ, ROW_MAJOR):
        raise UserError(f"Fixpipe with FixpipeParamsV220 writes layout NZ or ROW_MAJOR, not CO2Layout number {layout}")
    row_major = layout == ROW_MAJOR
    if destination.memory.space == Space.L1 and core.chip.arch != "3510":
        row_major = False  # the row-major configuration has no effect there (vendor's Fixpipe page, L0C to L1)
    return Output(
        params.n_size, params.m_size, params.src_stride, params.dst_stride, int(params.quant_pre),
        word=int(params.deq_scalar), relu=bool(params.relu_en), row_major=row_major,
        channel_split=bool(params.is_channel_split), matrices=params.nd_num, source_step=params.src_nd_stride,
        step=params.dst_nd_stride, unit_flag=int(params.unit_flag),
    )


@operation("ascendc.fixpipe")
def fixpipe(core: Core, site: int, destination: Tensor, source: Tensor, params: Record, config: Record) -> None:
    """L0C to GM or L1 without quantisation or with one word for all columns (FixpipeParamsV220)."""
    if not runs_here(core, destination, source):
        return
    output = _output(core, destination, params, config)
    if output.quant in VECTOR_MODES:
        raise UserError("Fixpipe with a quantisation word a column needs cbuf_workspace, which holds the words in L1")
    write_out(core, site, destination, source, output)


@operation("ascendc.fixpipe_with_workspace")
def fixpipe_with_workspace(
    core: Core, site: int, destination: Tensor, source: Tensor, workspace: Tensor, params: Record, config: Record
) -> None:
    """L0C to GM or L1 with one quantisation word a column, which `workspace` (uint64 in L1) holds.

    The library copies the words to FB before, for more than 256 columns 128 at a time. Without a vector mode it moves
    nothing, which is noted as a fault.
    """
    if not runs_here(core, destination, source, workspace):
        return
    output = _output(core, destination, params, config)
    if output.quant not in VECTOR_MODES:
        core.begin(site, FIX, FIXPIPE, output.rows, output.columns, output.quant, output.unit_flag)
        core.fault(
            "bad_operand", what="the quantisation mode of Fixpipe with cbuf_workspace", value=output.quant,
            limit="VDEQF16, VQF322B8_PRE or VREQ8 (otherwise nothing is moved)",
        )
        return
    columns = output.columns
    at_once = columns if columns <= WORDS_AT_ONCE else WORDS_AT_ONCE // 2
    for first in range(0, columns, max(at_once, 1)):
        part = min(at_once, columns - first)
        words = _load_words(core, site, workspace, first, part)
        target, origin = _advanced(destination, source, output, first)
        write_out(core, site, target, origin, replace(output, columns=part, words=words))


def _load_words(core: Core, site: int, workspace: Tensor, first: int, count: int) -> Tensor:
    """The words of columns `first` on, copied to the start of FB."""
    unit = 64 if core.chip.arch == "3510" else 128
    nbytes = -(-count * 8 // unit) * unit
    number = core.raw_tensor(Space.FB, 0, nbytes, site, "fixpipe words", "uint64")
    words = Tensor(core.memories[Space.FB], 0, np.dtype(np.uint64), number, count)
    copy_runs(core, site, words, shifted(workspace, first * 8), Blocks(1, nbytes // unit, 0, 0, unit, BLOCK, 128, True))
    core.begin(site, FIX, BARRIER, origin=Origin.FRAMEWORK)
    return words


def _advanced(destination: Tensor, source: Tensor, output: Output, first: int) -> tuple[Tensor, Tensor]:
    """Destination and source `first` columns (a multiple of 128) further on."""
    size = destination.dtype.itemsize
    origin = shifted(source, first // 16 * output.source_stride * 64)
    if output.row_major:
        return shifted(destination, first * size), origin
    width = 32 if size == 1 else 16
    return shifted(destination, first // width * output.stride * BLOCK), origin


@operation("ascendc.set_fixpipe_pre_quant_flag")
def set_fixpipe_pre_quant_flag(core: Core, site: int, config: int) -> None:
    """The quantisation word of later DataCopy instructions out of L0C in a scalar mode."""
    if core.chip.split and core.is_aiv:
        return
    core.begin(site, S, SET_PRE_QUANT)
    core.registers.values[PRE_QUANT] = config
