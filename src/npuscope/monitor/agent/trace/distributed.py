"""Who this process is in a parallel job, as a trace's metadata tell it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from npuscope.monitor.agent.groups import parallel_groups
from npuscope.monitor.agent.rank import initialised, rank


def whereabouts(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """`rank` (-1 when unknown), `world_size`, `backend` ("" without torch.distributed), `local_rank` and
    `parallel_group_info`, the last as the vendor lays it out. Never imports torch."""
    size, backend = _whole(environment.get("WORLD_SIZE"), 1), ""
    distributed = initialised()
    try:
        if distributed is not None:
            size, backend = int(distributed.get_world_size()), str(distributed.get_backend())
    except Exception:  # it is being torn down: the environment has to do
        pass
    groups = parallel_groups()
    return {
        "rank": rank(environment),
        "world_size": size,
        "backend": backend,
        "local_rank": _whole(environment.get("LOCAL_RANK"), -1),
        "parallel_group_info": json.loads(groups) if groups else {},
    }


def _whole(word: str | None, default: int) -> int:
    word = (word or "").strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else default
