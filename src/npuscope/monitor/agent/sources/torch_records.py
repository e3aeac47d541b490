"""What PyTorch's profiler gives for a window of a GPU's work, as columns.

Its records are objects of PyTorch's; each column is one pass over them in C. The passes are cut into slices, between
which the job gets the interpreter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.numbered import Numbered
from npuscope.monitor.agent.sources.torch_device import COLLECTIVE, copies, device_collectives, kernels, sets

SLICE = 512
PAUSE_SECONDS = 0.0005

KINDS = {
    "cuda_runtime": Kind.RUNTIME_API, "cuda_driver": Kind.RUNTIME_API, "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY, "gpu_memset": Kind.MEMSET,
}  # fmt: skip
"""Our kinds by PyTorch's types; operators come another way."""
DEVICE = {
    Kind.KERNEL: kernels, Kind.COMMUNICATION: device_collectives, Kind.MEMCPY: copies, Kind.MEMSET: sets,
}  # fmt: skip


def batches(events: Sequence[Any], kinds: frozenset[Kind], strings: Strings) -> Iterator[Batch]:
    """The records of a window, those of `kinds`."""
    for first in range(0, len(events), SLICE):
        yield from _slice(events[first : first + SLICE], kinds, strings)
        time.sleep(PAUSE_SECONDS)


def _slice(events: Sequence[Any], kinds: frozenset[Kind], strings: Strings) -> Iterator[Batch]:
    event = type(events[0])
    names = list(map(event.name, events))
    which = np.fromiter((KINDS.get(one, 0) for one in map(event.activity_type, events)), np.int8, len(names))
    moved = np.fromiter((name.startswith(COLLECTIVE) for name in names), bool, len(names))
    which[moved & (which == Kind.KERNEL)] = Kind.COMMUNICATION
    for kind in kinds:
        rows = np.flatnonzero(which == kind)
        if not rows.size:
            continue
        chosen, called = [events[row] for row in rows], [names[row] for row in rows]
        if kind is Kind.RUNTIME_API:
            yield _calls(event, chosen, called, strings)
        elif kind in DEVICE:
            yield DEVICE[kind](chosen, called, strings)


def _calls(event: Any, events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    def column(method: Any, dtype: type = np.int64) -> NDArray[Any]:
        return np.fromiter(map(method, events), dtype, len(events))

    return batch(
        Kind.RUNTIME_API,
        {
            "start": column(event.start_ns), "end": column(event.end_ns), "process": np.full(len(events), os.getpid()),
            "thread": column(event.device_resource_id), "correlation": column(event.correlation_id, np.uint64),
            "name": Numbered(strings).of(names),
        },
    )  # fmt: skip
