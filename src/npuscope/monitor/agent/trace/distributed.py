"""Who this process is in a parallel job, as a trace's metadata tell it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

DEFAULT_GROUP = "default_group"


def whereabouts(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """`rank` (-1 when unknown), `world_size`, `backend`, `local_rank` and `groups`, the last as the vendor's
    `parallel_group_info` lays them out. Never imports torch."""
    module = sys.modules.get("torch.distributed")
    try:
        if module is not None and module.is_available() and module.is_initialized():
            return {
                "rank": int(module.get_rank()),
                "world_size": int(module.get_world_size()),
                "backend": str(module.get_backend()),
                "local_rank": _whole(environment.get("LOCAL_RANK"), -1),
                "groups": _groups(module),
            }
    except Exception:  # it is being set up or torn down: the environment has to do
        pass
    rank = _whole(environment.get("RANK"), _whole(environment.get("RANK_ID"), -1))
    return {
        "rank": rank,
        "world_size": _whole(environment.get("WORLD_SIZE"), 1),
        "backend": "",
        "local_rank": _whole(environment.get("LOCAL_RANK"), -1),
        "groups": {},
    }


def _groups(module: Any) -> dict[str, dict[str, Any]]:
    world = sys.modules["torch.distributed.distributed_c10d"]._world
    found = {}
    for group, name in list(world.pg_names.items()):
        ranks = [int(rank) for rank in module.get_process_group_ranks(group)]
        found[str(name)] = {
            "group_name": DEFAULT_GROUP if group is world.default_pg else str(getattr(group, "group_desc", name)),
            "group_rank": int(module.get_rank(group)),
            "global_ranks": ranks,
        }
    return found


def _whole(word: str | None, default: int) -> int:
    word = (word or "").strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else default
