"""One core: its memories, registers and flags, and the three things every instruction does: begin, load, store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.npu.cache import ScalarCache
from npuscope.npu.layout import Layout
from npuscope.npu.memory import LazyMemories, Memory
from npuscope.npu.registers import Registers
from npuscope.npu.sync import (
    CoreFlags,
    HardEvent,
    Held,
    StalledPipes,
    event_pipes,
    issued_to,
    pipes_of,
)
from npuscope.npu.tensor import Tensor
from npuscope.trace.names import assigned_name
from npuscope.trace.recorder import BATCH_ROWS, Recorder
from npuscope.trace.schema import OPCODES, Buffer, CoreInfo, CoreType, Fault, Origin, Pipe, Role, Space

if TYPE_CHECKING:
    from npuscope.npu.machine import Machine

READ, WRITE, ATOMIC, SPOIL, REWRITE = (
    int(Role.READ), int(Role.WRITE), int(Role.ATOMIC), int(Role.SPOIL), int(Role.REWRITE)
)
S = int(Pipe.S)
KERNEL_END = OPCODES.number("kernel_end")


class Core:
    """A simulated AIC or AIV. Instructions take effect when issued; the trace row is written in the same call."""

    def __init__(self, machine: Machine, index: int, info: CoreInfo, sizes: dict[Space, int]) -> None:
        self.machine = machine
        self.chip = machine.chip
        self.recorder: Recorder = machine.recorder
        self.index = index
        self.info = info
        self.is_aic = info.type is CoreType.AIC
        self.is_aiv = info.type is CoreType.AIV
        self.memories = LazyMemories(sizes)
        self.registers = Registers()
        self.flags = CoreFlags()
        self.row = -1
        self.site = 0
        self.block_count = 0  # what get_block_num returns, set by the machine
        self.library: dict[str, Any] = {}  # state of the framework running on this core (pipes, queues, matmul)
        self._tensors: dict[tuple[int, int, int, int], int] = {}
        self.pipes = pipes_of(self.is_aic, self.chip.split)
        self.events = event_pipes(self.pipes)  # (source, target) pipe of each event that this core knows
        self.event_ids = self.chip.identifiers.event_ids
        self.stalled = StalledPipes()
        self.may_put_off = False  # the call in progress is one that `issue` can repeat later
        self._cache: ScalarCache | None = None
        # Whether writes to GM are told apart by whether they change anything: races of equal values do no harm.
        self.compares = bool(machine.recorder.consumers) and len(machine.infos) > 1
        self.at_end: list[Callable[[], None]] = []  # what the library has to undo when the kernel ends

    # -- what every instruction calls ---------------------------------------------------------------------------

    def begin(
        self,
        site: int,
        pipe: int,
        opcode: int,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
        work: int = 0,
        origin: int = Origin.USER,
    ) -> None:
        """Write the trace row of an instruction; the accesses that follow belong to it."""
        recorder = self.recorder
        row = recorder.rows
        if row - recorder.flushed >= BATCH_ROWS:
            recorder.flush()
        recorder.rows = row + 1
        self.row = row
        self.site = site
        recorder.instructions.extend((self.index, pipe, opcode, site, origin, a, b, c, d, work))

    def load(self, tensor: Tensor, layout: Layout) -> np.ndarray:
        """Read an operand: an array shaped like `layout` that shares storage with the device memory.

        Bytes outside the memory read as zero (and are in the trace for the checks to find). Lanes the mask turns off
        are present in the array but are not reads.
        """
        self.recorder.accesses.extend((self.row, READ, tensor.buffer, tensor.address, layout.number))
        return self.view(tensor, layout)

    def store(self, tensor: Tensor, layout: Layout, values: Any) -> None:
        """Write `values` (broadcastable to the layout) to an operand; lanes the mask turns off keep their content.

        Bytes outside the memory are dropped (and are in the trace for the checks to find).
        """
        role = REWRITE if self.compares and self._is_there(tensor, layout, values) else WRITE
        self.recorder.accesses.extend((self.row, role, tensor.buffer, tensor.address, layout.number))
        self.put(tensor, layout, values)

    def target(self, tensor: Tensor, layout: Layout) -> np.ndarray | None:
        """Record a write and give the array to write into, or None when `store` must do it (part of the operand is
        outside the memory, or lanes are masked). The caller fills the array, or calls `put` on None."""
        self.recorder.accesses.extend((self.row, WRITE, tensor.buffer, tensor.address, layout.number))
        return self.out(tensor, layout) if layout.mask is None else None

    def note(self, role: int, tensor: Tensor, layout: Layout) -> None:
        """Record an access whose effect is done with `view` and `put`."""
        self.recorder.accesses.extend((self.row, role, tensor.buffer, tensor.address, layout.number))

    # -- effects without a record --------------------------------------------------------------------------------

    def view(self, tensor: Tensor, layout: Layout) -> np.ndarray:
        """An operand's elements without a trace row; a copy, zero outside, where it leaves the memory."""
        memory = tensor.memory
        offset = tensor.address - memory.base
        if offset + layout.low < 0 or offset + layout.high > memory.size:
            return _gather_clipped(memory, offset + layout.starts(), tensor.dtype)
        return _inside(memory, offset, tensor.dtype, layout)

    def out(self, tensor: Tensor, layout: Layout) -> np.ndarray | None:
        """An operand's elements to write into without a trace row; None where it leaves the memory."""
        memory = tensor.memory
        offset = tensor.address - memory.base
        if offset + layout.low < 0 or offset + layout.high > memory.size or not memory.bytes.flags.writeable:
            return None
        if memory.space == Space.GM:
            self.machine.changes += 1
        return _inside(memory, offset, tensor.dtype, layout)

    def put(self, tensor: Tensor, layout: Layout, values: Any) -> None:
        """Write an operand without a trace row."""
        view = self.out(tensor, layout)
        if view is None:
            if tensor.memory.space == Space.GM:
                self.machine.changes += 1
            _store_clipped(tensor, layout, values)
        elif layout.mask is None:
            view[...] = values
        else:
            np.copyto(view, values, where=layout.mask, casting="unsafe")

    def _is_there(self, tensor: Tensor, layout: Layout, values: Any) -> bool:
        """Whether GM holds `values` already, byte for byte."""
        if tensor.memory.space != Space.GM or layout.mask is not None or layout.low == layout.high:
            return False
        there = self.view(tensor, layout)
        fresh = np.broadcast_to(np.asarray(values).astype(tensor.dtype, copy=False), there.shape)
        first = (0,) * there.ndim
        if there[first].tobytes() != fresh[first].tobytes():
            return False
        return there.tobytes() == fresh.tobytes()

    # -- memory outside an instruction's plain operands ---------------------------------------------------------

    def gather(self, tensor: Tensor, starts: np.ndarray, dtype: Any = None) -> np.ndarray:
        """Read one element at each byte offset of `starts` (int64, any shape) from the tensor's address."""
        kind = np.dtype(dtype) if dtype is not None else tensor.dtype
        number = self.recorder.add_explicit(starts.reshape(-1).astype(np.int64), kind.itemsize)
        self.recorder.accesses.extend((self.row, READ, tensor.buffer, tensor.address, number))
        return _gather_clipped(tensor.memory, tensor.address - tensor.memory.base + starts, kind)

    def scatter(self, tensor: Tensor, starts: np.ndarray, values: np.ndarray) -> None:
        """Write one element at each byte offset of `starts` from the tensor's address, in order."""
        number = self.recorder.add_explicit(starts.reshape(-1).astype(np.int64), tensor.dtype.itemsize)
        self.recorder.accesses.extend((self.row, WRITE, tensor.buffer, tensor.address, number))
        if tensor.memory.space == Space.GM:
            self.machine.changes += 1
        _scatter_clipped(tensor.memory, tensor.address - tensor.memory.base + starts, tensor.dtype, values)

    def fault(self, code: str, **facts: object) -> None:
        """Record something the machine could not do; it belongs to the instruction last begun."""
        self.recorder.add_fault(Fault(code, self.row, self.index, self.site, facts))

    # -- stalled pipes, scalar memory, the end -----------------------------------------------------------------

    def issue(self, function: Callable[..., Any], has_result: bool = False) -> Callable[..., Any]:
        """`function` (called ``function(core, site, ...)``) as this core issues it while pipes are stalled: put off
        when it belongs to a stalled pipe (see npu.sync)."""
        return issued_to(self, function, has_result)

    def watch_stalled(self) -> None:
        """Make `begin` look at stalled pipes or not: called when the first one stalls and when the last goes on."""
        if self.stalled:
            self.__dict__["begin"] = self._begin_or_put_off
        else:
            self.__dict__.pop("begin", None)

    def _begin_or_put_off(self, site: int, pipe: int, *operands: int, **named: int) -> None:
        if self.may_put_off and self.stalled.holds(pipe):
            raise Held(pipe)
        self.may_put_off = False
        Core.begin(self, site, pipe, *operands, **named)

    @property
    def cache(self) -> ScalarCache:
        """The scalar unit's data cache of global memory."""
        if self._cache is None:
            caches = self.chip.dcache
            size = caches.aic if self.is_aic else caches.aiv
            self._cache = ScalarCache(self, size.bytes, size.line_bytes)
        return self._cache

    def end(self) -> None:
        """The kernel has ended on this core: dirty lines of the data cache go to memory (hardware.md 3.5), flags that
        are still up are reported (they would meet the next kernel, hardware.md 3.2). The row has a: how many those are,
        b: mask mode, c and d: low and high mask word, as rows of vector instructions do."""
        for action in self.at_end:
            action()
        if self._cache is not None:
            self._cache.clean_all()
        left = self.flags.raised
        low, high = (word - (1 << 64) if word >> 63 else word for word in self.registers.mask)
        self.begin(self.site, S, KERNEL_END, len(left), self.registers.mask_mode, low, high, origin=Origin.HARDWARE)
        for event, number, row in left:
            self.fault("flag_left_set", event=HardEvent(event).name, id=number, set_row=row)
        self.memories.release()

    # -- buffers -------------------------------------------------------------------------------------------------

    def buffer(self, buffer: Buffer) -> int:
        """Register a buffer of this core."""
        return self.recorder.add_buffer(buffer)

    def raw_tensor(self, space: Space, address: int, nbytes: int, site: int, name: str, dtype: str) -> int:
        """The buffer of a tensor laid by hand at `address`; the same one each time the line runs."""
        key = (space, address, nbytes, site)
        number = self._tensors.get(key)
        if number is None:
            label = name or assigned_name(self.recorder.sites[site])
            number = self._tensors[key] = self.buffer(
                Buffer(space, self.index, address, nbytes, "tensor", label, dtype, (), site)
            )
        return number


def _inside(memory: Memory, offset: int, dtype: np.dtype[Any], layout: Layout) -> np.ndarray:
    """A view of elements that are known to lie inside the memory."""
    count = layout.count
    if count >= 0:
        first, rest = divmod(offset, dtype.itemsize)
        if not rest:
            return memory.typed(dtype)[first : first + count]
    if layout.low == layout.high:
        return np.empty(layout.shape, dtype)
    return np.ndarray(layout.shape, dtype, memory.bytes, offset, layout.strides)


def _store_clipped(tensor: Tensor, layout: Layout, values: Any) -> None:
    memory = tensor.memory
    starts = tensor.address - memory.base + layout.starts()
    whole = np.broadcast_to(np.asarray(values).astype(tensor.dtype), layout.shape)
    if layout.mask is not None:
        lanes = np.broadcast_to(layout.mask, layout.shape)
        starts, whole = starts[lanes], whole[lanes]
    _scatter_clipped(memory, starts, tensor.dtype, whole)


def _gather_clipped(memory: Memory, starts: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Elements at byte offsets `starts` of `memory`; what lies outside reads as zero."""
    if _whole_elements(memory, starts, dtype.itemsize):
        return memory.typed(dtype)[starts // dtype.itemsize]
    places = starts[..., None] + np.arange(dtype.itemsize)
    inside = (places >= 0) & (places < memory.size)
    raw = np.zeros(places.shape, np.uint8)
    raw[inside] = memory.bytes[places[inside]]
    return raw.view(dtype).reshape(starts.shape)


def _whole_elements(memory: Memory, starts: np.ndarray, itemsize: int) -> bool:
    """Whether byte offsets `starts` all name aligned elements inside the memory, so that indexing can do the work."""
    if not starts.size or (starts % itemsize).any():
        return False
    return int(starts.min()) >= 0 and int(starts.max()) + itemsize <= memory.size


def _scatter_clipped(memory: Memory, starts: np.ndarray, dtype: np.dtype[Any], values: np.ndarray) -> None:
    """Write elements at byte offsets `starts`; what lies outside, or in a read-only array, is dropped."""
    if not memory.bytes.flags.writeable:
        return
    if _whole_elements(memory, starts, dtype.itemsize):
        memory.typed(dtype)[starts // dtype.itemsize] = np.asarray(values).reshape(starts.shape)
        return
    raw = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8).reshape(*starts.shape, dtype.itemsize)
    places = starts[..., None] + np.arange(dtype.itemsize)
    inside = (places >= 0) & (places < memory.size)
    memory.bytes[places[inside]] = raw[inside]


def opcode(name: str) -> int:
    """The number of an instruction name; call it once at import, not per instruction."""
    return OPCODES.number(name)


PIPE_NAMES = {int(pipe): pipe.name for pipe in Pipe}
