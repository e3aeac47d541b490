"""TPipe, TQue, TQueBind and TBuf: the framework's buffers and the flags it sets between pipes (hardware.md 3.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from npuscope.ascendc.registry import operation
from npuscope.ascendc.tensor import POSITION_NAMES, POSITIONS
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.move import CUBE_SPACES
from npuscope.npu.layout import BLOCK
from npuscope.npu.sync import SOURCE_PIPE, TARGET_PIPE, HardEvent
from npuscope.npu.tensor import Tensor
from npuscope.trace.names import assigned_name
from npuscope.trace.schema import Buffer, Origin, Pipe, Space

ALLOC, FREE = opcode("que_alloc"), opcode("que_free")
ENQUE, DEQUE = opcode("que_enque"), opcode("que_deque")
INIT = opcode("init_buffer")
SET_FLAG, WAIT_FLAG = opcode("set_flag"), opcode("wait_flag")
S = int(Pipe.S)

PRODUCERS = {"VECIN": "MTE2", "VECOUT": "V", "A1": "MTE2", "B1": "MTE2", "C1": "MTE2", "A2": "MTE1", "B2": "MTE1",
             "C2": "MTE1", "CO1": "M", "CO2": "V"}
CONSUMERS = {"VECIN": "V", "VECOUT": "MTE3", "A1": "MTE1", "B1": "MTE1", "C1": "MTE1", "A2": "M", "B2": "M", "C2": "M",
             "CO1": "FIX", "CO2": "MTE3"}
"""Which pipe fills and which empties a buffer of a position (hardware.md 3.3)."""

IDLE, HELD, QUEUED = 0, 1, 2


@dataclass(slots=True)
class Slot:
    """One buffer of a queue: where it lies, who has it, which generation (trace buffer) lives in it."""

    queue: Queue
    index: int
    address: int
    size: int
    state: int = IDLE
    buffer: int = -1
    freed: bool = False  # freed before: the next allocation waits for the consumer's flag


@dataclass(slots=True)
class Queue:
    """TQue or TQueBind. `ready` and `done` are the flags producer->consumer and back, None where a pipe is its own."""

    source: str
    target: str
    name: str = ""
    slots: list[Slot] = field(default_factory=list)
    waiting: list[Slot] = field(default_factory=list)
    next: int = 0

    @property
    def space(self) -> Space:
        """The memory its buffers lie in."""
        return POSITIONS[POSITION_NAMES.index(self.source)]

    @property
    def ready(self) -> HardEvent | None:
        """Flag from the pipe that fills to the pipe that empties."""
        return _event(PRODUCERS.get(self.source), CONSUMERS.get(self.target))

    @property
    def done(self) -> HardEvent | None:
        """Flag back from the pipe that empties."""
        return _event(CONSUMERS.get(self.target), PRODUCERS.get(self.source))


@dataclass(slots=True)
class TBuf:
    """A buffer without a queue."""

    position: str
    address: int = 0
    size: int = 0
    buffer: int = -1

    @property
    def space(self) -> Space:
        """The memory it lies in."""
        return POSITIONS[POSITION_NAMES.index(self.position)]


@dataclass(slots=True)
class TPipe:
    """Hands out memory front to back, one running offset per physical memory."""

    offsets: dict[Space, int] = field(default_factory=dict)
    made: list[tuple[Space, str, int, int]] = field(default_factory=list)  # space, name, count, bytes each


def _event(source: str | None, target: str | None) -> HardEvent | None:
    if source is None or target is None or source == target:
        return None
    return HardEvent.__members__.get(f"{source}_{target}")


def _positions(type_text: str) -> list[str]:
    """Position names in a type such as ``!ascendc.que_bind<vecin, vecout, 1>``."""
    match = re.search(r"<(.*)>", type_text)
    words = [word.strip().upper() for word in match.group(1).split(",")] if match else []
    return [word for word in words if word in POSITION_NAMES]


def elsewhere(core: Core, space: Space) -> bool:
    """Whether a memory belongs to the other core type of a split chip."""
    return core.chip.split and (space in CUBE_SPACES) == core.is_aiv and space != Space.GM


@operation("ascendc.pipe")
def pipe(core: Core, site: int) -> TPipe:
    """A TPipe."""
    made = core.library["pipe"] = TPipe()
    return made


@operation("ascendc.queue", "ascendc.que_bind")
def queue(core: Core, site: int, *, result_type: str) -> Queue:
    """A TQue (one position) or TQueBind (source and destination position)."""
    positions = _positions(result_type)
    return Queue(positions[0], positions[-1], assigned_name(core.recorder.sites[site]))


@operation("ascendc.tbuf")
def tbuf(core: Core, site: int, *, result_type: str) -> TBuf:
    """A TBuf."""
    return TBuf(_positions(result_type)[0])


def reserve(core: Core, owner: TPipe, space: Space, name: str, count: int, nbytes: int) -> int:
    """Take `count` buffers of `nbytes` bytes, each rounded up to 32, from a pipe; returns the first address.

    Running past what a kernel may use of the memory is a fault with the list of what was asked for.
    """
    each = -(-nbytes // BLOCK) * BLOCK
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


@operation("ascendc.pipe.init_queue")
def init_queue(core: Core, site: int, owner: TPipe, que: Queue, number: int, nbytes: int) -> None:
    """pipe.InitBuffer(queue, number, bytes)."""
    core.begin(site, S, INIT, number, nbytes, origin=Origin.FRAMEWORK)
    first = reserve(core, owner, que.space, que.name, number, nbytes)
    each = -(-nbytes // BLOCK) * BLOCK
    que.slots = [Slot(que, index, first + index * each, each) for index in range(number)]


@operation("ascendc.pipe.init_buffer")
def init_buffer(core: Core, site: int, owner: TPipe, buf: TBuf, nbytes: int) -> None:
    """pipe.InitBuffer(tbuf, bytes)."""
    core.begin(site, S, INIT, 1, nbytes, origin=Origin.FRAMEWORK)
    name = assigned_name(core.recorder.sites[site])
    buf.address = reserve(core, owner, buf.space, name, 1, nbytes)
    buf.size = -(-nbytes // BLOCK) * BLOCK
    buf.buffer = core.buffer(Buffer(buf.space, core.index, buf.address, buf.size, "tbuf", name, "", (), site))


def tensor_of(core: Core, slot: Slot, dtype: Any) -> Tensor:
    """The tensor in a slot."""
    space = slot.queue.space
    position = POSITION_NAMES.index(slot.queue.source)
    return Tensor(
        core.memories[space], slot.address, dtype, slot.buffer, slot.size // dtype.itemsize, position, slot
    )


def _flag(core: Core, site: int, event: HardEvent | None, slot: Slot, raise_it: bool) -> None:
    if event is None or elsewhere(core, slot.queue.space):
        return
    number = int(event)
    identity = slot.index + (id(slot.queue) << 4)  # one flag per buffer and direction
    if raise_it:
        core.begin(site, SOURCE_PIPE[number], SET_FLAG, number, slot.index, slot.buffer, origin=Origin.FRAMEWORK)
        core.flags.set(number, identity, core.row)
    else:
        core.begin(site, TARGET_PIPE[number], WAIT_FLAG, number, slot.index, slot.buffer, origin=Origin.FRAMEWORK)
        core.flags.take(number, identity)


@operation("ascendc.que_bind.alloc_tensor")
def alloc_tensor(core: Core, site: int, que: Queue, *, result_dtype: Any) -> Tensor:
    """The next idle buffer of the queue; none idle would hang the device and is a fault."""
    slot = _next_idle(core, site, que)
    core.begin(site, S, ALLOC, len(core.recorder.buffers), origin=Origin.FRAMEWORK)
    name = assigned_name(core.recorder.sites[site]) or que.name
    slot.buffer = core.buffer(
        Buffer(que.space, core.index, slot.address, slot.size, "queue", name, result_dtype.name, (), site,
               slot.buffer + 1)
    )
    slot.state = HELD
    if slot.freed:
        _flag(core, site, que.done, slot, raise_it=False)
        slot.freed = False
    return tensor_of(core, slot, result_dtype)


def _next_idle(core: Core, site: int, que: Queue) -> Slot:
    if not que.slots:
        core.begin(site, S, INIT, 0, 0, origin=Origin.FRAMEWORK)
        core.fault("queue_not_initialised", queue=que.name)
        que.slots = [Slot(que, 0, 0, BLOCK)]
    for turn in range(len(que.slots)):
        slot = que.slots[(que.next + turn) % len(que.slots)]
        if slot.state == IDLE:
            que.next = (slot.index + 1) % len(que.slots)
            return slot
    slot = que.slots[que.next]
    core.begin(site, S, ALLOC, slot.buffer, origin=Origin.FRAMEWORK)
    core.fault("queue_no_idle_buffer", queue=que.name, buffers=len(que.slots))
    return slot


@operation("ascendc.que_bind.enque_tensor")
def enque_tensor(core: Core, site: int, que: Queue, tensor: Tensor) -> None:
    """Hand a filled buffer to the consumer."""
    slot = tensor.slot
    core.begin(site, S, ENQUE, tensor.buffer, origin=Origin.FRAMEWORK)
    if slot is None or slot.queue is not que:
        core.fault("enque_foreign", queue=que.name, buffer=tensor.buffer)
        return
    if slot.state != HELD:
        core.fault("enque_not_held", queue=que.name, buffer=tensor.buffer)
        return
    slot.state = QUEUED
    que.waiting.append(slot)
    _flag(core, site, que.ready, slot, raise_it=True)


@operation("ascendc.que_bind.deque_tensor")
def deque_tensor(core: Core, site: int, que: Queue, *, result_dtype: Any) -> Tensor:
    """The oldest filled buffer; an empty queue is a fault."""
    if not que.waiting:
        slot = que.slots[0] if que.slots else _next_idle(core, site, que)
        core.begin(site, S, DEQUE, slot.buffer, origin=Origin.FRAMEWORK)
        core.fault("deque_empty", queue=que.name)
        if slot.buffer < 0:
            slot.buffer = core.buffer(
                Buffer(que.space, core.index, slot.address, slot.size, "queue", que.name, result_dtype.name, (), site)
            )
        return tensor_of(core, slot, result_dtype)
    slot = que.waiting.pop(0)
    slot.state = HELD
    core.begin(site, S, DEQUE, slot.buffer, origin=Origin.FRAMEWORK)
    _flag(core, site, que.ready, slot, raise_it=False)
    return tensor_of(core, slot, result_dtype)


@operation("ascendc.que_bind.free_tensor")
def free_tensor(core: Core, site: int, que: Queue, tensor: Tensor) -> None:
    """Give a buffer back to its queue."""
    slot = tensor.slot
    if slot is None or slot.queue is not que or slot.buffer != tensor.buffer or slot.state == IDLE:
        core.begin(site, S, FREE, -1, origin=Origin.FRAMEWORK)
        code = "free_foreign" if slot is None or slot.queue is not que else "free_twice"
        core.fault(code, queue=que.name, buffer=tensor.buffer)
        return
    if slot.state == QUEUED:
        que.waiting.remove(slot)
    slot.state = IDLE
    _flag(core, site, que.done, slot, raise_it=True)
    slot.freed = True
    core.begin(site, S, FREE, tensor.buffer, origin=Origin.FRAMEWORK)


@operation("ascendc.tbuf.get_tensor")
def get_tensor(core: Core, site: int, buf: TBuf, length: int | None = None, *, result_dtype: Any) -> Tensor:
    """The buffer as a tensor of `length` elements (all of it by default)."""
    whole = buf.size // result_dtype.itemsize
    return Tensor(
        core.memories[buf.space], buf.address, result_dtype, buf.buffer, whole if length is None else length,
        POSITION_NAMES.index(buf.position),
    )
