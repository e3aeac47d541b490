"""Benches for the tests of the agent's parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent.parts import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A collector on its own."""
    return Bench(tmp_path)
