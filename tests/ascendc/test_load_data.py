"""LoadData in all forms: fractals copied one by one, transposed squares, and image to column by nested loops."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import Unsupported, UserError
from npuscope.npu.numbers import pack_int4
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import CoreInfo, CoreType, Pipe, Role

entries()  # loads the library, which names the fields of parameter structs

A1, A2, B1, B2 = 1, 2, 3, 4
INT8, HALF, FLOAT = np.dtype(np.int8), np.dtype(np.float16), np.dtype(np.float32)
BF16, INT4 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)
TYPES = [INT8, HALF, BF16, FLOAT]


def some(dtype: np.dtype[Any], count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-100, 100, count).astype(dtype)


def faults(device: Any) -> list[str]:
    return [str(fault.facts["what"]) for fault in device.recorder.faults]


@pytest.fixture
def newer(make_device: Any) -> Any:
    """One AIC of a 950."""
    return make_device("950PR", (CoreInfo(CoreType.AIC, 0),))


# -- fractals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("start", "repeat", "stride", "gap"), [(0, 4, 2, 2), (1, 3, 1, 0), (2, 3, 0, 1), (0, 1, 7, 5)]
)
@pytest.mark.parametrize("position", [A2, B2])
def test_fractals_one_by_one(
    cube: Any, dtype: np.dtype[Any], start: int, repeat: int, stride: int, gap: int, position: int
) -> None:
    size = 512 // dtype.itemsize
    x = some(dtype, 10 * size)
    l0 = cube.local(np.zeros(12 * size, dtype), position)
    cube.run("load_data_l0", l0, cube.local(x, A1), construct("load_data_2d_params", "", start, repeat, stride, 0, gap))
    expected = np.zeros(12 * size, dtype)
    for number in range(repeat):
        source = (start + number * stride) * size
        expected[number * (gap + 1) * size :][:size] = x[source : source + size]
    assert cube.values(l0).tolist() == expected.tolist()
    assert cube.trace().column("pipe").tolist() == [Pipe.MTE1]


@pytest.mark.parametrize("dtype", [HALF, BF16])
def test_fractals_of_16_bits_are_transposed_each(cube: Any, dtype: np.dtype[Any]) -> None:
    x = some(dtype, 6 * 256)
    l0 = cube.local(np.zeros(9 * 256, dtype), A2)
    cube.run("load_data_l0", l0, cube.local(x, A1), construct("load_data_2d_params", "", 0, 3, 2, 0, 2, True))
    fractals, result = x.reshape(6, 16, 16), cube.values(l0).reshape(9, 16, 16)
    for number in range(3):
        assert result[3 * number].tolist() == fractals[2 * number].T.tolist()
    with pytest.raises(UserError, match="16-bit"):
        cube.run(
            "load_data_l0", cube.local(np.zeros(256, FLOAT), A2), cube.local(np.zeros(256, FLOAT), A1),
            construct("load_data_2d_params", "", 0, 1, 1, 0, 0, True),
        )


def test_global_memory_to_l1_can_go_backwards(cube: Any) -> None:
    x = some(FLOAT, 8 * 128)
    l1 = cube.local(np.zeros(12 * 128, FLOAT), A1)
    cube.run("load_data_g2l", l1, cube.gm(x), construct("load_data_2d_params", "", 6, 4, 2, 0, 2, False, 1))
    result, fractals = cube.values(l1).reshape(12, 128), x.reshape(8, 128)
    for number in range(4):
        assert result[3 * number].tolist() == fractals[6 - 2 * number].tolist()
    assert cube.trace().column("pipe").tolist() == [Pipe.MTE2]
    cube.run("load_data_g2l", l1, cube.gm(x), construct("load_data_2d_params", "", 1, 3, 2, 0, 0, False, 1))
    assert faults(cube) == ["the last source index of LoadData"]


@pytest.mark.parametrize("position", [A2, B2])
def test_global_memory_to_l0_on_chips_that_have_the_path(cube: Any, newer: Any, position: int) -> None:
    x = some(HALF, 512)
    l0 = cube.local(np.zeros(512, HALF), position)
    params = construct("load_data_2d_params", "", 0, 2, 1)
    cube.run("load_data_g2l", l0, cube.gm(x), params)
    assert cube.values(l0).tolist() == x.tolist()
    with pytest.raises(UserError, match="no path from GM"):
        newer.run("load_data_g2l", newer.local(np.zeros(512, HALF), position), newer.gm(x), params)


def test_footprints_of_fractals(cube: Any) -> None:
    l1, l0 = cube.local(np.zeros(2048, HALF), A1), cube.local(np.zeros(2048, HALF), A2)
    params = construct("load_data_2d_params", "", 1, 2, 3, 0, 1)
    cube.run("load_data", l0, l1, params)
    assert cube.touched(l0, Role.WRITE) == {l0.address + 1024 * i + byte for i in range(2) for byte in range(512)}
    cube.run("load_data", l0, l1, params)
    assert cube.touched(l1, Role.READ) == {l1.address + 512 + 1536 * i + byte for i in range(2) for byte in range(512)}


def test_repeat_0_and_illegal_numbers(cube: Any) -> None:
    l1, l0 = cube.local(np.ones(256, HALF), A1), cube.local(np.zeros(256, HALF), A2)
    cube.run("load_data_l0", l0, l1, construct("load_data_2d_params", "", 0, 0, 1))
    assert not cube.values(l0).any() and faults(cube) == []
    cube.run("load_data_l0", l0, l1, construct("load_data_2d_params", "", 0, 256, 0, 0, 0, False, 1))
    assert faults(cube) == ["repeat of LoadData", "address mode of LoadData"]


# -- rectangles of fractals (950) --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_rectangles_of_fractals(newer: Any, dtype: np.dtype[Any]) -> None:
    size = 512 // dtype.itemsize
    x = some(dtype, 25 * size)
    l0 = newer.local(np.zeros(12 * size, dtype), A2)
    params = construct("load_data_2d_params_v2", "", 2, 1, 2, 3, 5, 3)
    newer.run("load_data_l0_v2", l0, newer.local(x, A1), params)
    result, fractals = newer.values(l0).reshape(12, size), x.reshape(25, size)
    for column in range(3):
        for row in range(2):
            assert result[column * 3 + row].tolist() == fractals[(1 + column) * 5 + 2 + row].tolist()


@pytest.mark.parametrize(("dtype", "rows", "columns"), [(INT8, 4, 2), (HALF, 3, 2), (FLOAT, 3, 4)])
def test_rectangles_are_transposed_as_a_matrix(newer: Any, dtype: np.dtype[Any], rows: int, columns: int) -> None:
    lanes = 32 // dtype.itemsize
    matrix = some(dtype, rows * 16 * columns * lanes).reshape(rows * 16, columns * lanes)
    nz = matrix.reshape(rows * 16, columns, lanes).transpose(1, 0, 2)
    turned = matrix.T
    out_rows, out_columns = turned.shape[0] // 16, turned.shape[1] // lanes
    l0 = newer.local(np.zeros(matrix.size, dtype), B2)
    params = construct("load_data_2d_params_v2", "", 0, 0, rows, columns, rows, out_rows, True)
    newer.run("load_data_l0_v2", l0, newer.local(nz, B1), params)
    expected = turned.reshape(out_rows * 16, out_columns, lanes).transpose(1, 0, 2)
    assert newer.values(l0).tolist() == expected.reshape(-1).tolist()


def test_what_is_no_whole_fractal_after_transposition_is_a_fault(newer: Any) -> None:
    l1, l0 = newer.local(np.zeros(4096, INT8), A1), newer.local(np.zeros(4096, INT8), A2)
    newer.run("load_data_l0_v2", l0, l1, construct("load_data_2d_params_v2", "", 0, 0, 3, 1, 3, 2, True))
    assert faults(newer) == ["rows (mStep) of a transposed LoadData"]


def test_second_forms_are_for_the_newer_chip(cube: Any) -> None:
    l1, l0 = cube.local(np.zeros(256, HALF), A1), cube.local(np.zeros(256, HALF), A2)
    with pytest.raises(UserError, match="only for Ascend 950"):
        cube.run("load_data_l0_v2", l0, l1, construct("load_data_2d_params_v2", ""))
    with pytest.raises(UserError, match="only for Ascend 950"):
        cube.run("load_data_with_transpose_v2", l0, l1, construct("load_data_2d_transpose_params_v2", ""))
    with pytest.raises(UserError, match="LoadData3DParamsV2"):
        cube.run("load_data_3d_l0_v1", l0, l1, construct("load_data_3d_params_v1", ""))


# -- transposed squares ------------------------------------------------------------------------------------------------


def square_of(fractals: np.ndarray) -> np.ndarray:
    """Fractals (n, 16, lanes) as a square: under each other, 32-bit ones beside each other."""
    return np.concatenate(list(fractals), axis=1 if fractals.shape[2] == 8 else 0)


def cut(square: np.ndarray, lanes: int) -> list[np.ndarray]:
    return list(np.split(square, square.shape[0] // 16, axis=0)) if lanes >= 16 else list(np.split(square, 2, axis=1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("start", "repeat", "stride", "gap", "fractal_gap", "down"),
    [(0, 3, 1, 1, 0, 0), (0, 3, 1, 0, 2, 0), (1, 2, 2, 4, 1, 0), (2, 3, 1, 1, 0, 1)],
)
def test_squares_are_transposed(
    cube: Any, dtype: np.dtype[Any], start: int, repeat: int, stride: int, gap: int, fractal_gap: int, down: int
) -> None:
    lanes = 32 // dtype.itemsize
    count = {8: 2, 16: 1, 32: 2}[lanes]
    x = some(dtype, 12 * 16 * lanes).reshape(12, 16, lanes)
    l0 = cube.local(np.zeros((16, 16, lanes), dtype), B2)
    params = construct("load_data_2d_transpose_params", "", start, repeat, stride, gap, fractal_gap, down)
    cube.run("load_data_with_transpose", l0, cube.local(x, B1), params)
    expected = np.zeros((16, 16, lanes), dtype)
    for number in range(repeat):
        place = (start + (-number if down else number) * stride) * count
        for index, fractal in enumerate(cut(square_of(x[place : place + count]).T, lanes)):
            expected[number * (gap + 1) + index * (fractal_gap + 1)] = fractal
    assert cube.values(l0).tolist() == expected.reshape(-1).tolist()


def test_int4_squares(cube: Any) -> None:
    x = np.random.default_rng(4).integers(-8, 8, (2, 64, 64))
    l1, l0 = cube.local(pack_int4(x).view(INT8), B1), cube.local(np.zeros((2, 64, 32), INT8), B2)
    source, target = (
        Tensor(t.memory, t.address, INT4, t.buffer, 2 * t.length, t.position) for t in (l1, l0)
    )
    params = construct("load_data_2d_transpose_params", "", 0, 2, 1, 3, 0)
    cube.run("load_data_with_transpose", target, source, params)
    assert cube.values(l0).tolist() == pack_int4(x.transpose(0, 2, 1)).view(INT8).reshape(-1).tolist()
    with pytest.raises(UserError, match="int4b_t to L0A"):
        target = Tensor(l0.memory, 0, INT4, l0.buffer)
        a2 = cube.local(np.zeros(512, INT8), A2)
        cube.run("load_data_with_transpose", Tensor(a2.memory, a2.address, INT4, a2.buffer), source, params)


def test_squares_counted_in_fractals(newer: Any) -> None:
    x = some(INT8, 8 * 512).reshape(8, 16, 32)
    l0 = newer.local(np.zeros((4, 16, 32), INT8), B2)
    params = construct("load_data_2d_transpose_params_v2", "", 1, 2, 1, 1, 0, 3)
    newer.run("load_data_with_transpose_v2", l0, newer.local(x, B1), params)
    result = newer.values(l0).reshape(4, 16, 32)
    for number in range(2):
        for index, fractal in enumerate(cut(square_of(x[[1 + number, 5 + number]]).T, 32)):
            assert result[number * 2 + index].tolist() == fractal.tolist()


# -- constants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [HALF, BF16, FLOAT, np.dtype(np.int32), np.dtype(np.uint16)])
@pytest.mark.parametrize(("position", "unit"), [(A1, 32), (A2, 512), (B2, 512)])
def test_fill(cube: Any, dtype: np.dtype[Any], position: int, unit: int) -> None:
    lanes = unit // dtype.itemsize
    target = cube.local(np.zeros(12 * lanes, dtype), position)
    cube.run("init_const_value", target, construct("init_const_value_params", "", 2, 3, 2, 5))
    expected = np.zeros((12, lanes), dtype)
    expected[[0, 1, 2, 5, 6, 7]] = 5
    assert cube.values(target).tolist() == expected.reshape(-1).tolist()
    assert cube.trace().column("pipe").tolist() == [Pipe.MTE2 if position == A1 else Pipe.MTE1]


def test_fill_that_does_not_exist(cube: Any, newer: Any) -> None:
    params = construct("init_const_value_params", "", 1, 1, 0, 0)
    with pytest.raises(UserError, match="16 and 32 bits"):
        cube.run("init_const_value", cube.local(np.zeros(64, INT8), A1), params)
    with pytest.raises(UserError, match="cannot fill L0A"):
        newer.run("init_const_value", newer.local(np.zeros(256, HALF), A2), params)


# -- image to column ---------------------------------------------------------------------------------------------------


def column_matrix(
    image: np.ndarray, pads: tuple[int, ...], strides: tuple[int, int], kernel: tuple[int, int],
    dilation: tuple[int, int], lanes: int, fill: float,
) -> np.ndarray:
    """(positions, columns) of an image (height, width, channels), by nested loops; strides and so on are (h, w)."""
    height, width, channels = image.shape
    left, right, top, bottom = pads
    high = (height + top + bottom - dilation[0] * (kernel[0] - 1) - 1) // strides[0] + 1
    wide = (width + left + right - dilation[1] * (kernel[1] - 1) - 1) // strides[1] + 1
    rows = []
    for oh in range(high):
        for ow in range(wide):
            row = []
            for block in range(0, channels, lanes):
                for kh in range(kernel[0]):
                    for kw in range(kernel[1]):
                        h = oh * strides[0] - top + kh * dilation[0]
                        w = ow * strides[1] - left + kw * dilation[1]
                        for channel in range(block, min(block + lanes, channels)):
                            inside = 0 <= h < height and 0 <= w < width
                            row.append(image[h, w, channel] if inside else fill)
            rows.append(row)
    return np.array(rows, image.dtype)


def in_l1(image: np.ndarray, lanes: int) -> np.ndarray:
    """An image as L1 holds it: channel blocks, a last narrow one packed."""
    blocks = [image[:, :, start : start + lanes].reshape(-1) for start in range(0, image.shape[2], lanes)]
    return np.concatenate(blocks)


def v2(pads: tuple[int, ...], image: tuple[int, int, int], window: tuple[int, ...], strides: tuple[int, int],
       kernel: tuple[int, int], dilation: tuple[int, int], transpose: bool = False, fill: int = 0) -> Any:
    k_count, m_count, k_start, m_start = window
    return construct(
        "load_data_3d_params_v2", "", *pads, *image, k_count, m_count, k_start, m_start, strides[1], strides[0],
        kernel[1], kernel[0], dilation[1], dilation[0], transpose, fill,
    )


def zz(matrix: np.ndarray, lanes: int) -> np.ndarray:
    """Fractals row by row, the matrix filled up with zeros."""
    rows, columns = -(-matrix.shape[0] // 16), -(-matrix.shape[1] // lanes)
    whole = np.zeros((rows * 16, columns * lanes), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole.reshape(rows, 16, columns, lanes).transpose(0, 2, 1, 3).reshape(-1)


def nz(matrix: np.ndarray, lanes: int) -> np.ndarray:
    """Fractals column by column."""
    rows, columns = -(-matrix.shape[0] // 16), -(-matrix.shape[1] // lanes)
    whole = np.zeros((rows * 16, columns * lanes), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole.reshape(rows, 16, columns, lanes).transpose(2, 0, 1, 3).reshape(-1)


CASES = [
    ((0, 0, 0, 0), (4, 8, 16), (1, 1), (1, 1), (1, 1)),
    ((1, 1, 1, 1), (6, 7, 32), (1, 1), (3, 3), (1, 1)),
    ((2, 0, 1, 2), (9, 8, 20), (2, 1), (2, 3), (1, 2)),
    ((0, 3, 2, 0), (5, 9, 4), (1, 3), (3, 2), (2, 1)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("pads", "size", "strides", "kernel", "dilation"), CASES)
def test_image_to_column_equals_nested_loops(
    cube: Any, dtype: np.dtype[Any], pads: Any, size: Any, strides: Any, kernel: Any, dilation: Any
) -> None:
    lanes = 32 // dtype.itemsize
    image = some(dtype, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, lanes, 3)
    m, k = matrix.shape
    l0 = cube.local(np.full((-(-m // 16)) * 16 * (-(-k // lanes)) * lanes, 99, dtype), A2)
    cube.run(
        "load_data_3d_l0_v2", l0, cube.local(in_l1(image, lanes), A1),
        v2(pads, size, (k, m, 0, 0), strides, kernel, dilation, fill=3),
    )
    assert cube.values(l0).tolist() == zz(matrix, lanes).tolist()
    assert faults(cube) == []


@pytest.mark.parametrize("dtype", [HALF, FLOAT])
def test_a_window_of_the_columns(cube: Any, dtype: np.dtype[Any]) -> None:
    lanes = 32 // dtype.itemsize
    pads, size, strides, kernel, dilation = CASES[1]
    image = some(dtype, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, lanes, 0)
    l0 = cube.local(np.zeros(16 * 2 * 2 * lanes, dtype), A2)
    params = v2(pads, size, (2 * lanes, 32, 4 * lanes, 5), strides, kernel, dilation)
    cube.run("load_data_3d_l0_v2", l0, cube.local(in_l1(image, lanes), A1), params)
    assert cube.values(l0).tolist() == zz(matrix[5:37, 4 * lanes : 6 * lanes], lanes).tolist()


@pytest.mark.parametrize("dtype", [HALF, FLOAT])
@pytest.mark.parametrize("position", [A2, B2])
def test_the_columns_transposed(cube: Any, dtype: np.dtype[Any], position: int) -> None:
    lanes = 32 // dtype.itemsize
    pads, size, strides, kernel, dilation = CASES[1]
    image = some(dtype, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, lanes, 0)[:32]
    k = matrix.shape[1]
    l0 = cube.local(np.zeros(32 * (-(-k // 16)) * 16, dtype), position)
    params = v2(pads, size, (k, 32, 0, 0), strides, kernel, dilation, transpose=position == A2)
    cube.run("load_data_3d_l0_v2", l0, cube.local(in_l1(image, lanes), A1), params)
    lay = zz if position == A2 else nz
    assert cube.values(l0).tolist() == lay(matrix.T, lanes).tolist()


def test_half_a_row_of_fractals_is_left_alone(cube: Any) -> None:
    image = some(FLOAT, 16 * 24).reshape(1, 16, 24)
    l0 = cube.local(np.full(2 * 2 * 128, 9, FLOAT), B2)
    params = v2((0, 0, 0, 0), (1, 16, 24), (24, 16, 0, 0), (1, 1), (1, 1), (1, 1))
    cube.run("load_data_3d_l0_v2", l0, cube.local(in_l1(image, 8), B1), params)
    result = cube.values(l0).reshape(2, 32, 8)
    assert result[:, :24].tolist() == image[0].T.reshape(24, 2, 8).transpose(1, 0, 2).tolist()
    assert set(result[:, 24:].reshape(-1).tolist()) == {9.0}


@pytest.mark.parametrize("mode", [0, 1])
def test_repeated_windows_are_joined(cube: Any, mode: int) -> None:
    pads, size, strides, kernel, dilation = CASES[1]
    image = some(HALF, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, 16, 0)
    cube.run("set_load_data_repeat", construct("load_data_repeat_param", "", 2, 2, mode))
    l0 = cube.local(np.zeros(2 * 16 * 32, HALF), A2)
    params = v2(pads, size, (32, 16, 16, 0), strides, kernel, dilation)
    cube.run("load_data_3d_l0_v2", l0, cube.local(in_l1(image, 16), A1), params)
    if mode == 0:
        joined = np.concatenate([matrix[0:16, 16:48], matrix[32:42, 16:48], np.zeros((6, 32), HALF)])
    else:
        joined = np.concatenate([matrix[0:16, 16:48], matrix[0:16, 48:80]], axis=1)
    assert cube.values(l0).tolist() == zz(joined, 16).tolist()


def test_the_newer_chip_lays_columns_of_fractals(newer: Any) -> None:
    pads, size, strides, kernel, dilation = CASES[1]
    image = some(HALF, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, 16, 0)[:32, :48]
    newer.run("set_load_data_repeat", construct("load_data_repeat_param", "", 1, 0, 0, 3))
    l0 = newer.local(np.zeros((3, 3, 16, 16), HALF), A2)
    params = v2(pads, size, (48, 32, 0, 0), strides, kernel, dilation)
    newer.run("load_data_3d_l0_v2", l0, newer.local(in_l1(image, 16), A1), params)
    result = newer.values(l0).reshape(3, 48, 16)
    assert result[:, :32].tolist() == matrix.reshape(32, 3, 16).transpose(1, 0, 2).tolist()


def test_the_packed_form_takes_image_and_fill_from_registers(cube: Any) -> None:
    pads, size, strides, kernel, dilation = CASES[2]
    image = some(HALF, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, 16, -1.0)
    m, k = matrix.shape
    cube.run("set_fmatrix", size[0], size[1], list(pads), 0)
    cube.run("set_load_data_padding_value", int(np.float16(-1).view(np.uint16)), operand_types=("i32",))
    extent = m << 16 | k
    word = dilation[0] << 40 | dilation[1] << 32 | kernel[0] << 24 | kernel[1] << 16 | strides[0] << 8 | strides[1]
    l0 = cube.local(np.zeros(-(-m // 16) * 16 * (-(-k // 16)) * 16, HALF), A2)
    params = construct("load_data_3d_params_v2_pro", "", size[2], False, False, False, False, False, extent, word)
    cube.run("load_data_3d_l0_v2pro", l0, cube.local(in_l1(image, 16), A1), params)
    assert cube.values(l0).tolist() == zz(matrix, 16).tolist()
    assert cube.opcodes() == ["set_fmatrix", "set_load_padding", "load_data_3d"]


def test_l1_is_read_from_its_start_beyond_the_boundary(cube: Any) -> None:
    image = some(HALF, 96 * 16).reshape(1, 96, 16)
    l1 = cube.local(in_l1(image, 16), A1)
    cube.run("set_load_data_boundary", 1024)
    l0 = cube.local(np.zeros(64 * 16, HALF), A2)
    params = v2((0, 0, 0, 0), (1, 64, 16), (16, 64, 0, 0), (1, 1), (1, 1), (1, 1))
    cube.run("load_data_3d_l0_v2", l0, l1.at(16 * 16), params)
    rows = [image[0, (16 + row) % 32] for row in range(64)]
    assert cube.values(l0).tolist() == np.concatenate(rows).tolist()


def test_int4_columns(cube: Any) -> None:
    image = np.random.default_rng(6).integers(-8, 8, (1, 16, 128))
    blocks = np.concatenate([pack_int4(image[:, :, :64]).reshape(-1), pack_int4(image[:, :, 64:]).reshape(-1)])
    l1, l0 = cube.local(blocks.view(INT8), A1), cube.local(np.zeros(1024, INT8), A2)
    source, target = (Tensor(t.memory, t.address, INT4, t.buffer) for t in (l1, l0))
    cube.run(
        "load_data_3d_l0_v2", target, source,
        v2((0, 0, 0, 0), (1, 16, 128), (128, 16, 0, 0), (1, 1), (1, 1), (1, 1)),
    )
    expected = pack_int4(image[0].reshape(16, 2, 64).transpose(1, 0, 2)).view(INT8)
    assert cube.values(l0).tolist() == expected.reshape(-1).tolist()


def test_footprint_of_columns_leaves_padding_out(cube: Any) -> None:
    l1, l0 = cube.local(np.zeros(4 * 4 * 16, HALF), A1), cube.local(np.zeros(16 * 16, HALF), A2)
    params = v2((1, 0, 1, 0), (4, 4, 16), (16, 16, 0, 0), (1, 1), (2, 2), (1, 1))
    cube.run("load_data_3d_l0_v2", l0, l1, params)
    touched = {l1.address + (h * 4 + w) * 32 + byte for h in range(3) for w in range(3) for byte in range(32)}
    assert cube.touched(l1, Role.READ) == touched


def test_empty_images_and_illegal_types(cube: Any) -> None:
    l1, l0 = cube.local(np.ones(256, HALF), A1), cube.local(np.zeros(256, HALF), A2)
    cube.run("load_data_3d_l0_v2", l0, l1, v2((0,) * 4, (0, 16, 16), (16, 16, 0, 0), (1, 1), (1, 1), (1, 1)))
    cube.run("load_data_3d_l0_v2", l0, l1, v2((0,) * 4, (1, 16, 16), (0, 16, 0, 0), (1, 1), (1, 1), (1, 1)))
    assert not cube.values(l0).any()
    cube.run("load_data_3d_l0_v2", l0, l1, v2((0,) * 4, (1, 16, 16), (16, 16, 0, 0), (64, 0), (1, 1), (1, 1)))
    assert faults(cube) == ["stride of LoadData"] * 2
    with pytest.raises(UserError, match="int8_t to L0B"):
        cube.run(
            "load_data_3d_l0_v2", cube.local(np.zeros(512, INT8), B2), cube.local(np.zeros(512, INT8), B1),
            v2((0,) * 4, (1, 16, 32), (32, 16, 0, 0), (1, 1), (1, 1), (1, 1)),
        )


@pytest.mark.parametrize("mode", [0, 1])
def test_the_first_form_on_a_coupled_chip(make_device: Any, mode: int) -> None:
    chip = make_device("310P3")
    pads, size, strides, kernel, dilation = CASES[1]
    image = some(HALF, size[0] * size[1] * size[2]).reshape(size)
    matrix = column_matrix(image, pads, strides, kernel, dilation, 16, 2)
    l0 = chip.local(np.zeros((4, 256), HALF), A2)
    params = construct(
        "load_data_3d_params_v1", "", *pads, size[0], size[1], 1, 1, 2, -1, 0, 1, 1, 3, 3, 1, 1, 2, mode, 2, 0, 2
    )
    chip.run("load_data_3d_l0_v1", l0, chip.local(in_l1(image, 16), A1), params)
    result = chip.values(l0).reshape(4, 16, 16)
    first_row, first_block = 7, 9 + 2 * 3 + 1  # the second row of positions; block 1, filter row 2, column 1
    for number in range(2):
        m = first_row + 16 * number * mode
        k = (first_block + number * (1 - mode)) * 16
        assert result[2 * number].tolist() == matrix[m : m + 16, k : k + 16].tolist()
    with pytest.raises(Unsupported, match="L0A"):
        chip.run("load_data_3d_l0_v1", chip.local(np.zeros(256, HALF), B2), chip.local(image, B1), params)
