"""TBufPool: a part of UB or L1 that the program divides itself, and may use twice (pages TBufPool/*)."""

from __future__ import annotations

from dataclasses import dataclass, field

from npuscope.ascendc.pipe import TPipe, count_queue_buffers, place, reserve
from npuscope.ascendc.queue import INIT, Queue, S, TBuf, end_events, make_slots, memory_of, positions_in, rounded
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.trace.names import assigned_name
from npuscope.trace.schema import Origin, Space

RESET = opcode("pool_reset")
MOST_BUFFERS = 16
"""The largest bufIDSize of a pool."""


@dataclass(slots=True)
class BufferPool:
    """A TBufPool: `size` bytes at `start`, `used` of them handed out in at most `most` buffers."""

    position: str
    space: Space
    most: int
    name: str = ""
    owner: TPipe | None = None
    start: int = 0
    size: int = 0
    used: int = 0
    count: int = 0
    queues: list[Queue] = field(default_factory=list)
    made: list[tuple[str, int, int]] = field(default_factory=list)  # name, count, bytes each


@operation("ascendc.tBufPool")
def buffer_pool(core: Core, site: int, *, result_type: str) -> BufferPool:
    """TBufPool<position, bufIDSize>."""
    positions, most = positions_in(result_type)
    space = memory_of(core, positions[0])
    pool = BufferPool(positions[0], space, most, assigned_name(core.recorder.sites[site]))
    if not 1 <= most <= MOST_BUFFERS:
        core.site = site
        core.fault("bad_operand", what="bufIDSize of a TBufPool", value=most, limit=f"1 to {MOST_BUFFERS}")
    return pool


@operation("ascendc.pipe.init_buf_pool", "ascendc.tbuf_pool.init_buf_pool")
def init_buf_pool(
    core: Core, site: int, origin: TPipe | BufferPool, pool: BufferPool, nbytes: int,
    share: BufferPool | None = None,
) -> int:
    """InitBufPool(pool, bytes[, share]): `pool` gets bytes of `origin`, or lies on the same bytes as `share`.

    Faults: ``over_capacity`` when the origin has too little left; ``bad_operand`` for a shared pool of another memory
    or shorter than `nbytes`.
    """
    core.begin(site, S, INIT, 1, nbytes, origin=Origin.FRAMEWORK)
    pool.size, pool.used, pool.count = rounded(nbytes), 0, 0
    pool.queues, pool.made = [], []
    pool.owner = origin if isinstance(origin, TPipe) else origin.owner
    if share is not None:
        if share.space != pool.space or pool.size > share.size:
            core.fault(
                "bad_operand", what=f"size of pool {pool.name} in {pool.space.name}", value=pool.size,
                limit=f"{share.size} bytes of {share.space.name}, which it shares",
            )
        pool.start = share.start
    elif isinstance(origin, TPipe):
        pool.start = reserve(core, origin, pool.space, pool.name, 1, nbytes)
    else:
        pool.start = take(core, origin, pool.name, 1, nbytes)
    return 1


def take(core: Core, pool: BufferPool, name: str, count: int, nbytes: int) -> int:
    """`count` buffers of `nbytes` bytes, each rounded up to 32, from a pool; returns the first address.

    Faults: ``over_capacity`` past the pool's end, ``queue_limit`` past the buffers that its bufIDSize allows.
    """
    each = rounded(nbytes)
    address = pool.start + pool.used
    pool.used += each * count
    pool.count += count
    pool.made.append((name, count, each))
    if pool.used > pool.size:
        core.fault(
            "over_capacity", space=pool.space.name, required=pool.used, available=pool.size, buffers=list(pool.made)
        )
    if pool.count > pool.most:
        core.fault("queue_limit", queue=name, position=pool.position, required=pool.count, available=pool.most)
    return address


@operation("ascendc.tbuf_pool.init_queue")
def init_queue(core: Core, site: int, pool: BufferPool, que: Queue, number: int, nbytes: int) -> None:
    """pool.InitBuffer(queue, number, bytes)."""
    core.begin(site, S, INIT, number, nbytes, origin=Origin.FRAMEWORK)
    _same_memory(core, pool, que.space)
    first = take(core, pool, que.name, number, nbytes)
    pool.queues.append(que)
    if pool.owner is not None:
        count_queue_buffers(core, pool.owner, que, 0)  # its events come and go with the pool
    make_slots(core, que, first, number, rounded(nbytes))


@operation("ascendc.tbuf_pool.init_buffer")
def init_buffer(core: Core, site: int, pool: BufferPool, buf: TBuf, nbytes: int) -> None:
    """pool.InitBuffer(tbuf, bytes)."""
    core.begin(site, S, INIT, 1, nbytes, origin=Origin.FRAMEWORK)
    _same_memory(core, pool, buf.space)
    place(core, site, buf, take(core, pool, buf.name, 1, nbytes), rounded(nbytes))


def _same_memory(core: Core, pool: BufferPool, space: Space) -> None:
    if space != pool.space:
        core.fault("bad_operand", what="memory of a buffer", value=space.name, limit=f"{pool.space.name} of its pool")


@operation("ascendc.tbuf_pool.reset")
def reset(core: Core, site: int, pool: BufferPool) -> None:
    """Reset: waits for the consumers of the pool's freed buffers, so that a pool on the same bytes may go on. The
    buffers stay; they can be used again without another init_buffer (page TBufPool Reset)."""
    for que in pool.queues:
        end_events(core, site, que)
    core.begin(site, S, RESET, origin=Origin.FRAMEWORK)
