"""The timing model: from a launch's trace to a time for every instruction (hardware.md 3, 6)."""

from __future__ import annotations

import numpy as np

from npuscope.errors import Unsupported
from npuscope.npu.chip import Chip
from npuscope.npu.timing import layout as at
from npuscope.npu.timing import tables
from npuscope.npu.timing.book import Book, new_room, records
from npuscope.npu.timing.details import Details
from npuscope.npu.timing.l2 import L2, cold
from npuscope.npu.timing.program import Program, program_of, settings_of, units_of
from npuscope.npu.timing.units import unit_table
from npuscope.trace.marks import marks_of
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import CoreType
from npuscope.trace.timeline import SLICE_COLUMNS, UNKNOWN, Loss, Source, Timeline

VERSION = "1"
"""Of the model: it changes when the same trace and facts give other times."""


def time_launch(rows: LaunchRows, chip: Chip, l2: L2 | None = None) -> Timeline:
    """When each instruction of a launch would run on `chip`.

    `l2` is the state of the L2 cache at its start, cold where there is none; it is changed to what the launch leaves.
    Raises Unsupported for the launch of a tile kernel, whose trace has no pipes.
    """
    if rows.launch.of_programs:
        raise Unsupported(
            f"the timing of {rows.launch.kernel}: a tile kernel's trace has no pipes yet; profile Ascend C kernels"
        )
    l2 = cold(chip) if l2 is None else l2
    warm = l2.warm
    l2.carry_over()
    program = program_of(rows, chip)
    settings = settings_of(rows, chip)
    book = _run(program, settings, chip, l2)
    l2.warm = True
    place = np.empty(program.row.size, np.int64)
    place[program.row] = np.arange(program.row.size)
    slices = tables.slice_table(program, program.ops, place)
    overhead = float(settings["overhead"][0])
    end = float(book.cores["end"].max(initial=overhead)) + chip.timing.launch.close_us * chip.frequency_mhz
    return Timeline(
        rows.launch, chip.name, float(chip.frequency_mhz), Source.MODEL, int(round(end)), int(round(overhead)),
        program.steps.steps, slices, Details(rows, program.operands, np.arange(program.row.size)),
        transfers=tables.transfer_table(program, program.ops, place),
        lines=tables.line_table(book.seen, chip.timing.memory.line), edges=tables.edge_table(program),
        cores=tables.core_table(book.cores, book.agents), units=unit_table(rows), marks=marks_of(rows),
        losses=_losses(rows, slices[SLICE_COLUMNS.index("end")]),
        notes={"model": VERSION, "l2": "warm" if warm else "cold"},
    )  # fmt: skip


def _run(program: Program, settings: np.ndarray, chip: Chip, l2: L2) -> Book:
    """The schedule with its results."""
    from npuscope.npu.timing.engine import schedule  # compiled at its first use

    cores, icache = program.rows.launch.cores, chip.timing.icache
    units, places = units_of(program.rows, chip)
    caches = np.array([
        [icache.bytes_aiv // icache.line_bytes, icache.bytes_aic // icache.line_bytes],
        [one.bytes // one.line_bytes for one in (chip.dcache.aiv, chip.dcache.aic)],
    ], np.int64)  # fmt: skip
    is_cube = np.array([core.type is CoreType.AIC for core in cores], np.int64)
    room = new_room(units, is_cube, caches, places)
    room.cores["first_op"] = program.first_op
    room.agents["next"] = program.first_of_pipe
    room.counts["clock"] = l2.clock
    arrays = (
        program.ops, program.deps, program.ranges, program.transfers.table, room.cores, room.agents, room.blocks,
        room.flows, room.events, np.zeros(_room_for_lines(program, chip), at.SEEN), l2.lines, room.recent, room.code,
        room.data,
    )  # fmt: skip
    book = Book(*map(records, arrays))
    if program.row.size:
        schedule(book, records(room.counts), records(settings), places)
    l2.clock = int(room.counts["clock"][0])
    return book


def _room_for_lines(program: Program, chip: Chip) -> int:
    """Slots of a hash table that holds every (step, L2 line): a power of two, at most half filled."""
    table, line = program.transfers.table, chip.timing.memory.line
    runs = table["count_a"] * table["count_b"] * table["count_c"]
    touched = runs * (table["run_bytes"] // line + 2)
    row = np.repeat(np.arange(program.transfers.first.size - 1), np.diff(program.transfers.first))
    step = program.steps.of_row[row]
    by_step = np.bincount(step, touched, minlength=1)
    there = sum(buffer.size // line + 2 for buffer in program.rows.buffers if buffer.space == 0)
    most = int(np.minimum(by_step, max(there, 1)).sum())
    return 1 << max(2 * most, 16).bit_length()


def _losses(rows: LaunchRows, ends: np.ndarray) -> tuple[Loss, ...]:
    """What the timeline lacks: the end of a trace, and instructions that never come to run."""
    found = []
    if not rows.whole:
        found.append(Loss("trace", "the trace ends before the launch does; what comes after is missing"))
    untimed = int((ends == UNKNOWN).sum())
    if untimed:
        total = ends.size
        text = f"{untimed} of {total} instructions have no time: what they wait for never happens in this trace"
        found.append(Loss("untimed", text, count=untimed, total=total))
    return tuple(found)
