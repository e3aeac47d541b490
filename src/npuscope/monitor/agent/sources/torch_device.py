"""A GPU's kernels, copies and sets, out of the records of PyTorch's profiler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings

TYPE = "KERNEL"
"""PyTorch tells no type of a kernel."""
DIRECTIONS = {"HtoH": 1, "HtoD": 2, "DtoH": 3, "DtoD": 4}
"""As the vendor's header numbers them; 0 is unknown."""


def kernels(events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    """Kernels but collectives."""
    numbers = [strings.number(TYPE)] * len(events)
    return batch(Kind.KERNEL, {**_places(events), "type": numbers, "name": strings.numbers(names)})


def copies(events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    """Copies, with the direction out of names such as `Memcpy HtoD (Pinned -> Device)`."""
    directions = [next((number for text, number in DIRECTIONS.items() if text in name), 0) for name in names]
    return batch(Kind.MEMCPY, {"direction": directions, **_sizes(events), **_places(events)})


def sets(events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    """Sets; PyTorch does not tell the value."""
    return batch(Kind.MEMSET, {"value": [0] * len(events), **_sizes(events), **_places(events)})


def _places(events: Sequence[Any]) -> dict[str, list[int]]:
    return {
        "start": [event.start_ns() for event in events], "end": [event.end_ns() for event in events],
        "device": [event.device_index() for event in events],
        "stream": [event.device_resource_id() for event in events],
        "correlation": [event.correlation_id() for event in events],
    }  # fmt: skip


def _sizes(events: Sequence[Any]) -> dict[str, list[int]]:
    found = [re.search(r'"bytes":\s*(\d+)', event.metadata_json()) for event in events]
    return {"bytes": [int(one[1]) if one else 0 for one in found], "asynchronous": [0] * len(events)}
