"""The scheduler: order of cores, waves, blocking and polling cores, deadlocks, the end of a kernel."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.registry import entries
from npuscope.npu.core import Core, opcode
from npuscope.npu.machine import CoreExit, Deadlock, cube_cores, mixed_cores, vector_cores
from npuscope.npu.sync import HardEvent, Wait
from npuscope.trace.schema import OPCODES, CoreType, Origin, Pipe, Site, SourceFrame, Space

MARK = opcode("mark")
MTE2_V, MTE2_S, MTE3_V = int(HardEvent.MTE2_V), int(HardEvent.MTE2_S), int(HardEvent.MTE3_V)


def call(name: str, core: Core, site: int, *operands: Any, **attributes: Any) -> Any:
    """A library call as generated code makes it in a program that waits for flags itself."""
    function = entries()[f"ascendc.{name}"].function
    return (function if not core.stalled else core.issue(function))(core, site, *operands, **attributes)


def marks(device: Any) -> list[tuple[int, int]]:
    """(core, label) of the marks so far."""
    batch = device.trace()
    chosen = batch.column("opcode") == MARK
    return list(zip(batch.column("core")[chosen].tolist(), batch.column("a")[chosen].tolist(), strict=True))


def site_at(device: Any, line: int) -> int:
    """A trace site at line `line` of the user's file."""
    number: int = device.recorder.add_site(Site("op", (SourceFrame("user.py", line),)))
    return number


def faults(device: Any) -> list[str]:
    """Codes of what the machine reported."""
    return [fault.code for fault in device.recorder.faults]


def test_core_lists() -> None:
    """Block numbers of the three kinds of launch: an AIV's block counts AIVs."""
    assert [info.block for info in vector_cores(3)] == [0, 1, 2]
    assert {info.type for info in cube_cores(2)} == {CoreType.AIC}
    mixed = mixed_cores(2)
    assert [(info.type.name, info.block, info.sub_block) for info in mixed] == [
        ("AIC", 0, 0), ("AIV", 0, 0), ("AIV", 1, 1), ("AIC", 1, 0), ("AIV", 2, 0), ("AIV", 3, 1),
    ]


def test_cores_run_one_after_the_other_until_they_yield(make_device: Any) -> None:
    """Round robin over the live cores."""
    device = make_device(cores=vector_cores(3))

    def kernel(core: Core) -> Iterator[Any]:
        for turn in range(core.info.block + 1):
            core.begin(0, 0, MARK, turn)
            core.machine.changes += 1  # something happened
            yield Wait(core.index, 0, "a turn", 0)

    device.machine.run(kernel, ())
    assert marks(device) == [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (2, 2)]
    assert faults(device) == []


def test_kernel_end_row_and_flags_left(make_device: Any) -> None:
    """One kernel_end row per core with the number of flags that are up, one fault per flag."""
    device = make_device(cores=vector_cores(2))

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block == 1:
            call("set_flag", core, 0, 2, event=MTE2_V)
            call("set_flag", core, 0, 3, event=MTE3_V)
        return
        yield

    device.machine.run(kernel, ())
    batch = device.trace()
    ends = batch.instruction[:, batch.column("opcode") == OPCODES.number("kernel_end")]
    assert ends[0].tolist() == [0, 1] and ends[4].tolist() == [int(Origin.HARDWARE)] * 2
    assert ends[5].tolist() == [0, 2]
    left = device.recorder.faults
    assert [(fault.code, fault.core, fault.facts["event"], fault.facts["id"]) for fault in left] == [
        ("flag_left_set", 1, "MTE2_V", 2), ("flag_left_set", 1, "MTE3_V", 3),
    ]
    assert left[0].facts["set_row"] == 1


def test_thousands_of_blocks_hold_only_live_cores(make_device: Any) -> None:
    """Cores are made when they start and dropped with their memories when they end; at most 48 are at work."""
    device = make_device(cores=vector_cores(65535))
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    def kernel(core: Core) -> Iterator[Any]:
        nonlocal most
        core.memories[Space.UB].bytes[0] = 1
        alive.add(core)
        most = max(most, len(alive))
        if core.info.block % 5000 == 0:
            core.machine.changes += 1
            yield Wait(core.index, 0, "a turn", 0)

    device.core = None
    device.recorder.consumers.clear()
    device.machine.run(kernel, ())
    assert 1 <= most <= 49
    assert sum(device.machine.cores.made(number) is not None for number in range(65535)) == 0


def test_blocks_of_a_wave_start_when_cores_get_free(make_device: Any) -> None:
    """Mixed blocks start whole: 24 cube cores, so block 24 starts after one of the first has ended."""
    device = make_device(cores=mixed_cores(26))
    order: list[tuple[str, int]] = []

    def kernel(core: Core) -> Iterator[Any]:
        order.append(("start", core.index))
        core.machine.changes += 1
        yield Wait(core.index, 0, "a turn", 0)
        order.append(("end", core.index))

    device.machine.run(kernel, ())
    first_of_25th = order.index(("start", 72))
    assert {entry for entry in order[:first_of_25th] if entry[0] == "start"} == {("start", n) for n in range(72)}
    assert ("end", 0) in order[:first_of_25th] and ("end", 2) in order[:first_of_25th]


def test_wait_for_a_block_that_cannot_start_is_a_deadlock(make_device: Any) -> None:
    """More blocks than cores that wait for one another hang on the device; the report says why."""
    device = make_device(cores=vector_cores(50))
    arrived: set[int] = set()

    def kernel(core: Core) -> Iterator[Any]:
        arrived.add(core.index)
        core.machine.changes += 1
        while len(arrived) < 50:
            yield Wait(core.index, 0, "all blocks", 0)

    with pytest.raises(Deadlock, match="2 blocks have not started"):
        device.machine.run(kernel, ())
    assert device.recorder.faults[-1].facts["not_started"] == 2


def test_deadlock_names_core_pipe_flag_and_line(make_device: Any) -> None:
    """A scalar wait on one core, a stalled pipe at the end of another, a third that finishes."""
    device = make_device(cores=vector_cores(3))
    scalar, vector = site_at(device, 11), site_at(device, 22)

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block == 0:
            call("wait_flag", core, scalar, 1, event=MTE2_S)
        if core.info.block == 1:
            call("wait_flag", core, vector, 0, event=MTE2_V)
        core.begin(0, 0, MARK)
        return
        yield

    with pytest.raises(Deadlock) as caught:
        device.machine.run(kernel, ())
    assert str(caught.value) == (
        "the kernel can never finish: AIV 0 pipe S waits for flag MTE2_S id 1 at user.py:11; "
        "AIV 1 pipe V waits for flag MTE2_V id 0 at user.py:22"
    )
    assert marks(device) == [(1, 0), (2, 0)]
    (fault,) = [fault for fault in device.recorder.faults if fault.code == "deadlock"]
    assert fault.facts["waits"] == [
        (0, 0, "flag MTE2_S id 1", scalar), (1, 1, "flag MTE2_V id 0", vector),
    ]


def test_cores_that_wait_for_one_another(make_device: Any) -> None:
    """All of them are in the report, in the order of their numbers."""
    device = make_device(cores=vector_cores(2))

    def kernel(core: Core) -> Iterator[Any]:
        while True:
            yield Wait(core.index, int(Pipe.S), f"the other of core {core.index}", 0)

    with pytest.raises(Deadlock) as caught:
        device.machine.run(kernel, ())
    assert [wait.what for wait in caught.value.waits] == ["the other of core 0", "the other of core 1"]


def test_polling_sees_what_another_core_writes(make_device: Any) -> None:
    """A core that polls memory goes on when another core has written it."""
    device = make_device(cores=vector_cores(2))
    cell = np.zeros(4, np.int32)
    gm = device.gm(cell)

    def kernel(core: Core) -> Iterator[Any]:
        if core.info.block == 0:
            while cell[0] == 0:
                yield gm.address
            core.begin(0, 0, MARK, int(cell[0]))
        else:
            for _ in range(5):
                yield gm.address + 8
            cell[0] = 7
            core.machine.changes += 1

    device.machine.run(kernel, ())
    assert marks(device) == [(0, 7)]


def test_endless_polling_is_a_deadlock(make_device: Any) -> None:
    """Every core polls from the same state and nothing changes."""
    device = make_device(cores=vector_cores(2))
    gm = device.gm(np.zeros(4, np.int32))

    def kernel(core: Core) -> Iterator[Any]:
        while True:
            yield gm.address

    with pytest.raises(Deadlock, match=re.escape(f"GM 0x{gm.address:x}, which it polls")):
        device.machine.run(kernel, ())


def test_a_long_loop_that_reads_memory_is_no_deadlock(make_device: Any) -> None:
    """A loop that reads the same cell again and again but counts is not polling for ever."""
    device = make_device()
    gm = device.gm(np.zeros(4, np.int32))
    total = 0

    def kernel(core: Core) -> Iterator[Any]:
        nonlocal total
        count = 0
        while count < 5000:
            yield gm.address
            count += 1
        total = count

    device.machine.run(kernel, ())
    assert total == 5000


def test_core_exit_keeps_the_core_for_its_block(make_device: Any) -> None:
    """A cube core that leaves its kernel serves its vector cores to their end; its kernel_end row comes last."""
    device = make_device(cores=mixed_cores(1))

    def kernel(core: Core) -> Iterator[Any]:
        if core.is_aic:
            core.memories[Space.L1].bytes[:4] = 9
            raise CoreExit
        core.machine.changes += 1
        yield Wait(core.index, 0, "a turn", 0)
        served = core.machine.cores[0]
        served.begin(0, 0, MARK, int(served.memories[Space.L1].bytes[0]))

    device.machine.run(kernel, ())
    assert marks(device) == [(0, 9), (0, 9)]
    batch = device.batches[-1]
    ends = batch.column("core")[batch.column("opcode") == OPCODES.number("kernel_end")]
    assert ends.tolist() == [1, 2, 0]


def test_dirty_lines_are_written_at_the_end_of_each_core(make_device: Any) -> None:
    """What a scalar store left in the cache is in the array when the kernel has ended."""
    device = make_device(cores=vector_cores(2))
    data = np.zeros(64, np.int32)
    gm = device.gm(data)

    def kernel(core: Core) -> Iterator[Any]:
        call("global_tensor.set_value", core, 0, gm, core.info.block * 16, 5 + core.info.block)
        if core.info.block == 1:
            core.begin(0, 0, MARK, int(data[0]))  # core 0 has ended
            core.begin(0, 0, MARK, int(data[16]))  # its own is still in the cache
        return
        yield

    device.machine.run(kernel, ())
    assert marks(device) == [(1, 5), (1, 0)]
    assert data[0] == 5 and data[16] == 6 and not data[1:16].any()


def test_block_count_of_launches(make_device: Any) -> None:
    """get_block_num: blocks of a mixed launch count cube cores."""
    assert make_device(cores=mixed_cores(3)).machine.cores[1].block_count == 3
    assert make_device(cores=vector_cores(5)).machine.cores[4].block_count == 5


def test_slices_of_cores_are_lazy(make_device: Any) -> None:
    """Asking for the nearest AIC before a core makes that one core only."""
    machine = make_device(cores=mixed_cores(20)).machine
    nearest = next(core for core in reversed(machine.cores[:59]) if core.is_aic)
    assert nearest.index == 57
    assert machine.cores.made(30) is None and machine.cores[-1].index == 59
    with pytest.raises(IndexError):
        machine.cores[60]
