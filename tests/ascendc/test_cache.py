"""DataCacheCleanAndInvalid and preloads: rows, lines, destinations; the examples of the vendor's page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.schema import ACCESS_COLUMNS, OPCODES, Pipe, Role

SINGLE, ENTIRE = 0, 1
ALL, UB, OUT, ATOMIC = range(4)


def dcci(device: Any, tensor: Any, entire: int = SINGLE, target: int = OUT) -> None:
    """DataCacheCleanAndInvalid."""
    device.run("data_cache_clean_invalid_global", tensor, entire_type=entire, dcci_dst=target)


def touched(device: Any) -> list[tuple[int, int, int]]:
    """(role, address, bytes) of the accesses since the last look."""
    rows = [dict(zip(ACCESS_COLUMNS, row, strict=True)) for row in device.trace().access.T.tolist()]
    return [(row["role"], row["address"], FOOTPRINTS[row["footprint"]].nbytes) for row in rows]


def test_row(device: Any) -> None:
    """a: entire, b: destination; the line is read."""
    gm = device.gm(np.zeros(64, np.int32))
    dcci(device, gm.at(17), SINGLE, ATOMIC)
    dcci(device, gm, ENTIRE, ALL)
    batch = device.trace()
    assert [OPCODES.names[code] for code in batch.column("opcode")] == ["dcci", "dcci"]
    assert set(batch.column("pipe").tolist()) == {int(Pipe.S)}
    assert batch.column("a").tolist() == [SINGLE, ENTIRE] and batch.column("b").tolist() == [ATOMIC, ALL]
    access = dict(zip(ACCESS_COLUMNS, batch.access.T.tolist()[0], strict=True))
    assert batch.access.shape[1] == 1 and (access["role"], access["address"]) == (Role.READ, gm.address + 64)
    assert FOOTPRINTS[access["footprint"]].nbytes == 64


def test_line_at_the_end_of_an_array(device: Any) -> None:
    """The row names the array's own bytes only."""
    gm = device.gm(np.zeros(20, np.int32))
    dcci(device, gm.at(18))
    assert touched(device) == [(Role.READ, gm.address + 64, 16)]


@pytest.mark.parametrize(("target", "stored"), [(ALL, 1), (UB, 0), (OUT, 1), (ATOMIC, 1)])
def test_destinations(device: Any, target: int, stored: int) -> None:
    """CACHELINE_UB leaves the lines of global memory alone."""
    data = np.zeros(16, np.int32)
    gm = device.gm(data)
    device.run("global_tensor.set_value", gm, 0, 1)
    dcci(device, gm, SINGLE, target)
    assert data[0] == stored


def test_without_a_destination(device: Any) -> None:
    """The form without dcciDst is about global memory."""
    data = np.zeros(16, np.int32)
    gm = device.gm(data)
    device.run("global_tensor.set_value", gm, 0, 1)
    device.run("data_cache_clean_invalid_global_nodccidst", gm, entire_type=SINGLE)
    assert data[0] == 1 and device.trace().column("b")[-1] == OUT


def test_aligned_line(device: Any) -> None:
    """Example 1 of the page: eight 64-bit values in one line, one instruction."""
    data = np.zeros(16, np.uint64)
    gm = device.gm(data)
    for index in range(8):
        device.run("global_tensor.set_value", gm, index, 3)
    dcci(device, gm)
    assert data[:8].tolist() == [3] * 8


def test_unaligned_line(device: Any) -> None:
    """Example 2: from byte 0x20 on eight values lie in two lines; one instruction brings the first four only."""
    data = np.zeros(32, np.uint64)
    gm = device.gm(data).at(4)
    for index in range(8):
        device.run("global_tensor.set_value", gm, index, 3)
    dcci(device, gm)
    assert data[4:12].tolist() == [3] * 4 + [0] * 4
    dcci(device, gm.at(4))
    assert data[4:12].tolist() == [3] * 8


def test_entire_cache(device: Any) -> None:
    """Example 4: all lines, whatever the address."""
    data, other = np.zeros(64, np.int32), np.zeros(16, np.int32)
    gm, second = device.gm(data), device.gm(other)
    device.run("global_tensor.set_value", gm, 40, 5)
    device.run("global_tensor.set_value", second, 0, 6)
    dcci(device, gm, ENTIRE)
    assert data[40] == 5 and other[0] == 6


def test_two_cores_in_one_line(make_device: Any) -> None:
    """Example 3: both store an element of the same line; the line that is cleaned last wins, with the old neighbour."""
    from npuscope.npu.machine import vector_cores

    device = make_device(cores=vector_cores(2))
    data = np.zeros(16, np.int32)
    gm = device.gm(data)
    for core in (0, 1):
        device.core = device.machine.cores[core]
        device.run("global_tensor.set_value", gm, core, core + 10)
    for core in (0, 1):
        device.core = device.machine.cores[core]
        dcci(device, gm)
    assert data[:2].tolist() == [0, 11]
    assert [fault.code for fault in device.recorder.faults] == ["lost_write"]


def test_preload(device: Any) -> None:
    """The line so many bytes on is cached from then on: a later change is not seen."""
    data = np.zeros(64, np.uint64)
    gm = device.gm(data)
    device.run("data_cache_preload", gm, 128)
    assert touched(device) == [(Role.READ, gm.address + 128, 64)]
    data[:] = 9
    assert device.run("global_tensor.get_value", gm, 16) == 0
    assert device.run("global_tensor.get_value", gm, 0) == 9


def test_code_preload(device: Any) -> None:
    """A row; preloading is done at once."""
    device.run("icache_preload", 2)
    assert device.opcodes() == ["icache_preload"]
    assert device.run("get_icache_preload_status") == 0
