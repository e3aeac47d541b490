"""Fixpipe: every mode and layout, element by element; quantisation by the vendor's formula written out here."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import UserError
from npuscope.npu.numbers import encode_quant_word
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import INSTRUCTION_COLUMNS, OPCODES, CoreInfo, CoreType, Origin, Pipe, Role, Space

entries()  # loads the library, which names the fields of parameter structs

A1, C1, CO1 = 1, 5, 7
INT8, UINT8, INT32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)
HALF, FLOAT, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
NO_QUANT, F16, BF, DEQ, VDEQ, QB8, VQB8, REQ, VREQ = range(9)
NZ, ROWS = 0, 1


def up(value: int, step: int) -> int:
    return -(-value // step) * step


def accumulators(dtype: np.dtype[Any], rows: int, columns: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == INT32:
        return rng.integers(-40000, 40000, (rows, columns)).astype(INT32)
    return (rng.standard_normal((rows, columns)) * 100).astype(FLOAT)


def in_l0c(cube: Any, matrix: np.ndarray) -> Tensor:
    rows, columns = matrix.shape
    return cube.local(matrix.reshape(rows, columns // 16, 16).transpose(1, 0, 2).copy(), CO1)


def params(n: int, m: int, source: int, stride: int, **named: Any) -> Any:
    values = {"relu": False, "quant": 0, "word": 0, "count": 1, "step": 0, "out_step": 0, "flag": 0, "split": False}
    values.update(named)
    return construct("fixpipe_params_v220", "", n, m, source, stride, *values.values())


def run(cube: Any, destination: Tensor, source: Tensor, record: Any, layout: int = ROWS, words: Any = None) -> None:
    config = construct("fixpipe_config", "", layout)
    if words is None:
        cube.run("fixpipe", destination, source, record, config)
    else:
        cube.run("fixpipe_with_workspace", destination, source, words, record, config)


def expected_value(value: Any, mode: int, scale: float, offset: int, dtype: np.dtype[Any], relu: bool) -> Any:
    """One element by the vendor's formulas: multiply in float, round half to even into 9 bits, add, saturate."""
    value = max(value, type(value)(0)) if relu else value
    if mode == NO_QUANT:
        return value
    if mode in (F16, BF):
        return np.float32(value).astype(dtype)
    scaled = np.float32(value) * np.float32(scale)
    if mode in (DEQ, VDEQ):
        return scaled.astype(HALF)
    info = np.iinfo(dtype)
    return np.clip(int(np.rint(np.clip(scaled, -256, 255))) + offset, info.min, info.max)


MODES = [
    (NO_QUANT, FLOAT, FLOAT), (NO_QUANT, INT32, INT32), (F16, FLOAT, HALF), (BF, FLOAT, BF16), (DEQ, INT32, HALF),
    (QB8, FLOAT, INT8), (QB8, FLOAT, UINT8), (REQ, INT32, INT8), (REQ, INT32, UINT8),
]


@pytest.mark.parametrize(("mode", "source", "target"), MODES)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("m", "n", "stride"), [(16, 32, 32), (19, 48, 50), (5, 37, 41)])
def test_rows_with_every_scalar_mode(
    cube: Any, mode: int, source: Any, target: Any, relu: bool, m: int, n: int, stride: int
) -> None:
    x = accumulators(source, up(m, 16), up(n, 16))
    word = int(encode_quant_word(0.0625, 3, target != UINT8))
    y = np.full((m, stride), 9, target)
    run(cube, cube.gm(y), in_l0c(cube, x), params(n, m, up(m, 16), stride, quant=mode, word=word, relu=relu))
    expected = np.full((m, stride), 9, target)
    for i in range(m):
        for j in range(n):
            expected[i, j] = expected_value(x[i, j], mode, 0.0625, 3, target, relu)
    assert y.tolist() == expected.tolist()
    assert cube.recorder.faults == []


@pytest.mark.parametrize(("mode", "source", "target"), [(VDEQ, INT32, HALF), (VQB8, FLOAT, INT8), (VREQ, INT32, UINT8)])
@pytest.mark.parametrize("n", [32, 48, 256, 400])
@pytest.mark.parametrize("layout", [ROWS, NZ])
def test_a_word_for_each_column(cube: Any, mode: int, source: Any, target: Any, n: int, layout: int) -> None:
    m = 16
    x = accumulators(source, m, n)
    rng = np.random.default_rng(1)
    scales, offsets = (2.0 ** rng.integers(-8, -2, n)).astype(FLOAT), rng.integers(-9, 9, n)
    words = cube.local(encode_quant_word(scales, offsets, target != UINT8), C1)
    expected = np.zeros((m, n), target)
    for i in range(m):
        for j in range(n):
            expected[i, j] = expected_value(x[i, j], mode, scales[j], int(offsets[j]), target, False)
    y = np.zeros(m * n, target)
    wide = 32 if target.itemsize == 1 else 16
    stride = n if layout == ROWS else m * wide * target.itemsize // 32
    run(cube, cube.gm(y), in_l0c(cube, x), params(n, m, m, stride, quant=mode), layout, words)
    if layout == ROWS:
        assert y.tolist() == expected.reshape(-1).tolist()
    else:
        whole = n // wide * wide
        columns = [expected[:, j : j + wide].reshape(-1) for j in range(0, whole, wide)]
        assert y.tolist() == np.concatenate([*columns, expected[:, whole:].reshape(-1)]).tolist()


def test_the_words_go_through_the_fixpipe_buffer(cube: Any) -> None:
    x = accumulators(INT32, 16, 16)
    words = cube.local(np.full(16, encode_quant_word(0.5), np.uint64), C1)
    y = np.zeros((16, 16), HALF)
    run(cube, cube.gm(y), in_l0c(cube, x), params(16, 16, 16, 16, quant=VDEQ), ROWS, words)
    batch = cube.trace()
    names = [OPCODES.names[code] for code in batch.column("opcode")]
    assert names == ["copy_l1_to_fb", "pipe_barrier", "fixpipe"]
    assert batch.column("pipe").tolist() == [Pipe.FIX] * 3
    assert batch.column("origin").tolist() == [Origin.USER, Origin.FRAMEWORK, Origin.USER]
    spaces = [batch.buffers[number].space for number in batch.access_column("buffer")]
    assert spaces.count(Space.FB) == 2


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT8])
@pytest.mark.parametrize(("m", "n", "stride"), [(32, 32, 128), (24, 48, 100), (7, 80, 64), (16, 16, 64)])
def test_columns(cube: Any, dtype: np.dtype[Any], m: int, n: int, stride: int) -> None:
    """Fractals of 16 columns, of 32 for 8-bit elements, where an odd last one stays 16 wide."""
    x = np.rint(accumulators(FLOAT, up(m, 16), n)).clip(-120, 120)
    mode = {FLOAT: NO_QUANT, HALF: F16, INT8: QB8}[dtype]
    y = np.full(stride * 32 // dtype.itemsize * (n // 16 + 1), 5, dtype)
    word = int(encode_quant_word(1.0))
    run(cube, cube.gm(y), in_l0c(cube, x), params(n, m, up(m, 16), stride, quant=mode, word=word), NZ)
    expected = np.full(y.size, 5, dtype)
    pitch = stride * 32 // dtype.itemsize
    for i in range(m):
        for j in range(n):
            if dtype != INT8:
                place = j // 16 * pitch + i * 16 + j % 16
            elif j < n // 32 * 32:
                place = j // 32 * pitch + i * 32 + j % 32
            else:
                place = j // 32 * pitch + i * 16 + j % 16
            expected[place] = x[i, j]
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("n", [32, 24, 8])
def test_channel_split(cube: Any, n: int) -> None:
    m = 20
    x = accumulators(FLOAT, 32, up(n, 16))
    y = np.zeros((6, 40, 8), FLOAT)
    run(cube, cube.gm(y), in_l0c(cube, x), params(n, m, 32, 40, split=True), NZ)
    expected = np.zeros((6, 40, 8), FLOAT)
    for i in range(m):
        for j in range(n):
            expected[j // 8, i, j % 8] = x[i, j]
    assert y.tolist() == expected.tolist()
    assert cube.recorder.faults == []


def test_several_matrices(cube: Any) -> None:
    """The vendor's picture: two matrices of 48 x 32 in L0C, 64 rows a column, 4096 elements apart in GM."""
    x = accumulators(FLOAT, 64, 16 * 12)
    y = np.zeros(2 * 4096, FLOAT)
    run(cube, cube.gm(y), in_l0c(cube, x), params(32, 48, 64, 64, count=2, step=16, out_step=4096))
    expected = np.zeros((2, 64, 64), FLOAT)
    for number in range(2):
        for i in range(48):
            for j in range(32):
                row = number * 16 * 16 + j // 16 * 64 + i  # fractals of 16 rows, columns of 64 rows
                expected[number, i, j] = x[row % 64, row // 64 * 16 + j % 16]
    assert y.tolist() == expected.reshape(-1).tolist()


def test_l1_gets_columns_whatever_the_configuration(cube: Any) -> None:
    x = accumulators(FLOAT, 32, 32)
    l1 = cube.local(np.zeros(1024, HALF), A1)
    run(cube, l1, in_l0c(cube, x), params(32, 32, 32, 32, quant=F16), ROWS)
    assert cube.values(l1).tolist() == x.astype(HALF).reshape(32, 2, 16).transpose(1, 0, 2).reshape(-1).tolist()


@pytest.mark.parametrize("layout", [ROWS, NZ])
def test_atomics(cube: Any, layout: int) -> None:
    x = accumulators(FLOAT, 16, 32)
    y = np.ones(512, FLOAT)
    target = cube.gm(y)
    cube.run("set_atomic_add", dtype="f32")
    run(cube, target, in_l0c(cube, x), params(32, 16, 16, 32), layout)
    moved = x if layout == ROWS else x.reshape(16, 2, 16).transpose(1, 0, 2)
    assert y.tolist() == (1 + moved).reshape(-1).tolist()
    assert cube.touched(target, Role.ATOMIC) == set(range(target.address, target.address + 2048))


@pytest.mark.parametrize(("saturate", "expected"), [(False, [np.inf, -np.inf]), (True, [65504, -65504])])
def test_too_large_for_half(cube: Any, saturate: bool, expected: list[float]) -> None:
    x = np.zeros((16, 16), FLOAT)
    x[0, :2] = 1e6, -1e6
    y = np.zeros((16, 16), HALF)
    cube.core.registers.saturate = saturate
    run(cube, cube.gm(y), in_l0c(cube, x), params(16, 16, 16, 16, quant=F16))
    assert y[0, :2].tolist() == expected


def test_the_right_shift_before_quantisation(cube: Any, make_device: Any) -> None:
    x = np.full((16, 16), 1000, INT32)
    word = int(encode_quant_word(1.0, right_shift=3))
    for device, value in ((cube, 125), (make_device("950PR", (CoreInfo(CoreType.AIC, 0),)), 127)):
        y = np.zeros((16, 16), INT8)
        run(device, device.gm(y), in_l0c(device, x), params(16, 16, 16, 16, quant=REQ, word=word))
        assert set(y.reshape(-1).tolist()) == {value}


def test_footprints(cube: Any) -> None:
    x = in_l0c(cube, accumulators(FLOAT, 32, 32))
    y = np.zeros((20, 30), HALF)
    target = cube.gm(y)
    for tensor, role, expected in (
        (x, Role.READ, {j // 16 * 2048 + i * 64 + j % 16 * 4 + byte for i in range(20) for j in range(21)
                        for byte in range(4)}),
        (target, Role.WRITE, {i * 60 + byte for i in range(20) for byte in range(42)}),
    ):
        run(cube, target, x, params(21, 20, 32, 30, quant=F16, flag=3))
        row = dict(zip(INSTRUCTION_COLUMNS, cube.trace().instruction[:, 0].tolist(), strict=True))
        assert (row["a"], row["b"], row["c"], row["d"], row["work"]) == (20, 21, F16, 3, 840)
        run(cube, target, x, params(21, 20, 32, 30, quant=F16))
        assert cube.touched(tensor, role) == {tensor.address + place for place in expected}


def test_empty_and_illegal_sizes(cube: Any) -> None:
    x = in_l0c(cube, accumulators(FLOAT, 16, 32))
    y = np.zeros(512, FLOAT)
    for n, m, count in ((0, 16, 1), (16, 0, 1), (16, 16, 0)):
        run(cube, cube.gm(y), x, params(n, m, 16, 16, count=count))
    assert not y.any() and cube.recorder.faults == []
    run(cube, cube.gm(y), x, params(24, 16, 20, 64), NZ)
    run(cube, cube.gm(y), x, params(16, 8193, 16, 0))
    assert [fault.facts["what"] for fault in cube.recorder.faults] == [
        "columns of Fixpipe", "source stride of Fixpipe", "rows of Fixpipe", "destination stride of Fixpipe",
    ]


def test_a_workspace_without_a_vector_mode_moves_nothing(cube: Any) -> None:
    y = np.zeros((16, 16), FLOAT)
    words = cube.local(np.zeros(16, np.uint64), C1)
    run(cube, cube.gm(y), in_l0c(cube, accumulators(FLOAT, 16, 16)), params(16, 16, 16, 16), ROWS, words)
    assert not y.any()
    assert [fault.facts["value"] for fault in cube.recorder.faults] == [NO_QUANT]


@pytest.mark.parametrize(
    ("source", "target", "quant", "position"),
    [(FLOAT, HALF, NO_QUANT, None), (INT32, BF16, BF, None), (FLOAT, FLOAT, NO_QUANT, A1), (FLOAT, HALF, DEQ, None)],
)
def test_types_that_a_mode_does_not_take(cube: Any, source: Any, target: Any, quant: int, position: Any) -> None:
    y = np.zeros(256, target)
    destination = cube.gm(y) if position is None else cube.local(y, position)
    with pytest.raises(UserError, match="Fixpipe in quantisation mode"):
        run(cube, destination, in_l0c(cube, accumulators(source, 16, 16)), params(16, 16, 16, 16, quant=quant))


def test_configurations_that_do_not_exist(cube: Any, device: Any) -> None:
    x = in_l0c(cube, accumulators(FLOAT, 16, 16))
    y = cube.gm(np.zeros(256, FLOAT))
    with pytest.raises(UserError, match="layout NZ or ROW_MAJOR"):
        run(cube, y, x, params(16, 16, 16, 16), 2)
    with pytest.raises(UserError, match="needs cbuf_workspace"):
        run(cube, y, x, params(16, 16, 16, 16, quant=VDEQ))
    with pytest.raises(UserError, match="no quantisation mode number 30"):
        run(cube, y, x, params(16, 16, 16, 16, quant=30))
    z = np.zeros(256, FLOAT)
    run(device, device.gm(z), in_l0c(device, accumulators(FLOAT, 16, 16)), params(16, 16, 16, 16))
    device.run("set_fixpipe_pre_quant_flag", 1)
    assert not z.any() and device.opcodes() == []
