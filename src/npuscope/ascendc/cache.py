"""The scalar unit's caches: DataCacheCleanAndInvalid and preloads (pages of 缓存控制; hardware.md 1.4, 3.5)."""

from __future__ import annotations

from npuscope.ascendc.registry import operation
from npuscope.npu.core import READ, Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

DCCI = opcode("dcci")
DATA_PRELOAD, CODE_PRELOAD = opcode("dcache_preload"), opcode("icache_preload")
S = int(Pipe.S)

SINGLE_LINE, ENTIRE = 0, 1
ALL, UB, OUT, ATOMIC = 0, 1, 2, 3
"""DcciDst: which memory is made to agree with the cache; only UB leaves the lines of global memory alone."""


@operation("ascendc.data_cache_clean_invalid_global")
def data_cache_clean_invalid(core: Core, site: int, tensor: Tensor, *, entire_type: int, dcci_dst: int) -> None:
    """DataCacheCleanAndInvalid: dirty data goes to memory whole line by whole line, the lines are dropped.

    A single line is the one that holds the tensor's address, nothing beyond it; for the entire cache the address does
    not count. The row has a: entire, b: destination, and the line (as far as it is the array's) as a read.
    """
    core.begin(site, S, DCCI, entire_type, dcci_dst)
    if entire_type == SINGLE_LINE:
        _note_line(core, tensor, tensor.address)
    if dcci_dst == UB:
        return
    if entire_type == ENTIRE:
        core.cache.clean_and_invalidate_all()
    else:
        core.cache.clean_and_invalidate(tensor.address)


@operation("ascendc.data_cache_clean_invalid_global_nodccidst")
def data_cache_clean_invalid_out(core: Core, site: int, tensor: Tensor, *, entire_type: int) -> None:
    """DataCacheCleanAndInvalid without a destination: global memory."""
    data_cache_clean_invalid(core, site, tensor, entire_type=entire_type, dcci_dst=OUT)


def _note_line(core: Core, tensor: Tensor, address: int) -> None:
    """The cache line of an address as a read of the instruction last begun, clipped to the array it belongs to."""
    width = core.cache.line_bytes
    memory = tensor.memory
    line = address // width * width
    low, high = max(line, memory.base), min(line + width, memory.base + memory.size)
    if memory.space == Space.GM and low < high:
        core.recorder.accesses.extend((core.row, READ, tensor.buffer, low, contiguous(high - low, 1).number))


@operation("ascendc.data_cache_preload")
def data_cache_preload(core: Core, site: int, source: Tensor, cache_offset: int) -> None:
    """DataCachePreload: load the line `cache_offset` bytes into the tensor; it is cached from then on."""
    core.begin(site, S, DATA_PRELOAD, work=core.cache.line_bytes)
    address = source.address + cache_offset
    _note_line(core, source, address)
    core.cache.preload(source.memory, address)


@operation("ascendc.icache_preload")
def icache_preload(core: Core, site: int, pre_fetch_len: int) -> None:
    """ICachePreLoad: fetch code ahead (a: how much); no effect on what is computed."""
    core.begin(site, S, CODE_PRELOAD, pre_fetch_len)


@operation("ascendc.get_icache_preload_status")
def get_icache_preload_status(core: Core, site: int) -> int:
    """GetICachePreloadStatus: 0, preloading is done."""
    return 0
