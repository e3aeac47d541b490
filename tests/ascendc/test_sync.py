"""set_flag, wait_flag, pipe_barrier, data_sync_barrier: rows, faults, ignored events, lowered kernels that stall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.mlir.program import lower
from npuscope.npu.machine import Deadlock
from npuscope.npu.sync import HardEvent, Stuck
from npuscope.npu.tensor import Pointer
from npuscope.trace.schema import OPCODES, CoreInfo, CoreType, Pipe

E = {event.name: int(event) for event in HardEvent}
PAIRS = ("MTE2_V", "V_MTE2", "MTE3_V", "V_MTE3", "MTE3_MTE2", "MTE2_MTE3", "S_V", "V_S", "S_MTE2", "MTE2_S", "S_MTE3",
         "MTE3_S")


def faults(device: Any) -> list[tuple[str, dict[str, Any]]]:
    """What the machine reported."""
    return [(fault.code, dict(fault.facts)) for fault in device.recorder.faults]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("number", [0, 5, 7])
def test_pair_of_flags(device: Any, name: str, number: int) -> None:
    """The set is on the source pipe, the wait on the target pipe, both with event and id; the flag is down after."""
    device.run("set_flag", number, event=E[name])
    device.run("wait_flag", number, event=E[name])
    batch = device.trace()
    source, target = (int(Pipe[word]) for word in name.split("_"))
    assert batch.column("pipe").tolist() == [source, target]
    assert batch.column("a").tolist() == [E[name]] * 2 and batch.column("b").tolist() == [number] * 2
    assert device.core.flags.raised == [] and faults(device) == []


def test_set_twice(device: Any) -> None:
    """Undefined on the device: a fault that names the first set; one wait then lowers it."""
    device.run("set_flag", 1, event=E["MTE2_V"])
    device.run("set_flag", 1, event=E["MTE2_V"])
    assert faults(device) == [("flag_set_twice", {"event": "MTE2_V", "id": 1, "first": 0})]
    device.run("wait_flag", 1, event=E["MTE2_V"])
    assert device.core.flags.raised == []


@pytest.mark.parametrize("number", [8, 9, -1])
def test_event_id_out_of_range(device: Any, number: int) -> None:
    """The chip has ids 0 to 7; the low bits count then, so that set and wait still meet."""
    device.run("set_flag", number, event=E["MTE2_V"])
    device.run("wait_flag", number % 8, event=E["MTE2_V"])
    assert faults(device) == [("bad_operand", {"what": "event id", "value": number, "limit": "0 to 7"})]


@pytest.mark.parametrize("name", ["MTE2_MTE1", "M_V", "FIX_M", "V_M"])
def test_events_of_the_other_core_type_do_nothing(device: Any, name: str) -> None:
    """A mixed kernel runs one program on both core types: no row, no wait, no fault. In other launches it is noted."""
    device.machine.mixed = True
    device.run("set_flag", 0, event=E[name])
    device.run("wait_flag", 0, event=E[name])
    assert device.opcodes() == [] and faults(device) == [] and not device.core.stalled
    device.machine.mixed = False
    device.run("set_flag", 0, event=E[name])
    device.run("wait_flag", 0, event=E[name])
    assert device.opcodes() == [] and not device.core.stalled
    assert faults(device) == [("event_elsewhere", {"event": name, "pipes": ["S", "V", "MTE2", "MTE3"]})]


def test_coupled_chip_has_all_pipes(make_device: Any) -> None:
    """One core of a 310P has cube and vector pipes."""
    device = make_device("310P3")
    device.run("set_flag", 0, event=E["M_V"])
    device.run("wait_flag", 0, event=E["M_V"])
    assert device.opcodes() == ["set_flag", "wait_flag"]


def test_event_of_a_pipe_with_itself(device: Any) -> None:
    """V_V is no event: reported once for the pair, and the wait is never satisfied."""
    device.run("set_flag", 0, event=E["V_V"])
    device.run("wait_flag", 0, event=E["V_V"])
    assert faults(device) == [("bad_event", {"event": "V_V", "id": 0})]
    assert [wait.what for wait in device.core.stalled.waits(0)] == ["flag V_V id 0"]
    device.run("wait_flag", 3, event=E["V_V"])
    assert [code for code, _ in faults(device)] == ["bad_event", "bad_event"]


def test_barriers(device: Any, cube: Any) -> None:
    """One row on the pipe; none for a pipe of the other core type; PIPE_S has none."""
    for pipe in (Pipe.V, Pipe.MTE2, Pipe.ALL, Pipe.M):
        device.run("pipe_barrier", pipe=int(pipe))
    assert device.trace().column("pipe").tolist() == [int(Pipe.V), int(Pipe.MTE2), int(Pipe.ALL)]
    cube.run("pipe_barrier", pipe=int(Pipe.V))
    assert cube.opcodes() == []
    device.run("pipe_barrier", pipe=int(Pipe.S))
    assert faults(device)[0][0] == "bad_operand"


def test_barriers_and_stalled_pipes(device: Any) -> None:
    """A barrier of a stalled pipe takes its turn on it, one over all pipes can never end."""
    core = device.core
    device.run("wait_flag", 0, event=E["MTE2_V"])
    from npuscope.ascendc.sync import data_sync_barrier, pipe_barrier

    data_sync_barrier(core, 0, mem_dsb_type=0)  # nothing but the wait is queued: no access is outstanding
    core.issue(pipe_barrier)(core, 0, pipe=int(Pipe.V))
    assert device.opcodes() == ["data_sync_barrier"]
    with pytest.raises(Stuck, match="earlier accesses of pipe V"):
        data_sync_barrier(core, 0, mem_dsb_type=2)
    with pytest.raises(Stuck, match="all pipes to finish, flag MTE2_V id 0"):
        pipe_barrier(core, 0, pipe=int(Pipe.ALL))
    device.run("set_flag", 0, event=E["MTE2_V"])
    assert device.opcodes() == ["set_flag", "wait_flag", "pipe_barrier"]


# -- lowered programs ------------------------------------------------------------------------------------------------

HEAD = """
"builtin.module"() ({
  "func.func"() <{function_type = (memref<?xf32, 22>, memref<?xf32, 22>) -> (), sym_name = "kernel"}> ({
  ^bb0(%x: memref<?xf32, 22>, %z: memref<?xf32, 22>):
    %c0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %c1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %c3 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %n = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %a0 = "emitc.constant"() <{value = 0 : ui32}> : () -> ui32
    %a1 = "emitc.constant"() <{value = 1024 : ui32}> : () -> ui32
    %len = "emitc.constant"() <{value = 64 : ui32}> : () -> ui32
    %xg = "ascendc.global_tensor"() : () -> !ascendc.global_tensor<*xf32>
    "ascendc.global_tensor.set_global_buffer"(%xg, %x) : (!ascendc.global_tensor<*xf32>, memref<?xf32, 22>) -> ()
    %zg = "ascendc.global_tensor"() : () -> !ascendc.global_tensor<*xf32>
    "ascendc.global_tensor.set_global_buffer"(%zg, %z) : (!ascendc.global_tensor<*xf32>, memref<?xf32, 22>) -> ()
    %xl = "ascendc.local_tensor_v2"(%a0, %len) <{pos = 9 : i32}> : (ui32, ui32) -> !ascendc.local_tensor<*xf32>
    %zl = "ascendc.local_tensor_v2"(%a1, %len) <{pos = 10 : i32}> : (ui32, ui32) -> !ascendc.local_tensor<*xf32>
"""
TAIL = """    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
L, G = "!ascendc.local_tensor<*xf32>", "!ascendc.global_tensor<*xf32>"
COPY_IN = f'"ascendc.data_copy_l2"(%xl, %xg, %n) : ({L}, {G}, i32) -> ()\n'
ADD = f'"ascendc.add_l2"(%zl, %xl, %xl, %n) : ({L}, {L}, {L}, i32) -> ()\n'
COPY_OUT = f'"ascendc.data_copy_l2"(%zg, %zl, %n) : ({G}, {L}, i32) -> ()\n'


def flag(kind: str, name: str, number: str = "%c0") -> str:
    """A set_flag or wait_flag in IR."""
    return f'"ascendc.{kind}_flag"({number}) <{{event = {E[name]} : i32}}> : (i32) -> ()\n'


def run(device: Any, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Lower a kernel with `body`, run it on the device's cores; the input and what it stored."""
    program = lower(HEAD + body + TAIL, lambda file: False, device.recorder.add_site)
    x, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    arguments = [Pointer(t.memory, t.address, t.dtype, t.buffer) for t in (device.gm(x), device.gm(z))]
    device.machine.run(program.entry, tuple(arguments))
    return x, z


def test_issue_order_other_than_flag_order(device: Any) -> None:
    """V and MTE3 are issued before the copy they wait for: the result is that of the flags' order."""
    body = (
        flag("wait", "MTE2_V") + ADD + flag("set", "V_MTE3") + flag("wait", "V_MTE3") + COPY_OUT
        + COPY_IN + flag("set", "MTE2_V")
    )
    x, z = run(device, body)
    assert (z == 2 * x).all()
    names = [OPCODES.names[number] for number in device.trace().column("opcode")]
    assert names == ["copy_gm_to_ub", "set_flag", "wait_flag", "vadd", "set_flag", "wait_flag", "copy_ub_to_gm",
                     "kernel_end"]
    assert device.recorder.faults == []


def test_prime_and_drain_loop(device: Any) -> None:
    """A loop whose first wait is satisfied by a set before it, and whose last set is taken after it: no fault."""
    loop = f"""
    "scf.for"(%c0, %c3, %c1) ({{
    ^bb0(%i: i32):
      {flag("wait", "MTE3_MTE2")}{COPY_IN}{flag("set", "MTE2_V")}{flag("wait", "MTE2_V")}{ADD}
      {flag("set", "V_MTE3")}{flag("wait", "V_MTE3")}{COPY_OUT}{flag("set", "MTE3_MTE2")}
      "scf.yield"() : () -> ()
    }}) : (i32, i32, i32) -> ()
    """
    x, z = run(device, flag("set", "MTE3_MTE2") + loop + flag("wait", "MTE3_MTE2"))
    assert (z == 2 * x).all() and device.recorder.faults == [] and device.core.stalled == {}


def test_missing_set_in_the_first_iteration(device: Any) -> None:
    """Without the priming set MTE2 is held for ever: a deadlock that names the flag, not a wrong result."""
    body = flag("wait", "MTE3_MTE2") + COPY_IN + flag("set", "MTE2_V") + flag("wait", "MTE2_V") + ADD
    with pytest.raises(Deadlock, match="AIV 0 pipe MTE2 waits for flag MTE3_MTE2 id 0; "
                       "AIV 0 pipe V waits for flag MTE2_V id 0"):
        run(device, body)


def test_programs_without_waits_are_written_plainly(device: Any) -> None:
    """The check for stalled pipes is only in programs that wait themselves."""

    def source(body: str) -> str:
        return lower(HEAD + body + TAIL, lambda file: False, lambda site: 0).source

    assert "stalled" not in source(COPY_IN + ADD)
    assert "core.issue" in source(flag("wait", "MTE2_V") + ADD)


def test_mixed_launch_runs_one_program(make_device: Any) -> None:
    """Flags of the vector pipes are nothing to the cube core, which would else wait for ever."""
    device = make_device(cores=(CoreInfo(CoreType.AIC, 0), CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIV, 1, 1)))
    body = COPY_IN + flag("set", "MTE2_V") + flag("wait", "MTE2_V") + ADD + flag("set", "V_MTE3") + flag(
        "wait", "V_MTE3") + COPY_OUT
    x, z = run(device, body)
    assert (z == 2 * x).all()
    batch = device.trace()
    assert set(batch.column("core")[batch.column("opcode") == OPCODES.number("wait_flag")].tolist()) == {1, 2}
    assert device.recorder.faults == []
