"""The masked forms (levels 0 and 1) of instructions whose count form is tested with their family, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.trace.schema import CoreInfo, CoreType

F16, F32, I8, I32 = np.float16, np.float32, np.int8, np.int32
WORD = 0x8421_0000_FFFF_0001
KEPT = 7
Compute = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


INSTRUCTIONS: dict[str, tuple[Any, Any, Compute]] = {
    "add_relu": (F32, F32, lambda a, b, old: relu(a + b)),
    "sub_relu": (F32, F32, lambda a, b, old: relu(a - b)),
    "add_relu_cast": (F16, F32, lambda a, b, old: relu(a + b).astype(F16)),
    "sub_relu_cast": (F16, F32, lambda a, b, old: relu(a - b).astype(F16)),
    "mul_cast": (I8, F16, lambda a, b, old: np.clip(np.rint((a * b).astype(F32)), -128, 127).astype(I8)),
    "fused_mul_add": (F32, F32, lambda a, b, old: a * old + b),
    "fused_mul_add_relu": (F32, F32, lambda a, b, old: relu(a * old + b)),
    "mul_add_dst": (F32, F32, lambda a, b, old: a * b + old),
}
"""Element types of destination and sources, and what numpy computes from the sources and the old destination."""


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_binary(device: Any, name: str, level: int) -> None:
    """Three repeats; the lanes that are off keep what the destination held."""
    dst, src, compute = INSTRUCTIONS[name]
    lanes = 256 // np.dtype(src).itemsize
    rng = np.random.default_rng(3)
    a, b = (rng.normal(0, 4, 3 * lanes).astype(src) for _ in range(2))
    old = np.full(3 * lanes, KEPT, dst)
    on = np.arange(lanes) < 37 if level == 0 else np.array([(WORD >> (lane % 64)) & 1 for lane in range(lanes)], bool)
    mask = 37 if level == 0 else [WORD] * (lanes // 64)
    step = lanes * np.dtype(dst).itemsize // 32
    params = construct("binary_repeat_params", "", 1, 1, 1, step, 8, 8)
    x, y, z = device.local(a), device.local(b), device.local(old)
    device.run(f"{name}_l{level}", z, x, y, mask, 3, params, is_set_mask=True)
    np.testing.assert_array_equal(device.values(z), np.where(np.tile(on, 3), compute(a, b, old), old))


def test_add_deq_relu_bit_mask(device: Any) -> None:
    """relu(a + b) times the scale of SetDeqScale, where the mask has a bit."""
    a, b = np.arange(-32, 32, dtype=I32), np.arange(64, dtype=I32)
    x, y, z = device.local(a), device.local(b), device.local(np.full(64, KEPT, F16))
    device.run("set_deq_scale", 0.5)
    params = construct("binary_repeat_params", "", 1, 1, 1, 4, 8, 8)
    device.run("add_deq_relu_l1", z, x, y, [WORD], 1, params, is_set_mask=True)
    on = np.array([(WORD >> lane) & 1 for lane in range(64)], bool)
    np.testing.assert_array_equal(device.values(z), np.where(on, np.maximum(a + b, 0) * 0.5, KEPT).astype(F16))


@pytest.mark.parametrize(("name", "shift"), [("shift_left", np.left_shift), ("shift_right", np.right_shift)])
def test_shift_bit_mask(device: Any, name: str, shift: Any) -> None:
    """Unsigned words by 3 places."""
    values = np.random.default_rng(4).integers(0, 2**32, 64, np.uint32)
    x, z = device.local(values), device.local(np.zeros(64, np.uint32))
    params = construct("unary_repeat_params", "", 1, 1, 8, 8)
    device.run(f"{name}_l1", z, x, 3, [WORD], 1, params, is_set_mask=True)
    on = np.array([(WORD >> lane) & 1 for lane in range(64)], bool)
    np.testing.assert_array_equal(device.values(z), np.where(on, shift(values, np.uint32(3)), 0))


@pytest.mark.parametrize(("kind", "reduce"), [("min", np.min), ("sum", np.sum)])
def test_block_reduction_bit_mask(device: Any, kind: str, reduce: Any) -> None:
    """One result per block of eight floats over the lanes that are on; each block has at least one."""
    word = int.from_bytes(bytes([0b00010001, 0xFF, 1, 0x80, 0x0F, 0xF0, 0x55, 0xAA]), "little")
    values = np.random.default_rng(5).integers(-50, 50, 64).astype(F32)
    x, z = device.local(values), device.local(np.zeros(8, F32))
    device.run(f"block_reduce_{kind}_l1", z, x, 1, [word], 1, 1, 8)
    on = np.array([(word >> lane) & 1 for lane in range(64)], bool).reshape(8, 8)
    rows = values.reshape(8, 8)
    assert device.values(z).tolist() == [float(reduce(row[lanes])) for row, lanes in zip(rows, on, strict=True)]


def test_best_of_all_repeats(device: Any) -> None:
    """reduce_min with leading lanes and reduce_max with a bit per lane, with the index in the second element."""
    values = np.random.default_rng(6).permutation(4 * 64).astype(F32)
    x, z, work = device.local(values), device.local(np.zeros(8, F32)), device.local(np.zeros(64, F32))
    device.run("reduce_min_l0", z, x, work, 40, 4, 8, 1)
    rows = values.reshape(4, 64)
    row, lane = np.unravel_index(rows[:, :40].argmin(), (4, 40))
    assert device.values(z)[0] == rows[:, :40].min()
    assert device.values(z).view(np.uint32)[1] == row * 64 + lane
    on = np.array([(WORD >> lane) & 1 for lane in range(64)], bool)
    device.run("reduce_max_l1", z, x, work, [WORD], 4, 8, 1)
    row, place = np.unravel_index(rows[:, on].argmax(), (4, int(on.sum())))
    assert device.values(z)[0] == rows[:, on].max()
    assert device.values(z).view(np.uint32)[1] == row * 64 + np.flatnonzero(on)[place]


def test_rectangle_of_fractals_from_global_memory(make_device: Any) -> None:
    """load_data_g2l_v2 on a 950: 3 rows by 2 columns of fractals from row 2, column 1 of columns five fractals long."""
    chip = make_device("950PR", cores=(CoreInfo(CoreType.AIC, 0),))
    values = np.arange(25 * 256, dtype=np.float16)
    l1 = chip.local(np.zeros(12 * 256, np.float16), 1)
    chip.run("load_data_g2l_v2", l1, chip.gm(values), construct("load_data_2d_params_v2", "", 2, 1, 2, 3, 5, 3))
    result, fractals = chip.values(l1).reshape(12, 256), values.reshape(25, 256)
    for column in range(3):
        for row in range(2):
            assert result[column * 3 + row].tolist() == fractals[(1 + column) * 5 + 2 + row].tolist()


def test_rows_to_fractals_with_extended_parameters(make_device: Any) -> None:
    """data_copy_pad_nd2nz_ext on a coupled chip: 3 rows of 32 halves, one block apart, into columns of 16."""
    chip = make_device("310P3")
    values = np.arange(3 * 48, dtype=F16)
    l1 = chip.local(np.zeros(3 * 48, F16), 1)
    chip.run(
        "data_copy_pad_nd2nz_ext", l1, chip.local(values), construct("data_copy_ext_params", "", 3, 64, 1, 0, 0),
        construct("nd2nz_params", "", 1, 3, 32, 0, 32, 3, 1, 0),
    )  # fmt: skip
    rows = values.reshape(3, 48)
    assert chip.values(l1)[:96].tolist() == np.concatenate([rows[:, :16], rows[:, 16:32]]).reshape(-1).tolist()


def test_padding_parameters_made_without_arguments(device: Any) -> None:
    """data_copy_pad_ext_params(): no padding asked for, so three rows of 5 bytes lie 32 bytes apart in UB."""
    values = np.arange(15, dtype=I8)
    ub = device.local(np.full(96, KEPT, I8))
    padding = device.run("data_copy_pad_ext_params")
    device.run("data_copy_pad_l0_ext", ub, device.gm(values), construct("data_copy_ext_params", "", 3, 5, 0, 0, 0), padding)
    assert [device.values(ub)[32 * row :][:5].tolist() for row in range(3)] == values.reshape(3, 5).tolist()


def test_a_queue_between_two_positions(device: Any) -> None:
    """que_bind<vecin, vecout>: what is enqueued comes out again, its flag from MTE2 to MTE3."""
    pipe = device.run("pipe")
    queue = device.run("que_bind", result_type="!ascendc.que_bind<vecin, vecout, 1>")
    device.run("pipe.init_queue", pipe, queue, 1, 128)
    tensor = device.run("que_bind.alloc_tensor", queue, result_dtype=np.dtype(F32))
    device.run("data_copy_l2", tensor, device.gm(np.arange(32, dtype=F32)), 32)
    device.run("que_bind.enque_tensor", queue, tensor)
    again = device.run("que_bind.deque_tensor", queue, result_dtype=np.dtype(F32))
    assert device.values(again, 32).tolist() == list(range(32))
    flags = [row for row in device.trace().instruction.T if row[5] == 20]  # HardEvent MTE2_MTE3
    assert len(flags) == 2
