"""What Matmul refuses, and what it leaves in the trace, on one cube core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import Unsupported, UserError
from npuscope.npu.tensor import Pointer, Tensor
from npuscope.trace.schema import ADDS, ELEMENT_TYPES, OPCODES, TYPED, Pipe, Role, Space

F16, F32, I32 = np.float16, np.float32, np.int32


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, limit: int = 5) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return rng.integers(-limit, limit + 1, shape).astype(dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact product as float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def faults(device: Any) -> list[str]:
    return [fault.facts["what"] for fault in device.recorder.faults]


# -- what it refuses ---------------------------------------------------------------------------------------------------


def test_use_without_registration_tiling_or_operands(cube: Any, start: Any, tiling: Any, matmul_type: Any) -> None:
    loose = construct("matmul", matmul_type(F16, F32))
    with pytest.raises(UserError, match="register_matmul"):
        cube.run("matmul.iterate", loose, 0, 1)
    without = start(cube, None, F16, F32)
    with pytest.raises(UserError, match="tiling"):
        cube.run("matmul.iterate", without, 0, 1)
    cube.run("matmul.init", without, tiling(16, 16, 16))
    with pytest.raises(UserError, match="set_tensor_a"):
        cube.run("matmul.iterate", without, 0, 1)


def test_wrong_types_and_sizes(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16, (0, 16, 16)), F16, F32)
    with pytest.raises(UserError, match="half, the tensor has float"):
        cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((16, 16), F32)), 0)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((16, 16), F16)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.zeros((16, 16), F16)), 0)
    with pytest.raises(UserError, match="baseM"):
        cube.run("matmul.iterate_all", mm, cube.gm(np.zeros((16, 16), F32)), 0, 0, 0, 0, 1)
    other = start(cube, tiling(16, 16, 16), F16, I32)
    cube.run("matmul.set_tensor_a", other, cube.gm(np.zeros((16, 16), F16)), 0)
    cube.run("matmul.set_tensor_b", other, cube.gm(np.zeros((16, 16), F16)), 0)
    with pytest.raises(UserError, match="half x half -> int32_t"):
        cube.run("matmul.iterate_all", other, cube.gm(np.zeros((16, 16), I32)), 0, 0, 0, 0, 1)


def test_a_transposition_that_the_type_does_not_allow_is_a_fault(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((16, 16), F16)), 1)
    assert faults(cube) == ["transpose of set_tensor_a"]


@pytest.mark.parametrize("config", [{"intra_block_part_sum": 1}, {"schedule_type": 1}])
def test_templates_that_are_not_simulated(cube: Any, start: Any, tiling: Any, config: dict[str, int]) -> None:
    with pytest.raises(Unsupported):
        mm = start(cube, tiling(16, 16, 16), F16, F32, **config)
        cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((16, 16), F16)), 0)
        cube.run("matmul.set_tensor_b", mm, cube.gm(np.zeros((16, 16), F16)), 0)
        cube.run("matmul.iterate", mm, 0, 1)


def test_asynchronous_iterate_needs_a_workspace(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(16, 16, 16), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((16, 16), F16)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.zeros((16, 16), F16)), 0)
    with pytest.raises(UserError, match="set_workspace"):
        cube.run("matmul.iterate", mm, 0, 0)


# -- the trace ---------------------------------------------------------------------------------------------------------


def test_rows_of_a_tile(cube: Any, start: Any, tiling: Any) -> None:
    mm = start(cube, tiling(40, 30, 20, (32, 32, 16), isBias=1), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((40, 20), F16)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.zeros((20, 30), F16)), 0)
    cube.run("matmul.set_bias", mm, cube.gm(np.zeros(30, F32)))
    cube.trace()
    cube.run("matmul.iterate_all", mm, cube.gm(np.zeros((40, 30), F32)), 0, 0, 0, 0, 1)
    batch = cube.trace()
    rows = list(zip(*(batch.column(name).tolist() for name in ("opcode", "pipe", "a", "b", "c", "work")), strict=True))
    named = [(OPCODES.names[code], Pipe(pipe).name, *rest) for code, pipe, *rest in rows]
    assert named[:8] == [
        ("copy_gm_to_l1", "MTE2", 32, 20, 0, 32 * 20 * 2),
        ("load_data", "MTE1", 32, 20, 0, 32 * 20 * 2),
        ("copy_gm_to_l1", "MTE2", 20, 30, 0, 20 * 30 * 2),
        ("load_data", "MTE1", 20, 30, 0, 20 * 30 * 2),
        ("copy_gm_to_l1", "MTE2", 1, 30, 0, 30 * 4),
        ("copy_l1_to_bt", "MTE1", 1, 30, 0, 30 * 4),
        ("mmad", "M", 32, 30, 20, 32 * 30 * 20),
        ("fixpipe", "FIX", 32, 30, 0, 32 * 30 * 4),
    ]
    assert [row[2:5] for row in named if row[0] == "mmad"] == [(32, 30, 20), (8, 30, 20)]
    told = [(name[0], d) for name, d in zip(named, batch.column("d").tolist(), strict=True)]
    half = ELEMENT_TYPES.index("float16") * TYPED
    assert [d for name, d in told if name == "mmad"] == [half, half]
    assert [d for name, d in told if name == "load_data"] == 2 * [Space.L0A, Space.L0B]


def test_a_product_that_is_added_says_so(cube: Any, start: Any, tiling: Any) -> None:
    """Iterate with a partial sum: the second one finds the first one's result in L0C; its unit flag stays off."""
    mm = start(cube, tiling(16, 16, 16), np.int8, I32)
    for _ in range(2):
        cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((16, 16), np.int8)), 0)
        cube.run("matmul.set_tensor_b", mm, cube.gm(np.zeros((16, 16), np.int8)), 0)
        cube.run("matmul.iterate", mm, 1, 1)
    batch = cube.trace()
    mmads = batch.column("opcode") == OPCODES.number("mmad")
    eight = ELEMENT_TYPES.index("int8") * TYPED
    assert batch.column("d")[mmads].tolist() == [eight, eight + ADDS]


@pytest.mark.parametrize(("step_k", "copies"), [(0, 12), (2, 6 + 2)])
def test_parts_that_lie_in_l1_are_not_copied_again(
    cube: Any, start: Any, tiling: Any, step_k: int, copies: int
) -> None:
    mm = start(cube, tiling(96, 64, 32, (32, 32, 16), stepKa=step_k, stepKb=step_k), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(np.zeros((96, 32), F16)), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(np.zeros((32, 64), F16)), 0)
    cube.trace()
    cube.run("matmul.iterate_all", mm, cube.gm(np.zeros((96, 64), F32)), 0, 0, 0, 0, 1)
    assert cube.opcodes().count("copy_gm_to_l1") == copies


def test_footprints_are_exact_inside_wider_matrices(cube: Any, start: Any, tiling: Any) -> None:
    a, b, c = np.zeros((20, 100), F16), np.zeros((60, 80), F16), np.zeros((20, 80), F32)
    mm = start(cube, tiling(20, 80, 100, singleCoreM=10, singleCoreN=33, singleCoreK=60), F16, F32)
    cube.run("matmul.set_org_shape", mm, 20, 80, 100, 60, 0)
    tensors = cube.gm(a), cube.gm(b), cube.gm(c)
    cube.run("matmul.set_tensor_a", mm, tensors[0].at(5), 0)
    cube.run("matmul.set_tensor_b", mm, tensors[1].at(7), 0)

    def block(array: np.ndarray, tensor: Tensor, rows: slice, columns: slice) -> set[int]:
        bytes_of = np.arange(array.nbytes).reshape(*array.shape, array.itemsize)
        return set((tensor.address + bytes_of[rows, columns]).reshape(-1).tolist())

    cube.run("matmul.iterate_all", mm, tensors[2].at(80 + 3), 0, 0, 0, 0, 1)
    assert cube.touched(tensors[0], Role.READ) == block(a, tensors[0], slice(0, 10), slice(5, 65))
    cube.run("matmul.iterate_all", mm, tensors[2].at(80 + 3), 0, 0, 0, 0, 1)
    assert cube.touched(tensors[1], Role.READ) == block(b, tensors[1], slice(0, 60), slice(7, 40))
    cube.run("matmul.iterate_all", mm, tensors[2].at(80 + 3), 0, 0, 0, 0, 1)
    assert cube.touched(tensors[2], Role.WRITE) == block(c, tensors[2], slice(1, 11), slice(3, 36))


def test_what_lies_outside_the_arrays_counts_as_zero(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b, c = whole(rng, (16, 16), F16), whole(rng, (16, 16), F16), np.zeros((20, 16), F32)
    mm = start(cube, tiling(20, 16, 16), F16, F32)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    cube.run("matmul.iterate_all", mm, cube.gm(c), 0, 0, 0, 0, 1)
    np.testing.assert_array_equal(c[:16], product(a, b))
    assert (c[16:] == 0).all()


def test_static_tiling_from_the_config(cube: Any, matmul_type: Any) -> None:
    config = construct("matmul_config", "!ascendc.matmul_config")
    config.__dict__.update(basic_m=64, basic_n=64, basic_k=32, enable_set_bias=1)
    text = matmul_type(F16, F32)
    partly = cube.run("get_matmul_api_tiling", config, 1 << 19, matmul_type=text)
    assert (partly.baseM, partly.baseN, partly.baseK, partly.isBias, partly.singleCoreM) == (64, 64, 32, 1, -1)
    config.__dict__.update(single_core_m=128, single_core_n=256, single_core_k=512)
    full = cube.run("get_matmul_api_tiling", config, 1 << 19, matmul_type=text)
    assert (full.M, full.N, full.Ka, full.Kb) == (128, 256, 512, 512)
    assert full.stepKa == full.stepKb == 16  # all of K fits twice into half a MiB
    assert full.depthA1 == 32


def test_a_workspace_may_be_an_address(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (32, 16), F16), whole(rng, (16, 64), F16)
    room = np.zeros(2 * 32 * 32 * 4, np.uint8)
    mm = start(cube, tiling(32, 64, 16), F16, F32)
    tensor = cube.gm(room)
    pointer = Pointer(tensor.memory, tensor.address, tensor.dtype, tensor.buffer)
    cube.run("matmul.set_workspace", mm, pointer, room.size)
    cube.run("matmul.set_tensor_a", mm, cube.gm(a), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(b), 0)
    assert cube.run("matmul.iterate", mm, 0, 0) == 1
    first = cube.run("matmul.get_tensor_c_return", mm, 0, 0, 0)
    second = cube.run("matmul.get_tensor_c_return", mm, 0, 0, 0)
    expected = product(a, b)
    np.testing.assert_array_equal(cube.values(first).reshape(32, 32), expected[:, :32])
    np.testing.assert_array_equal(cube.values(second).reshape(32, 32), expected[:, 32:])


def test_a_vector_launch_has_no_cube(device: Any, start: Any, tiling: Any) -> None:
    with pytest.raises(UserError, match="cube core"):
        start(device, tiling(16, 16, 16), F16, F32)
