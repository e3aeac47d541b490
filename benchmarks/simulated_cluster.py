"""A made-up training job: who computes how long, who waits for whom, and the files that the monitor would write.

Ranks stand in a grid of data-parallel rows and tensor-parallel columns. A step is some layers, each a few kernels and
an all-reduce among the ranks of a row, then an all-reduce of the gradients down each column. A collective begins on a
rank when it gets there and ends on all when the last one is there and the transfer is done.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from npuscope.monitor.agent.processors import sqlite_schema
from npuscope.monitor.analysis.records import Collectives, Group, Marked, Ranges, Records

BASE = 1_790_000_000_000_000_000
PLACEHOLDER = 4294967295
FP32 = 4
OPERATORS = ("MatMulV2", "FlashAttentionScore", "RmsNorm", "SwiGlu")
SHARES = np.array([0.5, 0.3, 0.12, 0.08])
"""Of a layer's compute time, by operator."""


@dataclass
class Job:
    """Times are microseconds. `slow` multiplies the compute time of a rank: a number, or one a step; `late` adds time
    on the host before each step; `links` multiplies the transfers of a data-parallel column by its number."""

    ranks: int = 16
    tensor: int = 1
    steps: int = 200
    layers: int = 2
    compute: float = 8000.0
    host: float = 800.0
    noise: float = 0.03
    tensor_transfer: float = 300.0
    data_transfer: float = 1500.0
    transfer_noise: float = 0.02
    seed: int = 0
    per_host: int = 8
    offset: float = 5e6
    """Clocks of hosts are apart by up to this."""
    slow: dict[int, float | np.ndarray] = field(default_factory=dict)
    slow_operator: str | None = None
    """Only this operator is slow; all by default."""
    late: dict[int, float] = field(default_factory=dict)
    links: dict[int, float] = field(default_factory=dict)
    hiccups: float = 0.0
    """Share of (rank, step) in which the host takes half a step longer."""


@dataclass
class Run:
    """What happened: int64 nanoseconds of each host's own clock, by rank, step and place in the step."""

    job: Job
    begin: np.ndarray
    kernel_start: np.ndarray
    kernel_end: np.ndarray
    collective_start: np.ndarray
    collective_end: np.ndarray


def simulate(job: Job) -> Run:
    """Let the job run; ranks are columns of numpy, steps and layers a loop."""
    random = np.random.default_rng(job.seed)
    count, operators = job.ranks, len(OPERATORS)
    rows = count // job.tensor
    now = np.zeros(count)
    factor = np.ones((job.steps, count))
    for rank, times in job.slow.items():
        factor[:, rank] = times
    late = np.array([job.late.get(rank, 0.0) for rank in range(count)])
    links = np.array([job.links.get(column, 1.0) for column in range(job.tensor)])
    spread = operators * job.layers
    collectives = job.layers + 1 if job.tensor > 1 else 1
    begin = np.zeros((job.steps, count))
    kernels = np.zeros((2, job.steps, spread, count))
    talks = np.zeros((2, job.steps, collectives, count))

    def meet(step: int, place: int, width: int, transfer: np.ndarray) -> np.ndarray:
        grid = now.reshape(rows, job.tensor)
        together = grid.max(1, keepdims=True) if width else grid.max(0, keepdims=True)
        ended = np.broadcast_to(together + transfer, grid.shape).reshape(-1)
        talks[0, step, place], talks[1, step, place] = now, ended
        return ended.copy()

    for step in range(job.steps):
        begin[step] = now
        # A rank is faster or slower for a whole step; kernels of a step differ little.
        noise = 1 + job.noise * random.standard_normal(count)
        hiccup = (random.random(count) < job.hiccups) * 0.5 * job.compute
        now = now + job.host * (1 + job.noise * random.standard_normal(count)) + late + hiccup
        for layer in range(job.layers):
            for at, (name, share) in enumerate(zip(OPERATORS, SHARES, strict=True)):
                slowed = factor[step] if job.slow_operator in (None, name) else 1.0
                place = layer * operators + at
                kernels[0, step, place] = now
                now = now + np.maximum(job.compute / job.layers * share * noise * slowed, 1.0)
                kernels[1, step, place] = now
            if job.tensor > 1:
                jitter = 1 + job.transfer_noise * random.standard_normal((rows, 1))
                now = meet(step, layer, 1, job.tensor_transfer * jitter)
        jitter = 1 + job.transfer_noise * random.standard_normal((1, job.tensor))
        now = meet(step, collectives - 1, 0, job.data_transfer * jitter * links)
    hosts = np.arange(count) // job.per_host
    offset = BASE + (random.random(hosts.max() + 1) * job.offset * 1000).astype(np.int64)[hosts]

    def clock(times: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis((times * 1000).astype(np.int64) + offset, -1, 0))

    return Run(job, clock(begin), clock(kernels[0]), clock(kernels[1]), clock(talks[0]), clock(talks[1]))


def groups_of(job: Job, rank: int) -> list[tuple[str, Group]]:
    """The tensor-parallel communicator of a rank, where there is one, and its data-parallel one."""
    row, column = divmod(rank, job.tensor)
    data = Group("dp", tuple(range(column, job.ranks, job.tensor)))
    tensor = Group("tp", tuple(range(row * job.tensor, (row + 1) * job.tensor)))
    return ([(f"tp_{row}", tensor)] if job.tensor > 1 else []) + [(f"dp_{column}", data)]


def records(run: Run, rank: int, *, marked: bool = True) -> Records:
    """One rank, as a reader would give it."""
    job = run.job
    groups = groups_of(job, rank)
    texts = [*OPERATORS, "hcom_allReduce_", *(name for name, _ in groups)]
    strings = dict(enumerate(texts))
    kernels = Ranges(
        run.kernel_start[rank].reshape(-1), run.kernel_end[rank].reshape(-1),
        np.tile(np.arange(len(OPERATORS)), job.steps * job.layers),
    )  # fmt: skip
    start, end = run.collective_start[rank].reshape(-1), run.collective_end[rank].reshape(-1)
    comm = np.full((job.steps, start.size // job.steps), len(OPERATORS) + 1)
    comm[:, -1] = len(texts) - 1
    sizes = np.where(comm == len(texts) - 1, 64 << 20, 8 << 20)
    collectives = Collectives(
        start,
        end,
        np.full(start.size, len(OPERATORS)),
        comm.reshape(-1),
        sizes.reshape(-1),
        np.zeros(start.size, np.int64),
    )
    ends = np.append(run.begin[rank][1:], end[-1])
    labels = np.arange(1, job.steps + 1) if marked else np.zeros(0, np.int64)
    steps = Marked(labels, run.begin[rank][: len(labels)], ends[: len(labels)], "step marks on the device", True)
    return Records(
        rank, 1000 + rank, f"rank {rank}", f"node{rank // job.per_host}", rank % job.per_host, strings, kernels,
        collectives, steps, dict(groups),
    )  # fmt: skip


def all_records(run: Run, *, marked: bool = True) -> Iterator[Records]:
    """Every rank."""
    return (records(run, rank, marked=marked) for rank in range(run.job.ranks))


TABLES = {name: columns for name, columns in sqlite_schema.TABLES.items() if name != "STEP_TIME"}
"""Those of the vendor's plug-in: steps are told by marks."""


def file_name(rank: int, suffix: str = "db") -> str:
    """As the monitor names a rank's file."""
    return f"msmonitor_{1000 + rank}_20261130120000000_{rank}.{suffix}"


def write_database(one: Records, folder: Path, *, device_marks: bool = True) -> Path:
    """A rank's file, as the monitor writes it."""
    path = folder / file_name(one.rank)
    path.unlink(missing_ok=True)
    texts = dict(one.strings)
    number = {text: at for at, text in texts.items()}

    def text(value: str) -> int:
        return number.setdefault(value, len(number))

    kernels, talks, steps = one.kernels, one.collectives, one.steps
    aicore, missing, mark, algorithm = text("KERNEL_AICORE"), text("N/A"), text("MsTx"), text("Ring")
    domain, call = text("step"), text("HcclAllReduce")
    messages = [text(f"step {label}") for label in steps.label.tolist()]
    tid, device, count = one.pid << 32 | one.pid, one.device, len(kernels)
    begin, end = int(min(kernels.start[0], talks.start[0])), int(talks.end[-1])
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("BEGIN")
        for name, columns in TABLES.items():
            db.execute(f"CREATE TABLE {name} ({columns})")
        db.executemany(
            f"INSERT INTO TASK VALUES (?, ?, {device}, ?, ?, {one.pid}, {aicore}, {PLACEHOLDER}, 2, {PLACEHOLDER}, "
            f"{PLACEHOLDER})",
            zip(kernels.start.tolist(), kernels.end.tolist(), range(1, count + 1), range(count), strict=True),
        )
        db.executemany(
            f"INSERT INTO COMPUTE_TASK_INFO VALUES (?, ?, {PLACEHOLDER}, {PLACEHOLDER}, {aicore}"
            + f", {missing}" * 10
            + ")",
            zip(kernels.name.tolist(), range(count), strict=True),
        )
        db.executemany(
            f"INSERT INTO COMMUNICATION_OP VALUES (?, ?, ?, ?, ?, ?, 0, 0, {FP32}, {algorithm}, ?, ?, {device})",
            zip(
                [text(f"hcom_allReduce__{comm:03}_{at}_1") for at, comm in enumerate(talks.comm.tolist())],
                talks.start.tolist(), talks.end.tolist(), range(count + 1, count + 1 + len(talks)), talks.comm.tolist(),
                range(len(talks)), (talks.bytes // 4).tolist(), talks.name.tolist(), strict=True,
            ),
        )  # fmt: skip
        db.executemany(
            f"INSERT INTO CANN_API VALUES (?, ?, 20000, {tid}, ?, {call})",
            ((start - 900, start - 400, count + 1 + at) for at, start in enumerate(talks.start.tolist())),
        )
        marks = list(zip(steps.start.tolist(), steps.end.tolist(), range(len(steps)), messages, strict=True))
        db.executemany(
            f"INSERT INTO MSTX_EVENTS VALUES (?, ?, 2, {PLACEHOLDER}, {PLACEHOLDER}, ?, {tid}, {tid}, {domain}, ?)",
            ((start - 1000, end - 1000, message, 4_000_000_000 + at) for start, end, at, message in marks),
        )
        if device_marks:
            db.executemany(
                f"INSERT INTO TASK VALUES (?, ?, {device}, ?, ?, {one.pid}, {mark}, {PLACEHOLDER}, 2, {PLACEHOLDER}, "
                f"{PLACEHOLDER})",
                ((start, end, 4_000_000_000 + at, count + at) for start, end, at, _ in marks),
            )
        info = {
            name: {"group_name": group.title, "group_rank": group.ranks.index(one.rank), "global_ranks": group.ranks}
            for name, group in one.groups.items()
        }
        version = [("SCHEMA_VERSION_MICRO", "1"), ("SCHEMA_VERSION_MINOR", "2"), ("SCHEMA_VERSION_MAJOR", "0")]
        meta = [*version, ("SCHEMA_VERSION", "1.2.0"), ("parallel_group_info", json.dumps(info))]
        db.executemany("INSERT INTO META_DATA VALUES (?, ?)", meta)
        db.execute("INSERT INTO HOST_INFO VALUES (?, ?)", (str(hash(one.host) & 0xFFFFFFFF), one.host))
        db.execute("INSERT INTO RANK_DEVICE_MAP VALUES (?, ?)", (one.rank, device))
        db.execute("INSERT INTO NPU_INFO VALUES (?, 'UNKNOWN')", (device,))
        db.execute("INSERT INTO SESSION_TIME_INFO VALUES (?, ?)", (begin, end))
        kinds = [(0, "marker"), (1, "push/pop"), (2, "start/end"), (3, "marker_ex")]
        db.executemany("INSERT INTO ENUM_MSTX_EVENT_TYPE VALUES (?, ?)", kinds)
        db.execute("INSERT INTO ENUM_HCCL_DATA_TYPE VALUES (4, 'FP32')")
        db.execute("INSERT INTO ENUM_API_TYPE VALUES (20000, 'acl')")
        db.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", ((at, value) for value, at in number.items()))
        db.execute("COMMIT")
    db.close()
    return path


def write_lines(one: Records, folder: Path) -> Path:
    """The same as JSON lines, with the header that tells the host."""
    path = folder / file_name(one.rank, "jsonl")
    text = one.strings
    lines = [
        {"kind": "Kernel", "name": text[name], "startNs": start, "endNs": end, "deviceId": one.device, "streamId": 2,
         "type": "KERNEL_AICORE", "correlationId": at}
        for at, (start, end, name) in enumerate(
            zip(one.kernels.start.tolist(), one.kernels.end.tolist(), one.kernels.name.tolist(), strict=True)
        )
    ]  # fmt: skip
    talks = one.collectives
    lines += [
        {"kind": "Communication", "name": text[name], "startNs": start, "endNs": end, "deviceId": one.device,
         "streamId": 3, "dataType": "FP32", "count": size // 4, "commName": text[comm], "algType": "Ring",
         "correlationId": 0}
        for start, end, name, comm, size in zip(
            talks.start.tolist(), talks.end.tolist(), talks.name.tolist(), talks.comm.tolist(), talks.bytes.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    lines += [
        {"kind": "Marker", "sourceKind": "Device", "name": f"step {label}", "domain": "step", "startNs": start,
         "endNs": end, "deviceId": one.device, "streamId": 2, "id": at}
        for at, (label, start, end) in enumerate(
            zip(one.steps.label.tolist(), one.steps.start.tolist(), one.steps.end.tolist(), strict=True)
        )
    ]  # fmt: skip
    lines.sort(key=lambda line: line["endNs"])
    info = {
        name: {"group_name": group.title, "group_rank": 0, "global_ranks": group.ranks}
        for name, group in one.groups.items()
    }
    lines.insert(0, {"kind": "header", "host": one.host, "rank": one.rank})
    lines.append({"kind": "parallel_group_info", "value": json.dumps(info)})
    lines.append({"kind": "rank_device_map", "rank": one.rank, "device": [one.device]})
    path.write_text("".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines))
    return path
