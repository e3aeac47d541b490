"""The deliverables that are tables of text: a heading and columns each. Headings are the vendor's, as its guide to the
Ascend PyTorch Profiler lists them; microseconds with three digits."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npuscope.monitor.agent.trace.parsing.communication import Communication
from npuscope.monitor.agent.trace.parsing.memory import blocks
from npuscope.monitor.agent.trace.parsing.model import CALLS, OPERATOR, Model
from npuscope.monitor.agent.trace.parsing.numbers import KILO, MEGA, blank, microseconds, moments, sizes
from npuscope.monitor.agent.trace.parsing.stacks import Stacks
from npuscope.monitor.agent.trace.parsing.step_times import StepTimes

HOST_CORE = "CPU"
"""Where operators ran that no device took part in."""
ALLOCATOR = "PyTorch"
"""Who took memory (with an NPU: PTA, GE, APP)."""


@dataclass(frozen=True)
class Table:
    """A file with a heading and columns of one length."""

    file: str
    heading: Sequence[str]
    columns: Sequence[Sequence[Any]]

    def write(self, folder: Path) -> None:
        """As CSV."""
        with (folder / self.file).open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.heading)
            writer.writerows(zip(*self.columns, strict=True))


def tables(model: Model, transfers: Communication, times: StepTimes, stacks: Stacks) -> Iterator[Table]:
    """Those that the trace has something for."""
    yield operator_details(model, stacks)
    yield step_trace_time(times)
    yield op_statistic(model)
    if len(model.kernels):
        yield kernel_details(model)
    if len(model.rows_of(*CALLS)):
        yield api_statistic(model)
    if len(transfers):
        yield communication_table(model, transfers)
    if len(model.trace.memory):
        yield operator_memory(model)
        yield memory_record(model)
    yield from host_tables(model)


def operator_details(model: Model, stacks: Stacks) -> Table:
    """Each call of an operator, with its own time and all of it."""
    places, nesting = model.operators, model.nesting
    rows = model.host[places]
    order = np.argsort(model.slices.start[rows], kind="stable")
    places, rows = places[order], rows[order]
    length = model.lengths[model.host]
    alone = np.maximum(nesting.alone(length), 0)
    device = device_times(model)
    device_all = nesting.within(device)
    none = [0.0] * len(rows)  # there is no AI core
    texts = model.texts
    return Table(
        "operator_details.csv",
        (
            "Name", "Input Shapes", "Call Stack", "Host Self Duration(us)", "Host Total Duration(us)",
            "Device Self Duration(us)", "Device Total Duration(us)", "Device Self Duration With AICore(us)",
            "Device Total Duration With AICore(us)",
        ),
        (
            texts[model.slices.name[rows]].tolist(),
            texts[model.slices.shapes[rows]].tolist(),
            [stacks.text(number) for number in stacks.of_row[rows].tolist()] if stacks else [""] * len(rows),
            microseconds(alone[places]),
            microseconds(length[places]),
            microseconds(device[places]),
            microseconds(device_all[places]),
            none,
            none,
        ),
    )  # fmt: skip


def device_times(model: Model) -> Any:
    """Of each place in `host`, the time of the kernels that it launched itself, in ns."""
    slices = model.slices
    found = np.zeros(len(model.host), np.int64)
    operators = model.operators
    known = slices.external[model.host[operators]]
    order = np.argsort(known, kind="stable")
    wanted = slices.external[model.kernels]
    if not len(order):
        return found
    place = np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)
    hit = (known[order[place]] == wanted) & (wanted >= 0)
    np.add.at(found, operators[order[place[hit]]], model.lengths[model.kernels[hit]])
    return found


def step_trace_time(times: StepTimes) -> Table:
    """Where the time of the steps goes."""
    alone = times.communication - times.overlapped
    free = times.length - times.computing - alone
    return Table(
        "step_trace_time.csv",
        (
            "Device_id", "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free",
            "Stage", "Bubble", "Communication(Not Overlapped and Exclude Receive)", "Preparing",
        ),
        (
            times.device.tolist(),
            blank(times.step),
            microseconds(times.computing),
            microseconds(alone),
            microseconds(times.overlapped),
            microseconds(times.communication),
            microseconds(free),
            microseconds(times.length - times.receiving),
            microseconds(times.receiving),
            microseconds(alone - times.receiving),
            microseconds(times.preparing),
        ),
    )  # fmt: skip


def op_statistic(model: Model) -> Table:
    """How often and how long operators ran: the devices' kernels, or the host's operators by their own time."""
    if len(model.kernels):
        rows, length = model.kernels, model.lengths[model.kernels]
        device, core = model.slices.process[rows], "GPU"
    else:
        places = np.flatnonzero(np.isin(model.host, model.rows_of(OPERATOR)))
        length = np.maximum(model.nesting.alone(model.lengths[model.host])[places], 0)
        rows = model.host[places]
        device, core = np.full(len(rows), -1), HOST_CORE
    # One number for device and name.
    width = len(model.texts)
    keys, group = np.unique((device + 1) * width + model.slices.name[rows], return_inverse=True)
    count = np.bincount(group, minlength=len(keys))
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, group, length)
    least, most = np.full(len(total), np.iinfo(np.int64).max), np.zeros(len(total), np.int64)
    np.minimum.at(least, group, length)
    np.maximum.at(most, group, length)
    order = np.argsort(-total, kind="stable")
    whole = max(int(total.sum()), 1)
    return Table(
        "op_statistic.csv",
        (
            "Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)",
            "Max Time(us)", "Ratio(%)",
        ),
        (
            (keys[order] // width - 1).tolist(),
            model.texts[keys[order] % width].tolist(),
            [core] * len(order),
            count[order].tolist(),
            microseconds(total[order]),
            microseconds(least[order]),
            microseconds(total[order] / np.maximum(count[order], 1)),
            microseconds(most[order]),
            np.round(total[order] / whole * 100, 3).tolist(),
        ),
    )  # fmt: skip


def kernel_details(model: Model) -> Table:
    """Each kernel."""
    rows, slices = model.kernels, model.slices
    categories = np.array(model.trace.categories.texts, object)
    before = np.zeros(len(rows), np.int64)
    for lane in {(int(p), int(t)) for p, t in zip(slices.process[rows], slices.thread[rows], strict=True)}:
        here = np.flatnonzero((slices.process[rows] == lane[0]) & (slices.thread[rows] == lane[1]))
        before[here[1:]] = np.maximum(slices.start[rows[here[1:]]] - slices.end[rows[here[:-1]]], 0)
    return Table(
        "kernel_details.csv",
        (
            "Step Id", "Device_id", "Stream ID", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)",
            "Wait Time(us)",
        ),
        (
            blank(model.kernel_steps),
            slices.process[rows].tolist(),
            slices.thread[rows].tolist(),
            model.texts[slices.name[rows]].tolist(),
            categories[slices.category[rows]].tolist(),
            np.where(model.communicating, "COMMUNICATION", "GPU").tolist(),
            moments(slices.start[rows].tolist()),
            microseconds(model.lengths[rows]),
            microseconds(before),
        ),
    )  # fmt: skip


def api_statistic(model: Model) -> Table:
    """How often and how long the device's library was called."""
    rows = model.rows_of(*CALLS)
    names, group = np.unique(model.slices.name[rows], return_inverse=True)
    lengths = [model.lengths[rows[group == number]] / 1000 for number in range(len(names))]
    order = sorted(range(len(names)), key=lambda number: -lengths[number].sum())
    figures = [lengths[number] for number in order]
    return Table(
        "api_statistic.csv",
        ("Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance"),
        (
            ["host"] * len(order),
            ["runtime"] * len(order),
            [model.texts[names[number]] for number in order],
            [round(float(one.sum()), 3) for one in figures],
            [len(one) for one in figures],
            [round(float(one.mean()), 3) for one in figures],
            [round(float(one.min()), 3) for one in figures],
            [round(float(one.max()), 3) for one in figures],
            [round(float(one.var()), 3) for one in figures],
        ),
    )


def communication_table(model: Model, transfers: Communication) -> Table:
    """Each operation between ranks."""
    rows, slices = transfers.row, model.slices
    return Table(
        "communication.csv",
        (
            "Step Id", "Device_id", "Stream ID", "Name", "Group", "Start Time(us)", "Duration(us)", "Elements",
            "Data Type", "Size(B)",
        ),
        (
            blank(model.steps.of(slices.start[rows])),
            transfers.device.tolist(),
            transfers.stream.tolist(),
            transfers.operation,
            transfers.group,
            moments(slices.start[rows].tolist()),
            microseconds(model.lengths[rows]),
            blank(transfers.items),
            transfers.type,
            blank(np.array(transfers.bytes(), np.int64)),
        ),
    )  # fmt: skip


def operator_memory(model: Model) -> Table:
    """Each block of memory: who took it, how large it is, from when to when."""
    found, memory = blocks(model), model.trace.memory
    taken, freed = found.taken, found.freed
    gone = freed >= 0
    length = np.where(gone, memory.time[freed] - memory.time[taken], -1)
    return Table(
        "operator_memory.csv",
        (
            "Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Duration(us)",
            "Allocation Total Allocated(MB)", "Allocation Total Reserved(MB)", "Release Total Allocated(MB)",
            "Release Total Reserved(MB)", "Device Type",
        ),
        (
            model.texts[found.name].tolist(),
            sizes(memory.bytes[taken], KILO),
            moments(memory.time[taken].tolist()),
            _where(gone, moments(memory.time[freed].tolist())),
            _where(gone, microseconds(length)),
            sizes(memory.allocated[taken], MEGA),
            sizes(memory.reserved[taken], MEGA),
            _where(gone, sizes(memory.allocated[freed], MEGA)),
            _where(gone, sizes(memory.reserved[freed], MEGA)),
            _devices(memory.device_type[taken], memory.device[taken]),
        ),
    )  # fmt: skip


def memory_record(model: Model) -> Table:
    """How much memory is taken, after each change."""
    memory = model.trace.memory
    order = np.argsort(memory.time, kind="stable")
    return Table(
        "memory_record.csv",
        ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type"),
        (
            [ALLOCATOR] * len(order),
            moments(memory.time[order].tolist()),
            sizes(memory.allocated[order], MEGA),
            sizes(memory.reserved[order], MEGA),
            _devices(memory.device_type[order], memory.device[order]),
        ),
    )


def host_tables(model: Model) -> Iterator[Table]:
    """What the process used of the host, where that was recorded."""
    use = model.extras.get("host") or {}
    times = moments(use.get("time", []))
    if use.get("cpu"):
        yield Table("host_cpu_usage.csv", ("Timestamp(us)", "Usage(%)"), (times, use["cpu"]))
    if use.get("mem"):
        memory = sizes(np.array(use["mem"], np.int64), MEGA)
        yield Table("host_mem_usage.csv", ("Timestamp(us)", "Usage(MB)"), (times, memory))


def _where(keep: Any, values: Sequence[Any]) -> list[Any]:
    """Values, an empty cell where there is none."""
    return [value if there else "" for value, there in zip(values, keep.tolist(), strict=True)]


def _devices(kind: Any, number: Any) -> list[str]:
    """Names of devices: the host is `CPU`."""
    return [HOST_CORE if not one else f"GPU:{index}" for one, index in zip(kind.tolist(), number.tolist(), strict=True)]
