"""DataCopy and DataCopyPad against element by element copies."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import Record, construct
from npuscope.ascendc.registry import entries
from npuscope.errors import Unsupported, UserError
from npuscope.npu.memory import UNDEFINED_BYTE
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import OPCODES, Buffer, CoreInfo, CoreType, Pipe, Role, Space

entries()  # loads the library, which names the fields of parameter structs

VECIN, A1, C1, C2, CO1 = 9, 1, 5, 6, 7
HALF, FLOAT, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
TYPES = [np.dtype(np.int8), HALF, BF16, FLOAT, np.dtype(np.int64)]


def some(dtype: np.dtype[Any], count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(-100, 100, count).astype(dtype)


def faults(device: Any) -> list[str]:
    return [str(fault.facts["what"]) for fault in device.recorder.faults if fault.code == "bad_operand"]


def rows(device: Any) -> list[tuple[str, int]]:
    batch = device.trace()
    return [
        (OPCODES.names[code], int(pipe)) for code, pipe in zip(batch.column("opcode"), batch.column("pipe"), strict=True)
    ]


# -- counts and blocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [0, 1, 7, 32, 100])
def test_count_form_copies_whole_blocks_only(device: Any, dtype: np.dtype[Any], count: int) -> None:
    x = some(dtype, 128)
    source, ub = device.gm(x), device.local(np.zeros(128, dtype))
    device.run("data_copy_l2", ub, source, count)
    whole = count * dtype.itemsize // 32 * 32 // dtype.itemsize
    expected = np.zeros(128, dtype)
    expected[:whole] = x[:whole]
    assert device.values(ub).tolist() == expected.tolist()


def test_the_pipe_follows_from_the_two_memories(device: Any, cube: Any) -> None:
    ub, x = device.local(np.zeros(64, HALF)), device.gm(np.zeros(64, HALF))
    for destination, source in ((ub, x), (x, ub), (ub, ub)):
        device.run("data_copy_l2", destination, source, 64)
    assert rows(device) == [
        ("copy_gm_to_ub", Pipe.MTE2), ("copy_ub_to_gm", Pipe.MTE3), ("copy_ub_to_ub", Pipe.V),
    ]
    l1, y = cube.local(np.zeros(64, HALF), A1), cube.gm(np.zeros(64, HALF))
    cube.run("data_copy_l2", l1, y, 64)
    cube.run("data_copy_l2", y, l1, 64)
    assert rows(cube) == [("copy_gm_to_l1", Pipe.MTE2), ("copy_l1_to_gm", Pipe.MTE3)]


@pytest.mark.parametrize("dtype", TYPES)
def test_block_form_leaves_gaps_alone(device: Any, dtype: np.dtype[Any]) -> None:
    lanes = 32 // dtype.itemsize
    x = some(dtype, 40 * lanes)
    source, ub = device.gm(x), device.local(np.zeros(40 * lanes, dtype))
    device.run("data_copy_l0", ub, source, construct("data_copy_params", "", 3, 2, 1, 4))
    expected = np.zeros(40 * lanes, dtype)
    for block in range(3):
        for lane in range(2 * lanes):
            expected[block * 6 * lanes + lane] = x[block * 3 * lanes + lane]
    assert device.values(ub).tolist() == expected.tolist()
    base = ub.address
    assert device.touched(ub, Role.WRITE) == {base + 192 * block + byte for block in range(3) for byte in range(64)}


def test_block_form_of_enhanced_parameters_is_the_plain_one(device: Any) -> None:
    x = some(HALF, 64)
    ub = device.local(np.zeros(64, HALF))
    device.run("data_copy_enhanced", ub, device.gm(x), construct("data_copy_params", "", 1, 4), Record("e"))
    assert device.values(ub).tolist() == x.tolist()


@pytest.mark.parametrize("numbers", [(0, 4, 0, 0), (2, 0, 0, 0)])
def test_zero_blocks_are_no_operation(device: Any, numbers: tuple[int, ...]) -> None:
    ub = device.local(np.ones(64, HALF))
    device.run("data_copy_l0", ub, device.gm(np.zeros(64, HALF)), construct("data_copy_params", "", *numbers))
    assert device.values(ub).tolist() == [1.0] * 64
    assert device.opcodes() == ["copy_gm_to_ub"]
    assert faults(device) == []


def test_counts_beyond_the_limits_are_faults(device: Any) -> None:
    ub = device.local(np.zeros(64, HALF))
    device.run("data_copy_l0", ub, device.gm(np.zeros(64, HALF)), construct("data_copy_params", "", 1, 65536, 70000, 0))
    assert faults(device) == ["block length", "source gap"]


def test_copies_outside_the_array_are_dropped(device: Any) -> None:
    x = some(FLOAT, 16)
    target, ub = device.gm(x.copy()), device.local(np.arange(64, dtype=FLOAT))
    device.run("data_copy_l2", target, ub, 32)
    assert target.memory.bytes.view(FLOAT).tolist() == list(range(16))
    device.run("data_copy_l2", ub, target, 32)
    assert device.values(ub)[:16].tolist() == list(range(16))


def test_the_other_half_of_a_split_chip_skips(device: Any, cube: Any) -> None:
    l1 = device.local(np.zeros(64, HALF), A1)
    device.run("data_copy_l2", l1, device.gm(np.ones(64, HALF)), 64)
    assert device.values(l1).tolist() == [0.0] * 64
    ub = cube.local(np.zeros(64, HALF))
    cube.run("data_copy_l2", ub, cube.gm(np.ones(64, HALF)), 64)
    assert device.opcodes() == [] and cube.opcodes() == []


def test_paths_that_do_not_exist_are_named(device: Any, make_device: Any) -> None:
    with pytest.raises(Unsupported, match="L1 and UB"):
        device.run("data_copy_l2", device.local(np.zeros(64, HALF), A1), device.local(np.zeros(64, HALF)), 64)
    newer = make_device("950PR", (CoreInfo(CoreType.AIC, 0),))
    with pytest.raises(UserError, match="no path from L1 to GM"):
        newer.run("data_copy_l2", newer.gm(np.zeros(64, HALF)), newer.local(np.zeros(64, HALF), A1), 64)


# -- bias table and Fixpipe buffer -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chip", "unit"), [("910B1", 64), ("950PR", 32)])
def test_bias_is_copied_in_the_chips_blocks(make_device: Any, chip: str, unit: int) -> None:
    cube = make_device(chip, (CoreInfo(CoreType.AIC, 0),))
    x = some(FLOAT, 128)
    l1, table = cube.local(x, C1), cube.local(np.zeros(128, FLOAT), C2)
    cube.run("data_copy_l0", table, l1, construct("data_copy_params", "", 2, 2, 1, 1))
    run = 2 * unit // 4
    expected = np.zeros(128, FLOAT)
    expected[:run] = x[:run]
    expected[run + unit // 4 : 2 * run + unit // 4] = x[run + 8 : 2 * run + 8]
    assert cube.values(table).tolist() == expected.tolist()
    assert rows(cube) == [("copy_l1_to_bt", Pipe.MTE1)]


def test_half_bias_becomes_float(cube: Any) -> None:
    x = some(HALF, 64)
    l1, table = cube.local(x, C1), cube.local(np.zeros(96, FLOAT), C2)
    cube.run("data_copy_l0", table, l1, construct("data_copy_params", "", 1, 2))
    assert cube.values(table).tolist() == [*x.astype(FLOAT).tolist(), *([0.0] * 32)]
    with pytest.raises(UserError, match="L1 to BT"):
        cube.run(
            "data_copy_l0", table, cube.local(np.zeros(64, BF16), C1), construct("data_copy_params", "", 1, 2)
        )


def test_count_form_to_the_bias_table_drops_what_is_no_block(cube: Any) -> None:
    x = some(FLOAT, 40)
    table = cube.local(np.zeros(40, FLOAT), C2)
    cube.run("data_copy_l2", table, cube.local(x, C1), 40)
    assert cube.values(table).tolist() == [*x[:32].tolist(), *([0.0] * 8)]


def test_fixpipe_buffer_counts_from_start_to_start(cube: Any) -> None:
    x = np.arange(64, dtype=np.uint64)
    memory = cube.core.memories[Space.FB]
    buffer = cube.core.buffer(Buffer(Space.FB, 0, 0, 1024, "tensor", "fb", "uint64"))
    fb = Tensor(memory, 0, np.dtype(np.uint64), buffer, 128)
    memory.bytes[:1024] = 0
    cube.run("data_copy_l0", fb, cube.local(x, C1), construct("data_copy_params", "", 2, 1, 6, 3))
    expected = [0] * 128
    expected[:16] = range(16)
    expected[48:64] = range(24, 40)
    assert cube.values(fb).tolist() == expected
    assert rows(cube) == [("copy_l1_to_fb", Pipe.FIX)]


# -- bytes with padding ------------------------------------------------------------------------------------------------


def pad_in(
    device: Any, source: Tensor, target: Tensor, block: tuple[int, ...], pad: tuple[Any, ...], ext: bool = True
) -> None:
    kind, pad_kind = ("data_copy_ext_params", "data_copy_pad_ext_params") if ext else (
        "data_copy_params", "data_copy_pad_params"
    )
    name = "data_copy_pad_l0_ext" if ext else "data_copy_pad_l0"
    device.run(name, target, source, construct(kind, "", *block), construct(pad_kind, "", *pad))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("length", "gap", "out_gap", "left", "right"),
    [(1, 0, 0, 0, 0), (5, 3, 0, 1, 2), (16, 5, 1, 0, 0), (7, 1, 2, 2, 0), (19, 0, 1, 1, 1), (4, 8, 0, 0, 4)],
)
def test_rows_are_padded_to_whole_blocks(
    device: Any, dtype: np.dtype[Any], length: int, gap: int, out_gap: int, left: int, right: int
) -> None:
    size, value = dtype.itemsize, 0 if dtype.itemsize == 8 else 7
    x = some(dtype, 200)
    source = device.gm(x)
    ub = device.local(np.full(400, 55, dtype))
    pad_in(device, source, ub, (3, length * size, gap * size, out_gap), (True, left, right, value))
    expected = np.full(400, 55, dtype)
    row = -(-(left + length + right) * size // 32) * 32 // size
    for block in range(3):
        start = block * (row + out_gap * 32 // size)
        for lane in range(row):
            inner = lane - left
            if 0 <= inner < length:
                expected[start + lane] = x[block * (length + gap) + inner]
            elif left or right:
                expected[start + lane] = value
            else:
                expected[start + lane] = x[block * (length + gap)]
    assert device.values(ub).tolist() == expected.tolist()
    assert faults(device) == []


def test_footprint_of_a_padded_copy(device: Any) -> None:
    """Bytes are read as they are asked for, and written up to a whole block."""
    source, ub = device.gm(np.zeros(100, HALF)), device.local(np.zeros(100, HALF))
    read = {source.address + 16 * block + byte for block in range(2) for byte in range(10)}
    written = {ub.address + 64 * block + byte for block in range(2) for byte in range(32)}
    for tensor, role, expected in ((source, Role.READ, read), (ub, Role.WRITE, written)):
        pad_in(device, source, ub, (2, 10, 6, 1), (True, 1, 1, 0))
        assert device.touched(tensor, role) == expected


def test_set_pad_value_fills_where_no_value_is_given(device: Any) -> None:
    x = some(FLOAT, 20)
    ub = device.local(np.zeros(24, FLOAT))
    device.run("set_pad_value", 1.5, pos=12, operand_types=("f32",))
    pad_in(device, device.gm(x), ub, (1, 80, 0, 0), (False, 0, 4, 9.0))
    assert device.values(ub).tolist() == [*x.tolist(), *([1.5] * 4)]
    assert device.opcodes() == ["set_pad_value", "copy_gm_to_ub"]


def test_padding_that_nobody_chose_is_left_undefined(device: Any) -> None:
    ub = device.local(np.zeros(16, np.int8), size=32)
    pad_in(device, device.gm(some(np.dtype(np.int8), 20)), ub, (1, 20, 0, 0), (False, 2, 0, 5))
    raw = device.values(ub, 32)
    assert set(raw[:2].tolist()) | set(raw[22:].tolist()) == {UNDEFINED_BYTE}


def test_plain_padding_parameters_hold_raw_bits(device: Any) -> None:
    ub = device.local(np.zeros(8, FLOAT))
    bits = int(np.float32(2.5).view(np.uint32))
    pad_in(device, device.gm(np.ones(6, FLOAT)), ub, (1, 24, 0, 0), (True, 1, 1, bits), ext=False)
    assert device.values(ub).tolist() == [2.5, *([1.0] * 6), 2.5]


def test_illegal_padding_is_a_fault(device: Any) -> None:
    ub = device.local(np.zeros(64, np.int64))
    source = device.gm(np.ones(64, np.int64))
    pad_in(device, source, ub, (1, 64, 0, 0), (True, 5, 0, 1))
    pad_in(device, source, ub, (1, 65, 0, 0), (False, 0, 0, 0))
    pad_in(device, source, ub, (4096, 0, 0, 0), (False, 0, 0, 0))
    assert faults(device) == [
        "left padding in bytes", "padding value of 64-bit elements", "block length in bytes", "block count",
    ]


@pytest.mark.parametrize("name", ["data_copy_pad_l2", "data_copy_pad_l2_ext"])
@pytest.mark.parametrize("dtype", TYPES)
def test_unaligned_rows_to_global_memory(device: Any, name: str, dtype: np.dtype[Any]) -> None:
    size, length = dtype.itemsize, 9
    x, y = some(dtype, 200), np.full(60, 3, dtype)
    target = device.gm(y)
    device.run(name, target, device.local(x), construct("data_copy_ext_params", "", 3, length * size, 1, 2 * size))
    pitch = (-(-length * size // 32) + 1) * 32 // size
    expected = np.full(60, 3, dtype)
    for block in range(3):
        for lane in range(length):
            expected[block * (length + 2) + lane] = x[block * pitch + lane]
    assert y.tolist() == expected.tolist()


def test_odd_byte_addresses_in_global_memory(device: Any) -> None:
    y = np.zeros(20, np.int8)
    x = np.arange(10, dtype=np.int8)
    device.run("data_copy_pad_l2", device.gm(y).at(3), device.local(x), construct("data_copy_params", "", 1, 10))
    assert y.tolist() == [0, 0, 0, *range(10), *([0] * 7)]


# -- slices ------------------------------------------------------------------------------------------------------------


def slices(*infos: tuple[int, ...]) -> list[Record]:
    return [construct("slice_info", "", *info) for info in infos]


def test_the_vendors_example_of_a_sliced_copy(device: Any) -> None:
    x = np.arange(3 * 87, dtype=FLOAT).reshape(3, 87)
    target, source = slices((0, 47, 0, 3, 48), (0, 1, 0, 1, 2)), slices((16, 70, 7, 3, 87), (0, 2, 1, 1, 3))
    ub = device.local(np.zeros(96, FLOAT))
    device.run("data_copy_slice", ub, device.gm(x), target, source, 2)
    expected = [x[row, start : start + 24] for row in (0, 2) for start in (16, 47)]
    assert device.values(ub).tolist() == np.concatenate(expected).tolist()
    assert device.opcodes() == ["copy_gm_to_ub"]


@pytest.mark.parametrize("dimensions", [1, 3, 5])
def test_sliced_copies_of_any_rank_to_global_memory(device: Any, dimensions: int) -> None:
    shape = (24, 3, 4, 3, 5)[:dimensions]
    starts, ends, strides = (0, 0, 1, 1, 0), (23, 2, 3, 2, 4), (8, 1, 1, 0, 3)
    inner = np.indices([(end - start) // (stride + 1) + 1 for start, end, stride in list(
        zip(starts, ends, strides, strict=True))[1:dimensions]][::-1])
    picked = inner.reshape(dimensions - 1, -1).T[:, ::-1] if dimensions > 1 else np.zeros((1, 0), int)
    y = np.zeros(shape[::-1], HALF)
    x = some(HALF, 16 * len(picked))
    run = 16 * 1
    source = slices((0, run - 1, 0, 1, run), *(
        (0, size - 1, 0, 1, size) for size in inner.shape[1:][::-1]
    ))
    target = slices((0, 15, 0, 1, 24), *(
        (starts[axis], ends[axis], strides[axis], 1, shape[axis]) for axis in range(1, dimensions)
    ))
    device.run("data_copy_slice", device.gm(y), device.local(x), target, source, dimensions)
    expected = np.zeros(shape[::-1], HALF)
    for number, place in enumerate(picked):
        index = tuple(starts[axis + 1] + int(step) * (strides[axis + 1] + 1) for axis, step in enumerate(place))[::-1]
        expected[(*index, slice(0, 16))] = x[16 * number : 16 * (number + 1)]
    assert y.tolist() == expected.tolist()


def test_slices_that_do_not_fit_are_refused(device: Any) -> None:
    ub, x = device.local(np.zeros(96, FLOAT)), device.gm(np.zeros(96, FLOAT))
    one, two = slices((0, 7, 0, 1, 8), (0, 1, 0, 1, 2)), slices((0, 7, 0, 1, 8), (0, 2, 0, 1, 3))
    with pytest.raises(UserError, match="counts must agree"):
        device.run("data_copy_slice", ub, x, one, two, 2)
    with pytest.raises(UserError, match="3 dimensions"):
        device.run("data_copy_slice", ub, x, one, one, 3)
    assert device.run("slice_info.subindex", one[0], 0) is one[0]
    with pytest.raises(UserError, match="no element 1"):
        device.run("slice_info.subindex", one[0], 1)


# -- out of L0C on a coupled chip --------------------------------------------------------------------------------------


def test_fractals_from_l0c_to_ub(make_device: Any) -> None:
    chip = make_device("310P3")
    x = np.random.default_rng(1).standard_normal(6 * 256).astype(FLOAT)
    ub = chip.local(np.zeros(6 * 256, HALF))
    enhanced = construct("data_copy_enhanced_params", "", 1, 0, 0, 0, True)
    chip.run("data_copy_enhanced", ub, chip.local(x, CO1), construct("data_copy_params", "", 2, 2, 1, 2), enhanced)
    expected = np.zeros(6 * 256, HALF)
    expected[:512] = np.maximum(x[:512], 0).astype(HALF)
    expected[512 + 32 : 1024 + 32] = np.maximum(x[768:1280], 0).astype(HALF)
    assert chip.values(ub).tolist() == expected.tolist()
    with pytest.raises(Unsupported, match="BLOCK_MODE_MATRIX"):
        chip.run(
            "data_copy_enhanced", ub, chip.local(x, CO1), construct("data_copy_params", "", 1, 1),
            construct("data_copy_enhanced_params", "", 2),
        )
