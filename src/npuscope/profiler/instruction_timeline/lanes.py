"""Names, order and colours of the lanes that slices are drawn on (opprof.md 2.6)."""

from __future__ import annotations

from npuscope.trace.timeline import Lane

PALETTE = (
    "thread_state_runnable",
    "good",
    "thread_state_iowait",
    "thread_state_unknown",
    "heap_dump_child_node_arrow",
    "thread_state_running",
    "startup",
    "background_memory_dump",
    "rail_response",
    "thread_state_uninterruptible",
    "heap_dump_object_type",
    "cq_build_attempt_passed",
)
"""The colour names that the viewer knows, in its order."""

SORT = {
    Lane.SCALAR: 1,
    Lane.FLOWCTRL: 2,
    Lane.MTE1: 3,
    Lane.CUBE: 4,
    Lane.FIXP: 5,
    Lane.MTE2: 6,
    Lane.VECTOR: 7,
    Lane.MTE3: 8,
    Lane.CACHEMISS: 9,
    Lane.SCALARLDST: 10,
    Lane.ALL: 11,
    Lane.USERMARK: 12,
    Lane.EVENT: 13,
    Lane.RVECEX: 18,
    Lane.RVECLP: 19,
    Lane.RVECST: 20,
    Lane.RVECLD: 21,
    Lane.RVECSU: 23,
}
"""Where a lane stands below its core, from the top."""

PROCESS = {
    Lane.SCALAR: 10,
    Lane.SCALARLDST: 20,
    Lane.VECTOR: 30,
    Lane.CUBE: 40,
    Lane.MTE1: 50,
    Lane.MTE2: 60,
    Lane.MTE3: 70,
    Lane.FIXP: 80,
    Lane.FLOWCTRL: 90,
    Lane.ALL: 100,
    Lane.CACHEMISS: 110,
    Lane.USERMARK: 120,
    Lane.EVENT: 130,
    Lane.RVECEX: 140,
    Lane.RVECLD: 150,
    Lane.RVECST: 160,
    Lane.RVECLP: 170,
    Lane.RVECSU: 180,
}
"""The pid of a lane in the trace of a single core. The vendor numbers the first twelve."""

WARP_SORT, WARP_PROCESS = 100, 200
"""What the number of a warp is added to for its place and its pid."""

COLOUR = {
    Lane.SCALAR: "startup",
    Lane.FLOWCTRL: "thread_state_runnable",
    Lane.MTE1: "thread_state_iowait",
    Lane.CUBE: "rail_response",
    Lane.FIXP: "thread_state_unknown",
    Lane.MTE2: "good",
    Lane.VECTOR: "thread_state_running",
    Lane.MTE3: "background_memory_dump",
    Lane.CACHEMISS: "thread_state_uninterruptible",
    Lane.SCALARLDST: "cq_build_attempt_passed",
    Lane.ALL: "heap_dump_object_type",
    Lane.USERMARK: "heap_dump_child_node_arrow",
}
FLAG_COLOUR = "thread_state_uninterruptible"


def lane_colour(lane: Lane) -> str:
    """The colour of a lane's slices."""
    return COLOUR.get(lane, "thread_state_unknown")


def colour(number: int) -> str:
    """A colour for the thing of that number."""
    return PALETTE[number % len(PALETTE)]


def core_sort(name: str) -> int:
    """Where a core stands, from its name: ``core3.cubecore0`` 10, ``core3.veccore1`` 12."""
    head, _, kind = name.partition(".")
    core = int(head.removeprefix("core"))
    return core * 3 + (2 + int(kind.removeprefix("veccore")) if kind.startswith("veccore") else 1)
