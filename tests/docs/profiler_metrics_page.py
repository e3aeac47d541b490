"""Writes docs/profiler-metrics.md from the tables that the profiler itself uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npuscope.npu.chip import chip_names, load_chip
from npuscope.profiler.counters.counters import EVENTS
from npuscope.profiler.formulas import Column, table_columns
from npuscope.profiler.formulas.functions import MEANING
from npuscope.trace.schema import CoreType

SETS = {"A2": "A2 and A3 (Ascend910B, Ascend910_93)", "A5": "A5 (Ascend950)", "310P": "310P (Ascend310P)"}
CONTENTS = {
    "ArithmeticUtilization": "How much of the time the cube and the vector unit compute, and on what.",
    "L2Cache": "What became of the core's requests to the L2 cache.",
    "Memory": "What moves between memories, and how near that is to what the way can carry.",
    "MemoryL0": "What moves into and out of the cube's memories.",
    "MemoryUB": "What moves into and out of UB.",
    "PipeUtilization": "How much of the time each pipe works.",
    "ResourceConflictRatio": "How much of the time each pipe waits, and what conflicts cost.",
}
PATHS = ("gm_to_l1", "l1_to_gm", "l0c_to_l1", "l0c_to_gm", "gm_to_ub", "ub_to_gm")

INTRO = """\
# Profiler metrics

Every figure of the profiler's CSV files: its unit, its formula, the hardware events that the formula reads, and how each
event is read off a timeline. The files have the names, the columns and the order of the vendor's profiler for the same
chip. All figures are **modelled** where the timeline is that of npuscope's own timing model: no card counted anything.

This page is written from the tables that the profiler uses (`UPDATE_DOCS=1 pytest tests/docs`).

## How to read the files

* There is one row for each core that the kernel ran on: `block_id` and `sub_block_id`, which is `cube0`, `vector0` or
  `vector1`. On 310P, whose cores do everything, there is one row for all of them and no such columns.
* Columns that begin with `aic_` have figures on rows of cube cores, those with `aiv_` on rows of vector cores.
* Fractions have six decimals, counts none. `NA` is a figure that does not apply to the row, or that the timeline does
  not tell: never 0.
* What is read and written is counted in requests of a fixed size, as the hardware does. A stretch of data that is no
  whole number of requests is rounded up.

## OpBasicInfo.csv

| Column | Meaning |
| --- | --- |
| `Op Name` | name of the kernel |
| `Op Type` | `vector`, `cube` or `mix` by the cores that it ran on; `AiCore` on 310P |
| `Task Duration(us)` | from the start of the task to its end, launch overhead included |
| `Block Dim` | blocks of the launch; in a mixed kernel a cube core with its vector cores is one block |
| `Mix Block Dim` | vector cores of a mixed kernel, else 0; not on 310P |
| `Device Id`, `Pid` | number of the device, process that ran the kernel (`NA` for a saved trace) |
| `Current Freq`, `Rated Freq` | clock in MHz that the kernel ran at, and that of the chip; equal in a model |

## Functions

`eN` is the count of event N on the core; `cycles` its cycles from first to last. `GM_L1` is a number of bytes from GM to
L1, and so on; `gm_to_l1` the peak of that way in the table of peaks below.

"""


def page() -> str:
    """The page."""
    lines = [INTRO + table(("Function", "Value"), ((f"`{name}`", text) for name, text in MEANING.items()))]
    for name, what in CONTENTS.items():
        lines.append(f"## {name}.csv\n\n{what}\n")
        for columns, chips in SETS.items():
            lines.append(f"### {name} on {chips}\n")
            lines.append(
                table(("Column", "Unit", "Rows", "Formula", "Events"), map(column_row, table_columns(columns)[name]))
            )
    lines.append("## Peaks\n\n" + PEAKS)
    lines.append(table(("Chip", *(f"`{path}`" for path in PATHS)), peak_rows()))
    lines.append("## Events\n\n" + EVENT_NOTE)
    for columns, chips in SETS.items():
        lines.append(f"### Events of {chips}\n")
        rows = (
            (str(event.number), core_name(event.core), event.meaning, event.rule)
            for event in sorted(EVENTS[columns], key=lambda one: one.number)
        )
        lines.append(table(("Event", "Core", "What the hardware counts", "How it is read off a timeline"), rows))
    return "\n".join(lines)


PEAKS = """\
What usage rates are held against: GB/s that one core sustains on a way, constants of the vendor's tools. `CJ` are boards
whose memory is of that vendor.
"""
EVENT_NOTE = """\
The numbers are the vendor's. A timeline has slices (instructions in time, each on the lane of a pipe), transfers (what
moves between two memories), a table of the computing units' requests to their own memories, and a table of the cores.
"""


def column_row(column: Column) -> tuple[str, ...]:
    """A column in a table."""
    note = " (MemoryDetail only)" if column.asked else " (left out where all are 0)" if column.sparse else ""
    events = ", ".join(map(str, column.formula.events))
    return f"`{column.name}`{note}", column.unit, core_name(column.rows), f"`{column.text}`", events


def core_name(core: CoreType | None) -> str:
    """A kind of core, for people."""
    return "all" if core is None else "cube" if core is CoreType.AIC else "vector"


def peak_rows() -> Iterator[tuple[str, ...]]:
    """Peaks of every chip that has any, and of its boards."""
    for name in chip_names():
        chip = load_chip(name)
        for memory in (None, *(peaks.memory for peaks in chip.peaks if peaks.memory != "default")):
            rates = chip.peak_rates(memory)
            if any(path in rates for path in PATHS):
                yield (
                    f"{name}{f' {memory}' if memory else ''}",
                    *(f"{rates[path]:g}" if path in rates else "" for path in PATHS),
                )


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    heads = tuple(heads)
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
