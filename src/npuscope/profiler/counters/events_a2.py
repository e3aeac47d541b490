"""The events of A2 and A3 (opprof.md 5.1)."""

from __future__ import annotations

from npuscope.profiler.counters.event import Event
from npuscope.profiler.counters.events_common import (
    AIC,
    AIV,
    SCALAR_BUSY_RULE,
    SCALAR_WAIT_RULE,
    busy,
    instructions,
    moved,
    scalar,
    unit,
    waiting,
)
from npuscope.profiler.counters.vector_kind import VectorKind
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane

PASSES = "elements of lane VECTOR's slices with work of this type over {}, rounded up for each instruction"
MODEL_HAS_NONE = "0: the model's device has none; not known of a vendor simulator"
GM_LINE = 512 // 128
"""Words of 128 bytes in one request of the counter of main-memory writes."""


def vector_work(number: int, meaning: str, lanes: int, *kinds: VectorKind) -> Event:
    """Passes of the vector unit over elements of some types."""
    return Event(number, meaning, PASSES.format(lanes), lambda reader: reader.units.vector_passes(*kinds), AIV)


def lost(number: int, meaning: str, column: str) -> Event:
    """Cycles lost in UB."""
    return Event(number, meaning, f"sum of slice column `{column}`", lambda reader: reader.lost(column), AIV)


def conflict_free(number: int, meaning: str) -> Event:
    """A cost that the model does not have."""
    return Event(number, meaning, MODEL_HAS_NONE, lambda reader: reader.unmodelled(), AIV)


def wait_for_event(number: int, event: int) -> Event:
    """Cycles that the scalar unit waits for one flag."""
    return Event(
        number, f"scalar wait on event id {event}", f"length of the wait slices of lane SCALAR let go by flag {event}",
        lambda reader: reader.wait_for_event(event),
    )  # fmt: skip


def lines(number: int, meaning: str, column: str, source: Space | None, target: Space | None) -> Event:
    """L2 lines of transfers by what became of them."""
    way = "read from" if source is Space.GM else "written to" if target is Space.GM else "moved from or to"
    return Event(
        number, meaning, f"sum of transfer column `{column}` over data {way} GM",
        lambda reader: reader.flows.lines(column, source, target),
    )  # fmt: skip


def words(number: int, port: int, meaning: str, column: str) -> Event:
    """Words of 128 bytes read through one port of L2; the ports take turns."""
    return Event(
        number, meaning, f"words of 128 bytes read from GM that were `{column}`, {'' if port else 'the odd one and '}"
        "every other one", lambda reader: (reader.flows.read_words(column) + (0 if port else 1)) // 2,
    )  # fmt: skip


def never(number: int, meaning: str) -> Event:
    """What the timeline counts elsewhere: a transfer's misses do not say whether the line was allocated."""
    return Event(
        number, meaning, "0: a timeline counts every miss as allocated",
        lambda reader: reader.flows.lines("misses", None, None) * 0,
    )  # fmt: skip


EVENTS_A2 = (
    Event(
        1, "vector instructions, one for each pass of the unit", "sum of the passes of all types",
        lambda reader: reader.units.vector_passes(*VectorKind), AIV,
    ),
    instructions(3, "cube", AIC),
    instructions(4, "MTE1", AIC),
    instructions(5, "MTE2"),
    instructions(6, "MTE3"),
    busy(8, "vector unit", AIV),
    Event(9, "scalar busy cycles", SCALAR_BUSY_RULE, lambda reader: reader.scalar_busy()),
    busy(10, "cube", AIC),
    busy(12, "MTE2"),
    busy(13, "MTE3"),
    Event(
        19, "main-memory write requests of 4 words of 128 bytes", "words of 128 bytes to GM over 4, not rounded",
        lambda reader: reader.flows.beats(None, Space.GM) / GM_LINE, AIC,
    ),
    Event(
        27, "L0A read requests", "`steps` of lane CUBE in the table of units: a fractal of 512 bytes each",
        lambda reader: reader.units.fractals(), AIC,
    ),
    moved(28, "L0A write requests", None, Space.L0A, 256, AIC),
    Event(
        33, "L0B read requests", "`steps` of lane CUBE in the table of units: a fractal of 512 bytes each",
        lambda reader: reader.units.fractals(), AIC,
    ),
    moved(34, "L0B write requests", None, Space.L0B, 128, AIC),
    unit(40, "L0C reads by the cube", Lane.CUBE, "read", 1024, AIC),
    unit(42, "L0C writes by the cube", Lane.CUBE, "written", 1024, AIC),
    moved(49, "L1 to MTE requests", Space.L1, None, 128, AIC),
    Event(
        50, "MTE to L1 requests", "bytes from GM or UB to L1 over 256, and those of event 518",
        lambda reader: reader.flows.requests((Space.GM, Space.UB), Space.L1, 256)
        + reader.flows.requests(Space.L0C, Space.L1, 128), AIC,
    ),
    unit(55, "UB reads by the scalar unit", Lane.SCALAR, "read", 16, AIV),
    unit(56, "UB writes by the scalar unit", Lane.SCALAR, "written", 16, AIV),
    moved(61, "UB to MTE requests", Space.UB, (Space.GM, Space.L1), 128, AIV),
    moved(62, "MTE to UB requests", (Space.GM, Space.L1), Space.UB, 128, AIV),
    unit(67, "UB to vector requests", Lane.VECTOR, "read", 256, AIV),
    unit(68, "vector to UB requests", Lane.VECTOR, "written", 256, AIV),
    Event(
        73, "MMAD executed, floating point", "multiplications of lane CUBE over 4096, rounded up for each instruction",
        lambda reader: reader.units.multiplications(False), AIC,
    ),
    Event(
        74, "MMAD executed, integers", "multiplications of lane CUBE over 8192, rounded up for each instruction",
        lambda reader: reader.units.multiplications(True), AIC,
    ),
    vector_work(75, "fp32 passes of 64, with those of event 76", 64, VectorKind.FP32, VectorKind.FP16_128),
    vector_work(76, "fp16 passes of 128", 128, VectorKind.FP16_128),
    vector_work(77, "fp16 passes of 64: conversions", 64, VectorKind.FP16_64),
    vector_work(78, "int32 passes of 64", 64, VectorKind.INT32),
    vector_work(79, "passes of 32 over other types, and moves", 32, VectorKind.MISC),
    scalar(84, "instruction cache requests", "icache_requests"),
    scalar(85, "instruction cache misses", "icache_misses"),
    Event(87, "scalar wait cycles", SCALAR_WAIT_RULE, lambda reader: reader.scalar_wait()),
    waiting(88, "cube", AIC),
    waiting(89, "vector unit", AIV),
    waiting(90, "MTE1", AIC),
    waiting(91, "MTE2"),
    waiting(92, "MTE3"),
    lost(100, "bank group conflict cycles", "bank_group"),
    lost(101, "bank conflict cycles", "bank"),
    conflict_free(102, "resource conflict cycles of the vector unit"),
    conflict_free(103, "conflict cycles of the vector unit with MTE"),
    scalar(106, "scalar cycles stalled by UB", "stall_ub"),
    scalar(107, "scalar cycles stalled by the full queue of MTE1", "stall_mte1"),
    scalar(108, "scalar cycles stalled by the full queue of MTE2", "stall_mte2"),
    scalar(109, "scalar cycles stalled by the full queue of MTE3", "stall_mte3"),
    scalar(110, "scalar cycles stalled by the full queue of the cube", "stall_cube"),
    scalar(111, "scalar cycles stalled by the full queue of the vector unit", "stall_vector"),
    scalar(112, "scalar cycles with one instruction issued", "single_issue"),
    scalar(113, "scalar cycles with two instructions issued", "dual_issue"),
    scalar(114, "scalar cycles waiting for the instruction buffer", "wait_instruction"),
    lines(156, "L2 lines evicted (event 0x9C of the extra L2 pass)", "victims", None, None),
    vector_work(174, "fp16 passes of 32: exp, ln, sqrt, div", 32, VectorKind.FP16_32),
    vector_work(186, "int16 passes of 128", 128, VectorKind.INT16),
    moved(518, "FIXP to L1 requests", Space.L0C, Space.L1, 128, AIC),
    Event(
        524, "L0C to FIXP requests", "bytes out of L0C over 128, rounded up for each stretch of data",
        lambda reader: reader.flows.requests(Space.L0C, None, 128), AIC,
    ),
    instructions(526, "FIXP", AIC),
    busy(770, "MTE1", AIC),
    busy(771, "FIXP", AIC),
    Event(
        1032, "fp MMAD passes (8192 operations each)", "as event 73",
        lambda reader: reader.units.multiplications(False), AIC,
    ),
    Event(
        1033, "int MMAD passes (16384 operations each)", "as event 74",
        lambda reader: reader.units.multiplications(True), AIC,
    ),
    lines(1280, "L2 write hits, lines", "hits", None, Space.GM),
    lines(1282, "L2 write misses, allocated, lines", "misses", None, Space.GM),
    never(1283, "L2 write misses, not allocated"),
    words(1284, 0, "L2 read hits, port 0", "hits"),
    words(1286, 0, "L2 read misses, port 0, allocated", "misses"),
    never(1287, "L2 read misses, port 0, not allocated"),
    words(1288, 1, "L2 read hits, port 1", "hits"),
    words(1290, 1, "L2 read misses, port 1, allocated", "misses"),
    never(1291, "L2 read misses, port 1, not allocated"),
    Event(
        1292, "words of 128 bytes written to L2", "bytes to GM over 128, rounded up for each stretch of data",
        lambda reader: reader.flows.beats(None, Space.GM),
    ),
    Event(
        1293, "words of 128 bytes read from L2, port 0", "the odd one and every other word of 128 bytes read from GM",
        lambda reader: (reader.flows.beats(Space.GM, None) + 1) // 2,
    ),
    Event(
        1294, "words of 128 bytes read from L2, port 1", "every other word of 128 bytes read from GM",
        lambda reader: reader.flows.beats(Space.GM, None) // 2,
    ),
    *(wait_for_event(1792 + event, event) for event in range(8)),
    *(wait_for_event(1780 + event - 8, event) for event in range(8, 16)),
)  # fmt: skip
"""In the order of their numbers but for the waits on event ids."""
