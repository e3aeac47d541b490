"""Matmul on one cube core against numpy: shapes, types, layouts, walks, conversion and quantisation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.errors import Unsupported, UserError
from npuscope.npu.numbers import Hf32Mode, encode_quant_word, to_hf32
from npuscope.trace.schema import Role

BF16 = ml_dtypes.bfloat16
F16, F32, I8, I32 = np.float16, np.float32, np.int8, np.int32
A1, B1, CO1 = 1, 3, 7
SHAPES = [(32, 32, 32), (48, 80, 64), (33, 17, 50), (1, 40, 7), (100, 3, 129)]


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, limit: int = 5) -> np.ndarray:
    """Small whole numbers, so that every order of summation gives the same sum in every accumulator."""
    return rng.integers(-limit, limit + 1, shape).astype(dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact product as float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def nz(matrix: np.ndarray, width: int, height: int | None = None) -> np.ndarray:
    """The NZ form: blocks of `width` columns one after the other, rows padded with 0 to `height`."""
    rows, columns = matrix.shape
    blocks = -(-columns // width)
    padded = np.zeros((height or rows, blocks * width), matrix.dtype)
    padded[:rows, :columns] = matrix
    return padded.reshape(padded.shape[0], blocks, width).transpose(1, 0, 2).copy()


def faults(device: Any) -> list[str]:
    return [fault.facts["what"] for fault in device.recorder.faults]


# -- IterateAll ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize(("a_type", "c_type"), [(F16, F32), (F32, F32), (BF16, F32), (I8, I32)])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_iterate_all(
    cube: Any, start: Any, tiling: Any, rng: Any, m: int, n: int, k: int, a_type: Any, c_type: Any, transposed: Any
) -> None:
    trans_a, trans_b = transposed
    a, b = whole(rng, (m, k), a_type), whole(rng, (k, n), a_type)
    c = np.zeros((m, n), c_type)
    mm = start(cube, tiling(m, n, k), a_type, c_type, trans_a=trans_a, trans_b=trans_b)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a.T.copy() if trans_a else a), int(trans_a))
    cube.run("matmul.set_tensor_b", mm, cube.gm(b.T.copy() if trans_b else b), int(trans_b))
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), product(a, b))
    assert faults(cube) == []


def test_int8_sums_beyond_24_bits_are_exact_and_wrap_at_32(cube: Any, start: Any, tiling: Any) -> None:
    k = 1500
    a, b = np.full((16, k), 127, I8), np.full((k, 16), 127, I8)
    b[:, 1] = -128
    c = np.zeros((16, 16), I32)
    mm = start(cube, tiling(16, 16, k), I8, I32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    assert c[0, 0] == 127 * 127 * k
    assert c[3, 1] == -127 * 128 * k


@pytest.mark.parametrize(("a_type", "c_type", "bias_type"), [(F16, F32, F32), (F16, F32, F16), (F32, F32, F32),
                                                             (I8, I32, I32)])
def test_bias(cube: Any, start: Any, tiling: Any, rng: Any, a_type: Any, c_type: Any, bias_type: Any) -> None:
    a, b = whole(rng, (40, 24), a_type), whole(rng, (24, 70), a_type)
    bias, c = whole(rng, (70,), bias_type, 100), np.zeros((40, 70), c_type)
    mm = start(cube, tiling(40, 70, 24, isBias=1), a_type, c_type)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.set_bias", mm, cube.gm(bias))
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), product(a, b) + bias.astype(np.float64))
    cube.run("matmul.disable_bias", mm)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), product(a, b))
    assert faults(cube) == []


def test_bias_with_a_tiling_without_one_is_a_fault(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    cube.run("matmul.set_bias", mm, cube.gm(np.zeros(16, F32)))
    assert faults(cube) == ["is_bias of the tiling of a Matmul with set_bias"]


@pytest.mark.parametrize("setter", ["set_tail", "set_single_shape"])
def test_a_tail_is_computed_inside_the_whole_matrices(cube: Any, start: Any, tiling: Any, rng: Any, setter: str) -> None:
    a, b = whole(rng, (50, 60), F16), whole(rng, (60, 90), F16)
    c = np.full((50, 90), 77, F32)
    mm = start(cube, tiling(50, 90, 60, singleCoreM=32, singleCoreN=64), F16, F32)
    cube.run(f"matmul.{setter}", mm, 18, 26, -1)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a).at(32 * 60), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b).at(64), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c).at(32 * 90 + 64), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c[32:, 64:], product(a, b)[32:, 64:])
    assert (c[:32] == 77).all()
    assert (c[:, :64] == 77).all()


def test_an_empty_tail_is_a_fault_and_computes_nothing(cube: Any, start: Any, tiling: Any) -> None:
    c = np.full((16, 16), 5, F32)
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    cube.run("matmul.set_tail", mm, 0, -1, -1)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.ones((16, 16), F16)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.ones((16, 16), F16)), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    assert cube.run("matmul.iterate", mm, 0, 1) == 0
    assert (c == 5).all()
    assert faults(cube) == ["the single-core shape (M, N, K)"]


def test_org_shape_gives_the_strides_and_the_width_of_c(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b, c = whole(rng, (20, 100), F16), whole(rng, (90, 64), F16), np.zeros((20, 48), F32)
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    cube.run("matmul.set_org_shape", mm, 20, 64, 100, 90, 48)
    cube.run("matmul.set_single_shape", mm, 20, 40, 90)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c[:, :40], product(a[:, :90], b[:, :40]))
    assert (c[:, 40:] == 0).all()
    cube.run("matmul.set_org_shape", mm, 20, 64, 100, None, None)
    wide = np.zeros((20, 64), F32)
    b = np.concatenate([b, whole(rng, (10, 64), F16)])
    cube.run("matmul.set_single_shape", mm, 20, 64, 100)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(wide), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(wide, product(a, b))


def test_a_large_product_is_made_tile_by_tile(
    cube: Any, start: Any, tiling: Any, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npuscope.ascendc.adv.matmul.WHOLE_PRODUCT", 100)
    a, b, c = whole(rng, (50, 40), F16), whole(rng, (40, 70), F16), np.zeros((50, 70), F32)
    mm = start(cube, tiling(50, 70, 40), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c, product(a, b))


# -- the walk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "steps", "places"),
    [
        (0, (1, 1), [(0, 0), (32, 0), (64, 0), (0, 32), (32, 32), (64, 32)]),
        (1, (1, 1), [(0, 0), (0, 32), (32, 0), (32, 32), (64, 0), (64, 32)]),
        (0, (1, 2), [(0, 0), (0, 32), (32, 0), (32, 32), (64, 0), (64, 32)]),
        (1, (2, 1), [(0, 0), (32, 0), (0, 32), (32, 32), (64, 0), (64, 32)]),
    ],
)
@pytest.mark.parametrize("by_config", [False, True])
def test_iterate_walks_c_in_the_order_of_the_tiling(
    cube: Any, start: Any, tiling: Any, rng: Any, order: int, steps: Any, places: Any, by_config: bool
) -> None:
    m, n, k = 70, 50, 40
    a, b, c = whole(rng, (m, k), F16), whole(rng, (k, n), F16), np.zeros((m, n), F32)
    record = tiling(m, n, k, iterateOrder=1 - order if by_config else order, stepM=steps[0], stepN=steps[1])
    mm = start(cube, record, F16, F32, iterate_order=order if by_config else 2)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    out, found, expected = cube.gm(c), [], product(a, b)
    while cube.run("matmul.iterate", mm, 0, 1):
        offset = cube.run("matmul.get_offset_c", mm)
        found.append((offset.row, offset.col))
        assert offset.offset == offset.row * n + offset.col
        tile = np.zeros((offset.height, offset.width), F32)
        packed = cube.gm(tile)
        cube.run("matmul.get_tensor_c", mm, packed, [0, 1, 1])
        part = expected[offset.row : offset.row + offset.height, offset.col : offset.col + offset.width]
        np.testing.assert_array_equal(tile, part)
    assert found == places
    assert cube.run("matmul.iterate", mm, 0, 1) == 0
    cube.run("matmul.end", mm)
    while cube.run("matmul.iterate", mm, 0, 1):
        cube.run("matmul.get_tensor_c", mm, out, [0, 0, 1])
    np.testing.assert_array_equal(c, expected)
    assert faults(cube) == []


def test_iterate_all_writes_sequential_tiles_a_base_tile_apart(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (40, 24), F16), whole(rng, (24, 50), F16)
    c = np.zeros(4 * 32 * 32, F32)
    mm = start(cube, tiling(40, 50, 24), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 1, 0, 0, 1)
    expected = product(a, b)
    for number, (row, column) in enumerate([(0, 0), (32, 0), (0, 32), (32, 32)]):
        tile = expected[row : row + 32, column : column + 32]
        np.testing.assert_array_equal(c[number * 1024 : number * 1024 + tile.size].reshape(tile.shape), tile)


def test_partial_sum_adds_to_the_accumulators(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (32, 96), F16), whole(rng, (96, 32), F16)
    bias, c = whole(rng, (32,), F32), np.zeros((32, 32), F32)
    mm = start(cube, tiling(32, 32, 96, singleCoreK=48, isBias=1), F16, F32)
    cube.run("matmul.set_bias", mm, cube.gm(bias))
    gm_a, gm_b = cube.gm(a), cube.gm(b)
    for part in range(2):
        cube.run("matmul.set_tensor_a", mm, gm_a.at(part * 48), 0)
        cube.run("matmul.set_tensor_b", mm, gm_b.at(part * 48 * 32), 0)
        assert cube.run("matmul.iterate", mm, int(part > 0), 1) == 1
    cube.run("matmul.get_tensor_c", mm, cube.gm(c), [0, 0, 1])
    np.testing.assert_array_equal(c, product(a, b) + bias)


def test_partial_output_gives_each_step_of_k(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (16, 70), F16), whole(rng, (70, 16), F16)
    mm = start(cube, tiling(16, 16, 70, (16, 16, 32)), F16, F32, is_partial_output=1)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    for first in (0, 32, 64):
        c = np.zeros((16, 16), F32)
        assert cube.run("matmul.iterate", mm, 0, 1) == 1
        cube.run("matmul.get_tensor_c", mm, cube.gm(c), [0, 0, 1])
        np.testing.assert_array_equal(c, product(a[:, first : first + 32], b[first : first + 32]))
    assert cube.run("matmul.iterate", mm, 0, 1) == 0
    with pytest.raises(UserError, match="is_partial_output"):
        cube.run("matmul.iterate_all", mm, cube.gm(np.zeros((16, 16), F32)), 0, 0, 0, 0, 1)


@pytest.mark.parametrize(("mode", "combine"), [(1, np.add), (2, np.maximum), (3, np.minimum)])
@pytest.mark.parametrize("c_type", [F32, F16])
def test_atomic_writes(
    cube: Any, start: Any, tiling: Any, rng: Any, mode: int, combine: Any, c_type: Any
) -> None:
    a, b = whole(rng, (20, 16), F16, 2), whole(rng, (16, 40), F16, 2)
    old = whole(rng, (20, 40), c_type, 9)
    c = old.copy()
    mm = start(cube, tiling(20, 40, 16), F16, c_type)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    out = cube.gm(c)
    cube.run("matmul.iterate_all", mm, out, mode, 0, 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), combine(old.astype(np.float64), product(a, b)))
    assert len(cube.touched(out, Role.ATOMIC)) == c.nbytes


def test_get_tensor_c_needs_an_iterate_each_time(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16, (16, 16, 16)), F16, F32)
    out = cube.gm(np.zeros((16, 16), F32))
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.ones((16, 16), F16)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.ones((16, 16), F16)), 0)
    cube.run("matmul.get_tensor_c", mm, out, [0, 0, 1])
    assert faults(cube) == ["the order of calls"]
    cube.run("matmul.iterate", mm, 0, 1)
    cube.run("matmul.get_tensor_c", mm, out, [0, 0, 1])
    assert len(faults(cube)) == 1
    cube.run("matmul.get_tensor_c", mm, out, [0, 0, 1])
    assert len(faults(cube)) == 2


# -- where the matrices lie --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a_type", "width"), [(F16, 16), (F32, 8), (I8, 32)])
@pytest.mark.parametrize("transposed", [False, True])
def test_nz_operands_in_gm(
    cube: Any, start: Any, tiling: Any, rng: Any, a_type: Any, width: int, transposed: bool
) -> None:
    m, n, k = 48, 64, 96
    c_type = I32 if a_type is I8 else F32
    a, b, c = whole(rng, (m, k), a_type), whole(rng, (k, n), a_type), np.zeros((m, n), c_type)
    mm = start(cube, tiling(m, n, k), a_type, c_type, a_format=1, b_format=1, trans_a=transposed, trans_b=transposed)
    stored_a, stored_b = (a.T, b.T) if transposed else (a, b)
    cube.run("matmul.set_tensor_a", mm, cube.gm(nz(stored_a, width)), int(transposed))
    cube.run("matmul.set_tensor_b", mm, cube.gm(nz(stored_b, width)), int(transposed))
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), product(a, b))


@pytest.mark.parametrize("transposed", [False, True])
def test_operands_in_l1_are_nz_padded_to_fractals(
    cube: Any, start: Any, tiling: Any, rng: Any, transposed: bool
) -> None:
    m, n, k = 40, 50, 70
    a, b, c = whole(rng, (m, k), F16), whole(rng, (k, n), F16), np.zeros((m, n), F32)
    mm = start(cube, tiling(m, n, k), F16, F32, trans_a=transposed, trans_b=transposed)
    left, right = (a.T, b.T) if transposed else (a, b)
    heights = [-(-matrix.shape[0] // 16) * 16 for matrix in (left, right)]
    l1_a = cube.local(nz(left, 16, heights[0]).reshape(-1), A1)
    l1_b = cube.local(nz(right, 16, heights[1]).reshape(-1), B1)
    cube.run("matmul.set_tensor_a", mm, l1_a, int(transposed))
    cube.run("matmul.set_tensor_b", mm, l1_b, int(transposed))
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c, product(a, b))
    read = cube.touched(l1_a, Role.READ)
    assert read <= set(range(l1_a.address, l1_a.address + l1_a.length * 2))
    assert len(read) >= m * k * 2


@pytest.mark.parametrize(("c_type", "width", "split"), [(F32, 16, 0), (F16, 16, 0), (F32, 8, 1)])
@pytest.mark.parametrize("sequential", [False, True])
def test_nz_output(
    cube: Any, start: Any, tiling: Any, rng: Any, c_type: Any, width: int, split: int, sequential: bool
) -> None:
    m, n, k = 48, 64, 32
    a, b = whole(rng, (m, k), F16), whole(rng, (k, n), F16)
    base = (48, 64, 32) if sequential else (32, 32, 32)
    mm = start(cube, tiling(m, n, k, base), F16, c_type, c_format=1, is_enable_channel_split=split)
    c = np.zeros((n // width, m, width), c_type)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, int(sequential), 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), nz(product(a, b), width))


def test_l0c_that_the_kernel_manages(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (20, 16), F16), whole(rng, (16, 40), F16)
    mm = start(cube, tiling(20, 40, 16, (32, 48, 16)), F16, F32, c_format=1, c_position="co1")
    room = cube.local(np.zeros(32 * 48, F32), CO1)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    assert cube.run("matmul.iterate", mm, 0, room, 1) == 1
    values = cube.values(room, 3 * 32 * 16).reshape(3, 32, 16)
    np.testing.assert_array_equal(values[:, :20], nz(product(a, b), 16))


def test_scalar_operands(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    b, c = whole(rng, (30, 40), F16), np.zeros((1, 40), F32)
    mm = start(cube, tiling(1, 40, 30), F16, F32)
    cube.run("matmul.set_tensor_a_scalar", mm, 2.0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c[0], 2 * b.astype(F32).sum(axis=0))
    cube.run("matmul.set_tensor_b_scalar", mm, 3.0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    assert (c == 2 * 3 * 30).all()


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c_type", [F16, BF16])
def test_float_accumulators_are_rounded_once(cube: Any, start: Any, tiling: Any, rng: Any, c_type: Any) -> None:
    a, b = rng.normal(size=(33, 64)).astype(F16), rng.normal(size=(64, 40)).astype(F16)
    c = np.zeros((33, 40), c_type)
    mm = start(cube, tiling(33, 40, 64), F16, c_type)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    step = 2.0**-10 if c_type is F16 else 2.0**-7
    np.testing.assert_allclose(c.astype(F32), product(a, b), rtol=step / 2 + 1e-5, atol=1e-5)


@pytest.mark.parametrize("vector", [False, True])
def test_int8_is_dequantised_to_half(cube: Any, start: Any, tiling: Any, rng: Any, vector: bool) -> None:
    a, b = whole(rng, (40, 32), I8, 20), whole(rng, (32, 48), I8, 20)
    scales = np.exp2(rng.integers(-6, 2, 48)).astype(F32)
    c = np.zeros((40, 48), F16)
    mm = start(cube, tiling(40, 48, 32), I8, F16)
    words = encode_quant_word(scales)
    if vector:
        cube.run("matmul.set_quant_vector", mm, cube.gm(words))
    else:
        cube.run("matmul.set_quant_scalar", mm, int(words[0]))
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c, (product(a, b) * (scales if vector else scales[0])).astype(F16))


@pytest.mark.parametrize("a_type", [F16, I8])
def test_quantisation_to_int8_rounds_adds_the_offset_and_saturates(
    cube: Any, start: Any, tiling: Any, rng: Any, a_type: Any
) -> None:
    a, b = whole(rng, (32, 32), a_type, 9), whole(rng, (32, 32), a_type, 9)
    c = np.zeros((32, 32), I8)
    mm = start(cube, tiling(32, 32, 32), a_type, I8)
    cube.run("matmul.set_quant_scalar", mm, int(encode_quant_word(0.25, 3)))
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    scaled = np.rint(np.clip(product(a, b) * 0.25, -256, 255)) + 3
    np.testing.assert_array_equal(c, np.clip(scaled, -128, 127).astype(I8))


def test_quantisation_that_was_not_set_is_a_fault(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16), I8, F16)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.ones((16, 16), I8)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.ones((16, 16), I8)), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(np.zeros((16, 16), F16)), 0, 0, 0, 0, 1)
    assert faults(cube) == ["the quantisation of C"]


@pytest.mark.parametrize(("mode", "rounding"), [(0, Hf32Mode.NEAREST_EVEN), (1, Hf32Mode.NEAREST_ZERO)])
def test_hf32_rounds_the_operands(
    cube: Any, start: Any, tiling: Any, rng: Any, mode: int, rounding: Hf32Mode
) -> None:
    a, b = rng.normal(size=(16, 16)).astype(F32), rng.normal(size=(16, 16)).astype(F32)
    c = np.zeros((16, 16), F32)
    mm = start(cube, tiling(16, 16, 16), F32, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.set_hf32", mm, 1, mode)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_allclose(c, product(to_hf32(a, rounding), to_hf32(b, rounding)), rtol=1e-5, atol=1e-6)
    assert np.abs(c - product(a, b)).max() > 1e-4
    cube.run("matmul.set_hf32", mm, 0, 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_allclose(c, product(a, b), rtol=1e-5, atol=1e-6)


def test_data_for_callbacks_changes_nothing(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    """pyasc has no copy callbacks: what set_self_define_data and set_user_def_info hand them has no effect."""
    a, b = whole(rng, (16, 16), F16), whole(rng, (16, 16), F16)
    c = np.zeros((16, 16), F32)
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    cube.run("matmul.set_self_define_data", mm, cube.gm(np.zeros(8, np.uint8)))
    cube.run("matmul.set_user_def_info", mm, cube.gm(np.zeros(8, np.uint8)))
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c.astype(np.float64), product(a, b))


def test_a_sparse_index_is_refused(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    with pytest.raises(Unsupported, match="sparse"):
        cube.run("matmul.set_sparse_index", mm, cube.gm(np.zeros(8, np.uint8)))
