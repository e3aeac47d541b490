"""Synchronisation inside a core: event flags, pipe barriers, the data synchronisation barrier (hardware.md 3.2)."""

from __future__ import annotations

from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.sync import (
    SOURCE_PIPE,
    TARGET_PIPE,
    Deferred,
    HardEvent,
    Stuck,
    Wait,
    await_flag,
    finish_pipes,
    raise_flag,
)
from npuscope.trace.schema import Pipe

SET_FLAG = opcode("set_flag")
WAIT_FLAG = opcode("wait_flag")
BARRIER = opcode("pipe_barrier")
DATA_BARRIER = opcode("data_sync_barrier")
S = int(Pipe.S)
ALL = int(Pipe.ALL)

ELSEWHERE = -1
"""Stands for the id of events that are no business of a core."""
EVERYTHING, GM_ONLY, UB_ONLY, IN_SEQUENCE = 0, 1, 2, 3
"""MemDsbT of data_sync_barrier: what it waits for."""


@operation("ascendc.set_flag")
def set_flag(core: Core, site: int, event_id: int, *, event: int) -> None:
    """Raise event flag `event_id` of a pipe pair once the source pipe is done with what came before.

    Faults: ``flag_set_twice`` when it is up already (undefined on the device), ``bad_event`` for a pipe with itself,
    ``bad_operand`` for an id that the chip lacks (the low bits count then). Events of pipes that this core type lacks
    do nothing: mixed kernels run one program on both; in other launches fault ``event_elsewhere``.
    """
    pair = core.events.get(event)
    if pair is None or core.stalled or not 0 <= event_id < core.event_ids:
        _set_slowly(core, site, event_id, event)
        return
    core.begin(site, pair[0], SET_FLAG, event, event_id)
    key = (event, event_id)
    rows = core.flags.set_rows
    if key in rows:
        core.fault("flag_set_twice", event=HardEvent(event).name, id=event_id, first=rows[key])
    rows[key] = core.row


def _set_slowly(core: Core, site: int, event_id: int, event: int) -> None:
    if event not in core.events:
        if _same_pipe(core, event):
            core.begin(site, SOURCE_PIPE[event], SET_FLAG, event, event_id)
            core.flags.refused.add((event, event_id))
            core.fault("bad_event", event=HardEvent(event).name, id=event_id)
        else:
            _note_elsewhere(core, site, event)
        return
    number = event_id % core.event_ids
    raise_flag(core, site, event, number, (number, 0, 0))
    if number != event_id:
        _bad_id(core, event_id)


@operation("ascendc.wait_flag")
def wait_flag(core: Core, site: int, event_id: int, *, event: int) -> None:
    """Make the target pipe wait for the flag, and lower it.

    While the flag is down the target pipe is stalled (npu.sync). Raises npu.sync.Stuck when that pipe is S: nothing
    could raise the flag any more. Faults as for set_flag.
    """
    pair = core.events.get(event)
    if pair is None or core.stalled or not 0 <= event_id < core.event_ids:
        _wait_slowly(core, site, event_id, event)
        return
    if core.flags.set_rows.pop((event, event_id), None) is None:
        await_flag(core, site, event, event_id, (event_id, 0, 0))
        return
    core.begin(site, pair[1], WAIT_FLAG, event, event_id)


def _wait_slowly(core: Core, site: int, event_id: int, event: int) -> None:
    if event not in core.events:
        if not _same_pipe(core, event):
            _note_elsewhere(core, site, event)
            return
        if (event, event_id) not in core.flags.refused:  # its set has been reported where there was one
            core.site = site
            core.fault("bad_event", event=HardEvent(event).name, id=event_id)
        await_flag(core, site, event, event_id, (event_id, 0, 0))
        return
    number = event_id % core.event_ids
    if number != event_id:
        core.site = site
        _bad_id(core, event_id)
    await_flag(core, site, event, number, (number, 0, 0))


def _same_pipe(core: Core, event: int) -> bool:
    """Whether an event goes from a pipe of this core to the same pipe."""
    return SOURCE_PIPE[event] == TARGET_PIPE[event] and Pipe(SOURCE_PIPE[event]) in core.pipes


def _note_elsewhere(core: Core, site: int, event: int) -> None:
    """Fault ``event_elsewhere``, once a core, for an event of pipes that no core of the launch has."""
    key = (event, ELSEWHERE)
    if not core.machine.mixed and key not in core.flags.refused:
        core.flags.refused.add(key)
        core.site = site
        core.fault("event_elsewhere", event=HardEvent(event).name, pipes=[pipe.name for pipe in sorted(core.pipes)])


def _bad_id(core: Core, event_id: int) -> None:
    core.fault("bad_operand", what="event id", value=event_id, limit=f"0 to {core.event_ids - 1}")


@operation("ascendc.pipe_barrier")
def pipe_barrier(core: Core, site: int, *, pipe: int) -> None:
    """Let a pipe (or all of them) finish before anything later on it starts.

    Raises npu.sync.Stuck for all pipes when one of them is stalled. PIPE_S has no barrier: fault ``bad_operand``.
    """
    if pipe == ALL:
        finish_pipes(core, site, "all pipes to finish")
    elif pipe == S:
        core.begin(site, S, BARRIER)
        core.fault("bad_operand", what="pipe of pipe_barrier", value="S", limit="any pipe but S")
        return
    elif pipe not in core.pipes:
        return
    core.begin(site, pipe, BARRIER)


@operation("ascendc.data_sync_barrier")
def data_sync_barrier(core: Core, site: int, *, mem_dsb_type: int) -> None:
    """Make the scalar unit wait until earlier accesses to GM and UB (or one of them) are done.

    Raises npu.sync.Stuck when instructions are queued on a stalled pipe: they could not be done any more.
    """
    queued = [pipe for pipe, queue in core.stalled.items() if any(isinstance(item, Deferred) for item in queue)]
    if queued and mem_dsb_type != IN_SEQUENCE:
        what = f"earlier accesses of pipe {Pipe(queued[0]).name}"
        raise Stuck([Wait(core.index, S, what, site), *core.stalled.waits(core.index)])
    core.begin(site, S, DATA_BARRIER, mem_dsb_type)
