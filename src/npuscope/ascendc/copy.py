"""DataCopy and DataCopyPad in their levels: counts, blocks, bytes with padding, slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.fixpipe import copy_fractals
from npuscope.npu.isa.fractal import Slice, copy_slices
from npuscope.npu.isa.move import (
    Blocks,
    Padding,
    copy_blocks,
    copy_pad_in,
    copy_pad_out,
    copy_run,
    copy_runs,
    runs_here,
)
from npuscope.npu.isa.plain import plain_run
from npuscope.npu.layout import BLOCK
from npuscope.npu.numbers import dtype_of
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

FIELDS.update(
    {
        "slice_info": {"start_index": 0, "end_index": 0, "stride": 0, "burst_len": 0, "shape_value": 0},
        "data_copy_enhanced_params": {
            "block_mode": 0, "deq_scale": 0, "deq_value": 0, "sid_store_mode": 0, "is_relu": False, "pad_mode": 0,
            "pad_value": 0,
        },
    }
)

S = int(Pipe.S)
SET_PAD_VALUE = opcode("set_pad_value")
PAD_VALUE = "pad_value"
"""Register: bits of the fill value of DataCopyPad, absent until set."""


@operation("ascendc.data_copy_l2")
def data_copy_l2(core: Core, site: int, destination: Tensor, source: Tensor, count: int) -> None:
    """`count` contiguous elements; what lies beyond a multiple of the path's block (32 bytes, to BT 64 bytes on NPU
    arch 2201, to FB 128 bytes) is not copied (sanitizer.md 5.2)."""
    if plain_run(core, site, destination, source, count) or not runs_here(core, destination, source):
        return
    nbytes = count * source.dtype.itemsize
    unit = _block(core, destination)
    if unit == BLOCK:
        copy_run(core, site, destination, source, nbytes - nbytes % BLOCK)
    else:
        copy_runs(core, site, destination, source, _blocks(core, destination, 1, nbytes // unit, 0, 0))
    if nbytes % unit:
        core.fault("copy_truncated", bytes=nbytes % unit, unit=unit)


@operation("ascendc.data_copy_l0")
def data_copy_l0(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """Runs of blocks with gaps: DataCopyParams(block_count, block_len, src_stride, dst_stride).

    Blocks and gaps are of 32 bytes; on the way to BT and FB the units are those of `_blocks`. L1 to BT takes half (and
    on NPU arch 3510 bfloat16_t) for float.
    """
    if not runs_here(core, destination, source):
        return
    _check_conversion(core, destination, source)
    numbers = (params.block_count, params.block_len, params.src_stride, params.dst_stride)
    if destination.memory.space in (Space.BT, Space.FB):
        copy_runs(core, site, destination, source, _blocks(core, destination, *numbers))
    else:
        copy_blocks(core, site, destination, source, *numbers)


@operation("ascendc.data_copy_enhanced")
def data_copy_enhanced(
    core: Core, site: int, destination: Tensor, source: Tensor, params: Record, enhanced: Record
) -> None:
    """The block form; the additional parameters only mean something for moves from and to L0C (vendor's DataCopy page,
    L0C to UB), of which 16 x 16 fractals without quantisation are simulated."""
    if Space.L0C not in (source.memory.space, destination.memory.space):
        data_copy_l0(core, site, destination, source, params)
        return
    if source.memory.space != Space.L0C or enhanced.block_mode != 1 or enhanced.deq_scale != 0:
        raise Unsupported(
            "DataCopy with DataCopyEnhancedParams is simulated from L0C with BLOCK_MODE_MATRIX and DEQ_NONE; "
            "use Fixpipe for other moves out of L0C"
        )
    if runs_here(core, destination, source):
        copy_fractals(
            core, site, destination, source, params.block_count, params.block_len, params.src_stride,
            params.dst_stride, bool(enhanced.is_relu),
        )


def _block(core: Core, destination: Tensor) -> int:
    """Bytes of a block on the way to `destination` (vendor's pages of DataCopy from L1 to BiasTable and Fixpipe
    buffer)."""
    newer = core.chip.arch == "3510"
    if destination.memory.space == Space.BT:
        return 32 if newer else 64
    if destination.memory.space == Space.FB:
        return 64 if newer else 128
    return BLOCK


def _blocks(core: Core, destination: Tensor, count: int, length: int, source_gap: int, gap: int) -> Blocks:
    """L1 to BT: gaps from end to start, the source's in 32 bytes and the other in blocks. L1 to FB: distances from
    start to start, the source's in 32 bytes and the other in 128 (vendor's pages)."""
    unit = _block(core, destination)
    if destination.memory.space == Space.FB:
        return Blocks(count, length, source_gap, gap, unit, BLOCK, 128, heads=True)
    return Blocks(count, length, source_gap, gap, unit, BLOCK, unit)


def _check_conversion(core: Core, destination: Tensor, source: Tensor) -> None:
    if destination.memory.space != Space.BT or destination.dtype.itemsize == source.dtype.itemsize:
        return
    taken = [dtype_of("half")] + ([dtype_of("bfloat16_t")] if core.chip.arch == "3510" else [])
    if destination.dtype != np.float32 or source.dtype not in taken:
        raise UserError(f"DataCopy from L1 to BT cannot make {destination.dtype} of {source.dtype} on {core.chip.name}")


# -- byte-granular copies ----------------------------------------------------------------------------------------------


def _copy_pad(core: Core, site: int, destination: Tensor, source: Tensor, params: Record, padding: Padding) -> None:
    if not runs_here(core, destination, source):
        return
    numbers = (params.block_count, params.block_len, params.src_stride, params.dst_stride)
    if destination.memory.space == Space.GM:
        copy_pad_out(core, site, destination, source, *numbers)
    else:
        copy_pad_in(core, site, destination, source, *numbers, padding)


def _padding(core: Core, pad: Record, bits: int) -> Padding:
    """Padding elements of a copy into UB. isPad puts its value into the register that SetPadValue sets, which later
    copies without isPad use too."""
    if pad.is_pad:
        core.registers.values[PAD_VALUE] = bits
    kept: Any = core.registers.values.get(PAD_VALUE)
    return Padding(pad.left_padding, pad.right_padding, kept)


@operation("ascendc.data_copy_pad_l2", "ascendc.data_copy_pad_l2_ext")
def data_copy_pad_out(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """Runs of bytes from UB to GM: DataCopyParams or DataCopyExtParams with the length in bytes."""
    _copy_pad(core, site, destination, source, params, Padding())


@operation("ascendc.data_copy_pad_l0")
def data_copy_pad_l0(
    core: Core, site: int, destination: Tensor, source: Tensor, params: Record, pad: Record
) -> None:
    """Runs of bytes from GM to UB; DataCopyPadParams gives the fill value as raw bits."""
    _copy_pad(core, site, destination, source, params, _padding(core, pad, int(pad.padding_value)))


@operation("ascendc.data_copy_pad_l0_ext")
def data_copy_pad_l0_ext(
    core: Core, site: int, destination: Tensor, source: Tensor, params: Record, pad: Record
) -> None:
    """Runs of bytes from GM to UB; DataCopyPadExtParams<T> gives the fill value as a T."""
    _copy_pad(core, site, destination, source, params, _padding(core, pad, bits_of(pad.padding_value, source.dtype)))


@operation("ascendc.data_copy_pad_ext_params")
def data_copy_pad_ext_params(core: Core, site: int) -> Record:
    """DataCopyPadExtParams with its defaults: no padding."""
    return Record("data_copy_pad_ext_params", (), **FIELDS["data_copy_pad_ext_params"])


@operation("ascendc.set_pad_value")
def set_pad_value(core: Core, site: int, value: Any, *, pos: int, operand_types: tuple[str, ...]) -> None:
    """The fill value of later DataCopyPad instructions without isPad. The register keeps bits: a copy of narrower
    elements uses the low ones. `pos` names the target memory, of which UB is the only one."""
    if pos not in (9, 10, 12):
        raise UserError(f"SetPadValue takes TPosition VECIN, VECOUT or MAX, not number {pos}")
    core.begin(site, S, SET_PAD_VALUE)
    core.registers.values[PAD_VALUE] = bits_of(value, dtype_of(operand_types[0]))


def bits_of(value: Any, dtype: np.dtype[Any]) -> int:
    """The bits of `value` as an element of `dtype`, as an unsigned number."""
    if dtype.kind in "iu":
        return int(value) % (1 << 8 * dtype.itemsize)
    return int.from_bytes(np.asarray(value).astype(dtype).tobytes(), "little")


# -- slices ------------------------------------------------------------------------------------------------------------


@operation("ascendc.data_copy_slice", variadic=("destination_slices", "source_slices"))
def data_copy_slice(
    core: Core, site: int, destination: Tensor, source: Tensor, destination_slices: list[Record],
    source_slices: list[Record], dimensions: int | None = None,
) -> None:
    """Part of a tensor of `dimensions` (1 to 8) dimensions, the innermost first in the lists (vendor's DataCopy page,
    slices): runs of burst_len blocks of 32 bytes along the innermost dimension, every (stride + 1)-th index of the
    others."""
    if not runs_here(core, destination, source):
        return
    number = 1 if dimensions is None else dimensions
    if not 1 <= number <= min(8, len(destination_slices), len(source_slices)):
        raise UserError(
            f"DataCopy of slices has {number} dimensions, but {len(destination_slices)} destination and "
            f"{len(source_slices)} source slices (1 to 8 are possible)"
        )
    size = source.dtype.itemsize
    run = source_slices[0].burst_len * BLOCK // size
    target, origin = _side(destination_slices[:number], run), _side(source_slices[:number], run)
    if [count for count, _ in target.loops] != [count for count, _ in origin.loops]:
        raise UserError(
            f"DataCopy of slices: the destination has {target.loops} runs (count, stride) and the source "
            f"{origin.loops}; the counts must agree"
        )
    copy_slices(core, site, destination, source, target, origin, run)


def _side(slices: list[Record], run: int) -> Slice:
    """Start and loops of one side from its SliceInfo list."""
    inner = slices[0]
    if any(one.shape_value == 0 for one in slices[:-1]):
        raise UserError("DataCopy of slices needs shape_value, the dimension's extent, in all SliceInfo but the last")
    extent = inner.end_index - inner.start_index + 1
    loops = [((extent + inner.stride) // max(run + inner.stride, 1), run + inner.stride)]
    start, pitch = inner.start_index, inner.shape_value
    for one in slices[1:]:
        step = one.stride + 1
        loops.append(((one.end_index - one.start_index) // step + 1, step * pitch))
        start += one.start_index * pitch
        pitch *= one.shape_value
    return Slice(start, tuple(reversed(loops)))


@operation("ascendc.slice_info.subindex")
def slice_subindex(core: Core, site: int, info: Record, index: int) -> Record:
    """slice_info[index:] of a single SliceInfo, which has only a first element."""
    if index != 0:
        raise UserError(f"a single SliceInfo has no element {index}; pass a list of SliceInfo instead")
    return info
