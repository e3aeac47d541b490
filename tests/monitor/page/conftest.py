"""Daemons with a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page_running import Paged, running


@pytest.fixture(scope="module")
def page() -> Iterator[Paged]:
    """A daemon with a page, the same for all tests of a file."""
    with running() as paged:
        yield paged
