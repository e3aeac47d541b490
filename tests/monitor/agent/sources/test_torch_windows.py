"""Windows in which a GPU's work is recorded: without a GPU they stay empty, but open, close and make way all the same."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from training import wait_until

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_windows
from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_windows import TorchWindows

KERNELS = frozenset({Kind.KERNEL})
SECONDS = 60.0


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchWindows]:
    """Windows that follow each other quickly."""
    monkeypatch.setattr(torch_windows, "LENGTH", 0.02)
    one = TorchWindows()
    yield one
    one.stop()
    assert not any(thread.name == torch_windows.NAME for thread in threading.enumerate())


def products(times: int) -> int:
    """How many `aten::mm` the job's own profiler sees of so many."""
    with torch.profiler.profile() as own:
        for _ in range(times):
            torch.mm(torch.ones(4, 4), torch.ones(4, 4))
    return Counter(event.name for event in own.events())["aten::mm"]


def test_the_jobs_own_profiler_begins_when_the_window_is_closed(windows: TorchWindows) -> None:
    got: list[Batch] = []
    windows.start(KERNELS, Strings(), got.append, wait=False)
    wait_until(lambda: windows.losses.get(torch_windows.BETWEEN, 0) > 2, SECONDS)
    for _ in range(3):
        assert products(3) == 3
        wait_until(lambda: not windows._closed.is_set(), SECONDS)
    windows.flush()
    windows.stop()
    assert windows.losses[torch_windows.OTHER] == 3
    assert not got
    assert not torch._C._autograd._profiler_enabled()


def test_where_the_jobs_own_profiler_runs_there_is_no_window(windows: TorchWindows) -> None:
    with torch.profiler.profile():
        with pytest.raises(Unavailable, match="only one"):
            windows.start(KERNELS, Strings(), list[Batch]().append, wait=False)
        windows.start(KERNELS, Strings(), list[Batch]().append, wait=True)
        assert windows._closed.is_set()
    wait_until(lambda: not windows._closed.is_set(), SECONDS)
