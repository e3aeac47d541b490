"""Mmad: the whole way from GM and back against A @ B, initial values, HF32, GEMV, int4, sparse, footprints."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import UserError
from npuscope.npu.isa.cube import Multiply, multiply
from npuscope.npu.numbers import pack_int4
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import INSTRUCTION_COLUMNS, CoreInfo, CoreType, Pipe, Role

entries()  # loads the library, which names the fields of parameter structs

A1, A2, B1, B2, C1, C2, CO1 = 1, 2, 3, 4, 5, 6, 7
INT8, INT32, HALF, FLOAT = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float16), np.dtype(np.float32)
BF16, INT4 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)
SIZES = [(16, 16, 16), (32, 48, 64), (30, 40, 70), (17, 33, 9), (5, 3, 2), (128, 64, 96), (2, 100, 31)]


def some(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-20, 20, shape).astype(dtype)


def up(value: int, step: int) -> int:
    return -(-value // step) * step


def zz(matrix: np.ndarray, lanes: int) -> np.ndarray:
    """Fractals row by row; what fills them up is NaN or 99, so that it shows when it is used."""
    whole = _filled(matrix, lanes)
    return whole.reshape(whole.shape[0] // 16, 16, -1, lanes).transpose(0, 2, 1, 3).copy()


def nz(matrix: np.ndarray, lanes: int) -> np.ndarray:
    """Fractals column by column."""
    whole = _filled(matrix, lanes)
    return whole.reshape(whole.shape[0], -1, lanes).transpose(1, 0, 2).copy()


def _filled(matrix: np.ndarray, lanes: int) -> np.ndarray:
    rows, columns = up(matrix.shape[0], 16), up(matrix.shape[1], lanes)
    rest = 99 if matrix.dtype.kind in "iu" else np.nan
    whole = np.full((rows, columns), rest, matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole


def out_of_l0c(values: np.ndarray, m: int, n: int) -> np.ndarray:
    """(m, n) of L0C's content."""
    return values.reshape(-1, up(m, 16), 16).transpose(1, 0, 2).reshape(up(m, 16), -1)[:m, :n]


def loaded(cube: Any, a: np.ndarray, b: np.ndarray, left: Any = zz) -> tuple[Tensor, Tensor]:
    """A and B laid in L0A and L0B."""
    lanes = 32 // a.dtype.itemsize
    return cube.local(left(a, lanes), A2), cube.local(nz(np.ascontiguousarray(b.T), lanes), B2)


def accumulator(cube: Any, m: int, n: int, dtype: np.dtype[Any]) -> Tensor:
    return cube.local(np.full(up(m, 16) * up(n, 16), 7, dtype), CO1)


def params(m: int, n: int, k: int, *rest: Any) -> Any:
    return construct("mmad_params", "", m, n, k, *rest)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


# -- the whole way -----------------------------------------------------------------------------------------------------


def copy_in(cube: Any, matrix: np.ndarray, position: int) -> Tensor:
    """GM to L1 as columns of fractals, rows filled up with what was there."""
    rows, columns = matrix.shape
    lanes = 32 // matrix.dtype.itemsize
    l1 = cube.local(np.full(up(rows, 32) * up(columns, lanes), 99, matrix.dtype), position)
    layout = construct("nd2nz_params", "", 1, rows, columns, 0, columns, up(rows, 16), 1, 0)
    cube.run("data_copy_nd2nz", l1, cube.gm(matrix), layout)
    return l1


def split_rows(cube: Any, l1: Tensor, rows: int, columns: int, position: int) -> Tensor:
    """L1 to L0, a row of fractals after the other."""
    lanes = 32 // l1.dtype.itemsize
    high, wide = up(rows, 16) // 16, up(columns, lanes) // lanes
    fractal = 512 // l1.dtype.itemsize
    l0 = cube.local(np.zeros(high * wide * fractal, l1.dtype), position)
    for row in range(high):
        cube.run(
            "load_data_l0", l0.at(row * wide * fractal), l1.at(row * fractal),
            construct("load_data_2d_params", "", 0, wide, high, 0, 0, False),
        )
    return l0


def columns_of_l1(cube: Any, l1: Tensor, rows: int, columns: int, position: int) -> Tensor:
    """L1 to L0B as it is: B transposed in columns of fractals is what L0B holds."""
    lanes = 32 // l1.dtype.itemsize
    count = up(rows, 16) // 16 * (up(columns, lanes) // lanes)
    l0 = cube.local(np.zeros(count * 512 // l1.dtype.itemsize, l1.dtype), position)
    cube.run("load_data_l0", l0, l1, construct("load_data_2d_params", "", 0, count, 1, 0, 0, False))
    return l0


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("dtype", [HALF, BF16, FLOAT, INT8])
def test_from_global_memory_and_back(cube: Any, dtype: np.dtype[Any], m: int, n: int, k: int) -> None:
    a, b = some(dtype, (m, k), 1), some(dtype, (k, n), 2)
    left = split_rows(cube, copy_in(cube, a, A1), m, k, A2)
    right = columns_of_l1(cube, copy_in(cube, np.ascontiguousarray(b.T), B1), n, k, B2)
    kind = INT32 if dtype == INT8 else FLOAT
    c = accumulator(cube, m, n, kind)
    cube.run("mmad", c, left, right, params(m, n, k))
    y = np.zeros((m, n), kind)
    cube.run(
        "fixpipe", cube.gm(y), c, construct("fixpipe_params_v220", "", n, m, up(m, 16), n),
        construct("fixpipe_config", "", 1),
    )
    assert y.tolist() == product(a, b).tolist()
    assert cube.recorder.faults == []


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_b_that_is_transposed_by_load_data(cube: Any, m: int, n: int, k: int) -> None:
    a, b = some(HALF, (m, k), 1), some(HALF, (k, n), 2)
    l1 = copy_in(cube, b, B1)
    high, wide = up(k, 16) // 16, up(n, 16) // 16
    right = cube.local(np.zeros(high * wide * 256, HALF), B2)
    for row in range(high):
        cube.run(
            "load_data_l0", right.at(row * wide * 256), l1.at(row * 256),
            construct("load_data_2d_params", "", 0, wide, high, 0, 0, True),
        )
    c = accumulator(cube, m, n, FLOAT)
    cube.run("mmad", c, split_rows(cube, copy_in(cube, a, A1), m, k, A2), right, params(m, n, k))
    assert out_of_l0c(cube.values(c), m, n).tolist() == product(a, b).tolist()


@pytest.mark.parametrize(("m", "n", "k"), [(40, 50, 70), (16, 16, 16), (33, 20, 64)])
def test_int8_operands_that_are_transposed_in_squares(cube: Any, m: int, n: int, k: int) -> None:
    """The vendor's example: both matrices are transposed by LoadDataWithTranspose."""
    a, b = some(INT8, (m, k), 1), some(INT8, (k, n), 2)
    l1a = cube.local(np.zeros(up(k, 32) * up(m, 32), INT8), A1)
    cube.run("data_copy_nd2nz", l1a, cube.gm(np.ascontiguousarray(a.T)), construct(
        "nd2nz_params", "", 1, k, m, 0, m, up(k, 32), 1, 0))
    l1b = cube.local(np.zeros(up(k, 32) * up(n, 32), INT8), B1)
    cube.run("data_copy_nd2nz", l1b, cube.gm(b), construct("nd2nz_params", "", 1, k, n, 0, n, up(k, 32), 1, 0))
    left = cube.local(np.zeros(up(m, 32) * up(k, 32), INT8), A2)
    squares = up(k, 32) // 32
    for column in range(up(m, 32) // 32):
        cube.run(
            "load_data_with_transpose", left.at(column * squares * 1024), l1a.at(column * squares * 1024),
            construct("load_data_2d_transpose_params", "", 0, squares, 1, 0, squares - 1),
        )
    right = cube.local(np.zeros(up(k, 32) * up(n, 32), INT8), B2)
    for row in range(squares):
        cube.run(
            "load_data_with_transpose", right.at(row * up(n, 16) * 32), l1b.at(row * 1024),
            construct("load_data_2d_transpose_params", "", 0, up(n, 32) // 32, squares, 1, 0),
        )
    c = accumulator(cube, m, n, INT32)
    cube.run("mmad", c, left, right, params(m, n, k))
    assert out_of_l0c(cube.values(c), m, n).tolist() == product(a, b).tolist()


def test_convolution_by_image_to_column(cube: Any) -> None:
    image, weights = some(HALF, (7, 9, 32), 3), some(HALF, (3, 3, 32, 20), 4)
    blocks = image.reshape(7, 9, 2, 16).transpose(2, 0, 1, 3)
    left = cube.local(np.zeros(up(63, 16) * 288, HALF), A2)
    cube.run("load_data_3d_l0_v2", left, cube.local(blocks, A1), construct(
        "load_data_3d_params_v2", "", 1, 1, 1, 1, 7, 9, 32, 288, 63, 0, 0, 1, 1, 3, 3, 1, 1))
    b = weights.reshape(9, 2, 16, 20).transpose(1, 0, 2, 3).reshape(288, 20)
    right = cube.local(nz(np.ascontiguousarray(b.T), 16), B2)
    c = accumulator(cube, 63, 20, FLOAT)
    cube.run("mmad", c, left, right, params(63, 20, 288))
    padded = np.pad(image.astype(FLOAT), ((1, 1), (1, 1), (0, 0)))
    expected = np.zeros((7, 9, 20), FLOAT)
    for h in range(7):
        for w in range(9):
            expected[h, w] = np.tensordot(padded[h : h + 3, w : w + 3], weights.astype(FLOAT), 3)
    assert out_of_l0c(cube.values(c), 63, 20).tolist() == expected.reshape(63, 20).tolist()


# -- initial values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 16), (19, 21, 23)])
def test_accumulation_and_what_lies_outside(cube: Any, m: int, n: int, k: int) -> None:
    a, b = some(HALF, (m, k), 1), some(HALF, (k, n), 2)
    left, right = loaded(cube, a, b)
    c = accumulator(cube, m, n, FLOAT)
    cube.run("mmad", c, left, right, params(m, n, k, False, False, False))
    cube.run("mmad", c, left, right, params(m, n, k, True, 0, False, False, False))
    whole = cube.values(c).reshape(-1, up(m, 16), 16).transpose(1, 0, 2).reshape(up(m, 16), -1)
    assert whole[:m, :n].tolist() == (7 + 2 * product(a, b)).tolist()
    assert set(whole[m:].reshape(-1).tolist()) | set(whole[:, n:].reshape(-1).tolist()) <= {7.0}


@pytest.mark.parametrize("dtype", [HALF, INT8])
@pytest.mark.parametrize("form", ["tensor", "register", "zero"])
def test_bias(cube: Any, dtype: np.dtype[Any], form: str) -> None:
    m, n, k = 20, 35, 40
    kind = INT32 if dtype == INT8 else FLOAT
    a, b, bias = some(dtype, (m, k), 1), some(dtype, (k, n), 2), some(kind, (48,), 3)
    left, right = loaded(cube, a, b)
    c, table = accumulator(cube, m, n, kind), cube.local(bias, C2)
    if form == "tensor":
        cube.run("mmad_with_bias", c, left, right, table, params(m, n, k, False, False, False))
    elif form == "register":
        cube.run("mmad", c, left, right, params(m, n, k, False, True, False))
    else:
        cube.run("mmad_with_bias", c, left, right, table, params(m, n, k))
    row = 0 if form == "zero" else bias[:n]
    assert out_of_l0c(cube.values(c), m, n).tolist() == (product(a, b) + row).tolist()


def test_bias_in_other_places(cube: Any) -> None:
    a, b = some(HALF, (16, 16), 1), some(HALF, (16, 16), 2)
    left, right = loaded(cube, a, b)
    c = accumulator(cube, 16, 16, FLOAT)
    cube.run("mmad_with_bias", c, left, right, c, params(16, 16, 16, False, False, False))
    assert out_of_l0c(cube.values(c), 16, 16).tolist() == (7 + product(a, b)).tolist()
    with pytest.raises(UserError, match="from BT"):
        cube.run("mmad_with_bias", c, left, right, cube.local(np.zeros(16, FLOAT), C1), params(16, 16, 16))
    with pytest.raises(UserError, match="bias of the type"):
        cube.run("mmad_with_bias", c, left, right, cube.local(np.zeros(16, INT32), C2), params(16, 16, 16))


# -- arithmetic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [64, 1024, 1500])
def test_integers_are_exact_and_saturate(cube: Any, k: int) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-128, 128, (16, k)).astype(INT8), rng.integers(-128, 128, (k, 16)).astype(INT8)
    left, right = loaded(cube, a, b)
    c = accumulator(cube, 16, 16, INT32)
    cube.run("mmad", c, left, right, params(16, 16, k))
    assert out_of_l0c(cube.values(c), 16, 16).tolist() == (a.astype(int) @ b.astype(int)).tolist()
    cube.core.memories[c.space].bytes[:1024].view(INT32)[:] = 2**31 - 5
    ones, more = loaded(cube, np.ones((16, 32), INT8), np.ones((32, 16), INT8))
    cube.run("mmad", c, ones, more, params(16, 16, 32, False, False, False))
    assert set(cube.values(c).tolist()) == {2**31 - 1}


def test_int4(cube: Any) -> None:
    m, n, k = 20, 18, 100
    rng = np.random.default_rng(6)
    a, b = rng.integers(-8, 8, (m, k)), rng.integers(-8, 8, (k, n))
    whole_a, whole_b = np.full((32, 128), 7), np.full((32, 128), 7)
    whole_a[:m, :k], whole_b[:n, :k] = a, b.T
    left = cube.local(pack_int4(zz(whole_a, 64)).view(INT8), A2)
    right = cube.local(pack_int4(nz(whole_b, 64)).view(INT8), B2)
    c = accumulator(cube, m, n, INT32)
    as_int4 = [Tensor(t.memory, t.address, INT4, t.buffer, -1, t.position) for t in (left, right)]
    cube.run("mmad", c, *as_int4, params(m, n, k))
    assert out_of_l0c(cube.values(c), m, n).tolist() == (a @ b).tolist()


@pytest.mark.parametrize(("chip", "bits"), [("910B1", 11), ("950PR", 10)])
@pytest.mark.parametrize("toward_zero", [False, True])
def test_hf32_shortens_the_operands(make_device: Any, chip: str, bits: int, toward_zero: bool) -> None:
    cube = make_device(chip, (CoreInfo(CoreType.AIC, 0),))
    step = 2.0**-bits
    a = np.zeros((16, 8), FLOAT)
    a[:4, 0] = [1 + step / 2, 1 + 1.5 * step, 1 + 0.75 * step, 1 + step]  # two ties, above a half, exact
    b = np.eye(8, 16, dtype=FLOAT)
    left, right = loaded(cube, a, b, nz if chip == "950PR" else zz)
    c = accumulator(cube, 16, 16, FLOAT)
    cube.run("set_hf32_mode", True)
    cube.run("set_hf32_trans_mode", toward_zero)
    cube.run("mmad", c, left, right, params(16, 16, 8))
    expected = [1, 1 + step, 1 + step, 1 + step] if toward_zero else [1, 1 + 2 * step, 1 + step, 1 + step]
    assert out_of_l0c(cube.values(c), 4, 1)[:, 0].tolist() == expected
    cube.run("set_hf32_mode", False)
    cube.run("mmad", c, left, right, params(16, 16, 8))
    assert out_of_l0c(cube.values(c), 4, 1)[:, 0].tolist() == a[:4, 0].tolist()


@pytest.mark.parametrize(
    ("left", "right", "plain", "saturated"),
    [(np.inf, 2, np.inf, "max"), (-np.inf, 2, -np.inf, "min"), (np.inf, 0, np.nan, 0), (3e38, 3e38, np.inf, "max")],
)
def test_boundary_values_of_float(cube: Any, left: float, right: float, plain: float, saturated: Any) -> None:
    """The vendor's table of Mmad, and CTRL[48] clear."""
    a, b = np.zeros((16, 8), FLOAT), np.zeros((8, 16), FLOAT)
    a[0, 0], b[0, 0] = left, right
    operands = loaded(cube, a, b)
    c = accumulator(cube, 16, 16, FLOAT)
    limits = {"max": np.finfo(FLOAT).max, "min": np.finfo(FLOAT).min}
    for saturate, expected in ((False, plain), (True, limits.get(saturated, saturated))):
        cube.core.registers.saturate = saturate
        cube.run("mmad", c, *operands, params(16, 16, 8))
        np.testing.assert_array_equal(cube.values(c)[0], expected)


# -- layouts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [HALF, FLOAT, INT8])
@pytest.mark.parametrize("k", [256, 100, 7])
def test_one_row_is_read_as_a_row(cube: Any, dtype: np.dtype[Any], k: int) -> None:
    kind = INT32 if dtype == INT8 else FLOAT
    a, b = some(dtype, (1, k), 1), some(dtype, (k, 40), 2)
    _, right = loaded(cube, a, b)
    left = cube.local(np.ascontiguousarray(a[0]), A2)
    c = accumulator(cube, 1, 40, kind)
    cube.run("mmad", c, left, right, params(1, 40, k))
    assert out_of_l0c(cube.values(c), 1, 40).tolist() == product(a, b).tolist()
    assert cube.touched(left, Role.READ) == set(range(left.address, left.address + k * dtype.itemsize))


def test_one_row_in_fractals_where_gemv_is_off(make_device: Any) -> None:
    cube = make_device("950PR", (CoreInfo(CoreType.AIC, 0),))
    a, b = some(HALF, (1, 40), 1), some(HALF, (40, 16), 2)
    left, right = loaded(cube, a, b, nz)
    c = accumulator(cube, 1, 16, FLOAT)
    multiply(cube.core, 0, c, left, right, None, Multiply(1, 16, 40, no_gemv=True))
    assert out_of_l0c(cube.values(c), 1, 16).tolist() == product(a, b).tolist()


@pytest.mark.parametrize("dtype", [HALF, FLOAT, INT8, np.dtype(ml_dtypes.float8_e4m3fn)])
@pytest.mark.parametrize(("m", "n", "k"), [(33, 20, 40), (16, 32, 64)])
def test_the_newer_chip_has_l0a_in_columns(make_device: Any, dtype: np.dtype[Any], m: int, n: int, k: int) -> None:
    cube = make_device("950PR", (CoreInfo(CoreType.AIC, 0),))
    a, b = some(INT8, (m, k), 1).clip(-8, 8).astype(dtype), some(INT8, (k, n), 2).clip(-8, 8).astype(dtype)
    kind = INT32 if dtype == INT8 else FLOAT
    c = accumulator(cube, m, n, kind)
    cube.run("mmad", c, *loaded(cube, a, b, nz), params(m, n, k))
    assert out_of_l0c(cube.values(c), m, n).tolist() == product(a, b).tolist()


@pytest.mark.parametrize("k", [36, 44, 48])
def test_k_of_float_aligned_to_16(cube: Any, k: int) -> None:
    a, b = some(FLOAT, (32, k), 1), some(FLOAT, (k, 16), 2)
    aligned = np.full((32, up(k, 16)), np.nan, FLOAT)
    aligned[:, :k] = a
    left, (_, right) = cube.local(zz(aligned, 8), A2), loaded(cube, a, b)
    c = accumulator(cube, 32, 16, FLOAT)
    multiply(cube.core, 0, c, left, right, None, Multiply(32, 16, k, k_aligned=True))
    assert out_of_l0c(cube.values(c), 32, 16).tolist() == product(a, b).tolist()


# -- sparse ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 64), (20, 40, 128), (1, 16, 64)])
def test_sparse(cube: Any, m: int, n: int, k: int) -> None:
    """Two of four elements of B along k, with index bits as the vendor's page describes them."""
    rng = np.random.default_rng(7)
    a, b = some(INT8, (m, k), 1), np.zeros((n, k), INT8)
    dense, index = np.zeros((n, k // 2), INT8), np.zeros((n, k // 2), np.uint8)
    for row in range(n):
        for group in range(k // 4):
            first, second = sorted(rng.choice(4, 2, replace=False).tolist())
            values = rng.integers(1, 10, 2)
            b[row, [4 * group + first, 4 * group + second]] = values
            dense[row, 2 * group : 2 * group + 2] = values
            index[row, 2 * group : 2 * group + 2] = first, second - 1
    octets = (index.reshape(n, -1, 4) << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2).astype(np.uint8)
    rows = up(n, 16)
    whole = np.zeros((rows, k // 8), np.uint8)
    whole[:n] = octets
    l1, words = cube.local(nz(dense, 32), B1), cube.local(whole.reshape(rows, -1, 8).transpose(1, 0, 2), B1)
    right = cube.local(np.zeros(1024 + l1.length, INT8), B2).at(1024)
    cube.run(
        "load_data_with_sparse", right, l1, words, construct("load_data_2d_params", "", 0, rows // 16 * (k // 64))
    )
    c = accumulator(cube, m, n, INT32)
    cube.run("mmad_with_sparse", c, cube.local(zz(a, 32), A2), right, params(m, n, k, False, 0, False, False, False))
    assert out_of_l0c(cube.values(c), m, n).tolist() == (a.astype(int) @ b.T.astype(int)).tolist()
    assert cube.opcodes() == ["load_data_sparse", "mmad_sparse"]
    with pytest.raises(UserError, match="int8_t, int8_t, int32_t"):
        cube.run("mmad_with_sparse", c, cube.local(np.zeros(256, HALF), A2), right, params(m, n, k))


# -- trace, refusals ---------------------------------------------------------------------------------------------------


def test_the_trace_of_a_multiplication(cube: Any) -> None:
    a, b = some(HALF, (20, 20), 1), some(HALF, (20, 40), 2)
    left, right = loaded(cube, a, b)
    c = accumulator(cube, 20, 40, FLOAT)
    cube.run("mmad", c, left, right, params(20, 40, 20, 3, False, True))
    batch = cube.trace()
    row = dict(zip(INSTRUCTION_COLUMNS, batch.instruction[:, 0].tolist(), strict=True))
    assert (row["pipe"], row["a"], row["b"], row["c"], row["d"], row["work"]) == (Pipe.M, 20, 40, 20, 3, 16000)


def test_footprints_of_a_multiplication(cube: Any) -> None:
    a, b = some(HALF, (20, 20), 1), some(HALF, (20, 40), 2)
    left, right = loaded(cube, a, b)
    c = accumulator(cube, 20, 40, FLOAT)
    for accumulate, tensor, role, expected in [
        (False, left, Role.READ, {(i // 16 * 2 + j // 16) * 512 + i % 16 * 32 + j % 16 * 2 for i in range(20)
                                  for j in range(20)}),
        (False, right, Role.READ, {(j // 16 * 3 + i // 16) * 512 + i % 16 * 32 + j % 16 * 2 for i in range(40)
                                   for j in range(20)}),
        (False, c, Role.WRITE, set(range(0, 32 * 48 * 4, 2))),
        (False, c, Role.READ, set()),
        (True, c, Role.READ, set(range(0, 32 * 48 * 4, 2))),
    ]:
        cube.trace()
        cube.run("mmad", c, left, right, params(20, 40, 20, 0, False, not accumulate))
        bytes_touched = {tensor.address + place + byte for place in expected for byte in range(2)}
        assert cube.touched(tensor, role) == bytes_touched


def test_sizes_of_0_and_beyond_the_limits(cube: Any) -> None:
    left, right = loaded(cube, some(HALF, (16, 16)), some(HALF, (16, 16)))
    c = accumulator(cube, 16, 16, FLOAT)
    for m, n, k in ((0, 16, 16), (16, 0, 16), (16, 16, 0)):
        cube.run("mmad", c, left, right, params(m, n, k))
    assert set(cube.values(c).tolist()) == {7.0}
    assert cube.opcodes() == ["mmad"] * 3
    cube.run("mmad", c, left, right, params(16, 16, 4096, 4, False, True))
    assert [fault.facts["what"] for fault in cube.recorder.faults] == ["unit flag of Mmad", "k of Mmad"]


def test_types_that_the_chip_does_not_multiply(cube: Any, device: Any) -> None:
    c = accumulator(cube, 16, 16, FLOAT)
    left, right = cube.local(np.zeros(256, HALF), A2), cube.local(np.zeros(256, BF16), B2)
    with pytest.raises(UserError, match="half by bfloat16_t into float on Ascend910B1"):
        cube.run("mmad", c, left, right, params(16, 16, 16))
    other = [device.local(np.zeros(256, HALF), position) for position in (CO1, A2, B2)]
    device.run("mmad", *other, params(16, 16, 16))
    assert device.opcodes() == []


def test_half_results_of_a_coupled_chip_are_rounded(make_device: Any) -> None:
    chip = make_device("310P3")
    a, b = some(HALF, (16, 16), 1) * HALF.type(0.37), some(HALF, (16, 16), 2) * HALF.type(0.11)
    c = accumulator(chip, 16, 16, HALF)
    chip.run("mmad", c, *loaded(chip, a, b), params(16, 16, 16))
    expected = (a.astype(FLOAT) @ b.astype(FLOAT)).astype(HALF)
    np.testing.assert_allclose(out_of_l0c(chip.values(c), 16, 16).astype(FLOAT), expected.astype(FLOAT), rtol=2**-10)


def test_the_order_of_writes_is_a_register(cube: Any) -> None:
    cube.run("set_mm_layout_transform", True)
    assert cube.core.registers.values["mm_row_major"] is True
    assert cube.opcodes() == ["set_mm_layout"]
