"""tt.elementwise_inline_asm: PTX on the elements of tiles, a few at a time in 32-bit registers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.errors import Unsupported
from npuscope.mlir.tiles.calls import call
from npuscope.mlir.tiles.kinds import dtype_of, element_of, shape_of
from npuscope.tile.affine import dense
from npuscope.tile.overflow import plain
from npuscope.tile.ptx import Instruction, PtxError, known, parse, run
from npuscope.tile.ptx.registers import Registers

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


@dataclass(frozen=True)
class Packing:
    """How elements of one type lie in registers: `count` registers of `width` bytes for a group."""

    dtype: np.dtype[Any]
    count: int
    width: int

    @classmethod
    def of(cls, dtype: np.dtype[Any], pack: int) -> Packing:
        """Elements below 32 bits share a register as far as they fit."""
        together = min(max(4 // dtype.itemsize, 1), pack)
        if pack % together:
            together = 1
        return cls(dtype, -(-pack // together), together * dtype.itemsize)

    def apart(self, array: np.ndarray) -> np.ndarray:
        """(groups, registers) of the bits of a group's elements, (groups, pack)."""
        return np.ascontiguousarray(array).view(f"u{self.width}")

    def together(self, registers: Sequence[np.ndarray]) -> np.ndarray:
        """(groups, pack) elements of the registers."""
        return np.ascontiguousarray(np.stack(registers, axis=1)).view(self.dtype)


class Assembly:
    """A piece of PTX as a function of tiles of one shape."""

    def __init__(
        self, instructions: list[Instruction], pack: int, shape: tuple[int, ...], sources: list[np.dtype[Any]],
        results: list[np.dtype[Any]],
    ) -> None:  # fmt: skip
        self._instructions = instructions
        self._pack = pack
        self._shape = shape
        self._sources = [Packing.of(_stored(dtype), pack) for dtype in sources]
        self._results = [Packing.of(_stored(dtype), pack) for dtype in results]
        self._types = results

    def __call__(self, machine: Any, *values: Any) -> Any:
        arrays = [plain(dense(value)) for value in values]
        programs = max((array.shape[0] for array in arrays), default=machine.count)
        whole = (programs, *self._shape)
        size = int(np.prod(whole))
        groups = -(-size // self._pack)
        registers = Registers(groups)
        number = sum(packing.count for packing in self._results)
        for array, packing in zip(arrays, self._sources, strict=True):
            flat = np.zeros(groups * self._pack, packing.dtype)
            flat[:size] = np.broadcast_to(array, whole).reshape(-1).view(packing.dtype)
            words = packing.apart(flat.reshape(groups, self._pack))
            for place in range(packing.count):
                registers.write(f"${number}", words[:, place], None)
                number += 1
        try:
            run(self._instructions, registers)
        except PtxError as error:
            raise Unsupported(f"the inline assembly {error}") from None
        return self._taken(registers, whole, size)

    def _taken(self, registers: Registers, whole: tuple[int, ...], size: int) -> Any:
        found, number = [], 0
        for packing, dtype in zip(self._results, self._types, strict=True):
            words = [registers.bits(f"${number + place}", packing.width) for place in range(packing.count)]
            number += packing.count
            flat = packing.together(words).reshape(-1)[:size]
            array = (flat != 0) if dtype == np.bool_ else flat.view(dtype)
            found.append(array.reshape(whole))
        return tuple(found) if len(found) > 1 else found[0]


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int8) if dtype == np.bool_ else dtype


def inline(writer: TileWriter, op: Op) -> None:
    """tt.elementwise_inline_asm. Raises Unsupported, naming the instruction, for what is no PTX known here."""
    text = op.attr_str("asm_string").replace("$$", "")
    try:
        instructions = parse(re.sub(r"\$\{(\d+)\}", r"$\1", text))
        for instruction in instructions:
            if not known(instruction):
                raise PtxError(f"has the PTX instruction {instruction.text}, which is not supported")
    except PtxError as error:
        raise writer.unsupported(str(error)) from None
    types = [[dtype_of(element_of(value.type)) for value in values] for values in (op.operands, op.results)]
    assembly = Assembly(instructions, op.attr_int("packed_element"), shape_of(op.results[0].type), *types)
    call(writer, op, assembly, "m")


LOWERINGS = {"tt.elementwise_inline_asm": inline}
