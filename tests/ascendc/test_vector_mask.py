"""The vector mask registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.trace.schema import OPCODES, CoreInfo, CoreType, Pipe

ALL = (1 << 64) - 1


@pytest.mark.parametrize(
    ("dtype", "length", "mask"),
    [
        ("f16", 0, (0, 0)), ("f16", 100, (ALL, (1 << 36) - 1)), ("f16", 128, FULL_MASK), ("f32", 64, (ALL, 0)),
        ("i32", 5, (0b11111, 0)), ("i64", 32, ((1 << 32) - 1, 0)),
    ],
)
def test_leading_lanes(device: Any, dtype: str, length: int, mask: tuple[int, int]) -> None:
    device.run("set_vector_mask_l0", length, dtype=dtype, mode=NORMAL)
    assert device.core.registers.mask == mask
    assert device.recorder.faults == []


@pytest.mark.parametrize(("dtype", "length"), [("f32", 65), ("f16", 129), ("f16", -1)])
def test_lengths_out_of_range_are_faults(device: Any, dtype: str, length: int) -> None:
    device.run("set_vector_mask_l0", length, dtype=dtype, mode=NORMAL)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]


def test_words_and_counts(device: Any) -> None:
    device.run("set_vector_mask_l1", 3, -1, dtype="f16", mode=NORMAL)
    assert device.core.registers.mask == (ALL, 3)
    device.run("set_vector_mask_l0", 5000, dtype="f16", mode=COUNTER)
    assert device.core.registers.mask == (5000, 0)
    device.run("reset_mask")
    assert device.core.registers.mask == FULL_MASK


def test_modes_persist(device: Any) -> None:
    device.run("set_mask_count")
    device.run("reset_mask")
    assert device.core.registers.mask_mode == COUNTER
    device.run("set_mask_norm")
    assert device.core.registers.mask_mode == NORMAL


def test_rows_hold_the_registers(device: Any) -> None:
    device.run("set_mask_count")
    device.run("set_vector_mask_l0", 100, dtype="f16", mode=COUNTER)
    device.run("set_mask_norm")
    device.run("set_vector_mask_l1", 1 << 63, 7, dtype="f16", mode=NORMAL)
    device.run("reset_mask")
    batch = device.trace()
    columns = [batch.column(name).tolist() for name in ("b", "c", "d")]
    names = [OPCODES.names[number] for number in batch.column("opcode")]
    assert [(name, *row) for name, *row in zip(names, *columns, strict=True)] == [
        ("set_mask_count", COUNTER, -1, -1),
        ("set_vector_mask", COUNTER, 100, 0),
        ("set_mask_norm", NORMAL, 100, 0),
        ("set_vector_mask", NORMAL, 7, -(1 << 63)),
        ("reset_mask", NORMAL, -1, -1),
    ]
    assert set(batch.column("pipe").tolist()) == {int(Pipe.S)}


def test_a_vector_instruction_uses_them(device: Any) -> None:
    x, z = device.local(np.ones(64, np.float32)), device.local(np.zeros(64, np.float32))
    device.run("set_vector_mask_l1", 0, 0b1011, dtype="f32", mode=NORMAL)
    device.run("relu_l1", z, x, [0], 1, construct("unary_repeat_params", ""))
    assert np.flatnonzero(device.values(z)).tolist() == [0, 1, 3]


def test_an_aic_has_none(make_device: Any) -> None:
    device = make_device(cores=(CoreInfo(CoreType.AIC, 0),))
    device.run("set_mask_count")
    device.run("set_vector_mask_l0", 5, dtype="f32", mode=NORMAL)
    assert (device.core.registers.mask_mode, device.core.registers.mask) == (NORMAL, FULL_MASK)
    assert device.opcodes() == []

