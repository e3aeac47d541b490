"""Process groups as files name them: real ones of gloo, and what is asked of an hccl group, at that seam."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from npuscope.monitor.agent import groups

GLOO = """
import sys
import torch.distributed as dist
from npuscope.monitor.agent.groups import parallel_groups

assert parallel_groups() == ""
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(sys.argv[2]), world_size=2)
dist.new_group([0])
dist.new_group([1], group_desc="tail")
print(parallel_groups())
"""


def test_gloo(tmp_path: Any) -> None:
    """Two ranks; each names the group of all and the one of its own, in the vendor's form."""
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", GLOO, str(tmp_path / "meeting"), str(rank)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    first, second = (json.loads(job.communicate(timeout=300)[0]) for job in jobs)
    assert sorted(first.values(), key=lambda group: len(group["global_ranks"])) == [
        {"group_name": next(name for name in first if first[name]["global_ranks"] == [0]), "group_rank": 0,
         "global_ranks": [0]},
        {"group_name": "default_group", "group_rank": 0, "global_ranks": [0, 1]},
    ]  # fmt: skip
    assert {"group_name": "tail", "group_rank": 0, "global_ranks": [1]} in second.values()
    assert {"group_name": "default_group", "group_rank": 1, "global_ranks": [0, 1]} in second.values()


def test_hccl_is_asked_with_the_rank_in_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """And for no new communicator. A torch without torch_npu knows no device of that name."""
    asked = []

    def name(rank: int, init_comm: bool) -> str:
        asked.append((rank, init_comm))
        return "10.0.0.1%eth0_60000_0_1"

    monkeypatch.setattr("torch.device", lambda name: name)
    backend = SimpleNamespace(get_hccl_comm_name=name, options=SimpleNamespace(hccl_config={"group_name": "tp"}))
    backends = {"npu": backend}
    group = SimpleNamespace(_get_backend=backends.__getitem__)
    distributed = SimpleNamespace(get_rank=lambda: 5)
    assert groups._of_hccl(distributed, group) == ("10.0.0.1%eth0_60000_0_1", "tp") and asked == [(5, False)]
    assert groups._of_hccl(distributed, SimpleNamespace(_get_backend={}.__getitem__)) == ("", "")
