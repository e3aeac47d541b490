"""Synchronisation between cores: cross-core flags, SyncAll, IBSet and IBWait, NotifyNextBlock and WaitPreBlock.

The software forms go through global memory as the vendor's library does: slots of 32 bytes, one per vector core, that
are fetched to UB, looked at by the scalar unit and stored back (pages SyncAll, IBSet, IBWait, NotifyNextBlock). Their
rows have the origin FRAMEWORK; the rows named after the call are the user's and carry the ordering.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from npuscope.ascendc.registry import operation
from npuscope.errors import Unsupported
from npuscope.npu.core import READ, WRITE, Core, opcode
from npuscope.npu.layout import contiguous, strided
from npuscope.npu.sync import S, Subject, Wait, finish_pipes
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Origin, Pipe

SYNC_ALL = opcode("sync_all")
IB_SET, IB_WAIT = opcode("ib_set"), opcode("ib_wait")
NOTIFY, WAIT_PREVIOUS = opcode("notify_next_block"), opcode("wait_pre_block")
FETCH, STORE = opcode("copy_gm_to_ub"), opcode("copy_ub_to_gm")
SCALAR_LOAD, SCALAR_STORE = opcode("scalar_load"), opcode("scalar_store")
DUPLICATE = opcode("vector_dup")
V, MTE2, MTE3 = int(Pipe.V), int(Pipe.MTE2), int(Pipe.MTE3)

ARRIVE, LEAVE = 0, 1
VECTOR_ONLY, MIXED, SOFT = 0, 1, 2
AIC_FLAG, BOTH_FLAG, AIV_FLAG = 11, 13, 14
"""Flags that the hardware SyncAll uses: among AICs, between the AIC and the AIVs of a core, among AIVs."""
SLOT = 8
"""Elements (int32) of a slot."""

Blocking = Generator[Wait, None, None]


# -- flags -----------------------------------------------------------------------------------------------------------


@operation("ascendc.cross_core_set_flag")
def cross_core_set_flag(core: Core, site: int, flag_id: int, *, mode_id: int, pipe: int) -> None:
    """CrossCoreSetFlag<mode, pipe>(id): this core's part, once `pipe` has done what came before.

    Faults: ``bad_operand`` for an id, mode or pipe that the device does not take, ``cross_core_overflow`` when a
    counter passes what it holds. Raises Unsupported on chips without cross-core flags.
    """
    _needs_flags(core, "cross_core_set_flag")
    if pipe not in core.pipes and pipe != Pipe.ALL:
        return  # the other core type of a mixed kernel
    number = flag_id % max(_known(core, mode_id), 1)
    scalar_only = pipe == Pipe.ALL or (pipe == S and mode_id != 4)
    if _known(core, mode_id):
        core.machine.cross_core.set(core, site, S if scalar_only else pipe, mode_id, number)
    _check(core, site, flag_id, mode_id)
    if scalar_only:
        core.fault("bad_operand", what="pipe of cross_core_set_flag", value=Pipe(pipe).name, limit="V, M, MTE or FIX")


@operation("ascendc.cross_core_wait_flag")
def cross_core_wait_flag(core: Core, site: int, flag_id: int, *, mode_id: int, pipe: int) -> Blocking:
    """CrossCoreWaitFlag(id): issue nothing more until the counter is up, and lower it.

    On 3510 only `pipe` waits; before that `mode_id` and `pipe` have no effect (page CrossCoreWaitFlag).
    """
    _needs_flags(core, "cross_core_wait_flag")
    _check(core, site, flag_id, mode_id)
    known = _known(core, mode_id)
    if not known:
        return
    number, flags = flag_id % known, core.machine.cross_core
    if core.chip.has("cross_core_wait_per_pipe") and pipe not in (S, Pipe.ALL):
        if pipe in core.pipes:
            flags.wait_on_pipe(core, site, pipe, mode_id, number)
        return
    yield from flags.wait(core, site, mode_id, number)


@operation("ascendc.ffts_cross_core_sync")
def ffts_cross_core_sync(core: Core, site: int, config: int, *, pipe: int) -> None:
    """The instruction under CrossCoreSetFlag: mode in bits 4 and 5 of `config`, flag id in bits 8 to 11 (3.4).

    The compiler puts it at the start of mixed kernels, so a flag it leaves up is not the program's fault.
    """
    _needs_flags(core, "ffts_cross_core_sync")
    if pipe in core.pipes:
        mode, number = config >> 4 & 3, config >> 8 & 15
        core.machine.cross_core.set(core, site, pipe, mode, number, Origin.COMPILER)


def _needs_flags(core: Core, name: str) -> None:
    if not core.chip.has("cross_core_flags"):
        raise Unsupported(f"{name}: {core.chip.name} has no hardware synchronisation between cores")


def _known(core: Core, mode: int) -> int:
    """How many flag ids a mode has on this core, 0 for a mode that the chip lacks. Larger ids lose their high bits
    (page CrossCoreSetFlag)."""
    ids = core.chip.identifiers
    if mode == 4:
        return ids.mode4_flags_aic if core.is_aic else ids.mode4_flags_aiv
    return ids.cross_core_flags if mode in (0, 1, 2) else 0


def _check(core: Core, site: int, flag_id: int, mode: int) -> None:
    """Fault ``bad_operand`` for a mode or an id that the chip lacks."""
    core.site = site
    known = _known(core, mode)
    if not known:
        modes = "0, 1, 2, 4" if core.chip.identifiers.mode4_flags_aic else "0, 1, 2"
        core.fault("bad_operand", what="cross-core mode", value=mode, limit=modes)
    elif not 0 <= flag_id < known:
        core.fault("bad_operand", what="cross-core flag id", value=flag_id, limit=f"0 to {known - 1}")


# -- SyncAll ---------------------------------------------------------------------------------------------------------


@operation("ascendc.sync_all_hard")
def sync_all_hard(core: Core, site: int, *, is_aiv_only: bool = False) -> Blocking:
    """SyncAll(): every vector core of the launch, or every core, waits for all the others.

    The unit attribute `isAIVOnly` reads backwards: the language layer of pyasc 1.1 writes it for
    ``sync_all(is_aiv_only=False)`` and leaves it out otherwise. So with it all cores take part, in the documented order
    (AIC after its AIVs, all AICs, AIVs after their AIC); without it the vector cores do, and an AIC goes on at once.
    """
    _needs_flags(core, "sync_all")
    flags = core.machine.cross_core
    if not is_aiv_only:
        if core.is_aiv:
            yield from _rendezvous(core, site, VECTOR_ONLY, [(0, AIV_FLAG)], [(0, AIV_FLAG)])
    elif core.is_aic:
        finish_pipes(core, site, "SyncAll")
        epoch = _begin_sync(core, site, ARRIVE, MIXED)
        yield from flags.wait(core, site, 2, BOTH_FLAG, "SyncAll: the vector cores of this AI core", Origin.FRAMEWORK)
        flags.set(core, site, int(Pipe.FIX), 0, AIC_FLAG, Origin.FRAMEWORK)
        yield from flags.wait(core, site, 0, AIC_FLAG, "SyncAll: the other cube cores", Origin.FRAMEWORK)
        flags.set(core, site, int(Pipe.FIX), 2, BOTH_FLAG, Origin.FRAMEWORK)
        core.begin(site, S, SYNC_ALL, LEAVE, MIXED, epoch)
    else:
        yield from _rendezvous(core, site, MIXED, [(2, BOTH_FLAG)], [(2, BOTH_FLAG)])


def _rendezvous(
    core: Core, site: int, kind: int, sets: list[tuple[int, int]], waits: list[tuple[int, int]]
) -> Blocking:
    """Drain the pipes, set flags, wait for flags, each (mode, id)."""
    flags = core.machine.cross_core
    finish_pipes(core, site, "SyncAll")
    epoch = _begin_sync(core, site, ARRIVE, kind)
    for mode, number in sets:
        flags.set(core, site, MTE3, mode, number, Origin.FRAMEWORK)
    for mode, number in waits:
        while not flags.is_up(core, number):
            here, all_cores = flags.arrived(core, mode, number)
            what = f"SyncAll ({here} of {all_cores} cores are there)" if here else "SyncAll: the cube core"
            yield Wait(core.index, S, what, site, ("sync_all",))
        yield from flags.wait(core, site, mode, number, "SyncAll", Origin.FRAMEWORK)
    core.begin(site, S, SYNC_ALL, LEAVE, kind, epoch)


def _begin_sync(core: Core, site: int, phase: int, kind: int) -> int:
    """The row of a core's arrival at a SyncAll; returns how many it has come to, this one included."""
    epoch: int = core.library.get("sync_all", 0) + 1
    core.library["sync_all"] = epoch
    core.begin(site, S, SYNC_ALL, phase, kind, epoch)
    return epoch


@operation("ascendc.sync_all_soft")
def sync_all_soft(
    core: Core, site: int, gm_workspace: Tensor, ub_workspace: Tensor, used_cores: int, *, is_aiv_only: bool = False
) -> Blocking:
    """SyncAll(gmWorkspace, ubWorkspace, usedCores): each vector core counts up its slot in GM and looks at all slots
    until they add up to what that many cores have counted (0 cores: all). Slots must start at zero.

    `is_aiv_only` is as for sync_all_hard: with it the blocks of a mixed launch count AIVs.
    """
    if not core.is_aiv:
        return
    finish_pipes(core, site, "SyncAll")
    epoch = _begin_sync(core, site, ARRIVE, SOFT)
    own, cores = core.info.block, used_cores or _vector_blocks(core)
    mine = ub_workspace.at(own * SLOT)
    _fetch(core, site, mine, gm_workspace.at(own * SLOT), SLOT)
    count = _look(core, site, mine) + 1
    _put(core, site, mine, count)
    _store(core, site, gm_workspace.at(own * SLOT), mine, SLOT)
    while True:
        seen = core.machine.changes
        _fetch(core, site, ub_workspace, gm_workspace, cores * SLOT)
        total = int(_look_at_slots(core, site, ub_workspace, cores).sum())
        if total >= cores * count:
            break
        what = f"SyncAll through GM (the slots add up to {total} of {cores * count})"
        yield from _change(core, site, seen, what, ("sync_all",))
    core.begin(site, S, SYNC_ALL, LEAVE, SOFT, epoch)


def _vector_blocks(core: Core) -> int:
    """How many vector cores a launch has."""
    return sum(1 for info in core.machine.infos if info.type is core.info.type)


# -- one core to another, through GM ---------------------------------------------------------------------------------


@operation("ascendc.ib_set")
def ib_set(
    core: Core, site: int, gm_workspace: Tensor, ub_workspace: Tensor, block_idx: int, event_id: int,
    *, is_aiv_only: bool = False,
) -> Blocking:
    """IBSet: wait until slot (event, block) in GM is 0, then make it 1."""
    yield from _exchange(core, site, gm_workspace, ub_workspace, block_idx, event_id, (0, 1), IB_SET, is_aiv_only)


@operation("ascendc.ib_wait")
def ib_wait(
    core: Core, site: int, gm_workspace: Tensor, ub_workspace: Tensor, block_idx: int, event_id: int,
    *, is_aiv_only: bool = False,
) -> Blocking:
    """IBWait: wait until slot (event, block) in GM is 1, then make it 0 again."""
    yield from _exchange(core, site, gm_workspace, ub_workspace, block_idx, event_id, (1, 0), IB_WAIT, is_aiv_only)


def _exchange(
    core: Core, site: int, gm: Tensor, ub: Tensor, block_idx: int, event_id: int, values: tuple[int, int], code: int,
    mixed: bool,
) -> Blocking:
    """Wait until a slot holds the first value and store the second. The row of a set comes before its store, that of
    a wait after it has seen the value."""
    if not core.is_aiv:
        return
    name = "IBSet" if code == IB_SET else "IBWait"
    finish_pipes(core, site, name)
    blocks = core.block_count * (2 if mixed else 1)
    slot = gm.at(blocks * SLOT * event_id + block_idx * SLOT)
    expected, value = values
    while True:
        seen = core.machine.changes
        _fetch(core, site, ub, slot, SLOT)
        found = _look(core, site, ub)
        if found == expected:
            break
        what = f"{name}: slot of block {block_idx}, event {event_id} is {found}, not {expected}"
        subject = ("ib_wait" if code == IB_WAIT else "ib_set", block_idx, event_id)
        yield from _change(core, site, seen, what, subject)
    if code == IB_WAIT:
        core.begin(site, S, code, block_idx, event_id, 0, slot.address)
    _put(core, site, ub, value)
    if code == IB_SET:
        core.begin(site, S, code, block_idx, event_id, 0, slot.address)
    _store(core, site, slot, ub, SLOT)


@operation("ascendc.wait_pre_block")
def wait_pre_block(core: Core, site: int, gm_workspace: Tensor, ub_workspace: Tensor) -> Blocking:
    """WaitPreBlock: wait until it is this block's turn: the slots of all blocks before it hold this round's number
    (kept in UB behind the slots) and its own and later ones hold 0."""
    if not core.is_aiv:
        return
    finish_pipes(core, site, "WaitPreBlock")
    blocks, own = core.block_count, core.info.block
    turn = _look(core, site, ub_workspace.at(blocks * SLOT))
    while True:
        seen = core.machine.changes
        _fetch(core, site, ub_workspace, gm_workspace, blocks * SLOT)
        slots = _look_at_slots(core, site, ub_workspace, blocks)
        if (slots[:own] == turn).all() and not slots[own:].any():
            break
        what = f"blocks 0 to {own - 1} in round {turn}" if own else "the end of the last round"
        yield from _change(core, site, seen, f"WaitPreBlock: {what}", ("wait_pre_block", own, turn))
    core.begin(site, S, WAIT_PREVIOUS, own, turn, 0, gm_workspace.address)


@operation("ascendc.notify_next_block")
def notify_next_block(core: Core, site: int, gm_workspace: Tensor, ub_workspace: Tensor) -> None:
    """NotifyNextBlock: put this round's number into the own slot; the last block clears all slots instead."""
    if not core.is_aiv:
        return
    finish_pipes(core, site, "NotifyNextBlock")
    blocks, own = core.block_count, core.info.block
    counter = ub_workspace.at(blocks * SLOT)
    turn = _look(core, site, counter)
    last = own + 1 == blocks
    first, count = (0, blocks * SLOT) if last else (own * SLOT, SLOT)
    core.begin(site, V, DUPLICATE, work=count, origin=Origin.FRAMEWORK)
    core.store(ub_workspace.at(first), contiguous(count, 4), 0 if last else turn)
    core.begin(site, S, NOTIFY, own, turn, 0, gm_workspace.address)
    _store(core, site, gm_workspace.at(first), ub_workspace.at(first), count)
    _put(core, site, counter, turn + 1)


# -- their parts -----------------------------------------------------------------------------------------------------


def _fetch(core: Core, site: int, local: Tensor, source: Tensor, count: int) -> None:
    """Copy `count` int32 from GM to UB."""
    layout = contiguous(count, 4)
    core.begin(site, MTE2, FETCH, work=count * 4, origin=Origin.FRAMEWORK)
    core.store(local, layout, core.load(source, layout))


def _store(core: Core, site: int, target: Tensor, local: Tensor, count: int) -> None:
    """Copy `count` int32 from UB to GM."""
    layout = contiguous(count, 4)
    core.begin(site, MTE3, STORE, work=count * 4, origin=Origin.FRAMEWORK)
    core.store(target, layout, core.load(local, layout))


def _look(core: Core, site: int, local: Tensor) -> int:
    """The first int32 of a UB tensor, read by the scalar unit."""
    core.begin(site, S, SCALAR_LOAD, work=4, origin=Origin.FRAMEWORK)
    core.note(READ, local, contiguous(1, 4))
    return int(core.view(local, contiguous(1, 4))[0])


def _look_at_slots(core: Core, site: int, local: Tensor, count: int) -> np.ndarray:
    """The first int32 of each slot, read by the scalar unit."""
    layout = strided((count,), (SLOT * 4,), 4)
    core.begin(site, S, SCALAR_LOAD, work=count * 4, origin=Origin.FRAMEWORK)
    return core.load(local, layout)


def _put(core: Core, site: int, local: Tensor, value: int) -> None:
    """Write the first int32 of a UB tensor by the scalar unit."""
    core.begin(site, S, SCALAR_STORE, work=4, origin=Origin.FRAMEWORK)
    core.note(WRITE, local, contiguous(1, 4))
    core.put(local, contiguous(1, 4), np.int64(value).astype(np.int32))


def _change(core: Core, site: int, seen: int, what: str, subject: Subject) -> Blocking:
    """Wait until global memory has changed since `seen`."""
    while core.machine.changes == seen:
        yield Wait(core.index, S, what, site, subject)
