"""The metric tables: formulas over virtual counters (opprof.md 2.2, 2.3)."""

from __future__ import annotations

import math

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.cores import sub_block_names
from npuscope.profiler.counters import Counters
from npuscope.profiler.formulas import Rows, evaluate, table_columns
from npuscope.profiler.formulas.engine import core_kinds
from npuscope.profiler.formulas.functions import Basis
from npuscope.profiler.table import Cell, Table
from npuscope.trace.schema import CoreType
from npuscope.trace.timeline import Timeline

IDS = ("block_id", "sub_block_id")


def metric_tables(
    timeline: Timeline, chip: Chip, counters: Counters, *, detail: bool = False, region: bool = False,
    memory: str | None = None, process: int | None = None, device: int = 0,
) -> dict[str, Table]:  # fmt: skip
    """Every table that the chip has, by name: ``OpBasicInfo``, ``PipeUtilization`` and so on, one row for each core
    (one in all on 310P).

    `detail` adds the columns of MemoryDetail. `region` says that `counters` are those of a marked region
    (`npuscope.profiler.region`), so that ratios are against its cycles even in a mixed kernel. `memory` is the vendor
    of the board's memory where peaks depend on it. `process` and `device` are the numbers that OpBasicInfo shows.
    """
    tables = {"OpBasicInfo": basic_info(timeline, chip, process, device)}
    order, rows = _rows(timeline, chip, counters, region, memory)
    names = sub_block_names(timeline.launch)
    for name, columns in table_columns(counters.columns).items():
        found = evaluate(columns, rows, detail)
        cells: list[list[Cell]] = [column.cells(values) for column, values in found]
        heads = tuple(column.name for column, _ in found)
        if chip.split:
            cells = [[names[core][0] for core in order], [names[core][1] for core in order], *cells]
            heads = (*IDS, *heads)
        tables[name] = Table(name, heads, tuple(zip(*cells, strict=True)))
    return tables


def basic_info(timeline: Timeline, chip: Chip, process: int | None = None, device: int = 0) -> Table:
    """The table ``OpBasicInfo``. The clock of a model is constant: the current one is the rated one."""
    launch, kind = timeline.launch, kernel_type(timeline, chip)
    vectors = int((_kinds(timeline) == int(CoreType.AIV)).sum())
    cells: dict[str, Cell] = {
        "Op Name": launch.kernel,
        "Op Type": kind,
        "Task Duration(us)": timeline.microseconds,
        "Block Dim": blocks(timeline),
        "Mix Block Dim": vectors if kind == "mix" else 0,
        "Device Id": device,
        "Pid": process,
        "Current Freq": round(timeline.mhz),
        "Rated Freq": chip.frequency_mhz,
    }
    if not chip.split:
        del cells["Mix Block Dim"]
    return Table("OpBasicInfo", tuple(cells), (tuple(cells.values()),))


def kernel_type(timeline: Timeline, chip: Chip) -> str:
    """``vector``, ``cube`` or ``mix``; ``AiCore`` where a core does everything."""
    if not chip.split:
        return "AiCore"
    kinds = set(_kinds(timeline).tolist())
    return "mix" if len(kinds) == 2 else "cube" if int(CoreType.AIC) in kinds else "vector"


def blocks(timeline: Timeline) -> int:
    """Blocks of the launch: in a mixed kernel an AIC with its AIVs is one."""
    kinds = _kinds(timeline)
    cubes = int((kinds == int(CoreType.AIC)).sum())
    return cubes or int(kinds.size)


def _kinds(timeline: Timeline) -> np.ndarray:
    return core_kinds(core.type for core in timeline.launch.cores)


def _rows(
    timeline: Timeline, chip: Chip, counters: Counters, region: bool, memory: str | None
) -> tuple[list[int], Rows]:
    """The cores in the order of the tables' rows, and those rows."""
    peaks = chip.peak_rates(memory)
    if not chip.split:
        count = max(blocks(timeline), 1)
        scale = math.ceil(count / chip.cores.aic) / count
        basis = Basis(counters.total_cycles.sum(keepdims=True), timeline.mhz, None, scale)
        events = {event: values.sum(keepdims=True) for event, values in counters.values.items()}
        paths = {path: values.sum(keepdims=True) for path, values in counters.paths.items()}
        return [], Rows(basis, events, paths, peaks)
    names = sub_block_names(timeline.launch)
    order = sorted(range(len(names)), key=names.__getitem__)
    task = float(timeline.cycles) if kernel_type(timeline, chip) == "mix" and not region else None
    basis = Basis(counters.total_cycles[order], timeline.mhz, task)
    events = {event: values[order] for event, values in counters.values.items()}
    paths = {path: values[order] for path, values in counters.paths.items()}
    return order, Rows(basis, events, paths, peaks, _kinds(timeline)[order])
