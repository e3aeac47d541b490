"""printf and the dumps: C's formats, the vendor's published output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import Record
from npuscope.mlir.program import lower
from npuscope.npu.machine import mixed_cores, vector_cores
from npuscope.npu.tensor import Pointer
from npuscope.trace.schema import Role

HEAD = "[AIV Block 0/1] "


def printed(device: Any, text: str, *values: Any, types: tuple[str, ...] = ()) -> str:
    """What a printf prints, without the core's mark."""
    device.machine.output.clear()
    device.run("printf", list(values), desc=text, operand_types=types)
    return "\n".join(line.removeprefix(HEAD) for line in device.machine.output)


@pytest.mark.parametrize(
    ("text", "values", "types", "expected"),
    [
        ("plain", (), (), "plain"),
        ("fmt string int: %d", (0x123,), ("i32",), "fmt string int: 291"),
        ("fmt string float: %f", (3.140000104904175,), ("f32",), "fmt string float: 3.140000"),
        ("%i %li %lli %ld %lld", (-1, -2, -3, 1 << 40, -(1 << 40)), ("i32", "i64", "i64", "i64", "i64"),
         "-1 -2 -3 1099511627776 -1099511627776"),
        ("%u %lu", (-1, -1), ("i32", "i64"), "4294967295 18446744073709551615"),
        ("%u", (200,), ("ui8",), "200"),
        ("%x %X %lx", (255, 255, -1), ("i32", "i32", "i64"), "ff FF ffffffffffffffff"),
        ("%x", (-1,), ("i8",), "ff"),
        ("%#x %08d %-4d| %+d", (255, 42, 7, 7), ("i32",) * 4, "0xff 00000042 7   | +7"),
        ("%5.2f|%.0f|%e|%g", (3.14159, 2.5, 1500.0, 0.25), ("f32",) * 4, " 3.14|2|1.500000e+03|0.25"),
        ("%F", (1.5,), ("f16",), "1.500000"),
        ("%f %f", (float("inf"), float("nan")), ("f32", "f32"), "inf nan"),
        ("100%% %d", (5,), ("i32",), "100% 5"),
        ("%c%c", (72, 105), ("i32", "i32"), "Hi"),
        ("%p", (0x1000,), ("i64",), "0x1000"),
        ("%o", (8,), ("i32",), "10"),
        ("%d and %d", (1,), ("i32",), "1 and %d"),
        ("%d", (1, 2), ("i32", "i32"), "1"),
        ("%d", (1,), (), "1"),
        ("%y", (1,), ("i32",), "%y"),
    ],
)
def test_formats(device: Any, text: str, values: tuple[Any, ...], types: tuple[str, ...], expected: str) -> None:
    """As C prints them; missing values leave the conversion, extra values are not printed."""
    assert printed(device, text, *values, types=types) == expected


def test_addresses(device: Any) -> None:
    """%s and %p of a pointer."""
    gm = device.gm(np.zeros(8, np.float16))
    address = Pointer(gm.memory, gm.address, gm.dtype, gm.buffer)
    assert printed(device, "%s %p", address, address) == f"0x{gm.address:x} 0x{gm.address:x}"


@pytest.mark.parametrize("text", ["one\ntwo\n", "one\\ntwo\\n", "one\\ntwo"])
def test_lines(device: Any, text: str) -> None:
    """A newline that reached the IR, or its C escape; each line is marked."""
    device.run("printf", [], desc=text)
    assert device.machine.output == [HEAD + "one", HEAD + "two"]


def test_mark_of_the_core(make_device: Any) -> None:
    """As the vendor's page shows: type, block and how many of that type."""
    device = make_device(cores=vector_cores(8))
    for core in (0, 3):
        device.core = device.machine.cores[core]
        device.run("printf", [], desc="hello world device\n")
    assert device.machine.output == [
        "[AIV Block 0/8] hello world device", "[AIV Block 3/8] hello world device",
    ]
    device = make_device(cores=mixed_cores(2))
    device.run("printf", [], desc="x")
    assert device.machine.output == ["[AIC Block 0/2] x"]


def test_printf_from_ir(device: Any) -> None:
    """The operands' types reach the format: an i8 of -1 prints as ff."""
    text = """
    "builtin.module"() ({
      "func.func"() <{function_type = () -> (), sym_name = "kernel"}> ({
        %a = "arith.constant"() <{value = -1 : i8}> : () -> i8
        %b = "arith.constant"() <{value = 2.5 : f32}> : () -> f32
        "ascendc.printf"(%a, %b) <{desc = "%x %f\\\\n"}> : (i8, f32) -> ()
        "func.return"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    """
    program = lower(text, lambda file: False, device.recorder.add_site)
    device.machine.run(program.entry, ())
    assert device.machine.output == [HEAD + "ff 2.500000"]


# -- tensors ---------------------------------------------------------------------------------------------------------


def shape(*extents: int) -> Record:
    """ShapeInfo(dims, extents)."""
    return Record("shape_info", (len(extents), list(extents), 0))


def dumped(device: Any, *operands: Any, name: str = "dump_tensor") -> list[str]:
    """The lines of a dump."""
    device.machine.output.clear()
    device.run(name, *operands)
    return list(device.machine.output)


def test_dump(device: Any) -> None:
    """The form of page DumpTensor: a head line, the values with six decimals."""
    values = np.array([19, 4, 38, 50, 39.5], np.float16)
    ub = device.local(np.resize(values, 16), address=0x100)
    assert dumped(device, ub, 5, 5) == [
        HEAD + "DumpTensor: desc=5, addr=0x100, data_type=float16, position=UB, dump_size=5",
        "[19.000000, 4.000000, 38.000000, 50.000000, 39.500000]",
    ]
    assert device.touched(ub, Role.READ) == set(range(0x100, 0x10A))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.int32, "[-1, 2]"), (np.uint8, "[255, 2]"), (np.float32, "[-1.000000, 2.000000]"),
     (ml_dtypes.bfloat16, "[-1.000000, 2.000000]"), (np.int64, "[-1, 2]")],
)
def test_dumped_types(device: Any, dtype: Any, expected: str) -> None:
    """Integers as integers; local and global tensors."""
    values = np.resize(np.array([-1, 2]).astype(dtype), 32)
    assert dumped(device, device.local(values), 1, 2)[1] == expected
    head, line = dumped(device, device.gm(values), 1, 2)
    assert line == expected and "position=GM" in head and f"data_type={np.dtype(dtype).name}" in head


@pytest.mark.parametrize(
    ("extents", "lines"),
    [((2, 3), ["[[0,1,2],", "[3,4,5]]"]),
     ((1, 3), ["shape is [1, 3], dumpSize is 6, dumpSize is greater than shapeSize.", "[[0,1,2]]"]),
     ((3, 3), ["shape is [3, 3], dumpSize is 6, data is not enough.", "[[0,1,2],", "[3,4,5],", "[-,-,-]]"]),
     ((2, 1, 3), ["[[[0,1,2]],", "[[3,4,5]]]"]), ((6,), ["[0,1,2,3,4,5]"])],
)
def test_dump_in_a_shape(device: Any, extents: tuple[int, ...], lines: list[str]) -> None:
    """The three examples of page DumpTensor: equal, shape smaller, shape larger; and other ranks."""
    ub = device.local(np.arange(8, dtype=np.int32))
    assert dumped(device, ub, 2, 6, shape(*extents))[1:] == lines


def test_dump_from_an_offset(device: Any) -> None:
    """DumpAccChkPoint: the address and the values begin `countOff` elements on (page's example: 0x40 for 32 halves)."""
    ub = device.local(np.arange(64, dtype=np.float16), address=0)
    head, line = dumped(device, ub, 56, 32, 3, name="dump_acc_chk_point")
    assert "desc=56, addr=0x40, " in head and line == "[32.000000, 33.000000, 34.000000]"


def test_dump_drains_the_pipes(device: Any) -> None:
    """A barrier of the framework's before the read."""
    dumped(device, device.local(np.arange(8, dtype=np.int32)), 1, 8)
    assert device.opcodes() == ["pipe_barrier", "dump_tensor"]


def test_tensors_of_the_other_core_type(cube: Any) -> None:
    """A mixed kernel dumps UB on the vector cores only."""
    assert dumped(cube, cube.local(np.arange(8, dtype=np.int32)), 1, 8) == []
    assert dumped(cube, cube.local(np.arange(8, dtype=np.int32), position=1), 1, 8)[1] == "[0, 1, 2, 3, 4, 5, 6, 7]"


def test_time_stamp(device: Any) -> None:
    """The line of page PrintTimeStamp; the stamps do not run backwards."""
    device.run("print_time_stamp", 65577)
    device.run("print_time_stamp", 65578)
    stamps = [int(line.split("timeStamp is ")[1].split(",")[0]) for line in device.machine.output]
    assert device.machine.output[0].startswith(HEAD + "descId is 65577, rsv is 0, timeStamp is ")
    assert stamps[0] < stamps[1]


def test_print(device: Any) -> None:
    """LocalTensor.Print: 32 bytes a line, the number of the first element before it."""
    ints = device.local(np.arange(20, dtype=np.int32))
    device.run("local_tensor.print", ints, 11)
    assert [line.removeprefix(HEAD) for line in device.machine.output] == [
        "0000 : 0 1 2 3 4 5 6 7", "0008 : 8 9 10",
    ]
    device.machine.output.clear()
    device.run("local_tensor.print", device.local(np.array([0.5, 2], np.float32)))
    assert device.machine.output == [HEAD + "0000 : 0.5 2"]


def test_to_file(device: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensor's bytes, in the working directory."""
    monkeypatch.chdir(tmp_path)
    values = np.arange(12, dtype=np.float32)
    device.run("local_tensor.to_file", device.local(values), file_name="tensor.bin")
    assert (np.fromfile(tmp_path / "tensor.bin", np.float32) == values).all()
