"""System variables, InitSocState, CheckLocalMemoryIA, Trap, profiling marks, workspaces and contexts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.mlir.program import lower
from npuscope.npu.core import Core
from npuscope.npu.machine import Trapped, cube_cores, mixed_cores, vector_cores
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.npu.tensor import Pointer
from npuscope.trace.schema import OPCODES, CoreType


def pointer(tensor: Any) -> Pointer:
    """A tensor's address."""
    return Pointer(tensor.memory, tensor.address, tensor.dtype, tensor.buffer)


# -- variables -------------------------------------------------------------------------------------------------------

ARCH = """
"builtin.module"() ({
  "func.func"() <{function_type = (ui32) -> (ui32), sym_name = "kernel"}> ({
  ^bb0(%given: ui32):
    VALUE
    "ascendc.get_arch_version"(%v) : (ui32) -> ()
    "func.return"(%v) : (ui32) -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.mark.parametrize(("chip", "version"), [("910B1", 0x2201), ("310P3", 0x2002), ("950PR", 0x3510)])
@pytest.mark.parametrize("value", ["%v = \"emitc.constant\"() <{value = 0 : ui32}> : () -> ui32", ""])
def test_arch_version_is_an_output(make_device: Any, chip: str, version: int, value: str) -> None:
    """The operand is a reference in C++: later uses see the version, be it a constant or a variable before."""
    device = make_device(chip)
    text = ARCH.replace("VALUE", value)
    if not value:
        text = text.replace("%v", "%given")
    program = lower(text, lambda file: False, device.recorder.add_site)
    with pytest.raises(StopIteration) as stop:
        next(program.entry(device.core, 7))
    assert stop.value.value == version


def test_variables(device: Any) -> None:
    """Block size; a counter that does not run backwards; one address per line."""
    assert device.run("get_data_block_size_in_bytes") == 32
    first = device.run("get_system_cycle")
    device.run("metrics_prof_start")
    assert device.run("get_system_cycle") >= first + 1
    function = entries()["ascendc.get_program_counter"].function
    assert function(device.core, 5) - function(device.core, 4) == 4


@pytest.mark.parametrize(
    ("chip", "cores", "kind", "expected"),
    [("910B1", vector_cores(4), CoreType.AIV, 1), ("910B1", cube_cores(4), CoreType.AIC, 1),
     ("910B1", mixed_cores(3), CoreType.AIV, 2), ("910B1", mixed_cores(3), CoreType.AIC, 1),
     ("910B1", mixed_cores(3, 1), CoreType.AIV, 1), ("310P3", vector_cores(2), CoreType.AIV, 1)],
)
def test_cores_per_block(make_device: Any, chip: str, cores: Any, kind: CoreType, expected: int) -> None:
    """The tables of pages GetSubBlockNum and GetTaskRatio."""
    device = make_device(chip, cores=cores)
    device.core = next(core for core in device.machine.cores if core.info.type is kind)
    assert device.run("get_sub_block_num") == expected and device.run("get_task_ratio") == expected


# -- state -----------------------------------------------------------------------------------------------------------


def test_init_soc_state(device: Any) -> None:
    """Atomic copies off, normal mask mode, all lanes; a copy after it overwrites."""
    registers = device.core.registers
    registers.mask_mode, registers.mask = COUNTER, (5, 0)
    device.run("set_atomic_add", dtype="f32")
    assert registers.atomic_operation == "add"
    device.run("init_soc_state")
    assert registers.atomic_operation is None
    assert (registers.mask_mode, registers.mask) == (NORMAL, FULL_MASK)
    out = np.ones(8, np.float32)
    device.run("data_copy_l2", device.gm(out), device.local(np.full(8, 3, np.float32)), 8)
    assert (out == 3).all()


def test_init_soc_state_of_the_cube(cube: Any) -> None:
    """LoadData's padding value and boundary are 0 again."""
    cube.run("set_load_data_padding_value", 7, operand_types=("i8",))
    cube.run("set_load_data_boundary", 1024)
    assert len(cube.core.registers.values) == 2
    cube.run("init_soc_state")
    assert not cube.core.registers.values


# -- CheckLocalMemoryIA ----------------------------------------------------------------------------------------------

KINDS = ("scalar read", "scalar write", "vector read", "vector write", "mte read", "mte write")


def watch(device: Any, low: int, high: int, kind: str | None, register: int = 0) -> None:
    """Watch the 32-byte blocks (low, high] for one kind of access; None stops watching."""
    flags = [int(name == kind) for name in KINDS]
    fields = [register, low, high, *flags, int(kind is not None)]
    device.run("check_local_memory_ia", construct("check_local_memory_ia_param", "", *fields))


def hits(device: Any) -> list[tuple[str, str]]:
    """(pipe, role) of the watched accesses so far."""
    found = [fault for fault in device.recorder.faults if fault.code == "watched_access"]
    return [(fault.facts["pipe"], fault.facts["role"]) for fault in found]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("scalar read", [("S", "read")]), ("scalar write", [("S", "write")]), ("vector read", [("V", "read")] * 2),
     ("vector write", [("V", "write")]), ("mte read", [("MTE3", "read")]), ("mte write", [("MTE2", "write")])],
)
def test_watched_accesses(device: Any, kind: str, expected: list[tuple[str, str]]) -> None:
    """Each kind sees its own; nothing else of the same bytes."""
    ub = device.local(np.zeros(64, np.float32), address=256)
    gm = device.gm(np.zeros(64, np.float32))
    watch(device, 7, 20, kind)
    device.run("local_tensor.get_value", ub, 1)
    device.run("local_tensor.set_value", ub, 1, 1.0)
    device.run("add_l2", ub, ub, ub, 64)
    device.run("data_copy_l2", gm, ub, 64)
    device.run("data_copy_l2", ub, gm, 64)
    assert hits(device) == expected


def test_watched_range(device: Any) -> None:
    """(start, end]: block `start` itself is not watched, block `end` is."""
    ub = device.local(np.zeros(64, np.float32), address=0)
    watch(device, 2, 4, "vector write")
    for block in range(6):
        device.run("duplicate_l2", ub.at(block * 8), 1.0, 8)
    found = [fault.facts["address"] for fault in device.recorder.faults]
    assert found == [96, 128]


def test_watched_strides(device: Any) -> None:
    """What an instruction leaves out between its blocks is not an access."""
    ub = device.local(np.zeros(512, np.float32), address=0)
    params = construct("binary_repeat_params", "", 2, 2, 2, 16, 16, 16)  # every second block
    watch(device, 0, 1, "vector write")
    device.run("add_l0", ub, ub, ub, 64, 2, params, is_set_mask=True)
    assert hits(device) == []
    watch(device, 1, 2, "vector write")
    device.run("add_l0", ub, ub, ub, 64, 2, params, is_set_mask=True)
    assert device.recorder.faults[0].facts["address"] == 64


def test_watch_of_one_core(make_device: Any) -> None:
    """The others may do as they like."""
    device = make_device(cores=vector_cores(2))
    watch(device, 0, 100, "scalar write")
    device.core = device.machine.cores[1]
    device.run("local_tensor.set_value", device.local(np.zeros(64, np.float32), address=256), 0, 1.0)
    assert hits(device) == []


def test_watch_ends(device: Any) -> None:
    """Registers count for themselves; after the last one nothing is looked at any more."""
    ub = device.local(np.zeros(64, np.float32), address=0)
    watch(device, 0, 100, "vector write", 0)
    watch(device, 0, 100, "vector read", 3)
    watch(device, 0, 0, None, 0)
    device.run("add_l2", ub, ub, ub, 64)
    assert hits(device) == [("V", "read")] * 2
    watch(device, 0, 0, None, 3)
    device.run("add_l2", ub, ub, ub, 64)
    assert len(hits(device)) == 2 and type(device.recorder.accesses) is list
    watch(device, 0, 100, "vector read", 4)
    assert device.recorder.faults[-1].code == "bad_operand"
    assert type(device.recorder.accesses) is not list
    device.core.end()  # a kernel that does not reset its registers leaves nothing to the next one
    assert type(device.recorder.accesses) is list


def test_watch_row(device: Any) -> None:
    """What is watched, for the trace's readers."""
    watch(device, 3, 9, "vector write", 2)
    batch = device.trace()
    assert OPCODES.names[batch.column("opcode")[0]] == "check_local_memory_ia"
    assert [batch.column(name)[0] for name in "abcd"] == [3, 9, 1 << 3, 2 | 1 << 2]


# -- the rest --------------------------------------------------------------------------------------------------------


def test_trap_ends_the_launch(make_device: Any) -> None:
    """A fault that names the core; the cores after it do not go on, and no error leaves the machine."""
    device = make_device(cores=vector_cores(3))
    ran: list[int] = []

    def kernel(core: Core) -> Iterator[Any]:
        ran.append(core.index)
        if core.index == 1:
            entries()["ascendc.trap"].function(core, 0)
        return
        yield

    device.machine.run(kernel, ())
    assert ran == [0, 1]
    assert [(fault.code, fault.core) for fault in device.recorder.faults] == [("trap", 1)]
    with pytest.raises(Trapped):
        device.run("trap")


def test_profiling_marks(device: Any) -> None:
    """Two rows."""
    device.run("metrics_prof_start")
    device.run("metrics_prof_stop")
    assert device.opcodes() == ["metrics_prof_start", "metrics_prof_stop"]


def test_system_workspace(make_device: Any) -> None:
    """Shared by the cores of a launch, zero at first; a core may name its own."""
    device = make_device(cores=vector_cores(2))
    first = device.run("get_sys_workspace_ptr")
    device.core = device.machine.cores[1]
    assert device.run("get_sys_workspace_ptr") is first and not first.memory.bytes[:64].any()
    assert device.recorder.buffers[first.buffer].kind == "workspace"
    own = pointer(device.gm(np.zeros(64, np.uint8)))
    device.run("set_sys_workspace", own)
    assert device.run("get_sys_workspace_ptr") is own


def test_hccl_contexts(device: Any) -> None:
    """Two groups; null before they are set; no third."""
    context = pointer(device.gm(np.zeros(64, np.uint8)))
    assert device.run("get_hccl_context", 1).address == 0
    device.run("set_hccl_context", 1, context)
    assert device.run("get_hccl_context", 1) is context and device.run("get_hccl_context", 0).address == 0
    assert device.recorder.faults == []
    device.run("set_hccl_context", 2, context)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]
