"""ND to NZ, NZ to ND and DataCopy out of L0C, element by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import UserError
from npuscope.npu.numbers import encode_quant_word
from npuscope.trace.schema import Pipe, Role

entries()  # loads the library, which names the fields of parameter structs

VECIN, A1, CO1 = 9, 1, 7
HALF, FLOAT, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
TYPES = [np.dtype(np.int8), HALF, BF16, FLOAT]


def some(dtype: np.dtype[Any], count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(-100, 100, count).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("count", "rows", "width", "pitch", "column", "row", "step"),
    [(1, 16, 32, 32, 16, 1, 0), (1, 5, 23, 40, 7, 1, 0), (2, 3, 9, 11, 10, 2, 512), (1, 33, 65, 65, 48, 1, 0)],
)
def test_nd_to_nz(
    cube: Any, dtype: np.dtype[Any], count: int, rows: int, width: int, pitch: int, column: int, row: int, step: int
) -> None:
    lanes = 32 // dtype.itemsize
    matrix = rows * pitch + 3
    x = some(dtype, count * matrix)
    columns = -(-width // lanes)
    l1 = cube.local(np.full(step * count + column * columns * lanes + row * rows * lanes, 77, dtype), A1)
    params = construct("nd2nz_params", "", count, rows, width, matrix, pitch, column, row, step)
    cube.run("data_copy_nd2nz", l1, cube.gm(x), params)
    expected = np.full(l1.length, 77, dtype)
    for number in range(count):
        for i in range(rows):
            for j in range(columns * lanes):
                place = number * step + (j // lanes * column + i * row) * lanes + j % lanes
                expected[place] = x[number * matrix + i * pitch + j] if j < width else 0
    assert cube.values(l1).tolist() == expected.tolist()


def test_the_vendors_nd_to_nz_example_into_ub(device: Any) -> None:
    x = np.arange(1, 1025).astype(HALF).reshape(32, 32)
    ub = device.local(np.zeros(1024, HALF))
    device.run("data_copy_nd2nz", ub, device.gm(x), construct("nd2nz_params", "", 1, 32, 32, 0, 32, 32, 1, 0))
    assert device.values(ub).tolist() == np.concatenate([x[:, :16].reshape(-1), x[:, 16:].reshape(-1)]).tolist()


def test_footprint_of_nd_to_nz(cube: Any) -> None:
    source, l1 = cube.gm(np.zeros(100, HALF)), cube.local(np.zeros(512, HALF), A1)
    cube.run("data_copy_nd2nz", l1, source, construct("nd2nz_params", "", 1, 3, 17, 0, 20, 4, 1, 0))
    assert cube.touched(l1, Role.WRITE) == {
        l1.address + 128 * column + 32 * row + byte for column in range(2) for row in range(3) for byte in range(32)
    }
    cube.run("data_copy_nd2nz", l1, source, construct("nd2nz_params", "", 1, 3, 17, 0, 20, 4, 1, 0))
    assert cube.touched(source, Role.READ) == {
        source.address + 40 * row + byte for row in range(3) for byte in range(34)
    }


@pytest.mark.parametrize("numbers", [(0, 2, 16), (1, 0, 16), (1, 2, 0)])
def test_empty_nd_to_nz_is_no_operation(cube: Any, numbers: tuple[int, ...]) -> None:
    l1 = cube.local(np.ones(64, HALF), A1)
    cube.run("data_copy_nd2nz", l1, cube.gm(np.zeros(64, HALF)), construct("nd2nz_params", "", *numbers))
    assert cube.values(l1).tolist() == [1.0] * 64
    assert cube.recorder.faults == []


def test_illegal_nd_to_nz_is_a_fault(cube: Any) -> None:
    l1 = cube.local(np.ones(64, HALF), A1)
    cube.run("data_copy_nd2nz", l1, cube.gm(np.zeros(64, HALF)), construct("nd2nz_params", "", 1, 2, 16, 0, 0, 0, 1, 0))
    assert [fault.facts["what"] for fault in cube.recorder.faults] == [
        "row pitch of the ND matrix", "column pitch of the NZ matrix",
    ]


@pytest.mark.parametrize("dtype", [HALF, BF16, FLOAT, np.dtype(np.int16)])
@pytest.mark.parametrize(
    ("count", "rows", "width", "matrix", "column", "pitch", "step"),
    [(1, 32, 32, 1, 32, 32, 1), (2, 4, 32, 1, 4, 40, 500), (1, 7, 48, 1, 9, 51, 1)],
)
def test_nz_to_nd(
    device: Any, dtype: np.dtype[Any], count: int, rows: int, width: int, matrix: int, column: int, pitch: int, step: int
) -> None:
    x, y = some(dtype, 4096), np.full(2048, 5, dtype)
    params = construct("nz2nd_params_full", "", count, rows, width, matrix, column, pitch, step)
    device.run("data_copy_nz2nd", device.gm(y), device.local(x), params)
    expected = np.full(2048, 5, dtype)
    for number in range(count):
        for i in range(rows):
            for j in range(width):
                source = number * matrix * 256 + j // 16 * column * 16 + i * 16 + j % 16
                expected[number * step + i * pitch + j] = x[source]
    assert y.tolist() == expected.tolist()
    assert device.trace().column("pipe").tolist() == [Pipe.MTE3]


def test_nz_to_nd_of_a_width_that_is_no_multiple_of_16_is_a_fault(device: Any) -> None:
    y = np.zeros(40, HALF)
    x = np.arange(64).astype(HALF)
    device.run("data_copy_nz2nd", device.gm(y), device.local(x), construct("nz2nd_params_full", "", 1, 2, 20, 1, 2, 20, 1))
    assert [fault.facts["what"] for fault in device.recorder.faults] == ["columns of the NZ matrix"]
    assert y.tolist() == [*range(16), *range(32, 36), *range(16, 32), *range(48, 52)]
    with pytest.raises(UserError, match="NZ2ND"):
        device.run(
            "data_copy_nz2nd", device.gm(np.zeros(16, np.int8)), device.local(np.zeros(16, np.int8)),
            construct("nz2nd_params_full", "", 1, 1, 16, 1, 1, 16, 1),
        )


def test_ub_to_l1_with_a_change_of_layout_on_a_coupled_chip(make_device: Any) -> None:
    chip = make_device("310P3")
    x = some(HALF, 3 * 48)
    l1 = chip.local(np.zeros(3 * 48, HALF), A1)
    chip.run(
        "data_copy_pad_nd2nz", l1, chip.local(x), construct("data_copy_params", "", 3, 64, 1, 0),
        construct("nd2nz_params", "", 1, 3, 32, 0, 32, 3, 1, 0),
    )
    rows = x.reshape(3, 48)
    assert chip.values(l1)[:96].tolist() == np.concatenate([rows[:, :16], rows[:, 16:32]]).reshape(-1).tolist()


# -- L0C ---------------------------------------------------------------------------------------------------------------


def in_l0c(matrix: np.ndarray) -> np.ndarray:
    """A matrix of whole fractals as L0C holds it."""
    rows, columns = matrix.shape
    return matrix.reshape(rows, columns // 16, 16).transpose(1, 0, 2).copy()


def co12(n: int, m: int, stride: int, source: int, quant: int, relu: int, split: bool, row_major: bool) -> Any:
    return construct("data_copy_co12dst_params", "", n, m, stride, source, quant, relu, split, row_major)


def test_data_copy_out_of_l0c_uses_the_scalar_register(cube: Any) -> None:
    x = np.random.default_rng(2).integers(-3000, 3000, (32, 48)).astype(np.int32)
    y = np.zeros((30, 50), HALF)
    cube.run("set_fixpipe_pre_quant_flag", int(encode_quant_word(0.5)))
    cube.run("data_copy_co12dst", cube.gm(y), cube.local(in_l0c(x), CO1), co12(48, 30, 50, 32, 3, 1, False, True))
    expected = np.zeros((30, 50), HALF)
    expected[:, :48] = np.maximum(x[:30] * 0.5, 0).astype(HALF)
    assert y.tolist() == expected.tolist()
    assert cube.opcodes() == ["set_fixpipe_pre_quant", "fixpipe"]


def test_data_copy_out_of_l0c_to_l1_stays_in_columns(cube: Any) -> None:
    x = np.random.default_rng(3).standard_normal((32, 32)).astype(FLOAT)
    l1 = cube.local(np.zeros(32 * 32, HALF), A1)
    cube.run("data_copy_co12dst", l1, cube.local(in_l0c(x), CO1), co12(32, 32, 32, 32, 1, 0, False, False))
    assert cube.values(l1).tolist() == in_l0c(x.astype(HALF)).reshape(-1).tolist()
