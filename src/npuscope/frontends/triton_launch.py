"""From a Triton launch to the programs of a grid: arguments become storages and views, the IR a lowered program."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from npuscope.errors import UserError
from npuscope.frontends.launch import Session, at_user_line, describe
from npuscope.mlir.tiles.kinds import bits_of, dtype_of, element_of, is_pointer, pointee_of
from npuscope.mlir.tiles.program import TileProgram, lower_tiles
from npuscope.npu.memory import borrow
from npuscope.tile.access import Accesses
from npuscope.tile.affine import Affine
from npuscope.tile.machine import Machine
from npuscope.tile.pointer import Pointer
from npuscope.tile.run import run
from npuscope.tile.storage import Argument, Storage
from npuscope.trace.schema import Buffer, Fault, Launch, Programs, SourceFrame, Space


class Launches:
    """The launches of one session."""

    def __init__(self, session: Session, package: str, caller: Callable[[], SourceFrame | None]) -> None:
        self._session = session
        self._package = package
        self._caller = caller
        self._programs: dict[bytes, TileProgram] = {}

    def _is_library(self, file: str) -> bool:
        return os.path.abspath(file).startswith(self._package + os.sep)

    def program(self, text: bytes) -> TileProgram:
        """The lowered kernel."""
        known = self._programs.get(text)
        if known is None:
            known = lower_tiles(text.decode(), self._is_library, self._session.recorder.add_site)
            self._programs[text] = known
        return known

    def launch(self, source: Any, text: bytes, grid: tuple[int, int, int], given: tuple[Any, ...]) -> None:
        """Run a kernel; its outputs land in the user's tensors."""
        if min(grid) < 0:
            raise UserError(f"a grid has no negative extents: {grid}")
        program = self.program(text)
        passed = list(_passed(source.signature.items(), given))
        if len(passed) != len(program.parameters):
            raise UserError(f"{program.name} takes {len(program.parameters)} arguments, {len(passed)} came")
        session, recorder = self._session, self._session.recorder
        names = dict(zip(source.signature, given, strict=True))
        record = Launch(
            0, program.name, session.chip.name if session.chip else "", Programs(grid), _shown(grid),
            {name: describe(value) for name, value in names.items()}, {}, self._caller(),
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
            accesses = Accesses(recorder, frozenset(id(storage) for storage in storages.found))
            machine = Machine(grid, arguments, accesses)
            machine.print_line = session.print_line
            machine.find_argument = lambda address: self._foreign(storages, accesses, address)
            try:
                run(machine, program.entry, bound, program.largest, program.yields)
            except UserError as error:
                raise at_user_line(error, program.code.co_filename) from None
            finally:
                machine.end()
        except BaseException as error:
            facts = {"error": f"{type(error).__name__}: {error}"}
            recorder.add_fault(Fault("stopped", max(recorder.rows - 1, 0), -1, 0, facts))
            raise
        finally:
            recorder.end()

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
        argument = storages.argument(name, value, dtype_of(pointee_of(kind)))
        session = self._session
        undefined: Any = ()
        if session.poison is not None and argument.storage.data is not None and not argument.gaps:
            begin = argument.low - argument.storage.address
            data = argument.storage.data[begin : begin + argument.high - argument.low]
            undefined = session.poison.runs(data, argument.dtype)
        argument.number = session.recorder.add_buffer(
            Buffer(
                Space.GM, -1, argument.low, argument.high - argument.low, "argument", name, argument.dtype.name,
                argument.shape, writeable=argument.writeable, undefined=undefined,
            )
        )  # fmt: skip
        return Pointer(argument, Affine(argument.address, (), (), 64))


    def _foreign(self, storages: Storages, accesses: Accesses, address: int) -> Argument | None:
        """The memory of a tensor that was not passed: kernels also find addresses in tables of pointers."""
        tensor = _tensor_at(address)
        if tensor is None:
            return None
        flat = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
        argument = storages.argument("a tensor that was not passed", flat, np.dtype(f"V{tensor.element_size()}"))
        argument.number = self._session.recorder.add_buffer(
            Buffer(
                Space.GM, -1, argument.low, argument.high - argument.low, "argument", argument.name,
                argument.dtype.name, argument.shape, writeable=argument.writeable,
            )
        )  # fmt: skip
        accesses.watched |= {id(argument.storage)}
        return argument


def _tensor_at(address: int) -> Any:
    """A tensor of this process whose storage holds the address; None when there is none."""
    import torch

    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor) and thing.device.type == "cpu" and thing.layout == torch.strided:
            storage = thing.untyped_storage()
            if storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes():
                return thing.detach()
    return None


class Storages:
    """The memory behind the arguments of a launch; what two of them share is one storage."""

    def __init__(self) -> None:
        self.found: list[Storage] = []

    def argument(self, name: str, value: Any, dtype: np.dtype[Any]) -> Argument:
        """A tensor as the view that a kernel gets."""
        if not hasattr(value, "data_ptr"):
            raise UserError(f"argument {name} of type {type(value).__name__} is no tensor")
        address = int(value.data_ptr())
        if not hasattr(value, "untyped_storage"):
            array = value.array
            storage = self._storage(array.ctypes.data, array.nbytes, array)
            strides = tuple(step // array.itemsize for step in array.strides)
            return Argument(name, storage, address, array.dtype, array.shape, strides, -1, array.flags.writeable)
        owner = value.untyped_storage()
        storage = self._storage(int(owner.data_ptr()), int(owner.nbytes()), value)
        own = np.dtype(dtype) if dtype.itemsize == value.element_size() else np.dtype(f"V{value.element_size()}")
        return Argument(name, storage, address, own, tuple(value.shape), tuple(value.stride()))

    def _storage(self, address: int, size: int, owner: Any) -> Storage:
        for known in self.found:
            if known.address == address and known.size == size:
                return known
        storage = Storage(address, size, borrow(address, size, True, owner), owner)
        self.found.append(storage)
        return storage


def _passed(signature: Any, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The arguments that reach the kernel: no constants, tuples taken apart."""
    for (name, kind), value in zip(signature, values, strict=True):
        if kind == "constexpr":
            continue
        if isinstance(kind, str) and kind.startswith("tensordesc"):
            yield from ((f"{name}[{index}]" if index else name, one) for index, one in enumerate(_taken_apart(value)))
        elif isinstance(kind, tuple):
            inner = [(f"{name}[{index}]", one) for index, one in enumerate(kind)]
            yield from _passed(inner, value)
        else:
            yield name, value


def _taken_apart(descriptor: Any) -> Sequence[Any]:
    """What a kernel gets of a tensor descriptor: the tensor, its extents and strides, how it pads."""
    from triton.backends import driver

    own = getattr(driver, "decompose_descriptor", None)
    if own is not None:
        parts: Sequence[Any] = own(descriptor)
        return parts
    shape, strides = descriptor.shape, descriptor.strides
    return [descriptor.base, *shape, *strides, descriptor.padding == "nan", *shape, *strides]


def _shown(grid: tuple[int, int, int]) -> tuple[int, ...]:
    """The grid without the trailing ones."""
    shown = list(grid)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return tuple(shown)
