"""The bench on which Triton kernels are launched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from programs.tile_bench import Bench, the_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """The process's only bench; Triton and torch are needed."""
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield the_bench()
    torch.set_num_threads(threads)
