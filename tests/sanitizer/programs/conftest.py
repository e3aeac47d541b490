"""The bench on which Triton kernels are launched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from programs.tile_bench import Bench

_bench: list[Bench] = []


@pytest.fixture
def bench() -> Iterator[Bench]:
    """The process's only bench; Triton and torch are needed."""
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    if not _bench:
        _bench.append(Bench())
    _bench[0].install()
    yield _bench[0]
    torch.set_num_threads(threads)
