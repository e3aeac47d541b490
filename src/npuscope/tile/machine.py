"""Runs the programs of a grid, a batch at a time, and moves their data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import numpy as np

from npuscope.tile.access import Accesses
from npuscope.tile.affine import Affine
from npuscope.tile.atomics import OPERATIONS, exchange_if_equal, update
from npuscope.tile.box import Box, both, everywhere, programs
from npuscope.tile.hints import HINTS, broken
from npuscope.tile.nan import NanSearch
from npuscope.tile.overdue import Overdue
from npuscope.tile.overflow import plain
from npuscope.tile.padding import Padding
from npuscope.tile.pointer import Pointer
from npuscope.tile.region import Region, blocks, inside, region_of, runs
from npuscope.tile.same import Blocks, Same, apart, bits, equal, equal_lanes
from npuscope.tile.storage import Argument, Before
from npuscope.trace.schema import VOLATILE, Role


class Machine:
    """The programs of one launch that run at the moment, and the memory they see.

    `count` programs run together; `active` tells which of them take part where their ways part (None: all).
    `print_line` receives what kernels print.
    """

    def __init__(self, grid: tuple[int, int, int], arguments: Sequence[Argument], accesses: Accesses) -> None:
        self.grid = grid
        self.arguments = list(arguments)
        self.accesses = accesses
        self.count = 0
        self.active: np.ndarray | None = None
        self.nan: NanSearch | None = None
        self.moves_whole_blocks = False  # whether the target may touch what a mask leaves out
        self._padding = Padding()
        self.before: Before | None = None  # kept where arguments have bytes that nothing has written
        self.changed = False  # whether memory holds anything new since this was last set back
        self.deadline: float | None = None  # on the clock of time.monotonic
        self.print_line: Callable[[str], None] = lambda line: None
        self._ids: list[Affine] = []
        self._first = 0
        self._said: list[tuple[int, str]] = []
        self._stored = Same()

    def look_at_clock(self) -> None:
        """Raise Overdue when the launch has had its time."""
        if self.deadline is not None and monotonic() > self.deadline:
            raise Overdue

    def begin(self, first: int, count: int) -> None:
        """Let the programs [first, first + count) be those that run; the first axis of the grid counts fastest."""
        self.end()
        self.count = count
        self.active = None
        self._first = first
        numbers = np.arange(first, first + count)
        width, height, _ = self.grid
        parts = (numbers % width, numbers // width % height, numbers // (width * height))
        self._ids = [Affine(_one_or_all(part), (), (), 32) for part in parts]
        self.accesses.begin(first, count)

    def end(self) -> None:
        """Let be heard what the programs had to say, one program after the other."""
        for _, line in sorted(self._said, key=lambda said: said[0]):
            self.print_line(line)
        self._said.clear()

    def say(self, program: int, line: str) -> None:
        """Take a line that a program (counted from the first that runs) prints."""
        self._said.append((program, line))

    def place(self, program: int) -> tuple[int, int, int]:
        """A program's place in the grid (it is counted from the first that runs)."""
        number, (width, height, _) = self._first + program, self.grid
        return number % width, number // width % height, number // (width * height)

    def program_id(self, axis: int) -> Affine:
        """The programs' place in the grid."""
        return self._ids[axis]

    def program_count(self, axis: int) -> Affine:
        """The grid's extent."""
        return Affine(self.grid[axis], (), (), 32)

    # -- memory ------------------------------------------------------------------------------------------------

    def load(
        self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], volatile: bool, pointer: Pointer,
        mask: Any = None, other: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """The elements that a tile of pointers points to; `other` (or zero) where the mask is false."""
        semantics = VOLATILE if volatile else 0
        if mask is not None:
            self._padding.note(shape, mask)
            if self.moves_whole_blocks:
                self._left_out(site, Role.READ, dtype, shape, pointer, mask)
        box = self._box(mask, shape)
        argument, address = pointer.argument, pointer.address
        if box is not None and type(address) is Affine and argument is not None and self._regular(argument, dtype):
            region = region_of(address, box, dtype.itemsize, self._width(address, box))
            pieces = runs(region) if inside(region, argument) and _aligned(region, dtype) else None
            if pieces is not None:
                self.accesses.region(site, Role.READ, argument, region, dtype.itemsize, shape, address, semantics)
                if self.before is not None and region.alive.any():
                    alive = region.alive
                    self.before.look(argument, int(region.low[alive].min()), int(region.high[alive].max()))
                result = self._empty(region, dtype, shape, box, other)
                for place, memory in blocks(region, pieces, argument, dtype):
                    result[place] = memory
                return result
        return self._gather(site, dtype, shape, semantics, pointer, mask, other)

    def store(
        self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, value: Any,
        mask: Any = None,
    ) -> None:  # fmt: skip
        """Write a tile of elements where the mask is true."""
        if mask is not None and self.moves_whole_blocks:
            self._left_out(site, Role.WRITE, dtype, shape, pointer, mask)
        box = self._box(mask, shape)
        argument, address = pointer.argument, pointer.address
        array = value if isinstance(value, np.ndarray) else value.dense()
        if box is not None and type(address) is Affine and argument is not None and self._regular(argument, dtype):
            region = region_of(address, box, dtype.itemsize, self.count)
            pieces = runs(region) if inside(region, argument) and _aligned(region, dtype) else None
            if pieces is not None and argument.writeable:
                self.accesses.region(site, Role.WRITE, argument, region, dtype.itemsize, shape, address)
                if argument.storage.data is not None and region.alive.any():
                    pieces_ = list(blocks(region, pieces, argument, dtype))
                    self._put(argument, region, pieces_, np.broadcast_to(array, (self.count, *shape)))
                return
        self._scatter(site, dtype, shape, pointer, array, mask)

    def _put(self, argument: Argument, region: Region, pieces: Blocks, whole: np.ndarray) -> None:
        """Store blocks, and mark those that change nothing or that agree with others."""
        low, high = (int(region.low[region.alive].min()), int(region.high[region.alive].max()))
        self.changed = True
        if self.before is not None:
            self.before.keep(argument)
        rewrites = equal(pieces, whole) if self._stored.meets(id(argument.storage), low, high) else None
        for place, memory in pieces:
            memory[...] = whole[place]
        agrees = None if apart(region) else equal(pieces, whole)
        self.accesses.mark(bits(rewrites, agrees, self.count))

    def hint(self, site: int, name: str, values: tuple[int, ...], value: Any, step: int = 1) -> None:
        """Take note when a promise about numbers (tl.multiple_of, tl.max_contiguous, tl.max_constancy) is not kept;
        consecutive ones are `step` apart."""
        address = value.address if isinstance(value, Pointer) else value
        for found, lanes in broken(name, values, address, step):
            if self.active is None or (self.active & lanes).any():
                self.accesses.note("tile_hint", site, lanes, {"hint": HINTS[name], "value": values, "found": found})
                return

    def _regular(self, argument: Argument, dtype: np.dtype[Any]) -> bool:
        return not argument.gaps

    def _box(self, mask: Any, shape: tuple[int, ...]) -> Box | None:
        """The mask as a box, those programs left out that take no part; None when it is no box."""
        if not shape:
            return None
        if mask is None:
            box = everywhere(shape)
        elif type(mask) is Box:
            box = mask
        else:
            return None
        return box if self.active is None else both(box, programs(self.active, shape))

    def _width(self, address: Affine, box: Box) -> int:
        """1 when all programs do the same, else their number."""
        varies = isinstance(address.base, np.ndarray) or any(
            isinstance(bound, np.ndarray) for pair in box.bounds.values() for bound in pair
        )
        return self.count if varies else 1

    def _empty(self, region: Any, dtype: np.dtype[Any], shape: tuple[int, ...], box: Box, other: Any) -> np.ndarray:
        """An array for a tile that is read: of length 1 along axes on which all elements are the same one."""
        size = tuple(
            1 if stride == 0 and axis not in box.bounds else count
            for axis, (stride, count) in enumerate(zip(region.strides, shape, strict=True))
        )
        for axis, extent in enumerate(size):
            if extent == 1 and axis not in box.bounds:
                region.extents[axis] = 1
        result = np.empty((region.first.size, *size), dtype)
        if not region.full:
            if other is None:
                result[...] = 0
            else:
                filler = other if isinstance(other, np.ndarray) else other.dense()
                if any(long > short for long, short in zip(filler.shape, result.shape, strict=True)):
                    result = np.empty(np.broadcast_shapes(filler.shape, result.shape), dtype)
                result[...] = filler
        return result

    def atomic(
        self, site: int, kind: int, semantics: int, wanted: bool, dtype: np.dtype[Any], shape: tuple[int, ...],
        pointer: Pointer, value: Any, mask: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """Read, combine and write in one; returns what was there before (where the mask is true)."""
        operation = OPERATIONS[kind]

        def change(memory: np.ndarray, index: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            values = np.broadcast_to(_values(value), chosen.shape)[chosen].astype(dtype, copy=False)
            return update(memory, index, values, operation, wanted)

        return self._exchange(site, operation.name, semantics, dtype, shape, pointer, mask, change)

    def compare_and_swap(
        self, site: int, semantics: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, expected: Any,
        value: Any,
    ) -> np.ndarray:  # fmt: skip
        """Write `value` where `expected` is found; returns what was found."""

        def change(memory: np.ndarray, index: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            both_ = [np.broadcast_to(_values(item), chosen.shape)[chosen] for item in (expected, value)]
            return exchange_if_equal(memory, index, *both_)

        return self._exchange(site, "atomic_cas", semantics, dtype, shape, pointer, None, change)

    def _exchange(
        self, site: int, name: str, semantics: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer,
        mask: Any, change: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    ) -> np.ndarray:  # fmt: skip
        address, touched = self.lanes(pointer, mask)
        whole = (self.count, *shape)
        address = np.broadcast_to(address, whole)
        result = np.zeros(whole, dtype)
        for argument, part in self._owners(pointer, address, touched):
            lanes = np.broadcast_to(part, whole)
            good = self.accesses.lanes(
                site, Role.ATOMIC, argument, (pointer.address, address), lanes, dtype.itemsize, shape, semantics, name
            )
            if argument is None or argument.storage.data is None or not argument.writeable:
                continue
            good = _there(argument, address, lanes, good, dtype)
            index = (address[good] - argument.storage.address) // dtype.itemsize
            memory = argument.storage.typed(dtype)
            if self.before is not None and index.size:
                self.before.look(argument, int(address[good].min()), int(address[good].max()) + dtype.itemsize)
                self.before.keep(argument)
            before = memory[index] if self.count == 1 else None
            result[good] = change(memory, index, good)
            self.changed = self.changed or before is None or before.tobytes() != memory[index].tobytes()
        return result

    def atomic_load(
        self, site: int, semantics: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer,
        mask: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """Read elements that other programs may change at any time."""

        def change(memory: np.ndarray, index: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            return memory[index]

        return self._exchange(site, "atomic_load", semantics, dtype, shape, pointer, mask, change)

    def atomic_store(
        self, site: int, semantics: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, value: Any,
        mask: Any = None,
    ) -> None:  # fmt: skip
        """Write elements that other programs may look at at any time."""

        def change(memory: np.ndarray, index: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            memory[index] = np.broadcast_to(_values(value), chosen.shape)[chosen]
            return memory[index]

        self._exchange(site, "atomic_store", semantics, dtype, shape, pointer, mask, change)

    def check(self, site: int, message: str, shape: tuple[int, ...], condition: Any) -> None:
        """Note where something does not hold that the kernel says must."""
        failed = ~_truths(condition)
        if self.active is not None:
            failed = failed & self.active.reshape((-1,) + (1,) * len(shape))
        if failed.any():
            row = np.broadcast_to(failed, (failed.shape[0], *shape))
            self.accesses.note("tile_assert", site, row, {"message": message}, shape)

    def look_for_nan(self, site: int, inputs: tuple[Any, ...], shape: tuple[int, ...], result: Any) -> None:
        """Take note of the first NaN."""
        if self.nan is not None and not self.nan.found and isinstance(result, np.ndarray):
            found = self.nan.look(inputs, result, self.active)
            if found is not None:
                self.accesses.note("tile_nan", site, found[0], found[1], shape)

    def _left_out(
        self, site: int, role: Role, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, mask: Any
    ) -> None:
        """Take note of lanes that a mask leaves out and whose address lies outside."""
        argument = pointer.argument
        if argument is None:
            return
        address, touched = self.lanes(pointer, mask)
        lanes = ~_truths(mask) & ~argument.holds(plain(address), dtype.itemsize)
        if self.active is not None:
            lanes = lanes & self.active.reshape((-1,) + (1,) * (lanes.ndim - 1))
        self.accesses.left_out(site, role, argument, plain(address), lanes, shape)

    def barrier(self, site: int) -> None:
        """The lanes of every program wait for each other."""
        self.accesses.barrier(site)

    def zero_divisor(self, site: int) -> Callable[[np.ndarray], None]:
        """Takes note of the lanes in which an integer division has no result."""

        def report(lanes: np.ndarray) -> None:
            if self.active is not None:
                lanes = lanes & self.active.reshape((-1,) + (1,) * (lanes.ndim - 1))
            if lanes.any():
                facts = {"padding": True} if self._padding.covers(lanes) else {}
                self.accesses.note("tile_division", site, lanes, facts, lanes.shape[1:])

        return report

    # -- one index for each element ----------------------------------------------------------------------------

    def lanes(self, pointer: Pointer, mask: Any) -> tuple[np.ndarray, np.ndarray]:
        """The addresses of a tile, and which of them are touched, as arrays that broadcast against each other."""
        address = pointer.address.wide() if isinstance(pointer.address, Affine) else pointer.address
        touched = np.ones((1,) * address.ndim, np.bool_) if mask is None else _truths(mask)
        if self.active is not None:
            touched = touched & self.active.reshape((-1,) + (1,) * (address.ndim - 1))
        return address, touched

    def _gather(
        self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], semantics: int, pointer: Pointer, mask: Any,
        other: Any,
    ) -> np.ndarray:  # fmt: skip
        address, touched = self.lanes(pointer, mask)
        result: np.ndarray | None = None
        for argument, part in self._owners(pointer, address, touched):
            place = pointer.address, address
            good = self.accesses.lanes(site, Role.READ, argument, place, part, dtype.itemsize, shape, semantics)
            if argument is None or argument.storage.data is None:
                values = np.zeros((1,) * address.ndim, dtype)
            else:
                values = read(argument, address, dtype)
                good = _there(argument, address, part, good, dtype)
                if self.before is not None and argument.undefined and good.any():
                    places = np.broadcast_to(address, np.broadcast_shapes(address.shape, good.shape))
                    places = places[np.broadcast_to(good, places.shape)]
                    self.before.look(argument, int(places.min()), int(places.max()) + dtype.itemsize)
            values = np.where(good, values, dtype.type(0)) if not _all(good) else values
            result = values if result is None else np.where(part, values, result)
        assert result is not None
        if _all(touched):
            return result
        filler = np.zeros((1,) * address.ndim, dtype) if other is None else _values(other)
        return np.where(touched, result, filler)

    def _scatter(
        self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, array: np.ndarray, mask: Any
    ) -> None:
        address, touched = self.lanes(pointer, mask)
        for argument, part in self._owners(pointer, address, touched):
            place = pointer.address, address
            good = self.accesses.lanes(site, Role.WRITE, argument, place, part, dtype.itemsize, shape)
            if argument is not None and not argument.writeable and good.any():
                self.accesses.note("tile_read_only", site, good, {"argument": argument.name}, shape)
            if argument is None or argument.storage.data is None or not argument.writeable:
                continue
            good = _there(argument, address, part, good, dtype)
            whole = np.broadcast_shapes(address.shape, good.shape, array.shape, (self.count, *shape))
            chosen = np.broadcast_to(good, whole)
            if chosen.any():
                self._put_lanes(argument, np.broadcast_to(address, whole), np.broadcast_to(array, whole), chosen, dtype)

    def _put_lanes(
        self, argument: Argument, address: np.ndarray, array: np.ndarray, chosen: np.ndarray, dtype: np.dtype[Any]
    ) -> None:
        """Store single lanes, and mark the programs that change nothing or that agree with others."""
        self.changed = True
        if self.before is not None:
            self.before.keep(argument)
        where, values = plain(address)[chosen], array[chosen]
        met = self._stored.meets(id(argument.storage), int(where.min()), int(where.max()) + dtype.itemsize)
        rewrites = equal_lanes(read(argument, where, dtype), values, chosen) if met else None
        write(argument, where, values, dtype)
        agrees = equal_lanes(read(argument, where, dtype), values, chosen) if self.count > 1 else None
        self.accesses.mark(bits(rewrites, agrees, self.count))

    def _owners(
        self, pointer: Pointer, address: np.ndarray, touched: np.ndarray
    ) -> list[tuple[Argument | None, np.ndarray]]:
        """The arguments that a tile of pointers points into, each with the lanes that do."""
        if pointer.argument is not None:
            return [(pointer.argument, touched)]
        left = touched
        found: list[tuple[Argument | None, np.ndarray]] = []
        for argument in self.arguments:
            part = left & (address >= argument.low) & (address < argument.high)
            if part.any():
                found.append((argument, part))
                left = left & ~part
        if left.any() or not found:
            found.append((None, left))
        return found


def _there(
    argument: Argument, address: np.ndarray, part: np.ndarray, good: np.ndarray, dtype: np.dtype[Any]
) -> np.ndarray:
    """The lanes of `part` that have memory: also those outside the view, which `good` leaves out, in its storage."""
    return good if good is part else part & argument.storage.holds(address, dtype.itemsize)


def read(argument: Argument, address: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The elements at `address`; those outside the storage come from its nearest end."""
    offset = address - argument.storage.address
    size = dtype.itemsize
    if size > 1 and (offset & (size - 1)).any():
        raw = argument.storage.typed(np.dtype(np.uint8))
        index = offset[..., None] + np.arange(size)
        return np.ascontiguousarray(raw.take(index, mode="clip")).view(dtype)[..., 0]
    return argument.storage.typed(dtype).take(offset // size if size > 1 else offset, mode="clip")


def write(argument: Argument, address: np.ndarray, values: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Put 1-D `values` at 1-D `address`, the last one staying where several meet."""
    offset = address - argument.storage.address
    size = dtype.itemsize
    if size > 1 and (offset & (size - 1)).any():
        raw = argument.storage.typed(np.dtype(np.uint8))
        bytes_ = np.ascontiguousarray(values.astype(dtype, copy=False)).view(np.uint8).reshape(-1, size)
        raw[offset[:, None] + np.arange(size)] = bytes_
        return
    argument.storage.typed(dtype)[offset // size if size > 1 else offset] = values


def _truths(mask: Any) -> np.ndarray:
    return mask if isinstance(mask, np.ndarray) else mask.dense()


def _values(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else value.dense()


def _all(mask: np.ndarray) -> bool:
    return bool(mask.all())


def _aligned(region: Any, dtype: np.dtype[Any]) -> bool:
    size = dtype.itemsize
    if size == 1:
        return True
    return not any(stride % size for stride in region.strides) and not np.any(region.first & (size - 1))


def _one_or_all(numbers: np.ndarray) -> Any:
    low = int(numbers[0])
    return low if numbers.size == 1 or bool((numbers == low).all()) else numbers
