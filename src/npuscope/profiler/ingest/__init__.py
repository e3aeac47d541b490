"""Dumps of vendor simulators: read into timelines, and written from them."""

from __future__ import annotations

from npuscope.profiler.ingest.reader import read_dumps
from npuscope.profiler.ingest.writer import write_dumps

__all__ = ["read_dumps", "write_dumps"]
