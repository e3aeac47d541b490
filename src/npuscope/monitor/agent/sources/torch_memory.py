"""Allocations and releases, out of the tree that PyTorch's profiler makes of a window's records."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings

ALLOCATION, RELEASE = 0, 1
UNKNOWN, DEVICE = 0, 1
"""Operations and kinds of memory as the vendor's header numbers them; it has no number for the host's memory."""
EACH = 512
PAUSE_SECONDS = 0.0005


def allocations(result: Any, strings: Strings) -> Iterator[Batch]:
    """One record for each; an instant, because PyTorch does not tell how long it took. Host memory has device -1."""
    found = sorted(_found(result), key=lambda event: event.start_time_ns)
    if not found:
        return
    facts = [event.extra_fields for event in found]
    sizes = np.array([one.alloc_size for one in facts], np.int64)
    on_host = np.array([one.device.type == "cpu" for one in facts])
    times = np.array([event.start_time_ns for event in found], np.int64)
    yield batch(
        Kind.MEMORY,
        {
            "operation": np.where(sizes < 0, RELEASE, ALLOCATION), "memory": np.where(on_host, UNKNOWN, DEVICE),
            "correlation": [event.parent.correlation_id if event.parent else 0 for event in found],
            "start": times, "end": times, "address": [one.ptr or 0 for one in facts], "bytes": np.abs(sizes),
            "process": np.full(len(found), os.getpid()),
            "device": [-1 if one.device.type == "cpu" else max(one.device.index or 0, 0) for one in facts],
            "stream": np.full(len(found), -1),
        },
    )  # fmt: skip


def _found(result: Any) -> Iterator[Any]:
    """The allocations among the records, in no order."""
    waiting = list(result.experimental_event_tree())
    seen = 0
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag.name == "Allocation":
            yield event
        seen += 1
        if seen % EACH == 0:
            time.sleep(PAUSE_SECONDS)
