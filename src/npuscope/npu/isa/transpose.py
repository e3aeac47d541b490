"""Transposing in UB: a 16 x 16 matrix (vtranspose), 16 data blocks from 16 addresses (vnchwconv), and 4-D tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from npuscope.npu.core import WRITE, Core, opcode
from npuscope.npu.isa.lanes import limited_repeat
from npuscope.npu.isa.vector import V
from npuscope.npu.layout import BLOCK, Layout, contiguous, strided
from npuscope.npu.numbers.dtypes import Array, DType
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.footprint import Footprint
from npuscope.trace.schema import Buffer, Space

VTRANSPOSE, VNCHWCONV, TRANSPOSE_4D = opcode("vtranspose"), opcode("vnchwconv"), opcode("transpose_4d")
SIDE = 16
"""Rows and columns of vtranspose, and addresses in a list of vnchwconv."""
HALF_BLOCK = BLOCK // 2
ADDRESS_BYTES = 8


def transpose(core: Core, site: int, destination: Tensor, source: Tensor) -> None:
    """destination[i][j] = source[j][i] of a 16 x 16 matrix of 16-bit elements (vendor's Transpose page)."""
    core.begin(site, V, VTRANSPOSE, work=SIDE * SIDE)
    layout = contiguous(SIDE * SIDE, source.dtype.itemsize)
    matrix = core.load(source, layout).reshape(SIDE, SIDE)
    core.store(destination, layout, matrix.T.reshape(-1))


# -- 16 addresses --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conversion:
    """TransDataTo5HDParams: which half of a block 8-bit elements use, repeats, and strides in data blocks."""

    destination_high: bool
    source_high: bool
    repeat: int
    destination_stride: int
    source_stride: int


def convert_blocks(
    core: Core, site: int, destinations: Sequence[Tensor], sources: Sequence[Tensor], conversion: Conversion,
    lists: tuple[Tensor, ...] = (),
) -> None:
    """vnchwconv: lane i of the 16 source blocks becomes row i of the destination (vendor's TransDataTo5HD page).

    16-bit elements fill 16 blocks of 16, 32-bit ones 8 rows of two blocks each, 8-bit ones half of 16 blocks. A single
    repeat starts one stride behind the addresses; of several the first starts at them (same page, repeatTimes). `lists`
    are the tensors that the addresses come from, if any.
    """
    itemsize = sources[0].dtype.itemsize
    core.begin(site, V, VNCHWCONV, conversion.repeat, work=conversion.repeat * SIDE * BLOCK // itemsize)
    for addresses in lists:
        core.load(addresses, contiguous(SIDE, ADDRESS_BYTES))
    repeat = limited_repeat(core, conversion.repeat)
    halves = (conversion.destination_high, conversion.source_high)
    if itemsize > 1 and any(halves):
        core.fault("bad_operand", what="a high half of a data block", value="true", limit="it for 8-bit elements only")
        halves = (False, False)
    if repeat == 0:
        return
    blocks = _blocks(core, sources, repeat, conversion.source_stride, halves[1])
    rows = np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(blocks.shape)
    _put_blocks(core, destinations, repeat, conversion.destination_stride, halves[0], rows)


def _layout(tensor: Tensor, repeat: int, stride: int, gap: int | None, high: bool) -> Layout:
    """The blocks at one address in every repeat, or with `gap` those at 16 addresses that many bytes apart.

    Shape (repeat, [16,] lanes); for 8-bit elements (repeat, [16,] 2, 16) with one half of each block masked off.
    """
    return _block_layout(repeat, stride * BLOCK, gap, tensor.dtype.itemsize, high)


@lru_cache(maxsize=1024)
def _block_layout(repeat: int, step: int, gap: int | None, itemsize: int, high: bool) -> Layout:
    outer = ((repeat, step),) if gap is None else ((repeat, step), (SIDE, gap))
    if itemsize > 1:
        loops = (*outer, (BLOCK // itemsize, itemsize))
        return strided(tuple(count for count, _ in loops), tuple(stride for _, stride in loops), itemsize)
    halves = np.array([not high, high])
    loops = (*outer, (2, HALF_BLOCK))
    shape, strides = zip(*loops, (HALF_BLOCK, 1), strict=True)
    return Layout(shape, strides, 1, Footprint(HALF_BLOCK, loops, halves.tobytes(), 1), mask=halves[:, None])


def _start(tensor: Tensor, repeat: int, stride: int) -> Tensor:
    """Where the first repeat begins: at the address, or one stride further on when it is the only one."""
    return shifted(tensor, stride * BLOCK if repeat == 1 else 0)


def _blocks(core: Core, tensors: Sequence[Tensor], repeat: int, stride: int, high: bool) -> Array:
    """The blocks at the tensors' addresses in every repeat, (repeat, 16, lanes)."""
    gap = _even_gap(tensors)
    layout = _layout(tensors[0], repeat, stride, gap, high)
    if gap is not None:
        blocks = core.load(_start(tensors[0], repeat, stride), layout)
    else:
        blocks = np.stack([core.load(_start(tensor, repeat, stride), layout) for tensor in tensors], 1)
    return blocks if tensors[0].dtype.itemsize > 1 else blocks[:, :, int(high)]


def _put_blocks(
    core: Core, tensors: Sequence[Tensor], repeat: int, stride: int, high: bool, values: Array
) -> None:
    gap = _even_gap(tensors)
    layout = _layout(tensors[0], repeat, stride, gap, high)
    if tensors[0].dtype.itemsize == 1:
        values = values[:, :, None]  # the mask picks the half
    if gap is not None:
        core.store(_start(tensors[0], repeat, stride), layout, values)
        return
    for number, tensor in enumerate(tensors):
        core.store(_start(tensor, repeat, stride), layout, values[:, number])


def _even_gap(tensors: Sequence[Tensor]) -> int | None:
    """Bytes from each address to the next where they are all the same and one buffer holds them, else None."""
    gaps = {second.address - first.address for first, second in zip(tensors, tensors[1:], strict=False)}
    return gaps.pop() if len(gaps) == 1 and len({tensor.buffer for tensor in tensors}) == 1 else None


def tensors_at(core: Core, addresses: Sequence[int], dtype: DType) -> list[Tensor]:
    """UB tensors at byte `addresses`, each belonging to the newest buffer that holds its address."""
    memory = core.memories[Space.UB]
    found: list[Tensor] = []
    owner, low, high = -1, 0, 0
    for address in addresses:
        if not low <= address < high:
            owner, low, high = _owner(core, address)
        found.append(Tensor(memory, address, dtype, owner))
    return found


def _owner(core: Core, address: int) -> tuple[int, int, int]:
    """(number, first byte, end) of the newest UB buffer of this core around an address, else of the whole memory."""
    buffers = core.recorder.buffers
    for number in range(len(buffers) - 1, -1, -1):
        buffer = buffers[number]
        if buffer.space is Space.UB and buffer.core == core.index and 0 <= address - buffer.base < buffer.size:
            return number, buffer.base, buffer.base + buffer.size
    whole = core.library.get("whole UB")
    if whole is None:
        size = core.memories.size(Space.UB)
        whole = core.library["whole UB"] = core.buffer(Buffer(Space.UB, core.index, 0, size, "space", "UB"))
    return whole, address, address + 1


# -- 4-D tensors ---------------------------------------------------------------------------------------------------


def transpose_4d(
    core: Core, site: int, destination: Tensor, source: Tensor, temporary: Tensor, shape: tuple[int, int, int, int],
    axes: tuple[int, int, int, int], temporary_bytes: int,
) -> None:
    """Axes of a dense 4-D tensor of `shape` reordered, library code over vnchwconv that uses a temporary buffer."""
    count = int(np.prod(shape))
    core.begin(site, V, TRANSPOSE_4D, *shape, work=count)
    if count == 0:
        return
    layout = contiguous(count, source.dtype.itemsize)
    values = core.load(source, layout).reshape(shape).transpose(axes).reshape(-1)
    if temporary_bytes:
        core.note(WRITE, temporary, contiguous(temporary_bytes, 1))
    core.store(destination, layout, values)
