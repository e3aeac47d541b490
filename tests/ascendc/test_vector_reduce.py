"""Reductions against numpy, lane by lane, and against the numbers on the vendor's ReduceDataBlock and ReduceRepeat
pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.errors import UserError
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.trace.schema import Role

HALF, FLOAT = np.dtype(np.float16), np.dtype(np.float32)
KEPT = 77
"""What the destination holds before."""


def lanes_of(dtype: np.dtype[Any]) -> int:
    return 256 // dtype.itemsize


def source(dtype: np.dtype[Any], repeats: int, seed: int = 1) -> np.ndarray:
    values = np.random.default_rng(seed).uniform(-4, 4, repeats * lanes_of(dtype))
    return values.astype(dtype)


def words(flags: np.ndarray) -> list[int]:
    """Mask words, lowest lane first."""
    value = sum(1 << int(lane) for lane in np.flatnonzero(flags))
    return [value & (2**64 - 1), value >> 64]


def paired_sum(values: np.ndarray) -> Any:
    """Neighbours first, rounded at every level: the tree of the ReduceDataBlock page."""
    while len(values) > 1:
        if len(values) % 2:
            values = np.append(values, values.dtype.type(0))
        values = np.array([values[i] + values[i + 1] for i in range(0, len(values), 2)], values.dtype)
    return values[0]


EXPECTED = {"sum": paired_sum, "max": np.max, "min": np.min}


def masked(values: np.ndarray, flags: np.ndarray, kind: str) -> Any:
    """The reduction of the flagged lanes in place: the others add 0 and never win."""
    filler = {"sum": 0, "max": -np.inf, "min": np.inf}[kind]
    return EXPECTED[kind](np.where(flags, values, values.dtype.type(filler)))


# -- per data block ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", [HALF, FLOAT])
@pytest.mark.parametrize("mask", [None, 5, 40])
def test_block_reduce(device: Any, kind: str, dtype: np.dtype[Any], mask: int | None) -> None:
    data = source(dtype, 3)
    lanes = lanes_of(dtype)
    x, z = device.local(data), device.local(np.full(40, KEPT, dtype))
    device.run(f"block_reduce_{kind}_l0", z, x, 3, lanes if mask is None else mask, 1, 1, 8)
    flags = np.arange(lanes) < (lanes if mask is None else mask)
    expected = np.full(40, KEPT, dtype)
    for index, block in enumerate(data.reshape(24, -1)):
        part = flags.reshape(8, -1)[index % 8]
        if part.any():
            expected[index] = masked(block, part, kind)
    np.testing.assert_array_equal(device.values(z), expected)
    assert device.opcodes() == [{"sum": "vcgadd", "max": "vcgmax", "min": "vcgmin"}[kind]]


def test_block_reduce_strides_and_bit_mask(device: Any) -> None:
    data = source(FLOAT, 8)
    flags = np.random.default_rng(3).random(64) < 0.5
    flags[16:24] = False
    x, z = device.local(data), device.local(np.full(48, KEPT, FLOAT))
    device.run("block_reduce_max_l1", z, x, 2, words(flags), 3, 2, 20)  # every second block, 20 blocks a repeat
    blocks = data.reshape(-1, 8)
    expected = np.full(48, KEPT, FLOAT)
    for repeat in range(2):
        for block in range(8):
            part = flags.reshape(8, 8)[block]
            if part.any():
                expected[repeat * 24 + block] = blocks[repeat * 20 + block * 2][part].max()
    np.testing.assert_array_equal(device.values(z), expected)


@pytest.mark.parametrize(("kind", "filler"), [("sum", 0.0), ("max", -np.inf), ("min", np.inf)])
def test_block_reduce_fills_empty_blocks_on_950(make_device: Any, kind: str, filler: float) -> None:
    device = make_device("Ascend950PR")
    data = source(FLOAT, 1)
    x, z = device.local(data), device.local(np.full(8, KEPT, FLOAT))
    device.run(f"block_reduce_{kind}_l0", z, x, 1, 32, 1, 1, 8)
    assert device.values(z)[4:].tolist() == [filler] * 4
    assert device.values(z)[0] == EXPECTED[kind](data[:8])


@pytest.mark.parametrize(("saturate", "expected"), [(True, 35584.0), (False, np.inf)])
def test_half_sums_overflow_as_the_vendor_shows(device: Any, saturate: bool, expected: float) -> None:
    # 60000 + 60000 stays at 65504 when saturating, then -30000 + 100 and 65504 - 29900 (ReduceDataBlock page, figure 2,
    # in exact numbers). In half -29900 is -29904, and 65504 - 29904 = 35600 lies halfway between 35584 and 35616.
    device.core.registers.saturate = saturate
    data = np.zeros(128, HALF)
    data[:4] = [60000, 60000, -30000, 100]
    x, z = device.local(data), device.local(np.zeros(8, HALF))
    device.run("block_reduce_sum_l0", z, x, 1, 128, 1, 1, 8)
    assert float(device.values(z)[0]) == expected


def test_block_reduce_counter_mode(device: Any) -> None:
    data = source(HALF, 3)
    x, z = device.local(data), device.local(np.full(32, KEPT, HALF))
    device.core.registers.mask_mode = COUNTER
    device.run("block_reduce_max_l0", z, x, 0, 150, 1, 1, 8)  # 128 elements and 22 of the next repeat
    expected = np.full(32, KEPT, HALF)
    expected[:8] = data[:128].reshape(8, 16).max(1)
    expected[8:10] = [data[128:144].max(), data[144:150].max()]
    np.testing.assert_array_equal(device.values(z), expected)
    assert device.core.registers.mask_mode == COUNTER


# -- per pair ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [HALF, FLOAT])
def test_pair_reduce(device: Any, dtype: np.dtype[Any]) -> None:
    data = source(dtype, 2)
    lanes = lanes_of(dtype)
    x, z = device.local(data), device.local(np.full(2 * lanes, KEPT, dtype))
    device.run("pair_reduce_sum_l0", z, x, 2, lanes, 1, 1, 8, is_set_mask=True)
    expected = np.full(2 * lanes, KEPT, dtype)
    expected[:lanes] = data[0::2] + data[1::2]
    np.testing.assert_array_equal(device.values(z), expected)


def test_pair_reduce_masks(device: Any) -> None:
    data = source(FLOAT, 1)
    flags = np.ones(64, bool)
    flags[[3, 10, 11, 62, 63]] = False
    x, z = device.local(data), device.local(np.full(32, KEPT, FLOAT))
    device.run("pair_reduce_sum_l1", z, x, 1, words(flags), 1, 1, 8, is_set_mask=True)
    expected = data[0::2] + data[1::2]
    expected[1] = data[2]
    expected[[5, 31]] = KEPT  # both lanes off: the element stays (ReducePairElem page)
    np.testing.assert_array_equal(device.values(z), expected)


def test_without_set_mask_the_register_rules(device: Any) -> None:
    data = source(FLOAT, 1)
    x, z = device.local(data), device.local(np.full(32, KEPT, FLOAT))
    device.core.registers.mask = (0b1111, 0)
    device.run("pair_reduce_sum_l0", z, x, 1, 64, 1, 1, 8)
    assert device.values(z)[:3].tolist() == [data[0] + data[1], data[2] + data[3], KEPT]


# -- per repeat ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["whole_reduce_sum_l0", "repeat_reduce_sum_l0"])
@pytest.mark.parametrize("dtype", [HALF, FLOAT])
@pytest.mark.parametrize("mask", [1, 33, 64])
def test_sum_of_repeats(device: Any, name: str, dtype: np.dtype[Any], mask: int) -> None:
    data = source(dtype, 5)
    x, z = device.local(data), device.local(np.full(16, KEPT, dtype))
    if name.startswith("whole"):
        device.run(name, z, x, mask, 5, 2, 1, 8, is_set_mask=True)
    else:
        device.run(name, z, x, 5, mask, 9, 1, 2, 8, is_set_mask=True)
    flags = np.arange(lanes_of(dtype)) < mask
    expected = np.full(16, KEPT, dtype)
    expected[:10:2] = [masked(row, flags, "sum") for row in data.reshape(5, -1)]
    np.testing.assert_array_equal(device.values(z), expected)
    assert device.opcodes() == ["vcadd"]


def test_sum_of_repeats_with_bits_and_block_stride(device: Any) -> None:
    data = source(HALF, 4)
    flags = np.random.default_rng(5).random(128) < 0.4
    x, z = device.local(data), device.local(np.zeros(4, HALF))
    device.run("whole_reduce_sum_l1", z, x, words(flags), 2, 1, 2, 16, is_set_mask=True)
    rows = data.reshape(-1, 16)
    expected = [masked(rows[start : start + 16 : 2].reshape(-1), flags, "sum") for start in (0, 16)]
    assert device.values(z)[:2].tolist() == expected


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", [HALF, FLOAT])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_best_of_repeats(device: Any, kind: str, dtype: np.dtype[Any], order: int) -> None:
    data = source(dtype, 4).round(0).astype(dtype)  # many equal values: the first one counts
    x, z = device.local(data), device.local(np.full(16, KEPT, dtype))
    flags = np.random.default_rng(6).random(lanes_of(dtype)) < 0.6
    device.run(f"whole_reduce_{kind}_l1", z, x, words(flags), 4, 1, 1, 8, order=order, is_set_mask=True)
    rows = data.reshape(4, -1)
    lanes = np.array([np.flatnonzero(flags)[getattr(row[flags], f"arg{kind}")()] for row in rows])
    best = np.array([getattr(row[flags], kind)() for row in rows])
    bits = np.dtype(f"u{dtype.itemsize}")
    if order == 3:
        assert device.values(z.cast(np.dtype(np.uint32)))[:4].tolist() == lanes.tolist()
        return
    if order == 2:
        assert device.values(z)[:4].tolist() == best.tolist()
        return
    result = device.values(z)[:8].reshape(4, 2)
    assert result[:, order].tolist() == best.tolist()
    assert result[:, 1 - order].copy().view(bits).reshape(-1).tolist() == lanes.tolist()
    assert (device.values(z)[8:] == KEPT).all()


def test_the_index_is_the_vendors_bit_pattern(device: Any) -> None:
    # ReduceRepeat page: 11 at lane 52, 12 at lane 100, 13 at lane 19 read back as half.
    data = np.repeat(np.array([1, 2, 3], HALF), 128)
    data[52], data[128 + 100], data[256 + 19] = 11, 12, 13
    x, z = device.local(data), device.local(np.zeros(6, HALF))
    device.run("whole_reduce_max_l0", z, x, 128, 3, 1, 1, 8, order=0, is_set_mask=True)
    np.testing.assert_allclose(
        device.values(z).astype(float), [11, 3.09944e-06, 12, 5.96046e-06, 13, 1.13249e-06], rtol=1e-5
    )


def test_infinite_active_lanes_beat_inactive_ones(device: Any) -> None:
    data = np.full(64, -np.inf, FLOAT)
    x, z = device.local(data), device.local(np.zeros(2, FLOAT))
    flags = np.zeros(64, bool)
    flags[[7, 9]] = True
    device.run("whole_reduce_max_l1", z, x, words(flags), 1, 1, 1, 8, order=0, is_set_mask=True)
    assert device.values(z).view(np.uint32)[1] == 7


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32"])
def test_integers_on_950(make_device: Any, dtype: str) -> None:
    device = make_device("Ascend950PR")
    kind = np.dtype(dtype)
    lanes = lanes_of(kind)
    data = np.random.default_rng(2).integers(0, 100, 2 * lanes).astype(kind)
    x, z = device.local(data), device.local(np.zeros(8, kind))
    device.run("whole_reduce_min_l0", z, x, lanes, 2, 1, 1, 8, order=2, is_set_mask=True)
    assert device.values(z)[:2].tolist() == data.reshape(2, -1).min(1).tolist()
    wide = device.local(np.zeros(8, f"{kind.kind}4"))
    device.run("whole_reduce_sum_l0", wide, x, lanes, 2, 1, 1, 8, is_set_mask=True)
    assert device.values(wide)[:2].tolist() == data.reshape(2, -1).sum(1).tolist()


# -- to one value --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", [HALF, FLOAT])
@pytest.mark.parametrize("count", [1, 31, 64, 128, 129, 300, 9000])
@pytest.mark.parametrize("index", [0, 1])
def test_best_of_count(device: Any, kind: str, dtype: np.dtype[Any], count: int, index: int) -> None:
    data = np.random.default_rng(count).integers(0, 500, max(count, 64)).astype(dtype)
    x, z, work = device.local(data), device.local(np.full(4, KEPT, dtype)), device.local(np.zeros(1024, dtype))
    device.core.registers.mask_mode = COUNTER
    device.run(f"reduce_{kind}_l2", z, x, work, count, index)
    place = getattr(data[:count], f"arg{kind}")()
    result = device.values(z)
    assert result[0] == data[place]
    if index:
        assert result.view(f"u{dtype.itemsize}")[1] == place
        assert result[2:].tolist() == [KEPT] * 2
    else:
        assert result[1:].tolist() == [KEPT] * 3
    assert device.core.registers.mask_mode == NORMAL and device.core.registers.mask == FULL_MASK
    assert device.opcodes() == [f"reduce_{kind}"]


def test_best_of_repeats_counts_the_gaps(device: Any) -> None:
    data = source(HALF, 6)
    x, z, work = device.local(data), device.local(np.zeros(2, HALF)), device.local(np.zeros(64, HALF))
    device.run("reduce_max_l0", z, x, work, 100, 3, 16, 1)
    rows = data.reshape(6, 128)[::2, :100]
    row, lane = np.unravel_index(rows.argmax(), rows.shape)
    assert device.values(z)[0] == rows.max()
    assert device.values(z).view(np.uint16)[1] == row * 256 + lane
    flags = np.arange(128) % 3 == 1
    device.run("reduce_min_l1", z, x, work, words(flags), 6, 8, 1)
    every = data.reshape(6, 128)[:, flags]
    row, place = np.unravel_index(every.argmin(), every.shape)
    assert device.values(z)[0] == every.min()
    assert device.values(z).view(np.uint16)[1] == row * 128 + np.flatnonzero(flags)[place]


def reference_sum(data: np.ndarray, in_order: bool) -> Any:
    """Repeats by the tree; the results one after the other, or by trees of a repeat's width."""
    lanes = lanes_of(data.dtype)
    sums = np.array([paired_sum(data[start : start + lanes]) for start in range(0, len(data), lanes)], data.dtype)
    if in_order:
        total = sums[0]
        for value in sums[1:]:
            total = data.dtype.type(total + value)
        return total
    while len(sums) > 1:
        sums = np.array([paired_sum(sums[start : start + lanes]) for start in range(0, len(sums), lanes)], data.dtype)
    return sums[0]


@pytest.mark.parametrize("dtype", [HALF, FLOAT])
@pytest.mark.parametrize("count", [1, 63, 130, 1000, 9000])
def test_sum_of_count_adds_the_repeats_in_order(device: Any, dtype: np.dtype[Any], count: int) -> None:
    data = np.random.default_rng(count).uniform(0, 3, count).astype(dtype)
    x, z = device.local(data), device.local(np.full(4, KEPT, dtype))
    device.run("reduce_sum_l2", z, x, device.local(np.zeros(8, dtype)), count)
    assert device.values(z).tolist() == [reference_sum(data, True), KEPT, KEPT, KEPT]


@pytest.mark.parametrize("repeats", [1, 2, 70, 130])
def test_sum_of_repeats_is_a_tree_of_trees(device: Any, repeats: int) -> None:
    data = np.random.default_rng(repeats).uniform(0, 3, repeats * 64).astype(FLOAT)
    x, z, work = device.local(data), device.local(np.zeros(2, FLOAT)), device.local(np.zeros(256, FLOAT))
    device.run("reduce_sum_l0", z, x, work, 64, repeats, 8)
    assert device.values(z)[0] == reference_sum(data, False)
    assert device.touched(work, Role.WRITE) == set(range(work.address, work.address + 4 * repeats))


def test_sum_with_bits(device: Any) -> None:
    data = source(HALF, 4)
    flags = np.arange(128) % 5 < 2
    x, z, work = device.local(data), device.local(np.zeros(2, HALF)), device.local(np.zeros(16, HALF))
    device.run("reduce_sum_l1", z, x, work, words(flags), 4, 8)
    rows = np.where(flags, data.reshape(4, 128), HALF.type(0)).reshape(-1)
    assert device.values(z)[0] == reference_sum(rows, False)


@pytest.mark.parametrize("count", [40, 100, 180, 250, 400])
def test_sum_of_count_on_950_merges_few_repeats_first(make_device: Any, count: int) -> None:
    device = make_device("Ascend950PR")
    data = np.random.default_rng(count).uniform(0, 3, count).astype(FLOAT)
    x, z = device.local(data), device.local(np.zeros(2, FLOAT))
    device.run("reduce_sum_l2", z, x, device.local(np.zeros(64, FLOAT)), count)
    rows = np.append(data, np.zeros(-count % 64, FLOAT)).reshape(-1, 64)
    expected = reference_sum(data, False)
    if 1 < len(rows) <= 4:
        expected = paired_sum(np.array([paired_sum(column) for column in rows.T], FLOAT))
    assert device.values(z)[0] == expected


def test_the_work_buffer_holds_what_the_vendors_formula_says(device: Any) -> None:
    # ReduceMax page, example 1: half, 65 repeats, with index: 176 elements at most; without: 144.
    data = source(HALF, 65)
    x, z, work = device.local(data), device.local(np.zeros(2, HALF)), device.local(np.zeros(1024, HALF))
    device.run("reduce_max_l0", z, x, work, 128, 65, 8, 1)
    touched = device.touched(work, Role.WRITE)
    assert max(touched) < work.address + 352 and {work.address, work.address + 2 * 144} <= touched
    device.run("reduce_max_l0", z, x, work, 128, 65, 8, 0)
    assert max(device.touched(work, Role.WRITE)) == work.address + 4 * 65 - 1
    device.run("reduce_max_l0", z, x, work, 128, 1, 8, 1)
    assert not device.touched(work, Role.WRITE)


# -- footprints, no-ops, errors ------------------------------------------------------------------------------------


def test_footprints(device: Any) -> None:
    x, z = device.local(source(FLOAT, 3)), device.local(np.zeros(64, FLOAT))
    device.run("whole_reduce_max_l0", z, x, 10, 3, 2, 1, 8, order=0, is_set_mask=True)
    batch = device.trace()
    device.batches.clear()
    assert batch.column("work").tolist() == [3 * 64]
    device.run("whole_reduce_max_l0", z, x, 10, 3, 2, 1, 8, order=0, is_set_mask=True)
    assert device.touched(z, Role.WRITE) == {z.address + 16 * r + b for r in range(3) for b in range(8)}
    device.run("whole_reduce_max_l0", z, x, 10, 3, 2, 1, 8, order=0, is_set_mask=True)
    assert device.touched(x, Role.READ) == {x.address + 256 * r + b for r in range(3) for b in range(40)}
    device.run("block_reduce_sum_l0", z, x, 1, 10, 1, 1, 8)
    assert device.touched(z, Role.WRITE) == set(range(z.address, z.address + 8))


@pytest.mark.parametrize(("repeat", "mask"), [(0, 64), (2, 0)])
def test_nothing_to_do_is_one_row_without_accesses(device: Any, repeat: int, mask: int) -> None:
    x, z = device.local(source(FLOAT, 2)), device.local(np.full(8, KEPT, FLOAT))
    device.run("whole_reduce_sum_l0", z, x, mask, repeat, 1, 1, 8, is_set_mask=True)
    assert (device.values(z) == KEPT).all()
    batch = device.trace()
    assert batch.instruction.shape[1] == 1 and batch.access.shape[1] == 0


def test_too_many_repeats_are_a_fault(device: Any) -> None:
    x, z = device.local(source(FLOAT, 2)), device.local(np.zeros(512, FLOAT))
    device.run("whole_reduce_sum_l0", z, x, 64, 300, 1, 1, 0, is_set_mask=True)
    (fault,) = device.recorder.faults
    assert fault.code == "bad_operand" and fault.facts["value"] == 300
    assert not device.values(z)[255:].any()


def test_out_of_range_operands_do_not_raise(device: Any) -> None:
    end = device.core.memories[device.local(np.zeros(1, FLOAT)).space].size
    x = device.local(np.ones(32, FLOAT), address=end - 128)
    z = device.local(np.zeros(8, FLOAT), address=0)
    device.run("whole_reduce_sum_l0", z, x, 64, 1, 1, 1, 8, is_set_mask=True)
    assert device.values(z)[0] == 32


@pytest.mark.parametrize("name", ["block_reduce_sum_l0", "pair_reduce_sum_l0"])
def test_wrong_types_are_named(device: Any, name: str) -> None:
    x, z = device.local(np.zeros(64, np.int32)), device.local(np.zeros(8, np.int32))
    with pytest.raises(UserError, match="takes one of float, half for all operands on Ascend910B1, not int32_t"):
        device.run(name, z, x, 1, 64, 1, 1, 8)


def test_the_cube_core_skips_vector_instructions(cube: Any) -> None:
    x, z = cube.local(source(FLOAT, 1)), cube.local(np.full(8, KEPT, FLOAT))
    cube.run("whole_reduce_sum_l0", z, x, 64, 1, 1, 1, 8, is_set_mask=True)
    assert (cube.values(z) == KEPT).all() and cube.opcodes() == []
