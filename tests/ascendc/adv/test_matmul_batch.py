"""Batches of products against numpy: every layout, broadcast axes, sums over G, biases, the workspace forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.errors import Unsupported, UserError
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Role

F16, F32, I8, I32 = np.float16, np.float32, np.int8, np.int32
NORMAL, BSNGD, SBNGD, BNGS1S2 = 1, 2, 3, 4
VECIN = 9
ORDER = {BSNGD: "bsngd", SBNGD: "sbngd", BNGS1S2: "bngsd"}
AXES = "bngsd"


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, limit: int = 5) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return rng.integers(-limit, limit + 1, shape).astype(dtype)


def stored(matrices: np.ndarray, layout: int) -> np.ndarray:
    """(B, N, G, S, D) as the layout orders its axes."""
    return matrices.transpose([AXES.index(axis) for axis in ORDER[layout]]).copy()


def as_matrices(memory: np.ndarray, layout: int, sizes: tuple[int, ...]) -> np.ndarray:
    """Memory in a layout as (B, N, G, S, D)."""
    order = ORDER[layout]
    return memory.reshape([sizes[AXES.index(axis)] for axis in order]).transpose([order.index(axis) for axis in AXES])


def axes(**sides: tuple[int, int, int, int, int]) -> dict[str, int]:
    """Layout fields of the tiling from (B, N, G, S, D) of A, B and C."""
    fields: dict[str, int] = {}
    for side, sizes in sides.items():
        names = ("B", "N", "G", "S1", "S2") if side == "C" else ("B", "N", "G", "S", "D")
        fields |= {f"{side}LayoutInfo{name}": size for name, size in zip(names, sizes, strict=True)}
    return fields


def faults(device: Any) -> list[str]:
    return [fault.facts["what"] for fault in device.recorder.faults]


def operands(cube: Any, mm: Any, a: np.ndarray, b: np.ndarray, trans_b: int = 0) -> tuple[Tensor, Tensor]:
    tensors = cube.gm(a), cube.gm(b)
    cube.run("matmul.set_tensor_a", mm, tensors[0], 0)
    cube.run("matmul.set_tensor_b", mm, tensors[1], trans_b)
    return tensors


# -- NORMAL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_a", "batch_b"), [(3, 3), (4, 2), (1, 5), (6, 1)])
@pytest.mark.parametrize(("a_type", "c_type"), [(F16, F32), (I8, I32)])
def test_normal_batches_repeat_the_matrices_of_the_shorter_side(
    cube: Any, start: Any, tiling: Any, rng: Any, batch_a: int, batch_b: int, a_type: Any, c_type: Any
) -> None:
    m, n, k, products = 20, 40, 33, max(batch_a, batch_b)
    a, b = whole(rng, (batch_a, m, k), a_type), whole(rng, (batch_b, k, n), a_type)
    c = np.zeros((products, m, n), c_type)
    mm = start(cube, tiling(m, n, k), a_type, c_type, layouts=(NORMAL,) * 3)
    operands(cube, mm, a, b)
    cube.run("matmul.iterate_batch", mm, cube.gm(c), batch_a, batch_b, 0, 0, 0, 0)
    left = np.repeat(a, products // batch_a, axis=0).astype(np.float64)
    right = np.repeat(b, products // batch_b, axis=0).astype(np.float64)
    np.testing.assert_array_equal(c.astype(np.float64), left @ right)
    assert faults(cube) == []


def test_normal_with_transposed_b(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b, c = whole(rng, (2, 9, 30), F16), whole(rng, (2, 30, 50), F16), np.zeros((2, 9, 50), F32)
    mm = start(cube, tiling(9, 50, 30), F16, F32, layouts=(NORMAL,) * 3, trans_b=True)
    operands(cube, mm, a, b.transpose(0, 2, 1).copy(), trans_b=1)
    cube.run("matmul.iterate_batch", mm, cube.gm(c), 2, 2, 0, 0, 0, 0)
    np.testing.assert_array_equal(c, a.astype(F32) @ b.astype(F32))


def test_the_numbers_of_a_cube_kernel_come_from_set_batch_num(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b, c = whole(rng, (4, 16, 16), F16), whole(rng, (2, 16, 16), F16), np.ones((4, 16, 16), F32)
    mm = start(cube, tiling(16, 16, 16), F16, F32, layouts=(NORMAL,) * 3)
    operands(cube, mm, a, b)
    cube.run("matmul.set_batch_num", mm, 4, 2)
    cube.run("matmul.iterate_batch_cube_only", mm, cube.gm(c), 0, 1, 0, 0, 0, 0)
    np.testing.assert_array_equal(c, 1 + a.astype(F32) @ np.repeat(b, 2, axis=0).astype(F32))


def test_strides_of_the_call_replace_the_distance_of_the_matrices(
    cube: Any, start: Any, tiling: Any, rng: Any
) -> None:
    a, b, c = whole(rng, (2, 100), F16), whole(rng, (2, 77), F16), np.zeros((2, 8, 8), F32)
    mm = start(cube, tiling(8, 8, 8), F16, F32, layouts=(NORMAL,) * 3)
    tensors = operands(cube, mm, a, b)
    cube.trace()
    cube.run("matmul.iterate_batch", mm, cube.gm(c), 2, 2, 0, 100, 77, 0)
    left, right = a[:, :64].reshape(2, 8, 8).astype(F32), b[:, :64].reshape(2, 8, 8).astype(F32)
    np.testing.assert_array_equal(c, left @ right)
    read = {offset - tensors[0].address for offset in cube.touched(tensors[0], Role.READ)}
    assert read == {*range(128), *range(200, 328)}


def test_a_stride_of_c_is_reserved(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    mm = start(cube, tiling(8, 8, 8), F16, F32, layouts=(NORMAL,) * 3)
    operands(cube, mm, whole(rng, (8, 8), F16), whole(rng, (8, 8), F16))
    cube.run("matmul.iterate_batch", mm, cube.gm(np.zeros((8, 8), F32)), 1, 1, 0, 0, 0, 5)
    cube.run("matmul.set_batch_num", mm, 1, 1)
    cube.run("matmul.iterate_batch_cube_only", mm, cube.gm(np.zeros((8, 8), F32)), 0, 0, 0, 0, 0, 5)
    assert faults(cube) == ["matrix_stride_c"] * 2


# -- layouts with axes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [BSNGD, SBNGD, BNGS1S2])
@pytest.mark.parametrize(
    ("groups_a", "groups_b"),
    [((1, 2, 3), (1, 2, 3)), ((1, 2, 1), (1, 2, 4)), ((1, 2, 3), (1, 2, 1)), ((1, 1, 1), (1, 3, 1))],
)  # fmt: skip
def test_layouts_and_broadcast_axes(
    cube: Any, start: Any, tiling: Any, rng: Any, layout: int, groups_a: Any, groups_b: Any
) -> None:
    m, n, k = 18, 40, 24
    a, b = whole(rng, (*groups_a, m, k), F16), whole(rng, (*groups_b, n, k), F16)
    expected = a.astype(F32) @ b.astype(F32).swapaxes(-1, -2)
    c = np.zeros(expected.size, F32)
    record = tiling(m, n, k, **axes(A=a.shape, B=b.shape, C=expected.shape))
    mm = start(cube, record, F16, F32, layouts=(layout,) * 3, trans_b=True)
    operands(cube, mm, stored(a, layout), stored(b, layout), trans_b=1)
    batch_a, batch_b = (int(np.prod(groups)) for groups in (groups_a, groups_b))
    cube.run("matmul.iterate_batch", mm, cube.gm(c), batch_a, batch_b, 0, 0, 0, 0)
    np.testing.assert_array_equal(as_matrices(c, layout, expected.shape), expected)
    assert faults(cube) == []


def test_a_b_axis_is_broadcast(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (3, 1, 1, 18, 24), F16), whole(rng, (1, 1, 1, 40, 24), F16)
    c = np.zeros((3, 1, 1, 18, 40), F32)
    mm = start(cube, tiling(18, 40, 24, **axes(A=a.shape, B=b.shape, C=c.shape)), F16, F32, layouts=(SBNGD,) * 3,
               trans_b=True)  # fmt: skip
    operands(cube, mm, stored(a, SBNGD), stored(b, SBNGD), trans_b=1)
    memory = np.zeros(c.size, F32)
    cube.run("matmul.iterate_batch", mm, cube.gm(memory), 3, 1, 0, 0, 0, 0)
    expected = a.astype(F32) @ b.astype(F32).swapaxes(-1, -2)
    np.testing.assert_array_equal(as_matrices(memory, SBNGD, c.shape), expected)


@pytest.mark.parametrize("layout", [BSNGD, BNGS1S2])
def test_a_g_axis_that_c_does_not_have_is_summed(cube: Any, start: Any, tiling: Any, rng: Any, layout: int) -> None:
    m, n, k = 16, 24, 32
    a, b = whole(rng, (1, 2, 3, m, k), F16), whole(rng, (1, 2, 3, n, k), F16)
    bias = whole(rng, (2, n), F32)
    sums = (a.astype(F32) @ b.astype(F32).swapaxes(-1, -2)).sum(axis=2, keepdims=True)
    expected = sums + bias.reshape(1, 2, 1, 1, n)
    c = np.zeros(expected.size, F32)
    record = tiling(m, n, k, isBias=1, **axes(A=a.shape, B=b.shape, C=expected.shape))
    mm = start(cube, record, F16, F32, layouts=(layout,) * 3, trans_b=True)
    operands(cube, mm, stored(a, layout), stored(b, layout), trans_b=1)
    cube.run("matmul.set_bias", mm, cube.gm(bias))
    out = cube.gm(c)
    cube.trace()
    cube.run("matmul.iterate_batch", mm, out, 6, 6, 0, 0, 0, 0)
    np.testing.assert_array_equal(as_matrices(c, layout, expected.shape), expected)
    assert len(cube.touched(out, Role.ATOMIC)) == c.nbytes


@pytest.mark.parametrize("own", [True, False])
def test_a_bias_for_each_product_or_one_for_all(
    cube: Any, start: Any, tiling: Any, rng: Any, own: bool
) -> None:
    a, b = whole(rng, (3, 16, 16), F16), whole(rng, (3, 16, 40), F16)
    bias, c = whole(rng, (3, 40), F32, 100), np.zeros((3, 16, 40), F32)
    mm = start(cube, tiling(16, 40, 16, isBias=1), F16, F32, layouts=(NORMAL,) * 3, is_bias_batch=int(own))
    operands(cube, mm, a, b)
    cube.run("matmul.set_bias", mm, cube.gm(bias))
    cube.run("matmul.iterate_batch", mm, cube.gm(c), 3, 3, 0, 0, 0, 0)
    added = bias[:, None] if own else bias[0]
    np.testing.assert_array_equal(c, a.astype(F32) @ b.astype(F32) + added)


# -- rounds into the workspace ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [BSNGD, SBNGD, BNGS1S2])
def test_rounds_fill_the_workspace_in_the_layout_of_c(
    cube: Any, start: Any, tiling: Any, rng: Any, layout: int
) -> None:
    m, n, k, loops, heads = 16, 32, 16, 3, 2
    # Rounds move along the axes in the order in which they lie in memory, so the batches are B * N * G matrices.
    groups = (1, loops * heads, 1) if layout == BSNGD else (loops, heads, 1)
    a, b = whole(rng, (*groups, m, k), F16), whole(rng, (*groups, n, k), F16)
    bias = whole(rng, (loops * heads, n), F32)
    expected = a.astype(F32) @ b.astype(F32).swapaxes(-1, -2) + bias.reshape(*groups, 1, n)
    room = np.zeros(expected.size, F32)
    record = tiling(m, n, k, isBias=1, **axes(A=a.shape, B=b.shape, C=expected.shape))
    mm = start(cube, record, F16, F32, layouts=(layout,) * 3, trans_b=True, is_n_batch=1)
    workspace = cube.gm(room.view(np.uint8))
    cube.run("matmul.set_workspace", mm, workspace, room.nbytes)
    operands(cube, mm, stored(a, layout), stored(b, layout), trans_b=1)
    cube.run("matmul.set_bias", mm, cube.gm(bias))
    cube.run("matmul.iterate_n_batch", mm, loops, heads, heads, 0, 0, 0, 0, 0, 0)
    np.testing.assert_array_equal(as_matrices(room, layout, expected.shape), expected)
    size = heads * m * n
    for turn in range(loops):
        part = cube.run("matmul.get_batch_tensor_c", mm, heads, heads, 0, 0)
        assert (part.address - workspace.address, part.length) == (turn * size * 4, size)
        np.testing.assert_array_equal(cube.values(part), room[turn * size : (turn + 1) * size])
    assert faults(cube) == []


def test_the_matrices_of_a_round_come_into_ub(make_device: Any, start: Any, tiling: Any, rng: Any) -> None:
    # 310P: one core has both units, so that the local tensor is the core's own.
    device = make_device("310P3")
    m, n, k, loops, heads = 16, 32, 16, 2, 2
    a, b = whole(rng, (loops, heads, 1, m, k), F16), whole(rng, (loops, heads, 1, n, k), F16)
    expected = a.astype(F32) @ b.astype(F32).swapaxes(-1, -2)
    record = tiling(m, n, k, **axes(A=a.shape, B=b.shape, C=expected.shape))
    mm = start(device, record, F16, F32, layouts=(BNGS1S2,) * 3, trans_b=True, is_n_batch=1)
    device.run("matmul.set_workspace", mm, device.gm(np.zeros(expected.size, F32)))
    operands(device, mm, a, b, trans_b=1)
    device.run("matmul.iterate_n_batch", mm, loops, heads, heads, 0, 0, 0, 0, 0, 0)
    for turn in range(loops):
        local = device.local(np.zeros(heads * m * n, F32), VECIN)
        device.run("matmul.get_batch_tensor_c_local_mem", mm, local, heads, heads, 0, 0)
        np.testing.assert_array_equal(device.values(local), expected[turn].reshape(-1))


# -- what it refuses -------------------------------------------------------------------------------------------------


def test_batches_need_a_layout_and_numbers_that_divide(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    plain = start(cube, tiling(8, 8, 8), F16, F32)
    out = cube.gm(np.zeros((8, 8), F32))
    operands(cube, plain, whole(rng, (8, 8), F16), whole(rng, (8, 8), F16))
    with pytest.raises(UserError, match="layout"):
        cube.run("matmul.iterate_batch", plain, out, 1, 1, 0, 0, 0, 0)
    mm = start(cube, tiling(8, 8, 8), F16, F32, layouts=(NORMAL,) * 3)
    operands(cube, mm, whole(rng, (8, 8), F16), whole(rng, (8, 8), F16))
    with pytest.raises(UserError, match="multiples"):
        cube.run("matmul.iterate_batch", mm, out, 3, 2, 0, 0, 0, 0)
    with pytest.raises(UserError, match="multiples"):
        cube.run("matmul.iterate_batch", mm, out, 0, 2, 0, 0, 0, 0)
    with pytest.raises(Unsupported, match="partial sum"):
        cube.run("matmul.iterate_batch", mm, out, 1, 1, 0, 0, 0, 0, 1)


def test_bsngd_takes_matrices_of_one_b_and_no_sequential_write(
    cube: Any, start: Any, tiling: Any, rng: Any
) -> None:
    a, b = whole(rng, (2, 1, 2, 8, 8), F16), whole(rng, (2, 1, 2, 8, 8), F16)
    mm = start(cube, tiling(8, 8, 8, **axes(A=a.shape, B=b.shape, C=a.shape)), F16, F32, layouts=(BSNGD,) * 3,
               trans_b=True)  # fmt: skip
    operands(cube, mm, stored(a, BSNGD), stored(b, BSNGD), trans_b=1)
    cube.run("matmul.iterate_batch", mm, cube.gm(np.zeros(a.size, F32)), 4, 4, 1, 0, 0, 0)
    assert faults(cube) == [
        "en_sequential_write of iterate_batch in layout BSNGD or SBNGD",
        "batch_a of iterate_batch in layout BSNGD",
        "batch_b of iterate_batch in layout BSNGD",
    ]


def test_rounds_need_the_config_a_workspace_and_a_layout(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    off = start(cube, tiling(8, 8, 8), F16, F32, layouts=(BSNGD,) * 3)
    cube.run("matmul.iterate_n_batch", off, 1, 1, 1, 0, 0, 0, 0, 1, 0)
    assert faults(cube) == ["is_n_batch of the MatmulConfig of a Matmul with iterate_n_batch"]
    mm = start(cube, tiling(8, 8, 8), F16, F32, layouts=(NORMAL,) * 3, is_n_batch=1)
    with pytest.raises(UserError, match="set_workspace"):
        cube.run("matmul.iterate_n_batch", mm, 1, 1, 1, 0, 0, 0, 0, 1, 0)
    with pytest.raises(UserError, match="set_workspace"):
        cube.run("matmul.get_batch_tensor_c", mm, 1, 1, 0, 0)
    cube.run("matmul.set_workspace", mm, cube.gm(np.zeros((8, 8), F32)))
    with pytest.raises(UserError, match="NORMAL"):
        cube.run("matmul.iterate_n_batch", mm, 1, 1, 1, 0, 0, 0, 0, 1, 0)


def test_operands_outside_gm(cube: Any, start: Any, tiling: Any, rng: Any) -> None:
    mm = start(cube, tiling(16, 16, 16), F16, F32, layouts=(NORMAL,) * 3)
    cube.run("matmul.set_tensor_a", mm, cube.local(whole(rng, (256,), F16), 1), 0)
    cube.run("matmul.set_tensor_b", mm, cube.gm(whole(rng, (16, 16), F16)), 0)
    with pytest.raises(Unsupported, match="outside GM"):
        cube.run("matmul.iterate_batch", mm, cube.gm(np.zeros((16, 16), F32)), 1, 1, 0, 0, 0, 0)


def test_a_layout_of_c_whose_matrices_are_interleaved_does_not_come_into_ub(
    cube: Any, start: Any, tiling: Any
) -> None:
    mm = start(cube, tiling(8, 8, 8), F16, F32, layouts=(BSNGD,) * 3, is_n_batch=1)
    cube.run("matmul.set_workspace", mm, cube.gm(np.zeros((8, 8), F32)))
    with pytest.raises(Unsupported, match="BNGS1S2"):
        cube.run("matmul.get_batch_tensor_c_local_mem", mm, cube.local(np.zeros(64, F32), 1), 1, 1, 0, 0)
