"""Records of every kind, for the tests of processors. Times are small numbers where they can be, so that they can be
followed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import COLUMNS, Batch, batch
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.processors.processor import Run

TEXTS = frozenset({"name", "domain", "type", "comm", "algorithm"})
ABSENT = frozenset({"device", "stream", "process", "thread"})


class Maker:
    """Makes batches with the strings of one run."""

    def __init__(self, rank: int = 3, pid: int = 42, started: int = 0) -> None:
        self.warnings: list[str] = []
        self.run = Run(Strings(), pid, rank, started, self.warnings.append)

    def batch(self, kind: Kind, **columns: Sequence[Any]) -> Batch:
        """A batch; columns that are not given are 0, "" or, where a thing may not apply, -1."""
        count = len(next(iter(columns.values())))
        every: dict[str, Any] = {}
        for name in COLUMNS[kind]:
            if name in TEXTS:
                every[name] = self.run.strings.numbers(columns.get(name, [""] * count))
            else:
                every[name] = columns.get(name, [-1 if name in ABSENT else 0] * count)
        return batch(kind, every)

    def kernel(self, start: int = 10, end: int = 20, name: str = "MatMul", **more: Any) -> Batch:
        """One kernel on device 0, stream 2."""
        columns = {"device": 0, "stream": 2, "correlation": 7, "type": "KERNEL_AICORE"} | more
        return self.batch(
            Kind.KERNEL, start=[start], end=[end], name=[name], **{key: [one] for key, one in columns.items()}
        )

    def marks(self, *rows: tuple[Flag, Side, int, int, str, str]) -> Batch:
        """Marker records: flag, side, time, id, name, domain. The host's are of process 42, thread 43; the device's of
        device 5, stream 6."""
        flag, side, time, number, name, domain = zip(*rows, strict=True)
        host = np.array(side) == Side.HOST
        place = {"process": (42, -1), "thread": (43, -1), "device": (-1, 5), "stream": (-1, 6)}
        columns = {key: np.where(host, *values).tolist() for key, values in place.items()}
        return self.batch(Kind.MARKER, flag=flag, side=side, time=time, id=number, name=name, domain=domain, **columns)

    def four(self, number: int = 9, name: str = "forward", domain: str = "train", at: int = 100) -> Batch:
        """A range on host and device: host from `at` for 50 ns, device from at + 10 for 60."""
        return self.marks(
            (Flag.START_WITH_DEVICE, Side.HOST, at, number, name, domain),
            (Flag.START_WITH_DEVICE, Side.DEVICE, at + 10, number, "", ""),
            (Flag.END_WITH_DEVICE, Side.HOST, at + 50, number, "", ""),
            (Flag.END_WITH_DEVICE, Side.DEVICE, at + 70, number, "", ""),
        )

    def one_of_each(self) -> list[Batch]:
        """One record of every kind, and a range of four."""
        call = {
            "start": [10],
            "end": [20],
            "process": [42],
            "thread": [43],
            "correlation": [7],
            "name": ["aclnnMatmul"],
        }
        memory = {"bytes": [64], "start": [10], "end": [20], "device": [0], "stream": [2], "correlation": [7]}
        return [
            *(self.batch(kind, **call) for kind in (Kind.API, Kind.ACL_API, Kind.NODE_API, Kind.RUNTIME_API)),
            self.kernel(),
            self.batch(Kind.HCCL, start=[10], end=[20], device=[0], stream=[2], bandwidth=[1.5], name=["x"], comm=["y"]),
            self.batch(Kind.MEMORY, operation=[0], memory=[1], process=[42], address=[4096], **memory),
            self.batch(Kind.MEMSET, value=[1], asynchronous=[1], **memory),
            self.batch(Kind.MEMCPY, direction=[2], asynchronous=[1], **memory),
            self.batch(
                Kind.COMMUNICATION, data_type=[4], count=[1 << 20], device=[0], stream=[3], start=[30], end=[40],
                algorithm=["MESH"], name=["allreduce"], comm=["hccl_world_group"], correlation=[8],
            ),
            self.four(),
        ]  # fmt: skip


def many_kernels(maker: Maker, count: int, names: int = 300, begin: int = 1_700_000_000_000_000_000) -> Batch:
    """Kernels one after the other, some of many names, on four streams of device 0."""
    random = np.random.default_rng(0)
    start = begin + np.arange(count) * 1000
    texts = maker.run.strings.numbers(f"aclnnOperator_{number}" for number in range(names))
    kinds = maker.run.strings.numbers(["KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_AICPU"])
    return batch(
        Kind.KERNEL,
        {
            "start": start, "end": start + random.integers(100, 900, count), "device": np.zeros(count, np.int64),
            "stream": random.integers(0, 4, count), "correlation": np.arange(count),
            "type": kinds[random.integers(0, 3, count)], "name": texts[random.integers(0, names, count)],
        },
    )  # fmt: skip


def many_calls(maker: Maker, count: int, names: int = 300, begin: int = 1_700_000_000_000_000_000) -> Batch:
    """Calls one after the other on two threads."""
    random = np.random.default_rng(1)
    start = begin + np.arange(count) * 1000
    texts = maker.run.strings.numbers(f"aclrtCall_{number}" for number in range(names))
    return batch(
        Kind.RUNTIME_API,
        {
            "start": start, "end": start + random.integers(100, 900, count), "process": np.full(count, maker.run.pid),
            "thread": random.integers(1000, 1002, count), "correlation": np.arange(count),
            "name": texts[random.integers(0, names, count)],
        },
    )  # fmt: skip
