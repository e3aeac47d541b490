"""A launch on its way from a front end to the simulated device, and the session that all launches of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npuscope.errors import UserError
from npuscope.frontends.heap import Heap
from npuscope.frontends.uninitialised import Poison, Runs, address_of
from npuscope.mlir.program import Program
from npuscope.mstx.ranges import Ranges
from npuscope.npu.chip import DEFAULT_CHIP, Chip, load_chip
from npuscope.npu.device_addresses import DeviceAddresses, owner_of
from npuscope.npu.machine import Deadlock, Machine, cube_cores, mixed_cores, vector_cores
from npuscope.npu.memory import GlobalMemory, borrow
from npuscope.npu.tensor import Pointer
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import NO_BLOCK, Buffer, CoreInfo, Fault, Launch, SourceFrame, Space

Part = tuple[int | None, int | None]
"""A part of a sequence, as Python's slices have it."""


@dataclass(slots=True)
class Session:
    """What the launches of one run share: the chip that was asked for, the recorder, where kernels print.

    `chip` None means: the chip that the script names. `print_line` receives each line that a kernel prints,
    `notice` what the user should know of how the run differs from one on a card, `poison` knows
    which memory has no content yet, `heap` the device memory that the script allocates itself. `programs` are the parts
    of a Triton grid that run (all when there are none), `timeout` the seconds that one launch may take; `nan` asks for
    the first NaN of Triton launches, `nan_seen` tells that there has been one. `ranges` are those that the script has
    opened with ``mstx``, `addresses` where on the device its arrays lie.
    """

    recorder: Recorder = field(default_factory=Recorder)
    chip: Chip | None = None
    print_line: Callable[[str], None] = lambda line: None
    notice: Callable[[str], None] = lambda line: None
    poison: Poison | None = None
    heap: Heap | None = None
    programs: tuple[Part, ...] = ()
    timeout: float | None = None
    launches: int = 0
    noticed: set[str] = field(default_factory=set)
    nan: bool = False
    nan_seen: bool = False
    device: int = 0  # the number of the device that the script has chosen
    ranges: Ranges = field(default_factory=Ranges)
    addresses: DeviceAddresses = field(default_factory=DeviceAddresses)

    def chip_for(self, name: str | None) -> Chip:
        """The chip of a launch whose script names `name`."""
        return self.chip or load_chip(name or DEFAULT_CHIP)


@dataclass(frozen=True, slots=True)
class Array:
    """A user's array as bytes: flat storage that the kernel sees, and how the user knows it."""

    data: np.ndarray
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: Any


def array_of(value: Any, name: str) -> Array:
    """The storage of a numpy array or of anything with `data_ptr()` and `dtype` (torch), not copied.

    Raises UserError, naming the argument, when the array is not contiguous: a kernel sees plain memory, so a strided
    view would be read and written in the wrong places.
    """
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise UserError(
                f"argument {name} is not contiguous (shape {value.shape}, strides {value.strides} bytes): "
                f"pass np.ascontiguousarray({name})"
            )
        data = value.reshape(-1).view(np.uint8) if value.size else np.empty(0, np.uint8)
        return Array(data, value.dtype, value.shape, value)
    if hasattr(value, "data_ptr"):
        if not value.is_contiguous():
            raise UserError(
                f"argument {name} is not contiguous (shape {tuple(value.shape)}, strides {tuple(value.stride())} "
                f"elements): pass {name}.contiguous()"
            )
        nbytes = value.numel() * value.element_size()
        word = str(value.dtype).removeprefix("torch.")
        return Array(borrow(value.data_ptr(), nbytes, True, value), array_dtype(word), tuple(value.shape), value)
    raise UserError(f"argument {name} of type {type(value).__name__} is not an array; pass numpy or torch arrays")


def array_dtype(word: str) -> np.dtype[Any]:
    """The numpy type of elements by torch's name for it. Raises TypeError where there is none."""
    if word in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, word))
    return np.dtype({"bool": "bool"}.get(word, word))


@dataclass(slots=True)
class LaunchRequest:
    """What a front end asks for. `arguments` are (name, value) in the kernel's order; values are scalars, records or
    arrays. `cores` is "vector", "cube" or "mixed"."""

    program: Program
    blocks: int
    cores: str
    arguments: Sequence[tuple[str, Any]]
    options: dict[str, str]
    chip_name: str | None = None
    frame: SourceFrame | None = None
    shown: dict[str, str] = field(default_factory=dict)  # arguments that the compiler folded away

    @property
    def mixed(self) -> bool:
        """Whether cube and vector cores run together."""
        return self.cores.startswith("mixed")


CORES = {
    "vector": vector_cores,
    "cube": cube_cores,
    "mixed": mixed_cores,
    "mixed11": lambda count: mixed_cores(count, 1),
}
"""Cores of a launch by kind; a mixed block has one AIC and two AIVs, or one with "mixed11"."""


def launch(session: Session, request: LaunchRequest) -> None:
    """Run a kernel; its outputs land in the user's arrays. Raises npu.machine.Deadlock when it can never finish."""
    chip = session.chip_for(request.chip_name)
    prepared = [(name, array_of(value, name) if is_array(value) else value) for name, value in request.arguments]
    memory = GlobalMemory(session.addresses)
    infos: tuple[CoreInfo, ...] = CORES[request.cores](request.blocks) if request.blocks <= chip.max_blocks else ()
    record = Launch(
        0,
        request.program.name,
        chip.name,
        infos,
        (request.blocks,),
        {**request.shown, **{name: describe(value) for name, value in request.arguments}},
        request.options,
        request.frame,
        chip.arch,
        {space: chip.memory(space).limit(mix=request.mixed) for space in Space if space != Space.GM},
        session.device,
    )
    recorder = session.recorder
    recorder.begin(record)
    session.launches += 1
    try:
        if not infos:
            facts = {"blocks": request.blocks, "limit": chip.max_blocks}
            recorder.add_fault(Fault("launch_too_large", -1, -1, 0, facts))
            return
        _notice_waves(session, request, chip)
        machine = Machine(chip, recorder, memory)
        machine.build(infos)
        memory.share([_with_owner(session, value) for _, value in prepared if isinstance(value, Array)])
        arguments = tuple(bind(memory, session, *pair) for pair in prepared)
        try:
            machine.run(request.program.entry, arguments)
        except Deadlock:
            raise
        except UserError as error:
            told = at_user_line(error, request.program.code.co_filename)
            _note_stop(recorder, told)
            raise told from None
        except BaseException as error:
            _note_stop(recorder, error)
            raise
        finally:
            for line in machine.output:
                session.print_line(line)
    finally:
        recorder.end()


def _note_stop(recorder: Recorder, error: BaseException) -> None:
    """Let the trace say that the launch did not come to its end, so that nothing calls it clean."""
    facts = {"error": f"{type(error).__name__}: {error}"}
    recorder.add_fault(Fault("stopped", max(recorder.rows - 1, 0), -1, 0, facts))


def at_user_line(error: UserError, file: str) -> UserError:
    """The error with the line of the kernel in `file` that was running; the generated code has the user's lines."""
    trace = error.__traceback__
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return type(error)(f"{file}:{line}: {error}", exit_code=error.exit_code) if line else error


def _notice_waves(session: Session, request: LaunchRequest, chip: Chip) -> None:
    """Say once per kernel that its blocks do not all run at the same time on the real chip."""
    cores = chip.cores.aiv if request.cores == "vector" else chip.cores.aic
    name = request.program.name
    if request.blocks > cores and name not in session.noticed:
        session.noticed.add(name)
        session.notice(f"{name} has {request.blocks} blocks, {chip.name} has {cores} cores: they run in waves")


def is_array(value: Any) -> bool:
    """Whether an argument is an array, and so a pointer for the kernel."""
    return isinstance(value, np.ndarray) or hasattr(value, "data_ptr")


def bind(memory: GlobalMemory, session: Session, name: str, value: Any) -> Any:
    """An argument as the kernel receives it: numbers and records as they are, arrays as pointers."""
    if not isinstance(value, Array):
        return int(value) if isinstance(value, bool) else value
    data, block = _held(session.heap, value.data)
    region = memory.map(data, value.owner, _with_owner(session, value)[1])
    undefined: Runs = session.poison.runs(data, value.dtype) if session.poison is not None else ()
    number = session.recorder.add_buffer(
        Buffer(
            Space.GM, -1, region.base, data.size, "argument", name, value.dtype.name, value.shape,
            writeable=data.flags.writeable, undefined=undefined, block=block,
        )
    )
    return Pointer(region, region.base, value.dtype, number)


def _with_owner(session: Session, array: Array) -> tuple[np.ndarray, Any]:
    """An argument's bytes, and the object that they belong to: a block of the heap, or an array of the script's."""
    block = session.heap.find(address_of(array.data)) if session.heap is not None and array.data.size else None
    return array.data, owner_of(array.owner) if block is None else block.data


def _held(heap: Heap | None, data: np.ndarray) -> tuple[np.ndarray, int]:
    """An argument's bytes as far as the block goes that it lies in, and the serial of the block's allocation."""
    block = heap.find(address_of(data)) if heap is not None and data.size else None
    return (data, NO_BLOCK) if block is None else (data[: block.end - address_of(data)], block.serial)


def describe(value: Any) -> str:
    """An argument in a few words for a report."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"
    if hasattr(value, "data_ptr"):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"
    return str(value)
