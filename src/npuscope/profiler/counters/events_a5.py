"""The events of A5 (opprof.md 5.2).

How A5 divides its L2 cache into a close and a far half is not published; the model has one half, the close one.
"""

from __future__ import annotations

from npuscope.profiler.counters.event import Event
from npuscope.profiler.counters.events_a2 import MODEL_HAS_NONE, conflict_free, lines, lost
from npuscope.profiler.counters.events_common import (
    AIC,
    AIV,
    SCALAR_BUSY_RULE,
    SCALAR_WAIT_RULE,
    busy,
    instructions,
    moved,
    scalar,
    simt_only,
    unit,
    waiting,
)
from npuscope.profiler.counters.reader import SCALAR_LANES, VECTOR_LANES
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane


def far(number: int, meaning: str) -> Event:
    """What the far half of L2 did."""
    return Event(number, meaning, f"{MODEL_HAS_NONE} (no far half)", lambda reader: reader.unmodelled())


EVENTS_A5 = (
    Event(
        0, "scalar instructions", "slices of lanes SCALAR and SCALARLDST; a trace has no row for plain arithmetic",
        lambda reader: reader.instructions(*SCALAR_LANES),
    ),
    Event(1, "scalar busy cycles", SCALAR_BUSY_RULE, lambda reader: reader.scalar_busy()),
    Event(10, "scalar wait cycles", SCALAR_WAIT_RULE, lambda reader: reader.scalar_wait()),
    waiting(11, "cube", AIC),
    waiting(12, "vector unit", AIV),
    waiting(13, "MTE1", AIC),
    waiting(14, "MTE2"),
    waiting(15, "MTE3"),
    waiting(36, "FIXP", AIC),
    scalar(52, "instruction cache requests", "icache_requests"),
    scalar(53, "instruction cache misses", "icache_misses"),
    instructions(512, "MTE2"),
    instructions(513, "MTE3"),
    busy(514, "MTE2"),
    busy(515, "MTE3"),
    moved(516, "MTE writes to UB", None, Space.UB, 128, AIV, Lane.MTE2),
    moved(518, "MTE reads of UB", Space.UB, None, 128, AIV, Lane.MTE3),
    instructions(768, "cube", AIC),
    Event(
        772, "L0A reads of 64 bytes", "8 for each of the `steps` of lane CUBE in the table of units",
        lambda reader: reader.units.fractals() * 8, AIC,
    ),
    Event(
        774, "L0B reads of 256 bytes", "2 for each of the `steps` of lane CUBE in the table of units",
        lambda reader: reader.units.fractals() * 2, AIC,
    ),
    unit(776, "L0C writes by the cube", Lane.CUBE, "written", 1024, AIC),
    unit(778, "L0C reads by the cube", Lane.CUBE, "read", 1024, AIC),
    Event(
        789, "fp MMAD instructions", "multiplications of lane CUBE over 4096, rounded up for each instruction",
        lambda reader: reader.units.multiplications(False), AIC,
    ),
    Event(
        790, "int MMAD instructions", "multiplications of lane CUBE over 8192, rounded up for each instruction",
        lambda reader: reader.units.multiplications(True), AIC,
    ),
    Event(
        808, "cube cycles, floating point", "cycles that slices of lane CUBE cover, those of floating-point types",
        lambda reader: reader.cube_busy(False), AIC,
    ),
    Event(
        809, "cube cycles, integers", "cycles that slices of lane CUBE cover, those of integer types",
        lambda reader: reader.cube_busy(True), AIC,
    ),
    busy(810, "cube", AIC),
    Event(
        1058, "words of 128 bytes read from L2", "bytes from GM over 128, rounded up for each stretch of data",
        lambda reader: reader.flows.beats(Space.GM, None),
    ),
    Event(
        1059, "words of 128 bytes written to L2", "bytes to GM over 128, rounded up for each stretch of data",
        lambda reader: reader.flows.beats(None, Space.GM),
    ),
    lines(1060, "L2 read hits, close half", "hits", Space.GM, None),
    lines(1061, "L2 read misses, close half", "misses", Space.GM, None),
    lines(1062, "L2 read victims, close half", "victims", Space.GM, None),
    far(1063, "L2 read hits, far half"),
    far(1064, "L2 read misses, far half"),
    far(1065, "L2 read victims, far half"),
    lines(1066, "L2 write hits, close half", "hits", None, Space.GM),
    lines(1067, "L2 write misses, close half", "misses", None, Space.GM),
    lines(1068, "L2 write victims, close half", "victims", None, Space.GM),
    far(1069, "L2 write hits, far half"),
    far(1070, "L2 write misses, far half"),
    far(1071, "L2 write victims, far half"),
    Event(
        1281, "vector unit busy cycles", "cycles that slices of VECTOR and the RVEC lanes cover, waits left out",
        lambda reader: reader.busy(*VECTOR_LANES), AIV,
    ),
    Event(
        1282, "cycles of vector functions", "those of event 1281 without those of event 1284",
        lambda reader: reader.busy(*VECTOR_LANES) - reader.simt_busy(), AIV,
    ),
    Event(
        1283, "cycles of the special function unit", "cycles that slices of exp, ln, sqrt and div cover",
        lambda reader: reader.special_busy(), AIV,
    ),
    Event(
        1284, "cycles of SIMT functions", "cycles that slices with a warp cover", lambda reader: reader.simt_busy(), AIV
    ),
    lost(1344, "conflict cycles of the load unit", "bank_group"),
    lost(1366, "conflict cycles of the store unit", "bank"),
    conflict_free(1376, "conflict cycles of the special function unit, part 0"),
    conflict_free(1377, "conflict cycles of the special function unit, part 1"),
    conflict_free(1378, "conflict cycles of the special function unit, part 2"),
    conflict_free(1379, "conflict cycles of the special function unit, part 3"),
    unit(1393, "UB to vector requests", Lane.VECTOR, "read", 256, AIV),
    unit(1394, "vector to UB requests", Lane.VECTOR, "written", 256, AIV),
    simt_only(1395, "DCache to vector requests, LDG"),
    simt_only(1396, "DCache to vector requests, LDK"),
    simt_only(1397, "vector to DCache requests, STG"),
    simt_only(1398, "vector to DCache requests, STK"),
    simt_only(1400, "vector to DCache requests, others"),
    simt_only(1404, "requests between vector unit and DCache, atomic"),
    simt_only(1407, "DCache misses, LDG: words of 128 bytes from GM"),
    simt_only(1408, "DCache misses, LDK: words of 128 bytes from GM"),
    simt_only(1466, "SIMT issue, EXU"),
    simt_only(1467, "SIMT issue, DVG"),
    simt_only(1468, "SIMT issue, DCU"),
    instructions(1792, "MTE1", AIC),
    busy(1794, "MTE1", AIC),
    moved(1795, "L0A writes", None, Space.L0A, 256, AIC),
    moved(1797, "L0B writes", None, Space.L0B, 256, AIC),
    moved(1799, "L1 reads", Space.L1, None, 256, AIC),
    moved(1801, "L1 writes", None, Space.L1, 128, AIC),
    Event(
        1804, "FIXP to UB requests, vector core 0", "bytes from L0C to UB over 128; of both vector cores together",
        lambda reader: reader.flows.requests(Space.L0C, Space.UB, 128), AIC,
    ),
    moved(1806, "FIXP to L1 requests", Space.L0C, Space.L1, 128, AIC),
    busy(1812, "FIXP", AIC),
    instructions(1813, "FIXP", AIC),
    Event(
        1815, "FIXP to UB requests, vector core 1", "0: counted with event 1804",
        lambda reader: reader.flows.requests(Space.L0C, Space.UB, 128) * 0, AIC,
    ),
)  # fmt: skip
