"""TPipe: hands out on-chip memory to queues and buffers, and event ids (pages TPipe/*)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from npuscope.ascendc.queue import INIT, Queue, S, TBuf, drop_slots, elsewhere, end_events, make_slots, rounded
from npuscope.ascendc.registry import operation
from npuscope.ascendc.tensor import POSITIONS
from npuscope.npu.core import Core, opcode
from npuscope.npu.sync import HardEvent, finish_pipes
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Buffer, Origin, Pipe, Space

RESET, DESTROY = opcode("pipe_reset"), opcode("pipe_destroy")
BARRIER = opcode("pipe_barrier")
ALL = int(Pipe.ALL)

MATMUL_EVENTS = {int(HardEvent.M_MTE1): {0, 1, 2}}
"""Event ids that a TPipe on an AIC keeps for the Matmul macro."""


@dataclass(slots=True)
class TPipe:
    """Hands out memory front to back, one running offset per physical memory."""

    offsets: dict[Space, int] = field(default_factory=dict)
    made: list[tuple[Space, str, int, int]] = field(default_factory=list)  # space, name, count, bytes each
    queues: list[Queue] = field(default_factory=list)
    queue_buffers: dict[str, int] = field(default_factory=dict)  # by position
    events: dict[int, set[int]] = field(default_factory=dict)  # ids that are taken, by event


@operation("ascendc.pipe")
def pipe(core: Core, site: int) -> TPipe:
    """A TPipe."""
    made = core.library["pipe"] = TPipe()
    _clear(core, made)
    return made


def _clear(core: Core, owner: TPipe) -> None:
    """All memory and all event ids are free again."""
    owner.offsets.clear()
    owner.made.clear()
    owner.queues.clear()
    owner.queue_buffers.clear()
    owner.events.clear()
    if core.is_aic:
        owner.events.update({event: set(ids) for event, ids in MATMUL_EVENTS.items()})


# -- memory ----------------------------------------------------------------------------------------------------------


def reserve(core: Core, owner: TPipe, space: Space, name: str, count: int, nbytes: int) -> int:
    """Take `count` buffers of `nbytes` bytes, each rounded up to 32, from a pipe; returns the first address.

    Running past what a kernel may use of the memory is a fault with the list of what was asked for.
    """
    each = rounded(nbytes)
    start = owner.offsets.get(space, 0)
    end = owner.offsets[space] = start + each * count
    owner.made.append((space, name, count, each))
    if space == Space.GM:
        return start
    available = core.chip.memory(space).limit(mix=core.machine.mixed)
    if end > available and not elsewhere(core, space):
        parts = [(label, number, size) for where, label, number, size in owner.made if where == space]
        core.fault("over_capacity", space=space.name, required=end, available=available, buffers=parts)
    return start


def count_queue_buffers(core: Core, owner: TPipe, que: Queue, number: int) -> None:
    """Fault ``queue_limit`` when the queues of a position have more buffers than there are event ids for them
    (hardware.md 1.6)."""
    owner.queues.append(que)
    total = owner.queue_buffers[que.source] = owner.queue_buffers.get(que.source, 0) + number
    limit = core.chip.identifiers.queue_buffers
    if total > limit and not elsewhere(core, que.space):
        core.fault("queue_limit", queue=que.name, position=que.source, required=total, available=limit)


@operation("ascendc.pipe.init_queue")
def init_queue(core: Core, site: int, owner: TPipe, que: Queue, number: int, nbytes: int) -> None:
    """pipe.InitBuffer(queue, number, bytes)."""
    core.begin(site, S, INIT, number, nbytes, origin=Origin.FRAMEWORK)
    first = reserve(core, owner, que.space, que.name, number, nbytes)
    count_queue_buffers(core, owner, que, number)
    make_slots(core, que, first, number, rounded(nbytes))


@operation("ascendc.pipe.init_buffer")
def init_buffer(core: Core, site: int, owner: TPipe, buf: TBuf, nbytes: int) -> None:
    """pipe.InitBuffer(tbuf, bytes)."""
    core.begin(site, S, INIT, 1, nbytes, origin=Origin.FRAMEWORK)
    place(core, site, buf, reserve(core, owner, buf.space, buf.name, 1, nbytes), rounded(nbytes))


def place(core: Core, site: int, buf: TBuf, address: int, size: int) -> None:
    """Give a TBuf its memory."""
    buf.address, buf.size = address, size
    buf.buffer = core.buffer(Buffer(buf.space, core.index, address, size, "tbuf", buf.name, "", (), site))


@operation("ascendc.pipe.init")
def init(core: Core, site: int, owner: TPipe) -> None:
    """TPipe.Init: memory and event ids as in a new TPipe, for use after Destroy."""
    _clear(core, owner)


@operation("ascendc.pipe.reset")
def reset(core: Core, site: int, owner: TPipe) -> None:
    """TPipe.Reset: waits for the consumers of freed buffers, then gives all memory and event ids back."""
    _give_back(core, site, owner, RESET)


@operation("ascendc.pipe.destroy")
def destroy(core: Core, site: int, owner: TPipe) -> None:
    """TPipe.Destroy: Reset, then a barrier over all pipes."""
    _give_back(core, site, owner, DESTROY)
    finish_pipes(core, site, "all pipes to finish (TPipe.Destroy)")
    core.begin(site, ALL, BARRIER, origin=Origin.FRAMEWORK)


def _give_back(core: Core, site: int, owner: TPipe, code: int) -> None:
    for que in owner.queues:
        end_events(core, site, que)
        drop_slots(core, site, que)
    core.begin(site, S, code, origin=Origin.FRAMEWORK)
    _clear(core, owner)


@operation("ascendc.pipe.get_base_addr")
def get_base_addr(core: Core, site: int, owner: TPipe, *, logic_pos: int) -> int:
    """GetBaseAddr: where the memory of a position begins, 0 for all of them here."""
    return 0


@operation("ascendc.pop_stack_buffer")
def pop_stack_buffer(core: Core, site: int, tensor: Tensor, *, pos: int) -> None:
    """PopStackBuffer: the tensor becomes all that is left of a position's memory behind the pipe's buffers."""
    space = POSITIONS[pos]
    owner = core.library.get("pipe")
    start = owner.offsets.get(space, 0) if isinstance(owner, TPipe) else 0
    size = max(core.chip.memory(space).limit(mix=core.machine.mixed) - start, 0)
    buffer = core.raw_tensor(space, start, size, site, "", tensor.dtype.name)
    tensor.rebind(Tensor(core.memories[space], start, tensor.dtype, buffer, size // tensor.dtype.itemsize, pos))


@operation("ascendc.local_tensor_auto", variadic=("dynamic_shape",))
def local_tensor_auto(
    core: Core, site: int, dynamic_shape: list[int], *, result_type: str, result_dtype: Any, input: bool = False,
    output: bool = False,
) -> Tensor:
    """A tensor that the compiler places, for programs whose passes were not run: UB from the core's TPipe, the same
    bytes each time the line runs. `input` and `output` only tell the passes where to put flags."""
    elements = 1
    for extent in dynamic_shape or _static_shape(result_type):
        elements *= extent
    known: dict[tuple[int, int], Tensor] = core.library.setdefault("auto_tensors", {})
    tensor = known.get((site, elements))
    if tensor is None:
        owner = core.library.setdefault("pipe", TPipe())
        buf = TBuf("VECCALC", Space.UB)
        init_buffer(core, site, owner, buf, elements * result_dtype.itemsize)
        tensor = Tensor(core.memories[Space.UB], buf.address, result_dtype, buf.buffer, elements, 11)
        known[site, elements] = tensor
    return tensor.at(0)


def _static_shape(type_text: str) -> list[int]:
    """The extents in ``!ascendc.local_tensor<8x16xf32>``."""
    inner = type_text[type_text.find("<") + 1 :]
    return [int(word) for word in inner.split("x") if word.isdigit()]


# -- event ids -------------------------------------------------------------------------------------------------------


@operation("ascendc.pipe.alloc_event_id")
def alloc_event_id(core: Core, site: int, owner: TPipe, *, event: int) -> int:
    """AllocEventID: the lowest id of the event that is free, taken until release_event_id. Fault
    ``event_ids_exhausted`` when none is."""
    taken = owner.events.setdefault(event, set())
    number = _lowest_free(core, site, taken, event)
    taken.add(number)
    return number


@operation("ascendc.pipe.fetch_event_id")
def fetch_event_id(core: Core, site: int, owner: TPipe, *, event: int) -> int:
    """FetchEventID: the lowest id of the event that is free; it is not taken."""
    return _lowest_free(core, site, owner.events.get(event, set()), event)


@operation("ascendc.pipe.release_event_id")
def release_event_id(core: Core, site: int, owner: TPipe, event_id: int, *, event: int) -> None:
    """ReleaseEventID: fault ``event_id_not_allocated`` for one that alloc_event_id did not give."""
    taken = owner.events.setdefault(event, set())
    if event_id not in taken:
        core.site = site
        core.fault("event_id_not_allocated", event=HardEvent(event).name, id=event_id)
    taken.discard(event_id)


def _lowest_free(core: Core, site: int, taken: set[int], event: int) -> int:
    free = next((number for number in range(core.event_ids) if number not in taken), None)
    if free is None:
        core.site = site
        core.fault("event_ids_exhausted", event=HardEvent(event).name, limit=core.event_ids)
        return core.event_ids - 1
    return free
