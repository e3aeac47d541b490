"""The records of the compiled schedule. A record is one pointer to the compiler and a dot to the reader: it compiles
several times faster than as many arrays, and what belongs together lies together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Record = Any
"""One record of an array, in compiled functions."""


def _record(whole: Iterable[str], real: Iterable[str] = (), short: Iterable[str] = ()) -> np.dtype[np.void]:
    """A record of fields of 64 bits, whole numbers and real ones, and of `short` whole numbers, of 32 bits."""
    kinds = ((whole, np.int64), (real, np.float64), (short, np.int32))
    return np.dtype([(name, kind) for names, kind in kinds for name in names], align=True)


CHUNK = 1 << 12
"""Records that are filled or read at a time, so that they stay in the processor's cache."""


def fill(records: np.ndarray, columns: Mapping[str, Any]) -> None:
    """Set fields of an array of records by name, each to an array as long or to a number, and the others to 0."""
    same = np.zeros((), records.dtype)
    fields = [(records[name], column) for name, column in columns.items() if isinstance(column, np.ndarray)]
    for name, column in columns.items():
        if not isinstance(column, np.ndarray):
            same[name] = column
    for first in range(0, records.size, CHUNK):
        part = slice(first, first + CHUNK)
        records[part] = same
        for field, column in fields:
            field[part] = column[part]


UNKNOWN_TIME = -1.0
OP_SHORT = (
    "core", "slot", "kind", "next", "ahead", "line0", "line1", "range", "gm0", "gm1", "dep0", "dep_issued", "dep1",
    "step", "strict", "waiting", "hits", "misses", "victims",
)  # fmt: skip
OP_COSTS = ("hidden", "busy", "latency", "latency_hit", "bytes", "l2_bytes")
OP_TIMES = ("fetch", "control", "issue", "start", "end", "fire")
OP = _record(("place",), (*OP_COSTS, *OP_TIMES), OP_SHORT)
"""An instruction of a launch; they are sorted by core, in the order in which each issues them.

Whole numbers: core; pipe (kinds.PIPES); kinds.Kind; the next op of the same pipe and core, and the one `depth` before
it (-1: none); first and last line of code; row of `ranges` (-1: none); part of the GM accesses; part of the links,
those up to `dep_issued` holding up the scalar unit and the others the pipe; the step; the address of a scalar access
to GM; whether a scalar access to UB waits for the pipes (the compiler's or the library's own flags), or a copy that
waits has its pipe meanwhile (unit flags); the first agent that waits for this op (-1: none); L2 lines that hit,
missed, and were pushed out.

Costs: cycles of the scalar unit before it issues the op; cycles of its pipe; from then to the result, and the same when
L2 had all; bytes moved through GM; those weighed for L2. Times are UNKNOWN_TIME until they are known."""

(K_SCALAR, K_WORK, K_COPY, K_SET, K_WAIT, K_BARRIER, K_DRAIN, K_END, K_LOAD_UB, K_STORE_UB, K_LOAD_GM, K_STORE_GM,
 K_RESULT) = range(13)  # fmt: skip
"""kinds.Kind as plain numbers, which compile faster."""

LINK = _record(("op",), ("delay",))
"""An op that must have fired, and the cycles until that has reached the one that waits."""

RANGES = 4
"""Pairs of (low, past the high) byte in UB of a vector instruction: what it writes, and up to three operands that it
reads; `ranges` is (vector instructions, 2 * RANGES)."""

CORE = _record(
    ("unit", "first_op", "place", "code_lines", "data_lines"),
    ("start", "end", "busy", "wait", "fetch", "stall_ub", "icache", "icache_miss", "dcache_hit", "dcache_miss"),
)
"""The block of a core; its first op (-1: none); which core of the chip it runs on; lines of its instruction cache and
of its data cache; then what the core table of a timeline says, in cycles and accesses."""

AGENT = _record(("next", "last", "queued", "after", "behind", "held"), ("free", "done", "stall"))
"""The scalar unit or a pipe of a core: the op it comes to next; the last op issued to it; whether it is on the list of
those to look at, and who comes after it there; who waits for the same op; whether it waits for one; when it can take
the next op (of a scalar unit: its time); when all it has done is complete; how long its full queue held up the scalar
unit."""

BLOCK = _record(("first", "running"))
"""The first core of a block, and how many of its cores are at work."""

FLOW = _record(("op",), ("left", "lone", "gm", "l2", "writes", "rate", "arrives", "want"))
"""A copy under way: the part that is left (1 at first); cycles that it takes alone; bytes that it asks of GM and of L2;
bytes that it writes; the part done per cycle; when what other copies fetch of it is in L2; bytes per cycle that it
would take of what is being shared out."""

EVENT = _record(("number",), ("time",))
"""Something to come: a copy that can start (the number of its agent), or the end of a block."""

SEEN = _record(("step", "line", "hits", "misses"))
"""Accesses of a step to an L2 line; step + 1, so that 0 is a free place."""

COUNTS = _record(("todo", "flows", "events", "begun", "clock"))
"""The first agent to look at (-1: none); how many copies are under way, events to come, blocks begun, and accesses to
L2 made."""

SETTINGS = _record(
    ("line",),
    ("issue", "icache_miss", "icache_next", "ub_load", "ub_store", "dc_hit", "dc_miss_l2", "dc_miss_gm", "flag",
     "gm_rate", "l2_rate", "write_weight", "overhead", "dispatch"),
)  # fmt: skip
"""Bytes of an L2 line, and facts of the chip in cycles and bytes per cycle."""
