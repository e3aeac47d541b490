"""Synchronisation inside a core: event flags and pipe barriers."""

from __future__ import annotations

from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.sync import SOURCE_PIPE, TARGET_PIPE

SET_FLAG = opcode("set_flag")
WAIT_FLAG = opcode("wait_flag")
BARRIER = opcode("pipe_barrier")


@operation("ascendc.set_flag")
def set_flag(core: Core, site: int, event_id: int, *, event: int) -> None:
    """Raise event flag `event_id` of a pipe pair once the source pipe is done with what came before."""
    core.begin(site, SOURCE_PIPE[event], SET_FLAG, event, event_id)
    core.flags.set(event, event_id, core.row)


@operation("ascendc.wait_flag")
def wait_flag(core: Core, site: int, event_id: int, *, event: int) -> None:
    """Make the target pipe wait for the flag, and lower it."""
    core.begin(site, TARGET_PIPE[event], WAIT_FLAG, event, event_id)
    core.flags.take(event, event_id)


@operation("ascendc.pipe_barrier")
def pipe_barrier(core: Core, site: int, *, pipe: int) -> None:
    """Let a pipe (or all of them) finish before anything later on it starts."""
    core.begin(site, pipe, BARRIER)
