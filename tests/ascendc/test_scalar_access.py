"""GetValue and SetValue: values and rows, GM through the cache, polling loops, what the scalar unit cannot reach."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.mlir.program import lower
from npuscope.npu.machine import Deadlock, vector_cores
from npuscope.npu.tensor import Pointer
from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.schema import ACCESS_COLUMNS, OPCODES, Pipe, Role

VALUES = {
    np.int8: -5, np.uint8: 200, np.int16: -3000, np.uint16: 60000, np.int32: -70000, np.uint32: 4_000_000_000,
    np.int64: -(1 << 40), np.uint64: 1 << 60, np.float16: 1.5, np.float32: -2.25, ml_dtypes.bfloat16: 3.5,
}


@pytest.mark.parametrize(("dtype", "value"), VALUES.items())
@pytest.mark.parametrize("kind", ["local", "global"])
def test_values_there_and_back(device: Any, dtype: Any, value: Any, kind: str) -> None:
    """As numpy stores them; Python numbers come back."""
    array = np.zeros(40, dtype)
    tensor = device.local(array) if kind == "local" else device.gm(array)
    device.run(f"{kind}_tensor.set_value", tensor, 3, value)
    assert device.run(f"{kind}_tensor.get_value", tensor, 3) == value
    assert device.run(f"{kind}_tensor.get_value", tensor, 2) == 0
    assert isinstance(device.run(f"{kind}_tensor.get_value", tensor, 3), (int, float))
    if kind == "local":
        assert device.values(tensor)[3] == value
    else:
        assert array[3] == 0  # still in the cache
        device.core.end()
        assert array[3] == value


@pytest.mark.parametrize("kind", ["local", "global"])
def test_rows(device: Any, kind: str) -> None:
    """Pipe S, the element's own bytes, read or write."""
    array = np.zeros(32, np.int16)
    tensor = device.local(array) if kind == "local" else device.gm(array)
    device.run(f"{kind}_tensor.get_value", tensor, 5)
    device.run(f"{kind}_tensor.set_value", tensor, 6, 1)
    batch = device.trace()
    assert [OPCODES.names[code] for code in batch.column("opcode")] == ["scalar_load", "scalar_store"]
    assert set(batch.column("pipe").tolist()) == {int(Pipe.S)} and batch.column("work").tolist() == [2, 2]
    accesses = [dict(zip(ACCESS_COLUMNS, row, strict=True)) for row in batch.access.T.tolist()]
    assert [(row["role"], row["buffer"], row["address"] - tensor.address) for row in accesses] == [
        (Role.READ, tensor.buffer, 10), (Role.WRITE, tensor.buffer, 12),
    ]
    assert [FOOTPRINTS[row["footprint"]].offsets().tolist() for row in accesses] == [[0, 1], [0, 1]]


def test_copies_pass_the_cache_by(device: Any) -> None:
    """SetValue, then a copy by MTE2: the copy brings the old value; after DCCI the new one (hardware.md 3.5)."""
    data = np.zeros(32, np.int32)
    gm, ub = device.gm(data), device.local(np.zeros(32, np.int32))
    device.run("global_tensor.set_value", gm, 0, 7)
    device.run("data_copy_l2", ub, gm, 32)
    assert device.values(ub)[0] == 0
    device.run("data_cache_clean_invalid_global", gm, entire_type=0, dcci_dst=2)
    device.run("data_copy_l2", ub, gm, 32)
    assert device.values(ub)[0] == 7


def test_outside(device: Any) -> None:
    """Reads are 0, writes are dropped; the row has the address for the checks."""
    ub = device.local(np.zeros(8, np.int32), address=device.core.memories.size(1) - 32)
    assert device.run("local_tensor.get_value", ub, 8) == 0
    device.run("local_tensor.set_value", ub, 100, 1)
    device.run("local_tensor.set_value", ub, -100_000, 1)
    assert device.trace().access.shape[1] == 3


def test_memories_out_of_reach(cube: Any) -> None:
    """L1 is none of the scalar unit's; UB does not exist on a cube core, where nothing happens."""
    cube.run("local_tensor.get_value", cube.local(np.arange(8, dtype=np.int32), position=1), 2)
    assert [fault.facts["value"] for fault in cube.recorder.faults] == ["L1"]
    cube.trace()
    ub = cube.local(np.arange(8, dtype=np.int32))
    assert cube.run("local_tensor.get_value", ub, 2) == 0
    cube.run("local_tensor.set_value", ub, 2, 9)
    assert cube.opcodes() == [] and cube.values(ub)[2] == 2


# -- polling ---------------------------------------------------------------------------------------------------------

KERNEL = """
"builtin.module"() ({
  "func.func"() <{function_type = (memref<?xi32, 22>) -> (), sym_name = "kernel"}> ({
  ^bb0(%x: memref<?xi32, 22>):
    %c0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %c1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %c16 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %o0 = "emitc.constant"() <{value = 0 : ui64}> : () -> ui64
    %o16 = "emitc.constant"() <{value = 16 : ui64}> : () -> ui64
    %a0 = "emitc.constant"() <{value = 0 : ui32}> : () -> ui32
    %a8 = "emitc.constant"() <{value = 8 : ui32}> : () -> ui32
    %g = "ascendc.global_tensor"() : () -> GLOBAL
    "ascendc.global_tensor.set_global_buffer"(%g, %x) : (GLOBAL, memref<?xi32, 22>) -> ()
    %l = "ascendc.local_tensor_v2"(%a0, %a8) <{pos = 9 : i32}> : (ui32, ui32) -> LOCAL
    %block = "ascendc.get_block_idx"() : () -> i32
    %first = "arith.cmpi"(%block, %c0) <{predicate = 0 : i64}> : (i32, i32) -> i1
    "scf.if"(%first) ({
      "scf.while"() ({
        FETCH
        %w = "arith.cmpi"(%v, %c0) <{predicate = 0 : i64}> : (i32, i32) -> i1
        "scf.condition"(%w) : (i1) -> ()
      }, {
        DCCI
        "scf.yield"() : () -> ()
      }) : () -> ()
      "ascendc.global_tensor.set_value"(%g, %o16, %c16) : (GLOBAL, ui64, i32) -> ()
      "scf.yield"() : () -> ()
    }, {
      SIGNAL
      "scf.yield"() : () -> ()
    }) : (i1) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
GET = '%v = "ascendc.global_tensor.get_value"(%g, %o0) : (GLOBAL, ui64) -> i32'
DCCI = '"ascendc.data_cache_clean_invalid_global"(%g) <{dcciDst = 2 : i32, entireType = 0 : i32}> : (GLOBAL) -> ()'
SET = '"ascendc.global_tensor.set_value"(%g, %o0, %c1) : (GLOBAL, ui64, i32) -> ()\n' + DCCI
COPY = '"ascendc.data_copy_l2"(%l, %g, %a8) : (LOCAL, GLOBAL, ui32) -> ()\n'
GET_COPY = COPY + '%v = "ascendc.local_tensor.get_value"(%l, %a0) : (LOCAL, ui32) -> i32'


def run(make_device: Any, fetch: str, dcci: str, signal: str) -> np.ndarray:
    """Two cores: the first polls element 0 and then stores element 16, the second signals."""
    text = KERNEL.replace("FETCH", fetch).replace("DCCI", dcci).replace("SIGNAL", signal)
    text = text.replace("GLOBAL", "!ascendc.global_tensor<*xi32>").replace("LOCAL", "!ascendc.local_tensor<*xi32>")
    device = make_device(cores=vector_cores(2))
    program = lower(text, lambda file: False, device.recorder.add_site)
    data = np.zeros(32, np.int32)
    gm = device.gm(data)
    device.machine.run(program.entry, (Pointer(gm.memory, gm.address, gm.dtype, gm.buffer),))
    return data


def test_polling_with_dcci(make_device: Any) -> None:
    """The usual hand-made flag: stored and cleaned by one core, read and invalidated by the other."""
    data = run(make_device, GET, DCCI, SET)
    assert data[0] == 1 and data[16] == 16


def test_polling_a_copy_in_ub(make_device: Any) -> None:
    """The loop fetches global memory anew each time and looks at UB."""
    assert run(make_device, GET_COPY, "", SET)[16] == 16


def test_polling_without_dcci_never_ends(make_device: Any) -> None:
    """The flag comes, the cached line hides it: the report says so."""
    with pytest.raises(Deadlock, match="AIV 0 pipe S waits for a change of GM 0x[0-9a-f]+, which its data cache hides"):
        run(make_device, GET, "", SET)


def test_polling_without_a_signal_never_ends(make_device: Any) -> None:
    """Nobody writes the flag; nor is it enough to leave it in the other core's cache for ever."""
    with pytest.raises(Deadlock, match="AIV 0 pipe S waits for a change of GM"):
        run(make_device, GET, DCCI, "")
