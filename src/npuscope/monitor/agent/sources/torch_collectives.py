"""Collectives as PyTorch's profiler reports them: gloo's and MPI's as ranges on the host, NCCL's as kernels."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import Any

from npuscope.monitor.activity.batch import Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings

ON_HOST = ("gloo:", "mpi:")
"""How the ranges of backends begin whose work the host does; NCCL's ranges say only when the work was enqueued."""
ON_DEVICE = "nccl"
INVALID_TYPE = 65535
DATA_TYPES = {
    "signed char": 0, "short": 1, "short int": 1, "int": 2, "c10::half": 3, "float": 4, "long": 5, "long int": 5,
    "unsigned char": 7, "double": 10, "c10::bfloat16": 11,
    "char": 0, "half": 3, "byte": 7, "bfloat16": 11,
}  # fmt: skip
"""Our numbers by the names that PyTorch gives types, of the host's records first, then of NCCL's; in small letters."""


def is_collective(name: str, type_: str) -> bool:
    """Whether a record is a collective's, by its name and PyTorch's type."""
    if type_ == "user_annotation":
        return name.startswith(ON_HOST)
    return type_ == "kernel" and name.startswith(ON_DEVICE)


def collectives(events: Sequence[Any], names: Sequence[str], strings: Strings) -> Batch:
    """Records of collectives. Those of the host have device and stream -1. `count` is of elements that go in; a type
    or a group that PyTorch does not tell is INVALID_TYPE, or the backend's name."""
    rows = [_on_host(event, name) if name.startswith(ON_HOST) else _on_device(event) for event, name in
            zip(events, names, strict=True)]  # fmt: skip
    types, counts, devices, streams, groups = zip(*rows, strict=True)
    return batch(
        Kind.COMMUNICATION,
        {
            "data_type": types, "count": counts, "device": devices, "stream": streams,
            "start": [event.start_ns() for event in events], "end": [event.end_ns() for event in events],
            "algorithm": strings.numbers([""] * len(rows)), "name": strings.numbers(names),
            "comm": strings.numbers(groups), "correlation": [event.correlation_id() for event in events],
        },
    )  # fmt: skip


def _on_host(event: Any, name: str) -> tuple[int, int, int, int, str]:
    shapes = event.shapes()
    kinds = [DATA_TYPES.get(one.lower(), INVALID_TYPE) for one in event.dtypes()[:1]]
    return (kinds or [INVALID_TYPE])[0], sum(map(math.prod, shapes)), -1, -1, only_group(name.partition(":")[0])


def _on_device(event: Any) -> tuple[int, int, int, int, str]:
    told = event.metadata_json()
    data_type = DATA_TYPES.get(_word(told, "dtype").lower(), INVALID_TYPE)
    count = _word(told, "In msg nelems")
    group = _word(told, "Process Group Name") or only_group(ON_DEVICE)
    return data_type, int(count or 0), event.device_index(), event.device_resource_id(), group


def _word(told: str, key: str) -> str:
    """A value out of the members of a JSON object."""
    found = re.search(rf'"{re.escape(key)}":\s*"?([^",}}]*)', told)
    return found[1].strip() if found else ""


def only_group(backend: str) -> str:
    """The name of the process group, when there is one group of the backend only; else the backend's name, because
    PyTorch does not say which group a collective of the host belongs to."""
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    if world is None:
        return backend
    groups = [group for group, (its, _) in dict(world.pg_map).items() if backend in str(its)]
    return str(world.pg_names.get(groups[0], backend)) if len(groups) == 1 else backend
