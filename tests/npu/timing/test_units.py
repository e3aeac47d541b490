"""The table of units from rows of a trace made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.npu.machine import mixed_cores
from npuscope.npu.timing.shapes import TOTAL, shapes_of
from npuscope.npu.timing.units import unit_table
from npuscope.trace.footprint import Explicit, Footprint, intern
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import (
    ACCESS_COLUMNS,
    ADDS,
    ELEMENT_TYPES,
    INSTRUCTION_COLUMNS,
    OPCODES,
    TYPED,
    Buffer,
    Launch,
    Pipe,
    Role,
    Space,
)
from npuscope.trace.timeline import UNKNOWN

BUFFERS = [
    Buffer(Space.UB, 0, 0, 4096, "tensor", "x", "float32"), Buffer(Space.L0A, 0, 0, 4096, "tensor", "a", "float16"),
    Buffer(Space.L0C, 0, 0, 4096, "tensor", "c", "float32"), Buffer(Space.GM, -1, 0, 4096, "argument", "g", "float32"),
    Buffer(Space.L0A, 0, 0, 4096, "tensor", "q", "int4"), Buffer(Space.L0A, 0, 0, 4096, "tensor", "b", "bfloat16"),
    Buffer(Space.L0A, 0, 0, 4096, "tensor", "n", ""), Buffer(Space.L0A, 0, 0, 4096, "tensor", "f", "float8_e4m3fn"),
]  # fmt: skip
UB, A, C, GM, INT4, BF16, UNTYPED, FP8 = range(8)


def rows(
    instructions: list[dict], accesses: list[tuple[int, Role, int, int]], explicit: tuple[Explicit, ...] = ()
) -> LaunchRows:
    """Rows of a launch: accesses are (instruction, role, buffer, footprint)."""
    table = np.array([[one.get(name, 0) for name in INSTRUCTION_COLUMNS] for one in instructions], np.int64).T.copy()
    access = np.array([(row, role, buffer, 0, shape) for row, role, buffer, shape in accesses], np.int64)
    launch = Launch(0, "made", "Ascend910B1", mixed_cores(1), (1,), {}, {})
    return LaunchRows(
        launch, table, access.reshape(-1, len(ACCESS_COLUMNS)).T.copy(), BUFFERS, list(explicit), [], [], True
    )


def shape(nbytes: int, *loops: tuple[int, int], mask: bytes | None = None) -> int:
    return intern(Footprint(nbytes, loops, mask, 1 if mask else 0))


def test_bytes_of_accesses() -> None:
    found = rows(
        [{}],
        [
            (0, Role.READ, UB, shape(256)),
            (0, Role.READ, UB, shape(32, (3, 64), (8, 32))),
            (0, Role.READ, UB, shape(4, (4, 4), mask=b"\1\0\1\1")),
            (0, Role.READ, UB, -1),
        ],
        (Explicit(np.array([0, 64, 0]), 2),),
    )
    sizes = shapes_of(found.access_column("footprint"), found.explicit)[TOTAL]
    assert sizes.tolist() == [256, 32 * 24, 12, 6]


def test_vector_instructions_read_and_write_ub() -> None:
    add = {"pipe": Pipe.V, "opcode": OPCODES.number("vadd"), "work": 64}
    copy = {"pipe": Pipe.MTE2, "opcode": OPCODES.number("copy_gm_to_ub"), "work": 256}
    found = rows(
        [copy, add, add | {"work": 0}, add],
        [
            (0, Role.READ, GM, shape(256)), (0, Role.WRITE, UB, shape(256)), (1, Role.READ, UB, shape(256)), (1, Role.READ, UB, shape(32)),
            (1, Role.WRITE, UB, shape(128)), (1, Role.SPOIL, UB, shape(64)),
        ],
    )  # fmt: skip
    # The copy is no unit's; one addition has no work and one has no accesses.
    assert unit_table(found).T.tolist() == [[1, 288, 192, 0], [3, UNKNOWN, UNKNOWN, 0]]


def test_the_scalar_unit_counts_in_ub_only() -> None:
    load = {"pipe": Pipe.S, "opcode": OPCODES.number("scalar_load"), "work": 4}
    found = rows([load, load], [(0, Role.READ, UB, shape(4)), (1, Role.READ, GM, shape(4))])
    assert unit_table(found).T.tolist() == [[0, 4, 0, 0]]


@pytest.mark.parametrize(
    ("buffer", "shape_of", "steps"),
    [(A, (64, 48, 96), 4 * 3 * 6), (A, (1, 17, 15), 1 * 2 * 1), (BF16, (16, 16, 32), 2), (UB, (16, 16, 9), 2), (INT4, (16, 16, 65), 2),
     (FP8, (16, 16, 33), 2), (UNTYPED, (16, 16, 16), UNKNOWN)],
)  # fmt: skip
def test_steps_of_the_cube(buffer: int, shape_of: tuple[int, int, int], steps: int) -> None:
    m, n, k = shape_of
    multiply = {"pipe": Pipe.M, "opcode": OPCODES.number("mmad"), "a": m, "b": n, "c": k, "work": m * n * k}
    found = rows(
        [multiply], [(0, Role.READ, buffer, shape(64)), (0, Role.READ, C, shape(1024)), (0, Role.WRITE, C, shape(2048))]
    )
    assert unit_table(found).T.tolist() == [[0, 1024, 2048, steps]]


def test_a_multiplication_without_accesses_is_not_known() -> None:
    multiply = {"pipe": Pipe.M, "opcode": OPCODES.number("mmad"), "a": 16, "b": 16, "c": 16, "work": 4096}
    assert unit_table(rows([multiply], [])).T.tolist() == [[0, UNKNOWN, UNKNOWN, UNKNOWN]]


@pytest.mark.parametrize(("adds", "read"), [(0, 0), (ADDS, 48 * 32 * 4)])
def test_a_tile_of_the_library_tells_its_type(adds: int, read: int) -> None:
    """40 x 30 in whole fractals is 48 x 32; k of 20 halves is two fractals."""
    told = ELEMENT_TYPES.index("float16") * TYPED + adds
    tile = {"pipe": Pipe.M, "opcode": OPCODES.number("mmad"), "a": 40, "b": 30, "c": 20, "d": told, "work": 24000}
    assert unit_table(rows([tile], [])).T.tolist() == [[0, read, 48 * 32 * 4, 3 * 2 * 2]]


def test_an_empty_launch() -> None:
    assert unit_table(rows([{}], [])).shape == (4, 0)
