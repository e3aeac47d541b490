"""The timing model: from a launch's trace to a time for every instruction (hardware.md 3, 6)."""

from __future__ import annotations

import numpy as np

from npuscope.errors import Unsupported
from npuscope.npu.chip import Chip
from npuscope.npu.timing import layout as at
from npuscope.npu.timing import tables
from npuscope.npu.timing.book import Found, Given, new_book
from npuscope.npu.timing.details import Details
from npuscope.npu.timing.flows import FLOW_FIELDS
from npuscope.npu.timing.l2 import L2, cold
from npuscope.npu.timing.program import Program, program_of, settings_of, units_of
from npuscope.npu.timing.transfers import COUNT_A, COUNT_B, COUNT_C, RUN_BYTES
from npuscope.npu.timing.units import unit_table
from npuscope.trace.marks import marks_of
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import CoreType
from npuscope.trace.timeline import Loss, Source, Timeline

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
    found = _run(program, chip, l2)
    l2.warm = True
    place = np.empty(program.row.size, np.int64)
    place[program.row] = np.arange(program.row.size)
    times, results = found.times[place].T, found.result[place].T
    close = chip.timing.launch.close_us * chip.frequency_mhz
    settings = settings_of(rows, chip)
    end = float(found.cores[at.C_END].max(initial=settings[at.F_OVERHEAD])) + close
    return Timeline(
        rows.launch, chip.name, float(chip.frequency_mhz), Source.MODEL, int(round(end)),
        int(round(settings[at.F_OVERHEAD])), program.steps.steps, tables.slice_table(program, times),
        Details(rows, program.operands, np.arange(program.row.size)),
        transfers=tables.transfer_table(program, times, results),
        lines=tables.line_table(found.counted, chip.timing.memory.line),
        edges=tables.edge_table(program), cores=tables.core_table(found.cores), units=unit_table(rows),
        marks=marks_of(rows), losses=_losses(rows, times),
        notes={"model": VERSION, "l2": "warm" if warm else "cold"},
    )  # fmt: skip


def _run(program: Program, chip: Chip, l2: L2) -> Found:
    """The schedule's results, by op."""
    from npuscope.npu.timing.engine import schedule  # compiled at its first use

    rows, settings = program.rows, settings_of(program.rows, chip)
    count, cores = program.row.size, rows.launch.cores
    units, places = units_of(rows, chip)
    icache = chip.timing.icache
    given = Given(
        program.ops, program.costs, program.deps, program.ranges, np.ascontiguousarray(program.transfers.table.T),
        units, np.searchsorted(units, np.arange(units.max(initial=-1) + 2)), program.first_op,
        np.array([core.type is CoreType.AIC for core in cores], np.int64),
        np.array([one.bytes // one.line_bytes for one in (chip.dcache.aiv, chip.dcache.aic)], np.int64),
        np.array([icache.bytes_aiv, icache.bytes_aic], np.int64) // icache.line_bytes, settings,
    )  # fmt: skip
    found = Found(
        np.full((count, at.TIME_FIELDS), at.UNKNOWN_TIME), np.zeros((count, at.RESULT_FIELDS), np.int64),
        np.zeros((at.CORE_FIELDS, len(cores))), np.zeros((_room_for_lines(program, chip), 4), np.int64),
    )  # fmt: skip
    if count:
        schedule(given, found, new_book(given, program.first_of_pipe, places, FLOW_FIELDS), l2.arrays, places)
    return found


def _room_for_lines(program: Program, chip: Chip) -> int:
    """Slots of a hash table that holds every (step, L2 line): a power of two, at most half filled."""
    table, line = program.transfers.table, chip.timing.memory.line
    runs = table[COUNT_A] * table[COUNT_B] * table[COUNT_C]
    touched = runs * (table[RUN_BYTES] // line + 2)
    row = np.repeat(np.arange(program.transfers.first.size - 1), np.diff(program.transfers.first))
    step = program.steps.of_row[row]
    by_step = np.bincount(step, touched, minlength=1)
    there = sum(buffer.size // line + 2 for buffer in program.rows.buffers if buffer.space == 0)
    most = int(np.minimum(by_step, max(there, 1)).sum())
    return 1 << max(2 * most, 16).bit_length()


def _losses(rows: LaunchRows, times: np.ndarray) -> tuple[Loss, ...]:
    """What the timeline lacks: the end of a trace, and instructions that never come to run."""
    found = []
    if not rows.whole:
        found.append(Loss("trace", "the trace ends before the launch does; what comes after is missing"))
    untimed = int((times[at.END] == at.UNKNOWN_TIME).sum())
    if untimed:
        total = times.shape[1]
        text = f"{untimed} of {total} instructions have no time: what they wait for never happens in this trace"
        found.append(Loss("untimed", text, count=untimed, total=total))
    return tuple(found)
