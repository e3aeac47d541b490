"""TQue, TQueBind and TBuf: the framework's buffers and the flags it sets between pipes (hardware.md 3.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from npuscope.ascendc.registry import operation
from npuscope.ascendc.tensor import POSITION_NAMES, POSITIONS
from npuscope.errors import Unsupported
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.move import CUBE_SPACES
from npuscope.npu.layout import BLOCK
from npuscope.npu.sync import USER_FLAGS, HardEvent, await_flag, raise_flag
from npuscope.npu.tensor import Tensor
from npuscope.trace.names import assigned_name
from npuscope.trace.schema import Buffer, Origin, Pipe, Space

ALLOC, FREE = opcode("que_alloc"), opcode("que_free")
ENQUE, DEQUE = opcode("que_enque"), opcode("que_deque")
INIT = opcode("init_buffer")
S = int(Pipe.S)

PRODUCERS = {"VECIN": "MTE2", "VECOUT": "V", "A1": "MTE2", "B1": "MTE2", "C1": "MTE2", "A2": "MTE1", "B2": "MTE1",
             "C2": "MTE1", "CO1": "M", "CO2": "V"}
CONSUMERS = {"VECIN": "V", "VECOUT": "MTE3", "A1": "MTE1", "B1": "MTE1", "C1": "MTE1", "A2": "M", "B2": "M", "C2": "M",
             "CO1": "FIX", "CO2": "MTE3"}
"""Which pipe fills and which empties a buffer of a position (hardware.md 3.3)."""

IDLE, HELD, QUEUED = 0, 1, 2


@dataclass(slots=True)
class Slot:
    """One buffer of a queue: where it lies, who has it, which generation (trace buffer) lives in it.

    `flag` numbers its event flags, one per direction: the last operand of their rows; theirs is also the buffer in c.
    """

    queue: Queue
    index: int
    address: int
    size: int
    flag: int = 0
    state: int = IDLE
    buffer: int = -1
    freed: bool = False  # freed before: the next allocation waits for the consumer's flag


@dataclass(slots=True)
class Queue:
    """TQue or TQueBind, with buffers in `space`.

    `ready` and `done` are the flags producer->consumer and back, None where a pipe is its own. `depth` is how many
    buffers may be queued at a time; 0, for the in-place form, counts as 1.
    """

    source: str
    target: str
    space: Space
    name: str = ""
    depth: int = 1
    slots: list[Slot] = field(default_factory=list)
    waiting: list[Slot] = field(default_factory=list)
    next: int = 0

    @property
    def ready(self) -> HardEvent | None:
        """Flag from the pipe that fills to the pipe that empties."""
        return event_between(PRODUCERS.get(self.source), CONSUMERS.get(self.target))

    @property
    def done(self) -> HardEvent | None:
        """Flag back from the pipe that empties."""
        return event_between(CONSUMERS.get(self.target), PRODUCERS.get(self.source))


@dataclass(slots=True)
class TBuf:
    """A buffer without a queue, in `space`."""

    position: str
    space: Space
    name: str = ""
    address: int = 0
    size: int = 0
    buffer: int = -1


def event_between(source: str | None, target: str | None) -> HardEvent | None:
    """The event from one pipe to another by their names; None where there is none."""
    if source is None or target is None or source == target:
        return None
    return HardEvent.__members__.get(f"{source}_{target}")


def positions_in(type_text: str) -> tuple[list[str], int]:
    """Position names and the number after them in a type such as ``!ascendc.que_bind<vecin, vecout, 1>``."""
    match = re.search(r"<(.*)>", type_text)
    words = [word.strip().upper() for word in match.group(1).split(",")] if match else []
    number = next((int(word) for word in words if word.isdigit()), 1)
    return [word for word in words if word in POSITION_NAMES], number


def elsewhere(core: Core, space: Space) -> bool:
    """Whether a memory belongs to the other core type of a split chip."""
    return core.chip.split and (space in CUBE_SPACES) == core.is_aiv and space != Space.GM


def memory_of(core: Core, position: str) -> Space:
    """The memory behind a position's buffers. CO2 is UB on coupled chips; raises Unsupported for it on split chips,
    where it is a workspace in global memory."""
    space = POSITIONS[POSITION_NAMES.index(position)]
    if space != Space.GM:
        return space
    if core.chip.split:
        raise Unsupported(f"buffers at {position} lie in global memory on {core.chip.name}; use a GlobalTensor instead")
    return Space.UB


@operation("ascendc.queue", "ascendc.que_bind")
def queue(core: Core, site: int, *, result_type: str) -> Queue:
    """A TQue (one position) or TQueBind (source and destination position)."""
    positions, depth = positions_in(result_type)
    space = memory_of(core, positions[0])
    return Queue(positions[0], positions[-1], space, assigned_name(core.recorder.sites[site]), depth)


@operation("ascendc.tbuf")
def tbuf(core: Core, site: int, *, result_type: str) -> TBuf:
    """A TBuf."""
    position = positions_in(result_type)[0][0]
    return TBuf(position, memory_of(core, position), assigned_name(core.recorder.sites[site]))


def rounded(nbytes: int) -> int:
    """A buffer's size: a multiple of 32 bytes."""
    return -(-nbytes // BLOCK) * BLOCK


def make_slots(core: Core, que: Queue, first: int, number: int, each: int) -> None:
    """Give a queue `number` buffers of `each` bytes from address `first` on."""
    que.slots = [Slot(que, index, first + index * each, each, _next_flag(core)) for index in range(number)]
    que.waiting = []
    que.next = 0


def _next_flag(core: Core) -> int:
    """A flag number that no other buffer of the core has."""
    number: int = core.library.get("queue_flags", USER_FLAGS)
    core.library["queue_flags"] = number + 1
    return number


def tensor_of(core: Core, slot: Slot, dtype: Any) -> Tensor:
    """The tensor in a slot."""
    space = slot.queue.space
    position = POSITION_NAMES.index(slot.queue.source)
    return Tensor(
        core.memories[space], slot.address, dtype, slot.buffer, slot.size // dtype.itemsize, position, slot
    )


def _flag(core: Core, site: int, event: HardEvent | None, slot: Slot, raise_it: bool) -> None:
    if event is None or int(event) not in core.events or elsewhere(core, slot.queue.space):
        return
    change = raise_flag if raise_it else await_flag
    change(core, site, int(event), slot.flag, (slot.index, slot.buffer, slot.flag), Origin.FRAMEWORK)


# -- allocation ------------------------------------------------------------------------------------------------------


@operation("ascendc.que_bind.alloc_tensor")
def alloc_tensor(core: Core, site: int, que: Queue | TBuf, *, result_dtype: Any) -> Tensor:
    """The next idle buffer of the queue; none idle would hang the device and is a fault.

    A TBuf is a queue of depth 0 in the vendor's library: alloc_tensor gives its buffer, as get does.
    """
    if isinstance(que, TBuf):
        return get_tensor(core, site, que, result_dtype=result_dtype)
    slot = _next_idle(core, site, que)
    if slot.freed:
        _flag(core, site, que.done, slot, raise_it=False)
        slot.freed = False
    core.begin(site, S, ALLOC, len(core.recorder.buffers), origin=Origin.FRAMEWORK)
    name = assigned_name(core.recorder.sites[site]) or que.name
    slot.buffer = core.buffer(
        Buffer(que.space, core.index, slot.address, slot.size, "queue", name, result_dtype.name, (), site,
               slot.buffer + 1)
    )
    slot.state = HELD
    return tensor_of(core, slot, result_dtype)


@operation("ascendc.que_bind.alloc_tensor_in_place")
def alloc_tensor_in_place(core: Core, site: int, que: Queue, tensor: Tensor) -> None:
    """AllocTensor(tensor): the handle becomes the next idle buffer."""
    tensor.rebind(alloc_tensor(core, site, que, result_dtype=tensor.dtype))


def _next_idle(core: Core, site: int, que: Queue) -> Slot:
    if not que.slots:
        core.begin(site, S, INIT, 0, 0, origin=Origin.FRAMEWORK)
        core.fault("queue_not_initialised", queue=que.name)
        make_slots(core, que, 0, 1, BLOCK)
    for turn in range(len(que.slots)):
        slot = que.slots[(que.next + turn) % len(que.slots)]
        if slot.state == IDLE:
            que.next = (slot.index + 1) % len(que.slots)
            return slot
    slot = que.slots[que.next]
    core.begin(site, S, ALLOC, slot.buffer, origin=Origin.FRAMEWORK)
    core.fault("queue_no_idle_buffer", queue=que.name, buffers=len(que.slots))
    return slot


@operation("ascendc.que_bind.free_tensor")
def free_tensor(core: Core, site: int, que: Queue | TBuf, tensor: Tensor) -> None:
    """Give a buffer back to its queue; a TBuf keeps its buffer."""
    if isinstance(que, TBuf):
        return
    slot = tensor.slot
    if slot is None or slot.queue is not que or slot.buffer != tensor.buffer or slot.state == IDLE:
        core.begin(site, S, FREE, -1, origin=Origin.FRAMEWORK)
        code = "free_foreign" if slot is None or slot.queue is not que else "free_twice"
        core.fault(code, queue=que.name, buffer=tensor.buffer)
        return
    if slot.state == QUEUED:
        que.waiting.remove(slot)
        if que.ready is not None:
            core.flags.take(int(que.ready), slot.flag)
    slot.state = IDLE
    _flag(core, site, que.done, slot, raise_it=True)
    slot.freed = True
    core.begin(site, S, FREE, tensor.buffer, origin=Origin.FRAMEWORK)


def end_events(core: Core, site: int, que: Queue) -> None:
    """Wait for the consumers of buffers that were freed: what Reset and Destroy do before memory is used anew."""
    for slot in que.slots:
        if slot.freed and slot.state == IDLE:
            _flag(core, site, que.done, slot, raise_it=False)
            slot.freed = False


def drop_slots(core: Core, site: int, que: Queue) -> None:
    """Take a queue's memory away: tensors that are still in use count as freed from here on."""
    for slot in que.slots:
        if slot.state != IDLE:
            core.begin(site, S, FREE, slot.buffer, origin=Origin.FRAMEWORK)
    que.slots, que.waiting, que.next = [], [], 0


@operation("ascendc.que_bind.destroy")
def destroy(core: Core, site: int, que: Queue) -> None:
    """Destroy: the queue gives up its buffers and events."""
    end_events(core, site, que)
    drop_slots(core, site, que)


# -- queueing --------------------------------------------------------------------------------------------------------


@operation("ascendc.que_bind.enque_tensor")
def enque_tensor(core: Core, site: int, que: Queue, tensor: Tensor) -> None:
    """Hand a filled buffer to the consumer. Past the queue's depth is a fault (page VacantInQue)."""
    _enque(core, site, que, tensor, que.ready)


@operation("ascendc.que_bind.enque_tensor_pos")
def enque_tensor_pos(
    core: Core, site: int, que: Queue, tensor: Tensor, *, src_user_pos: int, dst_user_pos: int
) -> None:
    """EnQue<source, destination>: as enque_tensor, with the flag of the leg that was just done (GM to UB: MTE2 to V;
    UB to GM: V to MTE3), for a TQueBind whose buffer is also computed on."""
    _enque(core, site, que, tensor, leg(src_user_pos, dst_user_pos))


def leg(source: int, destination: int) -> HardEvent | None:
    """The flag between the pipe that brings data from position `source` and the one that takes it to `destination`."""
    producer = "MTE2" if POSITIONS[source] == Space.GM else "V"
    consumer = "MTE3" if POSITIONS[destination] == Space.GM else "V"
    return event_between(producer, consumer)


def _enque(core: Core, site: int, que: Queue, tensor: Tensor, event: HardEvent | None) -> None:
    slot = tensor.slot
    core.begin(site, S, ENQUE, tensor.buffer, origin=Origin.FRAMEWORK)
    if slot is None or slot.queue is not que:
        core.fault("enque_foreign", queue=que.name, buffer=tensor.buffer)
        return
    if slot.state != HELD:
        core.fault("enque_not_held", queue=que.name, buffer=tensor.buffer)
        return
    if len(que.waiting) >= max(que.depth, 1):
        core.fault("enque_full", queue=que.name, depth=que.depth)
    slot.state = QUEUED
    que.waiting.append(slot)
    _flag(core, site, event, slot, raise_it=True)


@operation("ascendc.que_bind.deque_tensor")
def deque_tensor(core: Core, site: int, que: Queue, *, result_dtype: Any) -> Tensor:
    """The oldest filled buffer; an empty queue is a fault."""
    return _deque(core, site, que, result_dtype, que.ready)


@operation("ascendc.que_bind.deque_tensor_in_place")
def deque_tensor_in_place(core: Core, site: int, que: Queue, tensor: Tensor) -> None:
    """DeQue(tensor): the handle becomes the oldest filled buffer."""
    tensor.rebind(_deque(core, site, que, tensor.dtype, que.ready))


@operation("ascendc.que_bind.deque_tensor_pos")
def deque_tensor_pos(
    core: Core, site: int, que: Queue, *, src_user_pos: int, dst_user_pos: int, result_dtype: Any
) -> Tensor:
    """DeQue<source, destination>: the counterpart of enque_tensor_pos."""
    return _deque(core, site, que, result_dtype, leg(src_user_pos, dst_user_pos))


def _deque(core: Core, site: int, que: Queue, dtype: Any, event: HardEvent | None) -> Tensor:
    if not que.waiting:
        slot = que.slots[0] if que.slots else _next_idle(core, site, que)
        core.begin(site, S, DEQUE, slot.buffer, origin=Origin.FRAMEWORK)
        core.fault("deque_empty", queue=que.name)
        if slot.buffer < 0:
            slot.buffer = core.buffer(
                Buffer(que.space, core.index, slot.address, slot.size, "queue", que.name, dtype.name, (), site)
            )
        return tensor_of(core, slot, dtype)
    slot = que.waiting.pop(0)
    slot.state = HELD
    core.begin(site, S, DEQUE, slot.buffer, origin=Origin.FRAMEWORK)
    _flag(core, site, event, slot, raise_it=False)
    return tensor_of(core, slot, dtype)


@operation("ascendc.que_bind.get_tensor_count_in_que")
def get_tensor_count_in_que(core: Core, site: int, que: Queue) -> int:
    """How many buffers are queued."""
    return len(que.waiting)


@operation("ascendc.que_bind.has_tensor_in_que")
def has_tensor_in_que(core: Core, site: int, que: Queue) -> int:
    """1 when a buffer is queued."""
    return int(bool(que.waiting))


@operation("ascendc.que_bind.vacant_in_que")
def vacant_in_que(core: Core, site: int, que: Queue) -> int:
    """1 while fewer buffers are queued than the queue is deep."""
    return int(len(que.waiting) < max(que.depth, 1))


@operation("ascendc.que_bind.has_idle_buffer")
def has_idle_buffer(core: Core, site: int, que: Queue) -> int:
    """1 when a buffer is left to allocate."""
    return int(any(slot.state == IDLE for slot in que.slots))


# -- buffers of a pool that the program manages itself ---------------------------------------------------------------


@operation("ascendc.que_bind.init_start_buf_handle")
def init_start_buf_handle(core: Core, site: int, que: Queue | TBuf, handle: Any, num: int, nbytes: int) -> None:
    """InitStartBufHandle: a queue or TBuf gets `num` buffers of `nbytes` bytes; where they lie comes with each."""
    core.begin(site, S, INIT, num, nbytes, origin=Origin.FRAMEWORK)
    if isinstance(que, Queue):
        make_slots(core, que, 0, num, rounded(nbytes))


@operation("ascendc.que_bind.init_buf_handle")
def init_buf_handle(
    core: Core, site: int, que: Queue | TBuf, pool: Any, index: int, handle: Any, address: int, nbytes: int
) -> None:
    """InitBufHandle: buffer `index` lies at byte `address`."""
    if isinstance(que, TBuf):
        que.address, que.size = address, nbytes
        que.buffer = core.buffer(Buffer(que.space, core.index, address, nbytes, "tbuf", que.name, "", (), site))
    elif 0 <= index < len(que.slots):
        que.slots[index].address, que.slots[index].size = address, nbytes
    else:
        core.fault("bad_operand", what="buffer index", value=index, limit=f"0 to {len(que.slots) - 1}")


# -- TBuf ------------------------------------------------------------------------------------------------------------


@operation("ascendc.tbuf.get_tensor")
def get_tensor(core: Core, site: int, buf: TBuf, length: int | None = None, *, result_dtype: Any) -> Tensor:
    """The buffer as a tensor of `length` elements (all of it by default)."""
    whole = buf.size // result_dtype.itemsize
    return _part(core, site, buf, 0, whole if length is None else length, result_dtype)


@operation("ascendc.tbuf.get_with_offset")
def get_with_offset(core: Core, site: int, buf: TBuf, size: int, buf_offset: int, *, result_dtype: Any) -> Tensor:
    """`size` elements from byte `buf_offset` of the buffer on; fault ``bad_operand`` for an offset that is no multiple
    of 32 bytes or a tensor that ends after the buffer."""
    end = buf_offset + size * result_dtype.itemsize
    core.site = site
    if buf_offset % BLOCK:
        core.fault("bad_operand", what="offset in the TBuf", value=buf_offset, limit=f"multiples of {BLOCK} bytes")
    if end > buf.size:
        core.fault("bad_operand", what="end of the tensor in the TBuf", value=end, limit=f"{buf.size} bytes")
    return _part(core, site, buf, buf_offset, size, result_dtype)


def _part(core: Core, site: int, buf: TBuf, offset: int, length: int, dtype: Any) -> Tensor:
    buffer = buf.buffer
    if buffer < 0:
        core.site = site
        core.fault("queue_not_initialised", queue="the TBuf")
        buffer = core.raw_tensor(buf.space, 0, 0, site, "", dtype.name)
    position = POSITION_NAMES.index(buf.position)
    return Tensor(core.memories[buf.space], buf.address + offset, dtype, buffer, length, position)
