"""Synchronisation between cores: counters of each mode, SyncAll, IBSet/IBWait, block order; and what deadlocks say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.registry import entries
from npuscope.ascendc.tensor import POSITIONS
from npuscope.errors import Unsupported
from npuscope.npu.core import Core, opcode
from npuscope.npu.machine import Deadlock, cube_cores, mixed_cores, vector_cores
from npuscope.npu.sync import HardEvent
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import OPCODES, Origin, Pipe

MARK = opcode("mark")
MTE2, MTE3, V, FIX = (int(Pipe[name]) for name in ("MTE2", "MTE3", "V", "FIX"))
Body = Callable[[Core], Iterator[Any]]


def do(core: Core, name: str, *operands: Any, **attributes: Any) -> Iterator[Any]:
    """A library call as generated code makes it; blocking ones are delegated to."""
    function = entries()[f"ascendc.{name}"].function
    if inspect.isgeneratorfunction(function):
        yield from function(core, 0, *operands, **attributes)
    else:
        (function if not core.stalled else core.issue(function))(core, 0, *operands, **attributes)


def set_flag(core: Core, number: int, mode: int, pipe: int = MTE3) -> Iterator[Any]:
    """CrossCoreSetFlag."""
    return do(core, "cross_core_set_flag", number, mode_id=mode, pipe=pipe)


def wait_flag(core: Core, number: int, mode: int, pipe: int = MTE2) -> Iterator[Any]:
    """CrossCoreWaitFlag."""
    return do(core, "cross_core_wait_flag", number, mode_id=mode, pipe=pipe)


def mark(core: Core, label: int) -> None:
    """Leave a row."""
    core.begin(0, 0, MARK, label)


def happened(device: Any, *names: str) -> list[tuple[str, int, int]]:
    """(instruction, core, first operand) of the named instructions, in order."""
    batch = device.trace()
    rows = zip(batch.column("opcode"), batch.column("core"), batch.column("a"), strict=True)
    found = [(OPCODES.names[code], int(core), int(first)) for code, core, first in rows]
    return [row for row in found if row[0] in names]


def faults(device: Any) -> list[str]:
    """Codes of what the machine reported."""
    return [fault.code for fault in device.recorder.faults]


def local(core: Core, count: int, address: int = 0) -> Tensor:
    """int32 in UB."""
    buffer = core.raw_tensor(POSITIONS[9], address, count * 4, 0, "ub", "int32")
    return Tensor(core.memories[POSITIONS[9]], address, np.dtype(np.int32), buffer, count, 9)


# -- flags -----------------------------------------------------------------------------------------------------------


def test_mode0_waits_for_all_cores_of_its_type(make_device: Any) -> None:
    """Three AIVs: nobody passes before the last has set."""
    device = make_device(cores=vector_cores(3))

    def kernel(core: Core) -> Iterator[Any]:
        yield from set_flag(core, 3, 0)
        yield from wait_flag(core, 3, 0)
        mark(core, core.info.block)

    device.machine.run(kernel, ())
    seen = happened(device, "cross_core_set", "cross_core_wait", "mark")
    assert [row[0] for row in seen[:3]] == ["cross_core_set"] * 3
    assert sorted(row[1] for row in seen if row[0] == "mark") == [0, 1, 2]
    batch = device.batches[-1]
    waits = batch.column("opcode") == OPCODES.number("cross_core_wait")
    assert set(batch.column("pipe")[waits].tolist()) == {int(Pipe.S)} and set(batch.column("b")[waits].tolist()) == {0}
    sets = batch.column("opcode") == OPCODES.number("cross_core_set")
    assert set(batch.column("pipe")[sets].tolist()) == {MTE3}
    assert faults(device) == []


def test_mode0_of_cube_cores_leaves_vector_cores_alone(make_device: Any) -> None:
    """In a mixed launch mode 0 counts cores of the caller's type only."""
    device = make_device(cores=mixed_cores(2))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aic:
            yield from set_flag(core, 0, 0, FIX)
            yield from wait_flag(core, 0, 0, FIX)
            mark(core, 1)

    device.machine.run(kernel, ())
    assert sorted(row[1] for row in happened(device, "mark")) == [0, 3]


def test_mode1_pairs_the_vector_cores_of_one_block(make_device: Any) -> None:
    """Block 0's pair passes although block 1 never sets."""
    device = make_device(cores=mixed_cores(2))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aiv and core.info.block < 2:
            yield from set_flag(core, 5, 1)
            yield from wait_flag(core, 5, 1)
            mark(core, core.info.sub_block)

    device.machine.run(kernel, ())
    assert happened(device, "mark") == [("mark", 2, 1), ("mark", 1, 0)]


def test_mode2_both_ways(make_device: Any) -> None:
    """AIC -> both AIVs with one set; AIVs -> AIC only when both have set. A ring of two slots, three rounds."""
    device = make_device(cores=mixed_cores(1))
    log: list[str] = []

    def kernel(core: Core) -> Iterator[Any]:
        for turn in range(3):
            if core.is_aic:
                log.append(f"c{turn}")
                yield from set_flag(core, turn % 2, 2, FIX)
                yield from wait_flag(core, 2 + turn % 2, 2)
            else:
                yield from wait_flag(core, turn % 2, 2)
                log.append(f"v{core.info.sub_block}{turn}")
                yield from set_flag(core, 2 + turn % 2, 2)

    device.machine.run(kernel, ())
    assert log == ["c0", "v00", "v10", "c1", "v01", "v11", "c2", "v02", "v12"]
    assert faults(device) == []
    batch = device.trace()
    sets = batch.instruction[:, (batch.column("opcode") == OPCODES.number("cross_core_set"))]
    assert sets[7][sets[0] == 0].tolist() == [1, 1, 2]  # c: which set of this flag it is: 0, 1, 0


def test_mode2_with_one_vector_core_per_block(make_device: Any) -> None:
    """1:1 mixed launches: the one AIV is the whole group."""
    device = make_device(cores=mixed_cores(2, 1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aiv:
            yield from set_flag(core, 0, 2)
        else:
            yield from wait_flag(core, 0, 2)
            mark(core, core.info.block)

    device.machine.run(kernel, ())
    assert happened(device, "mark") == [("mark", 0, 0), ("mark", 2, 1)]


def test_counters_keep_count(make_device: Any) -> None:
    """Several sets before the first wait add up; each wait takes one; what is left is reported."""
    device = make_device(cores=mixed_cores(1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aic:
            for _ in range(4):
                yield from set_flag(core, 1, 2, FIX)
        else:
            for turn in range(3):
                yield from wait_flag(core, 1, 2)
                mark(core, turn)

    device.machine.run(kernel, ())
    assert len(happened(device, "mark")) == 6
    left = [(fault.code, fault.core, fault.facts["id"], fault.facts["count"]) for fault in device.recorder.faults]
    assert left == [("cross_core_left_set", 1, 1, 1), ("cross_core_left_set", 2, 1, 1)]


def test_counter_overflow(make_device: Any) -> None:
    """A counter holds 15: the 16th set is a fault for each receiver."""
    device = make_device(cores=mixed_cores(1, 1))

    def kernel(core: Core) -> Iterator[Any]:
        for _ in range(16 if core.is_aic else 0):
            yield from set_flag(core, 1, 2, FIX)

    device.machine.run(kernel, ())
    overflow = [fault for fault in device.recorder.faults if fault.code == "cross_core_overflow"]
    assert [(fault.facts["id"], fault.facts["count"], fault.facts["limit"]) for fault in overflow] == [(1, 16, 15)]


def test_deadlock_names_both_cores_and_flags(make_device: Any) -> None:
    """The AIC waits for a flag that one AIV never sets, the AIVs wait for the AIC."""
    device = make_device(cores=mixed_cores(1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aic:
            yield from wait_flag(core, 4, 2)
        else:
            if core.info.sub_block == 0:
                yield from set_flag(core, 4, 2)
            yield from wait_flag(core, 5, 2)

    with pytest.raises(Deadlock) as caught:
        device.machine.run(kernel, ())
    assert str(caught.value) == (
        "the kernel can never finish: AIC 0 pipe S waits for cross-core flag 4 (mode 2); "
        "AIV 0 pipe S waits for cross-core flag 5 (mode 2); AIV 1 pipe S waits for cross-core flag 5 (mode 2)"
    )


def test_cross_core_wait_with_a_stalled_pipe(make_device: Any) -> None:
    """The whole core stops issuing, its stalled pipe stays; both go on when the flag comes and the event is set."""
    device = make_device(cores=vector_cores(2))
    event = int(HardEvent.MTE2_V)

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block == 0:
            yield from do(core, "wait_flag", 0, event=event)
            yield from set_flag(core, 0, 0)
            yield from wait_flag(core, 0, 0)
            yield from do(core, "set_flag", 0, event=event)
        else:
            yield from set_flag(core, 0, 0)
            yield from wait_flag(core, 0, 0)

    device.machine.run(kernel, ())
    rows = happened(device, "wait_flag", "set_flag", "cross_core_set", "cross_core_wait")
    mine = [row[0] for row in rows if not row[1]]
    assert mine == ["cross_core_set", "cross_core_wait", "set_flag", "wait_flag"]


def test_cross_core_set_on_a_stalled_pipe_fires_later(make_device: Any) -> None:
    """Its pipe waits for an event: the other core gets the flag when the event is there."""
    device = make_device(cores=vector_cores(2))
    event = int(HardEvent.V_MTE3)

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block == 0:
            yield from do(core, "wait_flag", 0, event=event)
            yield from set_flag(core, 0, 0)
            mark(core, 1)
            yield from do(core, "set_flag", 0, event=event)
        else:
            yield from set_flag(core, 0, 0)
        yield from wait_flag(core, 0, 0)

    device.machine.run(kernel, ())
    mine = [row[0] for row in happened(device, "mark", "wait_flag", "set_flag", "cross_core_set") if not row[1]]
    assert mine == ["mark", "set_flag", "wait_flag", "cross_core_set"]


def test_3510_waits_on_one_pipe_only(make_device: Any) -> None:
    """On 950 the named pipe stalls, the scalar unit goes on, also to the kernel's end."""
    device = make_device("950PR", cores=mixed_cores(1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aiv:
            yield from wait_flag(core, 0, 2, V)
            mark(core, 1)
            yield from do(core, "pipe_barrier", pipe=V)
        else:
            core.machine.changes += 1
            yield 0  # the vector cores first
            yield from set_flag(core, 0, 2, FIX)

    device.machine.run(kernel, ())
    rows = happened(device, "mark", "cross_core_wait", "pipe_barrier", "cross_core_set", "kernel_end")
    assert [row[0] for row in rows if row[1] == 1] == ["mark", "cross_core_wait", "pipe_barrier", "kernel_end"]
    batch = device.batches[-1]
    waits = batch.column("opcode") == OPCODES.number("cross_core_wait")
    assert batch.column("pipe")[waits].tolist() == [V, V]


def test_3510_pipe_held_for_ever(make_device: Any) -> None:
    """The flag never comes: a deadlock of that pipe."""
    device = make_device("950PR", cores=mixed_cores(1, 1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aiv:
            yield from wait_flag(core, 0, 2, V)

    with pytest.raises(Deadlock, match=r"AIV 0 pipe V waits for cross-core flag 0 \(mode 2\)"):
        device.machine.run(kernel, ())


def test_mode4_names_one_vector_core(make_device: Any) -> None:
    """AIC number 16 + n is number n of the second AIV; numbers of mode 4 and 2 are independent."""
    device = make_device("950PR", cores=mixed_cores(1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aic:
            yield from set_flag(core, 16 + 3, 4, FIX)
            yield from wait_flag(core, 16 + 3, 4, int(Pipe.S))
            mark(core, 9)
        elif core.info.sub_block == 1:
            yield from wait_flag(core, 3, 4, int(Pipe.S))
            mark(core, 1)
            yield from set_flag(core, 3, 4, V)

    device.machine.run(kernel, ())
    assert happened(device, "mark") == [("mark", 2, 1), ("mark", 0, 9)] and faults(device) == []


@pytest.mark.parametrize(
    ("flag", "mode", "pipe", "what"),
    [(16, 0, MTE3, "cross-core flag id"), (0, 4, MTE3, "cross-core mode"), (0, 3, MTE3, "cross-core mode"),
     (0, 0, int(Pipe.ALL), "pipe of cross_core_set_flag"), (0, 0, int(Pipe.S), "pipe of cross_core_set_flag"),
     (2, 2, MTE3, "mode of cross-core flag 2")],
)
def test_bad_operands(make_device: Any, flag: int, mode: int, pipe: int, what: str) -> None:
    """Ids above 15, modes that the chip or the launch lacks, pipes that have no such instruction."""
    device = make_device(cores=vector_cores(1))
    device.run("cross_core_set_flag", flag, mode_id=mode, pipe=pipe)
    assert [fault.facts["what"] for fault in device.recorder.faults] == [what]
    if what == "cross-core flag id":
        device.run("cross_core_wait_flag", 0, mode_id=0, pipe=MTE2)  # the low 4 bits count


def test_chip_without_cross_core_flags(make_device: Any) -> None:
    """310P has no hardware synchronisation between cores."""
    with pytest.raises(Unsupported, match="310P3 has no hardware synchronisation"):
        make_device("310P3").run("cross_core_set_flag", 0, mode_id=0, pipe=V)


def test_config_word_of_the_instruction(make_device: Any) -> None:
    """0xf21: bit 0, mode 2 in bits 4 and 5, flag 15 in bits 8 to 11. The compiler's own: no fault when left up."""
    device = make_device(cores=mixed_cores(1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aic:
            yield from do(core, "ffts_cross_core_sync", 0xF21, pipe=MTE3)
        elif core.info.sub_block == 0:
            yield from wait_flag(core, 15, 2)
            mark(core, 0)

    device.machine.run(kernel, ())
    batch = device.trace()
    row = batch.instruction[:, batch.column("opcode") == OPCODES.number("cross_core_set")][:, 0]
    assert row[1] == MTE3 and row[4] == int(Origin.COMPILER) and row[5:7].tolist() == [15, 2]
    marks = batch.column("core")[batch.column("opcode") == MARK]
    assert marks.tolist() == [1] and faults(device) == []


# -- SyncAll ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 3])
def test_sync_all_of_vector_cores(make_device: Any, rounds: int) -> None:
    """All arrive before anyone leaves, every round; rows say phase and round."""
    device = make_device(cores=vector_cores(4))

    def kernel(core: Core) -> Iterator[Any]:
        for _ in range(rounds):
            yield from do(core, "sync_all_hard")

    device.machine.run(kernel, ())
    assert len(happened(device, "sync_all")) == 8 * rounds
    assert rounds_are_apart(device, rounds) and faults(device) == []


def rounds_are_apart(device: Any, rounds: int) -> bool:
    """Whether every departure of a round comes after all arrivals of that round."""
    batch = device.batches[-1]
    sync = batch.instruction[:, batch.column("opcode") == OPCODES.number("sync_all")]
    phase, turn = sync[5], sync[7]
    order = np.arange(phase.size)
    return all(
        order[(phase == 0) & (turn == number)].max() < order[(phase == 1) & (turn == number)].min()
        for number in range(1, rounds + 1)
    )


def test_sync_all_of_mixed_cores(make_device: Any) -> None:
    """Cube cores and vector cores of all blocks; without the attribute the cube cores go on at once."""
    device = make_device(cores=mixed_cores(2))

    def kernel(core: Core) -> Iterator[Any]:
        yield from do(core, "sync_all_hard", is_aiv_only=True)

    device.machine.run(kernel, ())
    rows = happened(device, "sync_all")
    assert len(rows) == 12 and sorted(row[1] for row in rows if row[2] == 0) == list(range(6))
    assert max(n for n, row in enumerate(rows) if row[2] == 0) < min(n for n, row in enumerate(rows) if row[2] == 1)
    assert faults(device) == []

    device = make_device(cores=mixed_cores(2))

    def vectors_only(core: Core) -> Iterator[Any]:
        yield from do(core, "sync_all_hard")

    device.machine.run(vectors_only, ())
    assert sorted({row[1] for row in happened(device, "sync_all")}) == [1, 2, 4, 5]


def test_sync_all_that_some_cores_never_reach(make_device: Any) -> None:
    """The report says how many are there."""
    device = make_device(cores=vector_cores(4))

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block:
            yield from do(core, "sync_all_hard")

    with pytest.raises(Deadlock, match=r"AIV 1 pipe S waits for SyncAll \(3 of 4 cores are there\)"):
        device.machine.run(kernel, ())


def test_sync_all_with_a_stalled_pipe(make_device: Any) -> None:
    """It drains all pipes first, and one of them waits for what comes after it."""
    device = make_device(cores=vector_cores(2))

    def kernel(core: Core) -> Iterator[Any]:
        yield from do(core, "wait_flag", 0, event=int(HardEvent.MTE2_V))
        yield from do(core, "sync_all_hard")
        yield from do(core, "set_flag", 0, event=int(HardEvent.MTE2_V))

    with pytest.raises(Deadlock, match="AIV 0 pipe V waits for flag MTE2_V id 0"):
        device.machine.run(kernel, ())


@pytest.mark.parametrize("used", [0, 4])
def test_soft_sync_all(make_device: Any, used: int) -> None:
    """Slots count rounds; nobody leaves a round before all have come; the copies are the framework's."""
    device = make_device(cores=vector_cores(4))
    slots = np.zeros(4 * 8, np.int32)
    gm = device.gm(slots)

    def kernel(core: Core) -> Iterator[Any]:
        for _ in range(2):
            yield from do(core, "sync_all_soft", gm, local(core, 32), used)

    device.machine.run(kernel, ())
    assert slots[::8].tolist() == [2] * 4 and not slots.reshape(4, 8)[:, 1:].any()
    device.trace()
    assert rounds_are_apart(device, 2)
    batch = device.batches[-1]
    copies = batch.column("opcode") == OPCODES.number("copy_gm_to_ub")
    assert set(batch.column("origin")[copies].tolist()) == {int(Origin.FRAMEWORK)}
    assert set(batch.column("pipe")[copies].tolist()) == {MTE2}


def test_soft_sync_all_with_too_many_used_cores(make_device: Any) -> None:
    """usedCores 4, but three cores come: the sum never gets there."""
    device = make_device(cores=vector_cores(3))
    gm = device.gm(np.zeros(4 * 8, np.int32))

    def kernel(core: Core) -> Iterator[Any]:
        yield from do(core, "sync_all_soft", gm, local(core, 32), 4)

    with pytest.raises(Deadlock, match=r"SyncAll through GM \(the slots add up to 3 of 4\)"):
        device.machine.run(kernel, ())


def test_soft_sync_all_is_for_vector_cores(make_device: Any) -> None:
    """A cube core goes on at once."""
    device = make_device(cores=cube_cores(1))
    gm = device.gm(np.zeros(8, np.int32))
    device.run("sync_all_soft", gm, None, 0)
    assert device.opcodes() == []


# -- through GM, core to core ----------------------------------------------------------------------------------------


def test_ib_set_and_wait(make_device: Any) -> None:
    """Block 1 waits for block 0; the slot (event, block) is 1 between, 0 after. Core 1 runs into the wait first."""
    device = make_device(cores=vector_cores(2))
    slots = np.zeros(2 * 8 * 3, np.int32)
    gm = device.gm(slots)
    seen: list[int] = []

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block == 1:
            yield from do(core, "ib_wait", gm, local(core, 8), 0, 2)
            mark(core, 1)
        else:
            core.machine.changes += 1
            yield 0
            mark(core, 0)
            yield from do(core, "ib_set", gm, local(core, 8), 0, 2)
            seen.append(int(slots[2 * 16]))

    device.machine.run(kernel, ())
    assert happened(device, "mark", "ib_set", "ib_wait") == [
        ("mark", 0, 0), ("ib_set", 0, 0), ("ib_wait", 1, 0), ("mark", 1, 1),
    ]
    assert seen == [1] and not slots.any()


def test_ib_wait_without_a_set(make_device: Any) -> None:
    """The report names the slot and what it holds."""
    device = make_device(cores=vector_cores(1))
    gm = device.gm(np.zeros(16, np.int32))

    def kernel(core: Core) -> Iterator[Any]:
        yield from do(core, "ib_wait", gm, local(core, 8), 0, 1)

    with pytest.raises(Deadlock, match="IBWait: slot of block 0, event 1 is 0, not 1"):
        device.machine.run(kernel, ())


def test_blocks_in_ascending_order(make_device: Any) -> None:
    """WaitPreBlock and NotifyNextBlock: two rounds, each in the order of the blocks; the slots end at zero."""
    device = make_device(cores=vector_cores(3))
    slots = np.zeros(3 * 8, np.int32)
    gm = device.gm(slots)
    order: list[int] = []

    def kernel(core: Core) -> Iterator[Any]:
        ub = local(core, 32)
        yield from do(core, "local_tensor.set_value", ub, 24, 1)  # the round, behind the slots
        for _ in range(2):
            yield from do(core, "wait_pre_block", gm, ub)
            order.append(core.info.block)
            yield from do(core, "notify_next_block", gm, ub)

    device.machine.run(kernel, ())
    assert order == [0, 1, 2, 0, 1, 2] and not slots.any()
    rows = happened(device, "wait_pre_block", "notify_next_block")
    assert [row[0] for row in rows] == ["wait_pre_block", "notify_next_block"] * 6
