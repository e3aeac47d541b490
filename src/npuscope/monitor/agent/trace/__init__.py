"""Traces of a training process on demand: what `dyno nputrace` asks for, taken by PyTorch's own profiler.

`Tracer` runs inside the process and writes raw data; `parsing` makes the deliverables from a folder of raw data, in
the process itself or in one of its own (`parse`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuscope.monitor.agent.trace.tracer import Tracer

__all__ = ["Tracer"]


def __getattr__(name: str) -> Any:
    # The parser's process comes by here as well, and needs none of it.
    if name == "Tracer":
        from npuscope.monitor.agent.trace.tracer import Tracer

        return Tracer
    raise AttributeError(name)
