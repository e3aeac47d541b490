"""Event tables, binary flags, and pipes that stall: what is put off, in which order it runs, with which registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.registry import entries
from npuscope.npu.core import Core, opcode
from npuscope.npu.sync import (
    AIC_PIPES,
    AIV_PIPES,
    ALL_PIPES,
    CoreFlags,
    HardEvent,
    Stuck,
    Wait,
    await_flag,
    drain,
    event_pipes,
    finish_pipes,
    flag_name,
    pipes_of,
    raise_flag,
)
from npuscope.trace.schema import OPCODES, Pipe

V, MTE2, MTE3 = int(Pipe.V), int(Pipe.MTE2), int(Pipe.MTE3)
MTE2_V, V_MTE3, MTE2_S, S_V = (int(HardEvent[name]) for name in ("MTE2_V", "V_MTE3", "MTE2_S", "S_V"))
MARK = opcode("mark")


def mark(core: Core, site: int, pipe: int, label: int) -> None:
    """An instruction without effect on `pipe`."""
    core.begin(site, pipe, MARK, label)


def rows(device: Any) -> list[tuple[str, str, int]]:
    """(instruction, pipe, first operand) of everything since the last look."""
    batch = device.trace()
    return [
        (OPCODES.names[code], Pipe(pipe).name, int(first))
        for code, pipe, first in zip(batch.column("opcode"), batch.column("pipe"), batch.column("a"), strict=True)
    ]


def issue(core: Core, pipe: int, label: int) -> None:
    """Issue a mark as generated code does while a pipe is stalled."""
    core.issue(mark)(core, 0, pipe, label)


def test_event_numbers_are_those_of_the_language() -> None:
    """Three of the numbers that frontends.md 2 lists, and how many there are."""
    assert (HardEvent.MTE2_MTE1, HardEvent.V_V, HardEvent.FIX_FIX, len(HardEvent)) == (0, 10, 34, 35)


def test_event_pipes() -> None:
    """An AIV knows every pair of S, V, MTE2, MTE3 that has an event; nothing of the cube, nothing with itself."""
    aiv = event_pipes(AIV_PIPES)
    names = {"MTE2_V", "V_MTE2", "MTE3_V", "V_MTE3", "MTE3_MTE2", "MTE2_MTE3", "S_V", "V_S", "S_MTE2", "MTE2_S",
             "S_MTE3", "MTE3_S"}
    assert {HardEvent(event).name for event in aiv} == names
    assert aiv[MTE2_V] == (MTE2, V)
    aic = {HardEvent(event).name for event in event_pipes(AIC_PIPES)}
    assert {"MTE1_M", "M_FIX", "MTE2_MTE1"} <= aic and not {"MTE2_V", "M_V", "FIX_FIX"} & aic
    assert pipes_of(True, False) == ALL_PIPES and pipes_of(False, True) == AIV_PIPES


def test_flags_are_binary() -> None:
    """A second set changes nothing but the row; one take lowers it."""
    flags = CoreFlags()
    assert flags.set(4, 0, 10) and not flags.set(4, 0, 20)
    assert flags.raised == [(4, 0, 20)]
    assert flags.take(4, 0) == 20 and flags.take(4, 0) == -1 and flags.take(4, 1) == -1
    flags.set(4, 16, 30)
    assert flags.raised == []  # a queue's own
    assert flag_name(4, 0) == "flag MTE2_V id 0" and "queue" in flag_name(4, 16)


def test_stalled_pipe_runs_in_order_when_the_flag_rises(device: Any) -> None:
    """Only the waiting pipe stops; its rows come after the set that releases it."""
    core = device.core
    await_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    issue(core, V, 1)
    issue(core, V, 2)
    issue(core, MTE2, 3)
    assert rows(device) == [("mark", "MTE2", 3)]
    raise_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    assert rows(device) == [
        ("set_flag", "MTE2", MTE2_V), ("wait_flag", "V", MTE2_V), ("mark", "V", 1), ("mark", "V", 2),
    ]
    assert not core.stalled and "begin" not in core.__dict__
    issue(core, V, 4)
    assert rows(device) == [("mark", "V", 4)]


def test_flags_set_on_a_stalled_pipe_fire_when_they_run(device: Any) -> None:
    """MTE3 waits for V, which waits for MTE2: one set releases both, in the order of their flags."""
    core = device.core
    await_flag(core, 0, MTE2_V, 1, (1, 0, 0))
    issue(core, V, 1)
    raise_flag(core, 0, V_MTE3, 2, (2, 0, 0))
    await_flag(core, 0, V_MTE3, 2, (2, 0, 0))
    issue(core, MTE3, 2)
    assert rows(device) == []
    assert [wait.what for wait in core.stalled.waits(0)] == ["flag MTE2_V id 1", "flag V_MTE3 id 2"]
    raise_flag(core, 0, MTE2_V, 1, (1, 0, 0))
    assert [row[0] + " " + row[1] for row in rows(device)] == [
        "set_flag MTE2", "wait_flag V", "mark V", "set_flag V", "wait_flag MTE3", "mark MTE3",
    ]


def test_two_waits_on_one_pipe(device: Any) -> None:
    """The second wait holds what comes after it when the first is released."""
    core = device.core
    for number in (0, 1):
        await_flag(core, 0, MTE2_V, number, (number, 0, 0))
        issue(core, V, number)
    raise_flag(core, 0, MTE2_V, 1, (1, 0, 0))  # the later one first: the pipe still waits for id 0
    assert [row[0] for row in rows(device)] == ["set_flag"]
    raise_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    assert [row[0] for row in rows(device)] == ["set_flag", "wait_flag", "mark", "wait_flag", "mark"]


def test_deferred_instruction_uses_the_mask_and_operands_of_its_issue(device: Any) -> None:
    """Mask registers and handles may change between issue and execution; results are those of the issue."""
    core = device.core
    x = device.local(np.arange(64, dtype=np.float32))
    z = device.local(np.zeros(64, np.float32))
    other = device.local(np.full(64, 100, np.float32))
    add = entries()["ascendc.add_l2"].function
    await_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    target = z.at(0)
    core.issue(add)(core, 0, target, x, x, 10)
    target.rebind(other)
    core.registers.mask = (0b11, 0)
    assert not device.values(z).any()
    raise_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    assert (device.values(z) == np.where(np.arange(64) < 10, 2 * np.arange(64), 0)).all()
    assert (device.values(other) == 100).all()
    assert core.registers.mask == (0b11, 0)  # set after the issue: stays


def test_register_results_of_deferred_instructions_arrive(device: Any) -> None:
    """What an instruction leaves in a register is there after it ran; modes set meanwhile are kept."""
    core = device.core

    def count(core: Core, site: int) -> None:
        core.begin(site, V, MARK)
        core.registers.values["result"] = core.registers.values.get("scale", 0) + 1

    core.registers.values["scale"] = 5
    await_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    core.issue(count)(core, 0)
    core.registers.values["scale"] = 50
    raise_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    assert core.registers.values == {"scale": 50, "result": 6}


def test_scalar_wait_without_a_set_is_stuck(device: Any) -> None:
    """Nothing after it can be issued, so it is known at once; the stalled pipes are named too."""
    await_flag(device.core, 0, MTE2_V, 3, (3, 0, 0))
    with pytest.raises(Stuck) as caught:
        await_flag(device.core, 0, MTE2_S, 1, (1, 0, 0))
    assert caught.value.waits == [
        Wait(0, int(Pipe.S), "flag MTE2_S id 1", 0), Wait(0, V, "flag MTE2_V id 3", 0),
    ]


def test_waiting_for_a_stalled_pipe_is_stuck(device: Any) -> None:
    """A barrier over all pipes, and a result that the scalar unit needs."""
    core = device.core
    finish_pipes(core, 0, "all pipes")  # nothing stalled: nothing to wait for
    await_flag(core, 0, MTE2_V, 0, (0, 0, 0))
    with pytest.raises(Stuck, match="all pipes, flag MTE2_V id 0"):
        finish_pipes(core, 0, "all pipes")
    with pytest.raises(Stuck, match="result of mark on pipe V"):
        core.issue(mark, True)(core, 0, V, 1)
    assert core.issue(mark, True)(core, 0, MTE2, 1) is None  # another pipe: carried out


def test_drain_without_a_raised_flag_changes_nothing(device: Any) -> None:
    """The pipe stays as it is."""
    await_flag(device.core, 0, S_V, 0, (0, 0, 0))
    issue(device.core, V, 1)
    drain(device.core)
    assert rows(device) == [] and device.core.stalled.holds(V) and not device.core.stalled.holds(MTE2)
