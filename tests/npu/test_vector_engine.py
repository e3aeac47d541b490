"""The element-wise engine against a model that does one lane after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.npu.core import opcode
from npuscope.npu.isa.vector import (
    Extent,
    as_element,
    chained,
    count_extent,
    current_extent,
    elementwise,
    elementwise_count,
    mask_columns,
    pieces,
    set_lanes,
    set_words,
    signed_word,
)
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.npu.tensor import Tensor
from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.schema import Role

ADD = opcode("vadd")
ALL = (1 << 64) - 1


def add_in_order(
    memory: np.ndarray, addresses: tuple[int, int, int], strides: Any, repeat: int, active: np.ndarray, dtype: Any
) -> None:
    """dst = src0 + src1 a repeat at a time: all reads of a repeat come before its writes."""
    lanes = 32 // np.dtype(dtype).itemsize
    for r in range(repeat):
        blocks = []
        for address, (block, step) in zip(addresses, strides, strict=True):
            offsets = [address + 32 * (b * block + r * step) for b in range(8)]
            blocks.append([memory[offset : offset + 32].view(dtype) for offset in offsets])
        sums = [a + b for a, b in zip(blocks[1], blocks[2], strict=True)]
        for b, values in enumerate(sums):
            on = active[r * 8 * lanes + b * lanes :][:lanes]
            blocks[0][b][on] = values[on]


def prepared(device: Any, addresses: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, tuple[Tensor, ...]]:
    """UB's bytes filled with small numbers, and tensors at byte addresses in it."""
    values = np.random.default_rng(3).integers(-50, 50, 16384 // np.dtype(dtype).itemsize).astype(dtype)
    whole = device.local(values, address=0)
    made = [Tensor(whole.memory, address, whole.dtype, whole.buffer) for address in addresses]
    return whole.memory.bytes, tuple(made)


CASES = {
    "apart": ((0, 4096, 8192), ((1, 8), (1, 8), (1, 8))),
    "gaps": ((0, 4096, 8192), ((2, 16), (1, 9), (1, 8))),
    "source again": ((0, 4096, 8192), ((1, 8), (1, 0), (0, 1))),
    "in place": ((4096, 4096, 8192), ((1, 8), (1, 8), (1, 8))),
    "reads the previous repeat": ((4352, 4096, 8192), ((1, 8), (1, 8), (1, 8))),
    "reads the next repeat": ((3840, 4096, 8192), ((1, 8), (1, 8), (1, 8))),
    "sums up": ((4096, 8192, 4096), ((1, 0), (1, 8), (1, 0))),
    "overwrites half a repeat": ((0, 4096, 8192), ((1, 4), (1, 8), (1, 8))),
    "interleaved": ((0, 4096, 8192), ((8, 1), (8, 1), (1, 8))),
    "half a block on": ((4112, 4096, 8192), ((1, 8), (1, 8), (1, 8))),
}


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mask", [None, (0x0F0F_FFFF_0000_AAAA, 0x8000_0000_0000_0001)])
def test_repeats_run_one_after_the_other(device: Any, dtype: Any, case: str, mask: Any) -> None:
    addresses, strides = CASES[case]
    repeat = 5
    memory, (dst, src0, src1) = prepared(device, addresses, dtype)
    lanes = 256 // np.dtype(dtype).itemsize
    one = np.ones(lanes, np.bool_)
    if mask is not None:
        one = np.array([(mask[lane // 64] >> (lane % 64)) & 1 for lane in range(lanes)], np.bool_)
    expected = memory.copy()
    add_in_order(expected, addresses, strides, repeat, np.tile(one, repeat), dtype)
    elementwise(device.core, 0, ADD, np.add, dst, (src0, src1), Extent(repeat, mask), strides)
    assert np.array_equal(memory, expected)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("count", [1, 63, 64, 65, 300])
def test_counter_mode_masks_the_last_repeat(device: Any, case: str, count: int) -> None:
    addresses, strides = CASES[case]
    memory, (dst, src0, src1) = prepared(device, addresses, np.float32)
    repeat = -(-count // 64)
    expected = memory.copy()
    add_in_order(expected, addresses, strides, repeat, np.arange(repeat * 64) < count, np.float32)
    elementwise(device.core, 0, ADD, np.add, dst, (src0, src1), Extent(count=count), strides)
    assert np.array_equal(memory, expected)


@pytest.mark.parametrize("addresses", [CASES[name][0] for name in ("apart", "in place", "reads the previous repeat",
                                                                  "reads the next repeat", "half a block on")])
@pytest.mark.parametrize("count", [1, 64, 65, 300])
def test_the_count_form_is_counter_mode_without_gaps(device: Any, addresses: Any, count: int) -> None:
    memory, (dst, src0, src1) = prepared(device, addresses, np.float32)
    repeat = -(-count // 64)
    expected = memory.copy()
    dense = ((1, 8),) * 3
    add_in_order(expected, addresses, dense, repeat, np.arange(repeat * 64) < count, np.float32)
    elementwise_count(device.core, 0, ADD, np.add, dst, (src0, src1), count)
    assert np.array_equal(memory, expected)


def test_accumulation_reads_what_the_previous_repeat_left(device: Any) -> None:
    values = np.arange(4 * 64, dtype=np.float32)
    src, dst = device.local(values), device.local(np.ones(64, np.float32))
    elementwise(device.core, 0, ADD, lambda a, old: a + old, dst, (src,), Extent(4), ((1, 0), (1, 8)), accumulate=True)
    assert np.array_equal(device.values(dst), values.reshape(4, 64).sum(0) + 1)


def test_operands_of_two_widths_share_the_lanes_of_the_wider(device: Any) -> None:
    source = np.arange(256, dtype=np.float16)
    src, dst = device.local(source), device.local(np.zeros(256, np.float32))
    elementwise(device.core, 0, ADD, lambda a: a.astype(np.float32) * 2, dst, (src,), Extent(3), ((1, 8), (1, 4)))
    got = device.values(dst)
    assert np.array_equal(got[:192], source[:192].astype(np.float32) * 2)
    assert not got[192:].any()


@pytest.mark.parametrize("count", [0, 1, 100, 256])
def test_the_count_form_of_two_widths(device: Any, count: int) -> None:
    source = np.arange(256, dtype=np.float16)
    src, dst = device.local(source), device.local(np.zeros(256, np.float32))
    elementwise_count(device.core, 0, ADD, lambda a: a.astype(np.float32), dst, (src,), count)
    assert np.array_equal(device.values(dst), np.where(np.arange(256) < count, source, 0).astype(np.float32))


def test_what_leaves_the_memory_reads_as_zero_and_is_dropped(device: Any) -> None:
    ub = device.local(np.zeros(1, np.float32)).memory
    end = ub.size - 128
    src = device.local(np.full(32, 5, np.float32), address=end)
    dst = device.local(np.full(128, 9, np.float32), address=0)
    elementwise_count(device.core, 0, ADD, np.add, dst, (src, src), 128)
    assert np.array_equal(device.values(dst), np.where(np.arange(128) < 32, 10, 0))
    elementwise_count(device.core, 0, ADD, np.add, src, (dst, dst), 128)
    assert np.array_equal(device.values(src), np.full(32, 20, np.float32))
    assert device.touched(src, Role.WRITE) == set(range(end, end + 512))


def test_a_masked_instruction_touches_only_active_lanes(device: Any) -> None:
    src, dst = device.local(np.ones(128, np.float32)), device.local(np.zeros(128, np.float32))
    elementwise(device.core, 0, ADD, np.add, dst, (src, src), Extent(2, (0b101, 0)), ((1, 8),) * 3)
    batch = device.trace()
    rows = [row for row in batch.access.T if row[1] == Role.WRITE]
    offsets = set(FOOTPRINTS[int(rows[0][4])].offsets().tolist())
    assert offsets == {repeat * 256 + lane * 4 + byte for repeat in (0, 1) for lane in (0, 2) for byte in range(4)}


def test_the_row_holds_repeats_and_mask_registers(device: Any) -> None:
    src, dst = device.local(np.ones(128, np.float32)), device.local(np.zeros(128, np.float32))
    operands = (device.core, 0, ADD, np.add, dst, (src, src))
    elementwise(*operands, Extent(2), ((1, 8),) * 3)
    elementwise(*operands, Extent(1, (ALL, 3)), ((1, 8),) * 3)
    elementwise_count(*operands, 100)
    batch = device.trace()
    columns = [batch.column(name).tolist() for name in ("a", "b", "c", "d", "work")]
    assert [list(row) for row in zip(*columns, strict=True)] == [
        [2, NORMAL, -1, -1, 128],
        [1, NORMAL, -1, 3, 64],
        [0, COUNTER, 100, 0, 100],
    ]


@pytest.mark.parametrize("repeat", [0, 1])
def test_zero_repeats_do_nothing(device: Any, repeat: int) -> None:
    src, dst = device.local(np.ones(64, np.float32)), device.local(np.zeros(64, np.float32))
    elementwise(device.core, 0, ADD, np.add, dst, (src, src), Extent(repeat), ((1, 8),) * 3)
    assert device.values(dst).sum() == 2 * 64 * repeat


def test_a_negative_count_is_a_fault_and_no_operation(device: Any) -> None:
    dst = device.local(np.zeros(64, np.float32))
    elementwise_count(device.core, 0, ADD, np.add, dst, (dst, dst), -5)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]


def test_mask_registers(device: Any) -> None:
    core = device.core
    set_lanes(core, 100, 2)
    assert core.registers.mask == (ALL, (1 << 36) - 1)
    assert current_extent(core, 3) == Extent(3, (ALL, (1 << 36) - 1))
    set_lanes(core, 100, 4)
    assert core.registers.mask == (ALL, 0)
    set_words(core, [-1, -1])
    assert core.registers.mask == FULL_MASK
    assert current_extent(core, 3) == Extent(3)
    core.registers.mask_mode = COUNTER
    set_lanes(core, 1000, 4)
    assert current_extent(core, 3) == Extent(count=1000)
    assert count_extent(core, 7) == Extent(count=7)
    assert (core.registers.mask_mode, core.registers.mask) == (NORMAL, FULL_MASK)


def test_mask_columns_are_signed() -> None:
    assert mask_columns(Extent(1)) == (NORMAL, -1, -1)
    assert mask_columns(Extent(1, (5,))) == (NORMAL, 5, 0)
    assert signed_word(1 << 63) == -(1 << 63)


def test_pieces_cover_the_extent() -> None:
    found = pieces(Extent(count=200), (4, 4), ((1, 8), (1, 16)))
    assert [(piece.advance, piece.repeat) for piece in found] == [(0, 3), (3, 1)]
    assert found[1].layouts[0].mask.sum() == 200 - 192


@pytest.mark.parametrize(
    ("distance", "write", "read", "expected"),
    [
        (0, (1, 8, 8), (1, 8, 8), False),
        (0, (1, 4, 8), (1, 4, 8), True),
        (0, (8, 1, 8), (8, 1, 8), False),
        (-256, (1, 8, 8), (1, 8, 8), True),
        (256, (1, 8, 8), (1, 8, 8), False),
        (0, (1, 8, 8), (1, 0, 8), True),
        (16, (1, 8, 8), (1, 8, 8), True),
        (32 * 100, (1, 8, 8), (1, 8, 8), False),
    ],
)
def test_chained_finds_repeats_that_depend_on_earlier_ones(
    distance: int, write: Any, read: Any, expected: bool
) -> None:
    assert chained(distance, 4, write, read) is expected


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [(0.1, np.float16, np.float16(0.1)), (70000, np.int16, 4464), (-1, np.uint16, 65535), (40000, np.int16, -25536),
     (2.9, np.int32, 2), (1e6, np.float16, np.inf)],
)
def test_scalars_are_cast_to_the_element_type(value: Any, dtype: Any, expected: Any) -> None:
    with np.errstate(over="ignore"):
        element = as_element(value, np.dtype(dtype))
    assert element.dtype == dtype
    assert element == expected
