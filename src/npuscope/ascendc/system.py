"""System variables, initialisation, workspaces, exceptions and profiling marks (pages of 工具接口 and 调试接口)."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.load_data import BOUNDARY, PADDING
from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.watch import set_watch
from npuscope.npu.core import Core, opcode
from npuscope.npu.layout import BLOCK
from npuscope.npu.machine import Trapped
from npuscope.npu.memory import Memory
from npuscope.npu.registers import FULL_MASK, NORMAL
from npuscope.npu.tensor import Pointer
from npuscope.trace.schema import Buffer, CoreType, Pipe, Space

S = int(Pipe.S)
INIT_STATE, CHECK_ACCESS = opcode("init_soc_state"), opcode("check_local_memory_ia")
CYCLE, TRAP = opcode("get_system_cycle"), opcode("trap")
PROFILE_START, PROFILE_STOP = opcode("metrics_prof_start"), opcode("metrics_prof_stop")

FIELDS.update(
    {
        "check_local_memory_ia_param": {
            "enable_bit": 0, "start_addr": 0, "end_addr": 0, "is_scalar_read": 0, "is_scalar_write": 0,
            "is_vector_read": 0, "is_vector_write": 0, "is_mte_read": 0, "is_mte_write": 0, "is_enable": 0,
            "reserved": 0,
        },
    }
)

SYSTEM_WORKSPACE_BYTES = 16 << 20
"""What the host reserves for the library of 910B, where the program names no system workspace."""
GROUPS = 2
"""Communication groups whose context a kernel may set."""


# -- variables -------------------------------------------------------------------------------------------------------


@operation("ascendc.get_arch_version", outputs=("core_version",))
def get_arch_version(core: Core, site: int, core_version: int) -> int:
    """GetArchVersion(version): the architecture, its digits in hexadecimal: 0x2201 prints as 2201 with %x."""
    return int(core.chip.arch, 16)


@operation("ascendc.get_data_block_size_in_bytes")
def get_data_block_size_in_bytes(core: Core, site: int) -> int:
    """GetDataBlockSizeInBytes: 32."""
    return BLOCK


@operation("ascendc.get_program_counter")
def get_program_counter(core: Core, site: int) -> int:
    """GetProgramCounter: one address per line of the program, 4 bytes apart."""
    return 4 * site


@operation("ascendc.get_system_cycle")
def get_system_cycle(core: Core, site: int) -> int:
    """GetSystemCycle: a counter that never runs backwards; here it counts the launch's instructions, not time."""
    core.begin(site, S, CYCLE)
    return core.row


@operation("ascendc.get_sub_block_num", "ascendc.get_task_ratio")
def cores_per_block(core: Core, site: int) -> int:
    """GetSubBlockNum and GetTaskRatio: cores of this type per block: the vector cores of a mixed launch, else 1."""
    infos = core.machine.infos
    if not core.chip.split or core.is_aic or not core.machine.mixed:
        return 1
    vectors = sum(info.type is CoreType.AIV for info in infos)
    return vectors // (len(infos) - vectors)


# -- state -----------------------------------------------------------------------------------------------------------


@operation("ascendc.init_soc_state")
def init_soc_state(core: Core, site: int) -> None:
    """InitSocState: no atomic copies, normal mask mode with all lanes, padding value and boundary of LoadData 0."""
    core.begin(site, S, INIT_STATE)
    registers = core.registers
    registers.atomic_operation = None
    registers.atomic_dtype = ""
    registers.mask_mode = NORMAL
    registers.mask = FULL_MASK
    for name in (PADDING, BOUNDARY):
        registers.values.pop(name, None)


@operation("ascendc.check_local_memory_ia")
def check_local_memory_ia(core: Core, site: int, params: Record) -> None:
    """CheckLocalMemoryIA: watch UB blocks (start, end] (units of 32 bytes) for the kinds of access that are set, or
    stop watching. Each access inside is a fault ``watched_access`` (the device raises an exception).

    The row has a: start, b: end, c: kinds (bit 0 scalar read, 1 scalar write, then vector and MTE), d: register, with
    bit 2 for enabled.
    """
    kinds = (params.is_scalar_read, params.is_scalar_write, params.is_vector_read, params.is_vector_write,
             params.is_mte_read, params.is_mte_write)
    bits = sum(bool(kind) << number for number, kind in enumerate(kinds))
    enabled = bool(params.is_enable)
    core.begin(site, S, CHECK_ACCESS, params.start_addr, params.end_addr, bits, params.enable_bit | enabled << 2)
    if not 0 <= params.enable_bit <= 3:
        core.fault("bad_operand", what="enableBit", value=params.enable_bit, limit="0 to 3")
    watched = (params.start_addr + 1) * BLOCK, (params.end_addr + 1) * BLOCK, bits
    set_watch(core, params.enable_bit, watched if enabled else None)


@operation("ascendc.trap")
def trap(core: Core, site: int) -> None:
    """Trap: fault ``trap``; the launch ends here, on all cores."""
    core.begin(site, S, TRAP)
    core.fault("trap", core=core.info.name)
    raise Trapped


@operation("ascendc.metrics_prof_start")
def metrics_prof_start(core: Core, site: int) -> None:
    """MetricsProfStart: a trace row from which a profiler counts."""
    core.begin(site, S, PROFILE_START)


@operation("ascendc.metrics_prof_stop")
def metrics_prof_stop(core: Core, site: int) -> None:
    """MetricsProfStop: a trace row up to which a profiler counts."""
    core.begin(site, S, PROFILE_STOP)


# -- memory that the runtime provides --------------------------------------------------------------------------------


@operation("ascendc.set_sys_workspace")
def set_sys_workspace(core: Core, site: int, workspace: Pointer) -> None:
    """SetSysWorkSpace: the workspace that the library may use."""
    core.library["system_workspace"] = workspace


@operation("ascendc.get_sys_workspace_ptr")
def get_sys_workspace_ptr(core: Core, site: int) -> Pointer:
    """GetSysWorkSpacePtr: what set_sys_workspace gave, else memory that all cores of the launch share."""
    own: Pointer | None = core.library.get("system_workspace")
    if own is not None:
        return own
    shared: dict[str, Any] = core.machine.shared
    if "system_workspace" not in shared:
        shared["system_workspace"] = _zeroed(core, SYSTEM_WORKSPACE_BYTES, "system workspace")
    workspace: Pointer = shared["system_workspace"]
    return workspace


def _zeroed(core: Core, nbytes: int, name: str) -> Pointer:
    data = np.zeros(nbytes, np.uint8)
    region: Memory = core.machine.global_memory.map(data, data)
    number = core.buffer(Buffer(Space.GM, -1, region.base, nbytes, "workspace", name, "uint8", (nbytes,)))
    return Pointer(region, region.base, np.dtype(np.uint8), number)


@operation("ascendc.set_hccl_context")
def set_hccl_context(core: Core, site: int, index: int, context: Pointer) -> None:
    """SetHcclContext<index>(context): the message area of a communication group; fault ``bad_operand`` for another
    index than 0 and 1."""
    _check_group(core, site, index)
    core.library.setdefault("hccl_context", {})[index] = context


@operation("ascendc.get_hccl_context")
def get_hccl_context(core: Core, site: int, index: int) -> Pointer:
    """GetHcclContext<index>(): what set_hccl_context gave, else a null address."""
    _check_group(core, site, index)
    context: Pointer | None = core.library.get("hccl_context", {}).get(index)
    if context is not None:
        return context
    nothing = Memory(Space.GM, 0, np.empty(0, np.uint8))
    return Pointer(nothing, 0, np.dtype(np.uint8), core.raw_tensor(Space.GM, 0, 0, site, "", "uint8"))


def _check_group(core: Core, site: int, index: int) -> None:
    if not 0 <= index < GROUPS:
        core.site = site
        core.fault("bad_operand", what="communication group", value=index, limit=f"0 to {GROUPS - 1}")
