"""The events of 310P (opprof.md 5.3): those of A2 with other sizes of requests, on cores that do everything."""

from __future__ import annotations

from dataclasses import replace

from npuscope.profiler.counters.event import Event
from npuscope.profiler.counters.events_a2 import EVENTS_A2, vector_work
from npuscope.profiler.counters.events_common import busy, moved, unit
from npuscope.profiler.counters.vector_kind import VectorKind
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane

SHARED = (
    1, 3, 4, 5, 6, 8, 9, 10, 12, 13, 27, 33, 34, 40, 42, 55, 56, 73, 74, 76, 77, 84, 85, 87, 88, 89, 90, 91, 92,
    100, 101, 102, 103, 174,
)  # fmt: skip
"""Numbers that mean the same on A2."""

EVENTS_310P: tuple[Event, ...] = tuple(
    replace(event, core=None)
    for event in (
        *(event for event in EVENTS_A2 if event.number in SHARED),
        busy(11, "MTE1"),
        moved(18, "main-memory read requests", Space.GM, None, 512),
        moved(19, "main-memory write requests", None, Space.GM, 512),
        moved(28, "L0A write requests", None, Space.L0A, 512),
        moved(39, "L0C reads by the vector unit", Space.L0C, Space.UB, 256),
        moved(41, "L0C writes by the vector unit", Space.UB, Space.L0C, 256),
        moved(49, "L1 to MTE requests", Space.L1, None, 512),
        moved(50, "MTE to L1 requests", None, Space.L1, 256),
        moved(61, "UB to MTE requests", Space.UB, (Space.GM, Space.L1), 16),
        moved(62, "MTE to UB requests", (Space.GM, Space.L1), Space.UB, 16),
        unit(67, "UB to vector requests", Lane.VECTOR, "read", 32),
        unit(68, "vector to UB requests", Lane.VECTOR, "written", 32),
        vector_work(75, "fp32 passes of 64", 64, VectorKind.FP32),
        vector_work(78, "int32 passes of 16", 16, VectorKind.INT32),
        vector_work(79, "passes of 16 over other types, and moves", 16, VectorKind.MISC),
        vector_work(186, "int16 passes of 32", 32, VectorKind.INT16),
        Event(
            106, "L2 hits", "sum of transfer column `hits`", lambda reader: reader.flows.lines("hits", None, None),
        ),
        Event(
            120, "L2 read requests", "hits and misses of data read from GM",
            lambda reader: reader.flows.lines("hits", Space.GM, None) + reader.flows.lines("misses", Space.GM, None),
        ),
        Event(
            121, "L2 write requests", "hits and misses of data written to GM",
            lambda reader: reader.flows.lines("hits", None, Space.GM) + reader.flows.lines("misses", None, Space.GM),
        ),
    )
)  # fmt: skip
