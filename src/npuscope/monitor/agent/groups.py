"""The process groups of a job, as files name them: `parallel_group_info`."""

from __future__ import annotations

import json
from typing import Any

from npuscope.monitor.agent.rank import initialised

DEFAULT = "default_group"


def parallel_groups() -> str:
    """For each communicator of torch.distributed in which this process takes part: its name, this process's place and
    the global ranks, as JSON; "" where there is none. The vendor's plug-in tells of HCCL only; a group of any other
    backend is as good to know."""
    distributed = initialised()
    if distributed is None:
        return ""
    known = getattr(distributed.distributed_c10d, "_world", None)
    found: dict[str, Any] = {}
    for group in list(getattr(known, "pg_map", {})):
        described = _described(distributed, group)
        if described:
            found[described[0]] = described[1]
    return json.dumps(found, separators=(",", ":")) if found else ""


def _described(distributed: Any, group: Any) -> tuple[str, dict[str, Any]] | None:
    """The communicator's name and what is known of a group; None for one that cannot be asked."""
    try:
        ranks = [int(rank) for rank in distributed.get_process_group_ranks(group)]
        rank = int(distributed.get_rank(group))
        default = group is distributed.group.WORLD
        name = str(group.group_name)
        desc = str(getattr(group, "group_desc", "") or name)
        communicator, title = _of_hccl(distributed, group)
        desc = title or (desc if desc != "undefined" else name)
        return communicator or name, {
            "group_name": DEFAULT if default else desc,
            "group_rank": rank,
            "global_ranks": ranks,
        }
    except Exception:  # it is being torn down
        return None


def _of_hccl(distributed: Any, group: Any) -> tuple[str, str]:
    """What records of HCCL call the group, and what the job calls it; "" each with another backend, or where there has
    been no communication yet. The library wants the rank in the job, not in the group."""
    try:
        import torch

        backend = group._get_backend(torch.device("npu"))
        communicator = str(backend.get_hccl_comm_name(distributed.get_rank(), init_comm=False) or "")
        return communicator, str(backend.options.hccl_config.get("group_name", "") or "")
    except Exception:
        return "", ""
