"""The process groups of a job, in the form in which the vendor's files have them: `parallel_group_info`."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import orjson

from npuscope.monitor.agent.rank import initialised

DEFAULT = "default_group"
"""What the vendor's plug-in calls the group of all ranks."""


def parallel_groups() -> str:
    """The groups of torch.distributed that this rank is in, as JSON: by the name of the communicator, `group_name`,
    `group_rank` and `global_ranks`; "" where there are none. Never imports torch, never makes a communicator.

    The vendor's plug-in names hccl groups only; gloo, nccl and the others are here too, under the name that
    PyTorch's own profiler has for them.
    """
    distributed = initialised()
    module = sys.modules.get("torch.distributed.distributed_c10d")
    world = getattr(module, "_world", None)
    if distributed is None or world is None:
        return ""
    found: dict[str, dict[str, Any]] = {}
    rank = distributed.get_rank()
    for group, ranks in dict(world.pg_group_ranks).items():
        with contextlib.suppress(Exception):  # a group that is being torn down
            if rank in ranks:
                name = str(world.pg_names.get(group, ""))
                found[_communicator(group, rank, name)] = _described(distributed, group, ranks, rank, name)
    return orjson.dumps(found).decode() if found else ""


def _described(distributed: Any, group: Any, ranks: dict[int, int], rank: int, name: str) -> dict[str, Any]:
    by_place = sorted(ranks, key=ranks.__getitem__)
    title = DEFAULT if group is distributed.group.WORLD else name
    return {"group_name": title, "group_rank": ranks[rank], "global_ranks": by_place}


def _communicator(group: Any, rank: int, name: str) -> str:
    """What records of collectives call the group: for hccl the name that the library gave its communicator, which is
    asked for only where there is one already."""
    with contextlib.suppress(Exception):
        import torch

        backend = group._get_backend(torch.device("npu"))
        found = backend.get_hccl_comm_name(rank, init_comm=False)
        if found:
            return str(found)
    return name
