"""A GPU's kernels, collectives, copies and sets, out of the records of PyTorch's profiler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.torch_collectives import only_group
from npuscope.monitor.agent.sources.torch_types import number_of_type

TYPE = "KERNEL"
"""PyTorch tells no type of a kernel."""
COLLECTIVE = "nccl"
"""How the kernels of collectives begin."""
DIRECTIONS = {"HtoH": 1, "HtoD": 2, "DtoH": 3, "DtoD": 4}
"""As the vendor's header numbers them; 0 is unknown."""


def kernels(events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    """Kernels but collectives."""
    numbers = [strings.number(TYPE)] * len(events)
    return batch(Kind.KERNEL, {**_places(events), "type": numbers, "name": strings.numbers(names)})


def device_collectives(events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    """Collectives that are kernels. A count, a type or a group that PyTorch does not tell is 0, INVALID_TYPE, or the
    backend's name."""
    told = [event.metadata_json() for event in events]
    only = only_group(COLLECTIVE)
    return batch(
        Kind.COMMUNICATION,
        {
            **_places(events), "data_type": [number_of_type(_word(one, "dtype")) for one in told],
            "count": [int(_word(one, "In msg nelems") or 0) for one in told],
            "algorithm": strings.numbers("" for _ in told), "name": strings.numbers(names),
            "comm": strings.numbers(_word(one, "Process Group Name") or only for one in told),
        },
    )  # fmt: skip


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


def _word(told: str, key: str) -> str:
    """A value out of the members of a JSON object."""
    found = re.search(rf'"{re.escape(key)}":\s*"?([^",}}]*)', told)
    return found[1].strip() if found else ""
