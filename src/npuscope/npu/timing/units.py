"""What the vector unit, the cube and the scalar unit read and write in their own memories, from a launch's trace."""

from __future__ import annotations

import numpy as np

from npuscope.npu.chip import FRACTAL_ROWS
from npuscope.npu.timing.library_rows import elements_told
from npuscope.npu.timing.shapes import TOTAL, shapes_of
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import ADDS, ELEMENT_TYPES, OPCODES, Pipe, Role, Space
from npuscope.trace.timeline import UNIT_COLUMNS, UNKNOWN
from npuscope.trace.values import among

K_OF_SIZE = {1: 32, 2: 16, 4: 8}
"""Elements of a fractal along k by their size in bytes."""
ACCUMULATOR = 4
"""Bytes of an element of L0C."""
MULTIPLICATIONS = ("mmad", "mmad_sparse")


def unit_table(rows: LaunchRows) -> np.ndarray:
    """The table `Timeline.units`, (UNIT_COLUMNS, rows) int64; ``slice`` is the instruction's row in the trace.

    An instruction of V or M that did work, but none of whose accesses the trace has, is UNKNOWN.
    """
    pipe, work = rows.column("pipe"), rows.column("work")
    space = np.array([buffer.space for buffer in rows.buffers] or [Space.GM], np.int64)
    instruction, role = rows.access_column("instruction"), rows.access_column("role")
    where = space[rows.access_column("buffer")]
    cube = pipe[instruction] == Pipe.M
    mine = np.where(cube, where == Space.L0C, where == Space.UB) & among(pipe, (Pipe.V, Pipe.M, Pipe.S))[instruction]
    size = shapes_of(rows.access_column("footprint"), rows.explicit)[TOTAL]
    reads = mine & (role == Role.READ)
    touched = np.zeros(pipe.size, bool)
    touched[instruction[mine]] = True
    read = np.bincount(instruction[reads], size[reads], minlength=pipe.size).astype(np.int64)
    writes = mine & ~reads
    written = np.bincount(instruction[writes], size[writes], minlength=pipe.size).astype(np.int64)
    silent = ~touched & (work > 0) & ((pipe == Pipe.V) | (pipe == Pipe.M))
    read[silent] = written[silent] = UNKNOWN
    steps = cube_steps(rows)
    told = np.flatnonzero(silent & (pipe == Pipe.M) & (steps > 0))  # the library's own tiles: whole fractals in L0C
    written[told] = ACCUMULATOR * _padded(rows.column("a")[told]) * _padded(rows.column("b")[told])
    read[told] = np.where(rows.column("d")[told] & ADDS != 0, written[told], 0)
    which = np.flatnonzero(touched | silent | (steps > 0))
    table = np.stack([which, read[which], written[which], steps[which]])
    assert table.shape[0] == len(UNIT_COLUMNS)
    return table


def cube_steps(rows: LaunchRows) -> np.ndarray:
    """Products of two fractals that each multiplication consists of, (instructions,) int64: m, n and k are padded to
    whole fractals (hardware.md 5). 0 for other instructions, UNKNOWN where the type of the elements is not known."""
    opcode = rows.column("opcode")
    found = np.zeros(opcode.size, np.int64)
    numbers = [OPCODES.number(name) for name in MULTIPLICATIONS]
    mine = np.flatnonzero(among(opcode, numbers) & (rows.column("work") > 0))
    if not mine.size:
        return found
    depth = _k_of_fractal(rows)[mine]
    m, n, k = (rows.column(name)[mine] for name in ("a", "b", "c"))
    blocks = _padded(m) * _padded(n) // FRACTAL_ROWS**2
    found[mine] = np.where(depth > 0, blocks * -(-k // np.maximum(depth, 1)), UNKNOWN)
    return found


def _k_of_fractal(rows: LaunchRows) -> np.ndarray:
    """Elements along k of the fractals that an instruction's first read is made of, (instructions,); 0 where not
    known."""
    depth = np.zeros(rows.instruction.shape[1], np.int64)
    of_buffer = np.array([_k(buffer.dtype) for buffer in rows.buffers] or [0], np.int64)
    reads = np.flatnonzero(rows.access_column("role") == Role.READ)[::-1]  # the first access is written last and stays
    depth[rows.access_column("instruction")[reads]] = of_buffer[rows.access_column("buffer")[reads]]
    shown = np.zeros(depth.size, bool)
    shown[rows.access_column("instruction")[reads]] = True
    told = np.array([_k(name) for name in ELEMENT_TYPES], np.int64)[elements_told(rows, shown)]
    return np.where(shown, depth, told)


def _padded(extent: np.ndarray) -> np.ndarray:
    """Rows or columns in whole fractals."""
    return np.asarray(-(-extent // FRACTAL_ROWS) * FRACTAL_ROWS)


def _k(dtype: str) -> int:
    if dtype.startswith(("int4", "uint4")):
        return 64
    try:
        return K_OF_SIZE.get(np.dtype(dtype).itemsize, 0) if dtype else 0
    except TypeError:
        return 16 if dtype == "bfloat16" else 32 if "8" in dtype else 0
