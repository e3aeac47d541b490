"""DataCopy in its levels: count form, block form."""

from __future__ import annotations

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core
from npuscope.npu.isa.move import copy_blocks, copy_run, runs_here
from npuscope.npu.layout import BLOCK
from npuscope.npu.tensor import Tensor


@operation("ascendc.data_copy_l2")
def data_copy_l2(core: Core, site: int, destination: Tensor, source: Tensor, count: int) -> None:
    """`count` contiguous elements; bytes beyond a multiple of 32 are not copied (sanitizer.md 5.2)."""
    if runs_here(core, destination, source):
        nbytes = count * source.dtype.itemsize
        copy_run(core, site, destination, source, nbytes - nbytes % BLOCK)


@operation("ascendc.data_copy_l0")
def data_copy_l0(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """Runs of 32-byte blocks: DataCopyParams(block_count, block_len, src_stride, dst_stride)."""
    if runs_here(core, destination, source):
        copy_blocks(
            core, site, destination, source, params.block_count, params.block_len, params.src_stride, params.dst_stride
        )
