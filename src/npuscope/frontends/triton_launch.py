"""From a Triton launch to the programs of a grid: arguments become storages and views, the IR a lowered program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from math import prod
from operator import index
from time import monotonic
from typing import Any

import numpy as np

from npuscope.errors import EXIT_TIMEOUT, UserError
from npuscope.frontends import addresses
from npuscope.frontends.launch import Part, Session, array_dtype, at_user_line, describe
from npuscope.frontends.triton_programs import ProgramCache
from npuscope.frontends.triton_values import FakeTensor, HostArray, device_of
from npuscope.mlir.tiles.kinds import bits_of, dtype_of, element_of, is_pointer, pointee_of
from npuscope.mlir.tiles.program import TileProgram
from npuscope.npu.memory import borrow
from npuscope.tile.access import Accesses, stretches
from npuscope.tile.affine import Affine
from npuscope.tile.machine import Machine
from npuscope.tile.nan import NanSearch
from npuscope.tile.overdue import Overdue
from npuscope.tile.pointer import Pointer
from npuscope.tile.rerun import Search
from npuscope.tile.run import run
from npuscope.tile.storage import Argument, Before, Storage
from npuscope.tile.stuck import Stuck
from npuscope.tile.undefined import Repeat
from npuscope.trace.schema import Buffer, Fault, Launch, Programs, Role, SourceFrame, Space

MOST_UNSEEN = 1024
"""Programs at either end of a large grid that run when a tensor has no memory, unless the user says which."""
STRETCHES, STRETCH = 32, 64
MOST_PLACES = 8
"""Places, and stretches of program numbers, that the message on a launch that did not end lists."""


class Launches:
    """The launches of one session."""

    def __init__(self, session: Session, package: str, caller: Callable[[], SourceFrame | None]) -> None:
        self._session = session
        self._package = package
        self._caller = caller
        self._programs: dict[bytes, TileProgram] = {}
        self._saved = ProgramCache(package)

    def _is_library(self, file: str) -> bool:
        return os.path.abspath(file).startswith(self._package + os.sep)

    def program(self, text: bytes) -> TileProgram:
        """The lowered kernel."""
        known = self._programs.get(text)
        if known is None:
            known = self._programs[text] = self._saved.program(
                text, self._is_library, self._session.recorder.add_site, self._session.nan
            )
        return known

    def launch(self, source: Any, text: bytes, extents: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """Run a kernel; its outputs land in the user's tensors."""
        session, recorder = self._session, self._session.recorder
        program = self.program(text)
        grid = grid_of(program.name, extents)
        if not prod(grid):
            session.notice(f"{program.name} was launched with the empty grid {grid}: nothing runs")
        passed = list(passed_values(source.signature.items(), given))
        if len(passed) != len(program.parameters):
            raise UserError(f"{program.name} takes {len(program.parameters)} arguments, {len(passed)} came")
        parts, shown = self._parts(program.name, prod(grid), passed)
        record = Launch(
            0, program.name, session.chip.name if session.chip else "", Programs(grid), _shown(grid),
            {name: _described(value) for name, value in zip(source.signature, given, strict=True)}, shown,
            self._caller(),
        )  # fmt: skip
        recorder.begin(record)
        session.launches += 1
        try:
            storages = Storages()
            bound = [
                self._bind(storages, name, value, kind)
                for (name, value), (_, kind) in zip(passed, program.parameters, strict=True)
            ]
            arguments = [value.argument for value in bound if isinstance(value, Pointer) and value.argument is not None]
            if program.dereferences:
                arguments += self._reachable(storages)
            accesses = Accesses(recorder, frozenset(id(storage) for storage in storages.found))
            machine = Machine(grid, arguments, accesses)
            if session.timeout is not None:
                machine.deadline = monotonic() + session.timeout
            machine.print_line = session.print_line
            machine.moves_whole_blocks = session.chip is not None
            machine.nan = NanSearch(not session.nan_seen) if session.nan else None
            machine.before = Before() if any(argument.undefined for argument in arguments) else None
            try:
                run(machine, program.entry, bound, program.largest, program.yields, parts)
            except UserError as fault:
                raise at_user_line(fault, program.code.co_filename) from None
            finally:
                machine.end()
                session.nan_seen = session.nan_seen or (machine.nan is not None and machine.nan.found)
            if machine.before is not None and machine.before.read:
                again = Repeat(grid, program.entry, bound, arguments, program.largest, program.yields, parts)
                if not again.depends(machine):
                    recorder.add_fault(Fault("tile_idle", max(recorder.rows - 1, 0), -1, 0, {}))
            explain(recorder.faults, Search(grid, arguments, program.entry, bound, program.yields))
        except Stuck as stuck:
            recorder.add_fault(waits(stuck, max(recorder.rows - 1, 0)))
            raise RuntimeError(f"{program.name} can never finish: {stuck}") from None
        except Overdue as overdue:
            error = _too_long(program.name, session.timeout, overdue, prod(grid))
            self._stopped(error)
            raise error from None
        except BaseException as error:
            self._stopped(error)
            raise
        finally:
            recorder.end()

    def _stopped(self, error: BaseException) -> None:
        """Let the trace say that the launch did not come to its end."""
        recorder = self._session.recorder
        facts = {"error": f"{type(error).__name__}: {error}"}
        recorder.add_fault(Fault("stopped", max(recorder.rows - 1, 0), -1, 0, facts))

    def _parts(self, kernel: str, count: int, passed: Sequence[tuple[str, Any]]) -> tuple[list[range], dict[str, str]]:
        """Which programs run, and what the trace says of it; nothing when all do."""
        wanted = self._session.programs
        fake = [name for name, value in passed if isinstance(value, FakeTensor)]
        if not wanted and fake and count > 2 * MOST_UNSEEN:
            wanted = sample(count)
            self._notice(
                f"{kernel}: {fake[0]} has no memory and the grid {count} programs: of these run the first and the last "
                f"{MOST_UNSEEN}, and {STRETCHES} times {STRETCH} between (--programs chooses others)"
            )
        if not wanted:
            return [], {}
        parts = chosen_parts(wanted, count)
        return parts, {"programs": _shown_parts(parts)}

    def _notice(self, line: str) -> None:
        if line not in self._session.noticed:
            self._session.noticed.add(line)
            self._session.notice(line)

    def _reachable(self, storages: Storages) -> list[Argument]:
        """Memory that the kernel may reach by a number: tensors whose address the script has asked for."""
        known = {storage.address for storage in storages.found}
        found = []
        for tensor in addresses.living():
            if device_of(tensor) == "cpu" and tensor.untyped_storage().data_ptr() not in known:
                argument = storages.argument("a tensor by its address", tensor, _dtype_of(tensor))
                found.append(self._registered(argument))
        return found

    def _bind(self, storages: Storages, name: str, value: Any, kind: str) -> Any:
        if is_pointer(kind):
            return self._pointer(storages, name, value, kind)
        element = element_of(kind)
        dtype = dtype_of(element)
        if dtype == np.bool_:
            return np.array([bool(value)])
        if dtype.kind == "i":
            bits = bits_of(element)
            half = 1 << (bits - 1)
            return Affine((int(value) + half) % (2 * half) - half, (), (), bits)
        return np.array([value], np.float64).astype(dtype)

    def _pointer(self, storages: Storages, name: str, value: Any, kind: str) -> Pointer:
        if isinstance(value, int):
            return Pointer(None, Affine(value, (), (), 64))
        argument = self._registered(storages.argument(name, value, dtype_of(pointee_of(kind))))
        return Pointer(argument, Affine(argument.address, (), (), 64))

    def _registered(self, argument: Argument) -> Argument:
        """The argument with a buffer in the trace."""
        session = self._session
        undefined: Any = ()
        if session.poison is not None and argument.storage.data is not None and not argument.gaps:
            begin = argument.low - argument.storage.address
            data = argument.storage.data[begin : begin + argument.high - argument.low]
            undefined = session.poison.runs(data, argument.dtype)
        argument.undefined = undefined
        argument.number = session.recorder.add_buffer(
            Buffer(
                Space.GM, -1, argument.low, argument.high - argument.low, "argument", argument.name,
                argument.dtype.name, argument.shape, writeable=argument.writeable, undefined=undefined,
                strides=() if argument.in_rows else argument.strides,
            )
        )  # fmt: skip
        return argument


def waits(stuck: Stuck, row: int) -> Fault:
    """Who waits where, as a fault: lines with the stretches of program numbers that wait there."""
    by_line: dict[tuple[str, int], list[int]] = {}
    for number, place in stuck.places:
        by_line.setdefault(place, []).append(number)
    places = [[*place, stretches(np.array(sorted(numbers)))] for place, numbers in by_line.items()]
    numbers = np.array(sorted(number for number, _ in stuck.places))
    facts = {"places": places, "among": len(stuck.places), "programs": stretches(numbers)}
    return Fault("deadlock", row, int(numbers[0]), 0, facts)


def explain(faults: Sequence[Fault], search: Search) -> None:
    """Add to the first fault of each line that left its tensor which loaded number led there, if one did."""
    known: set[int] = set()
    for fault in faults:
        facts = fault.facts
        if fault.code != "tile_outside" or fault.site in known or "overflow" in facts or not isinstance(facts, dict):
            continue
        known.add(fault.site)
        cause = search.origin(fault.core, fault.site, Role(facts["role"]))
        if cause is not None:
            facts["cause"] = cause


class Storages:
    """The memory behind the arguments of a launch; what two of them share is one storage."""

    def __init__(self) -> None:
        self.found: list[Storage] = []

    def argument(self, name: str, value: Any, dtype: np.dtype[Any]) -> Argument:
        """A tensor as the view that a kernel gets."""
        if not hasattr(value, "data_ptr"):
            raise UserError(f"argument {name} of type {type(value).__name__} is no tensor")
        address = int(value.data_ptr())
        own = dtype if dtype.itemsize == value.element_size() else np.dtype(f"V{value.element_size()}")
        if isinstance(value, FakeTensor):
            storage = self._storage(value.base, value.size, None, value)
            return Argument(name, storage, address, own, value.shape, value.stride())
        if isinstance(value, HostArray):
            start, size = value.memory()
            writeable = value.array.flags.writeable
            storage = self._storage(start, size, borrow(start, size, writeable, value.array), value.array)
            return Argument(name, storage, address, own, value.shape, value.stride(), -1, writeable)
        owner = value.untyped_storage()
        start, size = int(owner.data_ptr()), int(owner.nbytes())
        storage = self._storage(start, size, borrow(start, size, True, owner), owner)
        return Argument(name, storage, address, own, tuple(value.shape), tuple(value.stride()))

    def _storage(self, address: int, size: int, data: np.ndarray | None, owner: Any) -> Storage:
        for known in self.found:
            if known.address == address and known.size == size:
                return known
        storage = Storage(address, size, data, owner)
        self.found.append(storage)
        return storage


def grid_of(kernel: str, extents: tuple[Any, ...]) -> tuple[int, int, int]:
    """The extents of a grid as plain numbers. Raises UserError for what is none."""
    try:
        width, height, depth = (index(extent) for extent in extents)
    except TypeError:
        raise UserError(f"{kernel}: the grid's extents must be whole numbers, got {extents}") from None
    if min(width, height, depth) < 0:
        raise UserError(f"{kernel}: a grid has no negative extents, got {extents}")
    return width, height, depth


def sample(count: int) -> tuple[Part, ...]:
    """Parts of a large grid: its ends, and stretches that are spread by the golden section, so that they do not fall
    together with the length of a row."""
    starts = [int((turn * 0.6180339887) % 1 * count) for turn in range(1, STRETCHES + 1)]
    return ((0, MOST_UNSEEN), (count - MOST_UNSEEN, count), *((start, start + STRETCH) for start in starts))


def chosen_parts(wanted: Sequence[Part], count: int) -> list[range]:
    """The parts of `count` programs that slices choose, sorted, each program once."""
    parts: list[range] = []
    for low, high in sorted(slice(*part).indices(count)[:2] for part in wanted):
        begin = max(low, parts[-1].stop) if parts else low
        if begin < high:
            parts.append(range(begin, high))
    return parts


def passed_values(signature: Any, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The arguments that reach the kernel: no constants, tuples and descriptors taken apart."""
    for (name, kind), value in zip(signature, values, strict=True):
        if kind == "constexpr":
            continue
        if isinstance(kind, tuple):
            inner = [(f"{name}[{place}]", one) for place, one in enumerate(kind)]
            yield from passed_values(inner, value)
        elif isinstance(kind, str) and kind.startswith("tensordesc"):
            yield from _descriptor_values(name, value)
        else:
            yield name, value


def _descriptor_values(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A host descriptor as the kernel takes it whose descriptors have become pointers: base, extents and strides, two
    flags, and extents and strides again."""
    extents = [(f"{name}.shape[{axis}]", extent) for axis, extent in enumerate(value.shape)]
    strides = [(f"{name}.strides[{axis}]", stride) for axis, stride in enumerate(value.strides)]
    yield name, value.base
    yield from (*extents, *strides)
    yield f"{name}.padding", value.padding == "nan"
    yield f"{name}.round_f32_to_tf32", bool(getattr(value, "round_f32_to_tf32", False))
    yield from (*extents, *strides)


def _dtype_of(tensor: Any) -> np.dtype[Any]:
    """The elements of a torch tensor, as bytes where numpy has no such type."""
    try:
        return array_dtype(str(tensor.dtype).removeprefix("torch."))
    except TypeError:
        return np.dtype(f"V{tensor.element_size()}")


def _described(value: Any) -> str:
    """An argument in a few words for a report."""
    if isinstance(value, FakeTensor):
        return f"{describe(value)} without memory"
    return describe(getattr(value, "base", value))


def _too_long(kernel: str, seconds: float | None, overdue: Overdue, count: int) -> UserError:
    """The error for a launch that did not end, with where its programs stand."""
    places: dict[str, list[int]] = {}
    for number, place in overdue.standing:
        places.setdefault(place, []).append(number)
    where = "; ".join(f"{_programs(numbers)} at {place}" for place, numbers in list(places.items())[:MOST_PLACES])
    more = f"; {len(places) - MOST_PLACES} places more" if len(places) > MOST_PLACES else ""
    left = count - len(overdue.standing)
    rest = f"; {left} more ended before or had not begun" if left else ""
    return UserError(
        f"{kernel} did not end within {seconds:g} s (--timeout): {where}{more}{rest}", exit_code=EXIT_TIMEOUT
    )


def _shown_parts(parts: Sequence[range]) -> str:
    words = [f"{part.start}:{part.stop}" for part in parts]
    if len(words) > MOST_PLACES:
        words = [*words[: MOST_PLACES // 2], f"{len(words) - MOST_PLACES} more parts", *words[-MOST_PLACES // 2 :]]
    return ", ".join(words) or "none"


def _programs(numbers: Sequence[int]) -> str:
    """``programs 0-3, 7`` of sorted numbers."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:MOST_PLACES]]
    more = ", ..." if len(runs) > MOST_PLACES else ""
    return f"program{'s' if len(numbers) > 1 else ''} {', '.join(words)}{more}"


def _shown(grid: tuple[int, int, int]) -> tuple[int, ...]:
    """The grid without the trailing ones."""
    shown = list(grid)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return tuple(shown)
