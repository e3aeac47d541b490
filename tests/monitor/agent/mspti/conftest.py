"""A source over the library that is built from C."""

from __future__ import annotations

from collections.abc import Iterator

import activity_library
import pytest
from activity_collection import Collection

from npuscope.monitor.agent.sources import mspti


@pytest.fixture
def collection(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    made = Collection()
    made.library.c.fake_reset()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(activity_library.built().parent))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(mspti, "_FLUSHING", 120)  # however busy the machine is
    yield made
    made.gate.set()
    made.source.stop()


@pytest.fixture
def fresh(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection in a process that has learned nothing of the library yet."""
    monkeypatch.setattr(mspti, "_process", None)
    return collection
