"""The host tiling stand-in, held against the published constraints of `TCubeTiling` and against kernels' addressing."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from npuscope.frontends.pyasc_host import host_module
from npuscope.npu.chip import load_chip

# Buffers of a 910B core in bytes (hardware.md 1.3).
UB, L1, L0A, L0B, L0C, BT = 196608, 524288, 65536, 65536, 131072, 1024
BYTES = {"DT_FLOAT": 4, "DT_FLOAT16": 2, "DT_BF16": 2, "DT_INT8": 1}
K0 = {"DT_FLOAT": 8, "DT_FLOAT16": 16, "DT_BF16": 16, "DT_INT8": 32}

HOST = host_module(load_chip("Ascend910B1"))


@dataclass
class Case:
    """One request, written as a script would: `calls` are (method, arguments) after the usual ones."""

    m: int
    n: int
    k: int
    dim: int = 1
    dtype: str = "DT_FLOAT16"
    c: str = "GM"
    c_type: str = "DT_FLOAT"
    trans_a: bool = False
    trans_b: bool = False
    bias: bool = False
    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    kind: str = "MultiCoreMatmulTiling"

    def request(self) -> Any:
        """The tiling object after all setters; every one of them must have succeeded."""
        tiling = getattr(HOST, self.kind)(HOST.PlatformAscendCManager.get_instance("Ascend910B1"))
        gm, nd, types = HOST.TPosition.GM, HOST.CubeFormat.ND, HOST.DataType
        results = [
            tiling.set_a_type(gm, nd, types[self.dtype], self.trans_a),
            tiling.set_b_type(gm, nd, types[self.dtype], self.trans_b),
            tiling.set_c_type(HOST.TPosition[self.c], nd, types[self.c_type]),
            tiling.set_bias_type(gm, nd, types.DT_FLOAT),
            tiling.set_org_shape(self.m, self.n, self.k),
            tiling.set_shape(self.m, self.n, self.k),
            tiling.enable_bias(self.bias),
            tiling.set_buffer_space(-1, -1, -1),
        ]
        if self.kind == "MultiCoreMatmulTiling":
            results.append(tiling.set_dim(self.dim))
        results += [getattr(tiling, name)(*arguments) for name, arguments in self.calls]
        assert all(result in (0, None) for result in results)
        return tiling

    def solve(self) -> SimpleNamespace:
        """The filled struct."""
        struct = SimpleNamespace()
        assert self.request().get_tiling(struct) == 0
        return struct

    def refused(self) -> bool:
        """Whether there is no tiling; then nothing may have been filled."""
        struct = SimpleNamespace()
        result = self.request().get_tiling(struct)
        assert (result == 0) == bool(vars(struct))
        return result == -1


def up(value: int, to: int) -> int:
    return -(-value // to) * to


def blocks(length: int, part: int) -> int:
    return -(-length // part)


def check(case: Case, t: SimpleNamespace) -> None:
    """The published constraints (TCubeTiling, tables 1 to 3), and that every element is computed exactly once."""
    size, k0 = BYTES[case.dtype], K0[case.dtype]
    assert (t.m, t.n, t.k_a, t.k_b) == (case.m, case.n, case.k, case.k)
    assert t.base_m % 16 == t.base_n % 16 == 0
    assert t.base_k % (k0 if case.trans_b and not case.trans_a else max(16, k0)) == 0
    assert 0 < t.base_m <= up(t.single_core_m, 16)
    assert 0 < t.base_n <= up(t.single_core_n, 16)
    assert 0 < t.base_k <= up(t.single_core_k, max(16, k0))
    assert t.base_m * t.base_k * size * t.db_l0a <= L0A
    assert t.base_n * t.base_k * size * t.db_l0b <= L0B
    assert t.base_m * t.base_n * 4 * t.db_l0c <= L0C
    a_l1 = t.base_m * t.base_k * size * t.depth_a1
    b_l1 = t.base_n * t.base_k * size * t.depth_b1
    bias_l1 = t.base_n * 4 if case.bias else 0
    assert a_l1 + b_l1 + bias_l1 == t.share_l1_size <= L1
    assert bias_l1 <= BT
    assert t.share_l0c_size == t.base_m * t.base_n * 4 * t.db_l0c
    assert t.depth_a1 in (t.step_m * t.step_k_a, 2 * t.step_m * t.step_k_a)
    assert t.depth_b1 in (t.step_n * t.step_k_b, 2 * t.step_n * t.step_k_b)
    a_loads = blocks(t.single_core_k, t.base_k * t.step_k_a)
    b_loads = blocks(t.single_core_k, t.base_k * t.step_k_b)
    assert a_loads % b_loads == 0 or b_loads % a_loads == 0
    assert t.step_m == 1 or a_loads == 1
    assert t.step_n == 1 or b_loads == 1
    if case.c == "VECCALC":
        assert t.base_m * t.base_n * BYTES[case.c_type] <= UB - 256
    assert t.is_bias == case.bias
    check_cover(case, t)


def check_cover(case: Case, t: SimpleNamespace) -> None:
    """Walk the cores as the kernels do (block_idx % parts of M, then N, then K) and add up what they compute."""
    m_parts, n_parts = blocks(case.m, t.single_core_m), blocks(case.n, t.single_core_n)
    k_parts = blocks(case.k, t.single_core_k)
    assert t.used_core_num == m_parts * n_parts * k_parts <= case.dim
    core = np.arange(t.used_core_num)
    plane = core % (t.used_core_num // k_parts)
    starts = [
        plane % m_parts * t.single_core_m,
        plane // m_parts * t.single_core_n,
        core // (m_parts * n_parts) * t.single_core_k,
    ]
    sizes = [
        np.minimum(single, length - start)
        for single, length, start in zip(
            (t.single_core_m, t.single_core_n, t.single_core_k), (case.m, case.n, case.k), starts, strict=True
        )
    ]
    assert min(size.min() for size in sizes) > 0
    assert len(set(zip(*(start.tolist() for start in starts), strict=True))) == t.used_core_num
    assert int((sizes[0] * sizes[1] * sizes[2]).sum()) == case.m * case.n * case.k
    for parts, single, base in (
        (m_parts, t.single_core_m, t.base_m),
        (n_parts, t.single_core_n, t.base_n),
        (k_parts, t.single_core_k, t.base_k),
    ):
        assert parts == 1 or single % base == 0


SHAPES = [(1, 1, 1), (16, 16, 16), (7, 33, 5), (128, 30720, 64), (1009, 2003, 97), (300, 300, 300), (8192, 8192, 8192)]
SHAPES += [tuple(shape) for shape in np.random.default_rng(1).integers(1, 2000, (5, 3)).tolist()]


@pytest.mark.parametrize("dim", [1, 2, 7, 20, 24, 48])
@pytest.mark.parametrize("dtype", list(BYTES))
def test_any_shape_is_covered_once_and_fits(dtype: str, dim: int) -> None:
    for m, n, k in SHAPES:
        case = Case(m, n, k, dim, dtype, bias=bool(m % 2))
        check(case, case.solve())


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("c", ["GM", "VECCALC"])
def test_transposed_operands_and_either_place_of_c(trans_a: bool, trans_b: bool, c: str) -> None:
    for m, n, k in SHAPES:
        case = Case(m, n, k, 20, "DT_FLOAT", c, trans_a=trans_a, trans_b=trans_b, bias=True)
        check(case, case.solve())


@pytest.mark.parametrize("shape", [(128, 128, 65536), (16, 16, 4096), (100, 50, 3000), (2048, 2048, 64)])
@pytest.mark.parametrize("dtype", list(BYTES))
def test_k_is_shared_only_on_request(shape: tuple[int, int, int], dtype: str) -> None:
    plain = Case(*shape, 24, dtype)
    assert plain.solve().single_core_k == shape[2]
    split = Case(*shape, 24, dtype, calls=[("enable_multi_core_split_k", (True,))])
    check(split, split.solve())


def test_k_is_shared_where_m_and_n_leave_cores_idle() -> None:
    t = Case(16, 16, 4096, 24, calls=[("enable_multi_core_split_k", (True,))]).solve()
    assert t.used_core_num > 16
    assert t.single_core_k <= 256


@pytest.mark.parametrize("dim", [4, 8, 16])
def test_powers_of_two_use_all_cores_evenly(dim: int) -> None:
    t = Case(1024, 1024, 256, dim).solve()
    assert t.used_core_num == dim
    assert t.single_core_m * t.single_core_n == 1024 * 1024 // dim


def test_a_large_product_gets_a_block_that_fills_l0c() -> None:
    t = Case(4096, 4096, 4096).solve()
    assert (t.base_m * t.base_n, t.base_k) == (128 * 256, 64)  # the recommended block, either way round
    assert (t.db_l0a, t.db_l0b, t.db_l0c) == (2, 2, 1)
    assert t.depth_a1 == 2 * t.step_m * t.step_k_a


def test_tiny_axis_gets_one_fractal() -> None:
    t = Case(1, 5, 3).solve()
    assert (t.single_core_m, t.single_core_n, t.single_core_k) == (1, 5, 3)
    assert (t.base_m, t.base_n, t.base_k) == (16, 16, 16)


# ------------------------------------------------------------------------------------------- published kernels


def test_mixed_kernel_with_tails() -> None:
    case = Case(512, 1024, 512, 48)
    t = case.solve()
    check(case, t)
    assert t.used_core_num == 48
    assert t.is_bias == 0


def test_cube_only_kernel() -> None:
    case = Case(128, 30720, 64, 24)
    t = case.solve()
    check(case, t)
    assert t.used_core_num == 24
    assert t.single_core_m * t.single_core_n == 128 * 30720 // 24


def leakyrelu(dim: int = 2, base: tuple[int, int, int] = (256, 128, -1)) -> Case:
    traverse = ("set_traverse", (HOST.MatrixTraverse.FIRSTM,))
    calls = [traverse, ("set_fix_split", base)]
    return Case(1024, 640, 256, dim, "DT_FLOAT16", "VECCALC", bias=True, calls=calls)


def written_by_whole_tiles(t: SimpleNamespace) -> np.ndarray:
    """How often each element of C is written by a kernel that copies base tiles out of UB itself, M first."""
    count = np.zeros((t.m, t.n), dtype=np.int64)
    m_parts = blocks(t.m, t.single_core_m)
    rows, columns = t.single_core_m // t.base_m, t.single_core_n // t.base_n
    for core in range(t.used_core_num):
        for tile in range(rows * columns):
            top = core % m_parts * t.single_core_m + tile % rows * t.base_m
            left = core // m_parts * t.single_core_n + tile // rows * t.base_n
            count[top : top + t.base_m, left : left + t.base_n] += 1
    return count


def test_leakyrelu_kernel_has_exactly_the_fixed_block() -> None:
    case = leakyrelu()
    t = case.solve()
    check(case, t)
    assert (t.base_m, t.base_n) == (256, 128)
    assert (t.used_core_num, t.iterate_order, t.is_bias) == (2, 0, 1)
    assert (written_by_whole_tiles(t) == 1).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "c_type", "bias"),
    [
        ((1024, 512, 256), "DT_FLOAT", "DT_FLOAT", True),
        ((256, 128, 64), "DT_FLOAT16", "DT_FLOAT", False),
        ((256, 256, 256), "DT_INT8", "DT_FLOAT16", False),
        ((256, 64, 128), "DT_INT8", "DT_FLOAT16", False),
        ((64, 256, 128), "DT_INT8", "DT_FLOAT16", False),
    ],
)
def test_kernels_without_tails_get_none(shape: tuple[int, int, int], dtype: str, c_type: str, bias: bool) -> None:
    case = Case(*shape, 16, dtype, "VECCALC", c_type, bias=bias)
    case.calls = [("set_traverse", (HOST.MatrixTraverse.FIRSTM,))]
    t = case.solve()
    check(case, t)
    assert t.used_core_num == 16
    assert (written_by_whole_tiles(t) == 1).all()
    assert 2 * t.base_m * t.base_n * BYTES[c_type] <= UB  # such kernels take two tiles of UB


@pytest.mark.parametrize(("size", "dtype"), [(64, "DT_FLOAT"), (32, "DT_FLOAT16")])
def test_batch_is_not_cut_and_keeps_its_layout(size: int, dtype: str) -> None:
    calls: list[tuple[str, tuple[int, ...]]] = [
        ("set_a_layout", (2, size, 1, 1, size)),
        ("set_b_layout", (2, size, 1, 1, size)),
        ("set_c_layout", (2, size, 1, 1, size)),
        ("set_batch_num", (2,)),
    ]
    case = Case(size, size, size, 16, dtype, "VECCALC", calls=calls)
    t = case.solve()
    check(case, t)
    assert (t.single_core_m, t.single_core_n, t.used_core_num, t.batch_num) == (size, size, 1, 2)
    assert (t.a_layout_info_b, t.a_layout_info_s, t.a_layout_info_d) == (2, size, size)
    assert (t.c_layout_info_b, t.c_layout_info_s1, t.c_layout_info_s2) == (2, size, size)


def test_normal_batch_lies_in_gm_as_rows() -> None:
    case = Case(32, 256, 64, trans_b=True, calls=[("set_batch_info_for_normal", (3, 6, 32, 256, 64))])
    t = case.solve()
    assert (t.a_layout_info_b, t.a_layout_info_s, t.a_layout_info_d) == (3, 32, 64)
    assert (t.b_layout_info_b, t.b_layout_info_s, t.b_layout_info_d) == (6, 256, 64)
    assert (t.c_layout_info_b, t.c_layout_info_s1, t.c_layout_info_s2, t.batch_num) == (6, 32, 256, 6)


@pytest.mark.parametrize("kind", ["MatmulApiTiling", "BatchMatmulTiling"])
def test_single_core_classes_use_one_core(kind: str) -> None:
    case = Case(500, 300, 200, kind=kind)
    check(case, case.solve())


# ------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("base", [(32, 16, 16), (128, 256, 64), (64, 64, 128), (256, -1, -1), (-1, 48, -1)])
@pytest.mark.parametrize("dim", [1, 6, 24])
def test_fixed_block_is_kept(base: tuple[int, int, int], dim: int) -> None:
    case = Case(1000, 900, 800, dim, calls=[("set_fix_split", base)])
    request = case.request()
    t = SimpleNamespace()
    assert request.get_tiling(t) == 0
    check(case, t)
    chosen = (t.base_m, t.base_n, t.base_k)
    assert all(want in (-1, got) for want, got in zip(base, chosen, strict=True))
    assert (request.get_base_m(), request.get_base_n(), request.get_base_k()) == chosen


def test_single_range_and_alignment_bind_shared_axes() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = [("set_align_split", (64, -1, 0)), ("set_single_range", (192, 300))]
    case = Case(1000, 1000, 100, 48, calls=calls)
    t = case.solve()
    check(case, t)
    assert t.single_core_m % 64 == 0
    assert t.single_core_m <= 192
    assert t.single_core_n <= 300


def test_split_range_binds_the_block() -> None:
    case = Case(1000, 1000, 1000, calls=[("set_split_range", (64, 96, 32, 32, 80, 32))])
    t = case.solve()
    check(case, t)
    assert 32 <= t.base_m <= 64
    assert 80 <= t.base_n <= 96
    assert t.base_k == 32


def test_single_shape_sets_the_cores() -> None:
    case = Case(32, 32, 32, 8, "DT_FLOAT", calls=[("set_single_shape", (32, 16, 8))])
    request = case.request()
    assert request.get_single_shape() is None
    assert request.get_core_num() is None
    t = SimpleNamespace()
    assert request.get_tiling(t) == 0
    assert request.get_single_shape() == (32, 16, 8)
    assert request.get_core_num() == (8, 1, 2)  # 1 part of M, 2 of N and so 4 of K


def test_smaller_buffers_are_respected() -> None:
    case = Case(2048, 2048, 2048, calls=[("set_buffer_space", (64 * 1024, 32 * 1024, -1, 256))], bias=True)
    t = case.solve()
    check(case, t)
    assert t.share_l1_size <= 64 * 1024
    assert t.share_l0c_size <= 32 * 1024
    assert t.base_n * 4 <= 256


def test_double_buffers_are_as_set() -> None:
    t = Case(1024, 1024, 1024, calls=[("set_double_buffer", (False, True, True, False))]).solve()
    assert t.depth_a1 == t.step_m * t.step_k_a
    assert t.depth_b1 == 2 * t.step_n * t.step_k_b
    assert t.db_l0c == 2
    assert t.base_m * t.base_n * 4 * 2 <= L0C


def test_norm_template_loads_single_blocks() -> None:
    t = Case(1024, 1024, 1024, calls=[("set_matmul_config_params", (0,))]).solve()
    assert (t.step_k_a, t.step_k_b, t.depth_a1, t.depth_b1) == (1, 1, 2, 2)


@pytest.mark.parametrize("order", ["FIRSTM", "FIRSTN"])
def test_outer_product_pairs_blocks_across_the_walk(order: str) -> None:
    config = HOST.MatmulConfigParams(1, False, HOST.ScheduleType.OUTER_PRODUCT, HOST.MatrixTraverse[order], False)
    case = Case(1024, 1024, 64, 4, calls=[("set_matmul_config_params", (config,))])
    t = case.solve()
    check(case, t)
    assert t.single_core_k <= t.base_k
    assert (t.step_m, t.step_n) == ((1, 2) if order == "FIRSTM" else (2, 1))
    assert t.iterate_order == (order == "FIRSTN")
    assert blocks(t.single_core_n, t.base_n) > 1 if order == "FIRSTM" else blocks(t.single_core_m, t.base_m) > 1


def test_vector_conversion_takes_ub() -> None:
    config = HOST.MatmulConfigParams(en_vec_nd2nz=True)
    t = Case(1024, 1024, 1024, calls=[("set_matmul_config_params", (config,))]).solve()
    assert t.trans_length == max(t.base_m, t.base_n) * t.base_k * 2 <= UB


def test_matrix_in_l1_is_whole_there() -> None:
    case = Case(256, 512, 128)
    request = case.request()
    assert request.set_a_type(HOST.TPosition.TSCM, HOST.CubeFormat.NZ, HOST.DataType.DT_FLOAT16, False) == 0
    t = SimpleNamespace()
    assert request.get_tiling(t) == 0
    assert t.step_m * t.base_m >= 256
    assert t.step_k_a * t.base_k >= 128
    assert t.depth_a1 == t.step_m * t.step_k_a
    assert 256 * 128 * 2 + t.share_l1_size <= L1


def test_quantisation_vector_and_sparse_index_take_l1() -> None:
    fixed = ("set_fix_split", (128, 128, 64))
    plain = Case(128, 128, 64, dtype="DT_INT8", calls=[fixed]).solve()
    quant = ("set_dequant_type", (HOST.DequantType.TENSOR,))
    assert Case(128, 128, 64, dtype="DT_INT8", calls=[fixed, quant]).solve().share_l1_size == (
        plain.share_l1_size + 128 * 8
    )
    sparse = ("set_sparse", (True,))
    assert Case(128, 128, 64, dtype="DT_INT8", calls=[fixed, sparse]).solve().share_l1_size == (
        plain.share_l1_size + plain.depth_b1 * 128 * 64 // 8
    )


@pytest.mark.parametrize(("first", "second"), [("set_shape", "set_org_shape"), ("set_org_shape", "set_shape")])
def test_shape_and_original_shape_stand_in_for_each_other(first: str, second: str) -> None:
    tiling = HOST.MatmulApiTiling(HOST.PlatformAscendCManager.get_instance())
    t = SimpleNamespace()
    assert getattr(tiling, first)(32, 16, 8) == 0
    assert tiling.get_tiling(t) == 0
    assert (t.m, t.n, t.k_a, t.k_b) == (32, 16, 8, 8)
    assert (t.single_core_m, t.single_core_n, t.single_core_k) == (32, 16, 8)
    assert getattr(tiling, second)(32, 16, 8) == 0
    assert tiling.get_tiling(t) == 0
    assert (t.m, t.single_core_m) == (32, 32)


def test_ka_and_kb_may_differ() -> None:
    tiling = HOST.MatmulApiTiling(HOST.PlatformAscendCManager.get_instance())
    assert tiling.set_org_shape(32, 16, 8, 4) == 0
    t = SimpleNamespace()
    assert tiling.get_tiling(t) == 0
    assert (t.k_a, t.k_b, t.single_core_k) == (8, 4, 4)


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "case",
    [
        leakyrelu(base=(256, 256, -1)),  # 256 KB of float is more than L0C and UB
        leakyrelu(base=(250, 128, -1)),
        Case(12, 64, 64, calls=[("set_fix_split", (32, -1, -1))]),  # a block longer than 12 rounded up to 16
        Case(64, 64, 16, calls=[("set_fix_split", (-1, -1, 32))]),
        Case(64, 64, 64, dtype="DT_INT8", calls=[("set_fix_split", (-1, -1, 16))]),  # int8 needs 32 along K
        Case(512, 512, 4096, calls=[("set_fix_split", (128, 128, 256))]),  # 128 KB twice in L0A
        Case(64, 512, 64, bias=True, calls=[("set_fix_split", (16, 512, -1))]),  # 2 KB of bias
        Case(1024, 1024, 64, 4, calls=[("set_single_range", (128, 128, -1))]),  # needs 64 cores
        Case(1024, 1024, 64, 4, calls=[("set_single_shape", (128, 128, -1))]),
        Case(64, 64, 64, calls=[("set_single_shape", (128, -1, -1))]),
        Case(64, 64, 64, calls=[("set_org_shape", (32, 64, 64))]),
        Case(64, 64, 64, calls=[("set_buffer_space", (1023,))]),  # a fractal each of A and B is 1 KB
        Case(64, 64, 64, c="VECCALC", calls=[("enable_multi_core_split_k", (True,))]),
        Case(64, 64, 64, calls=[("set_sparse", (True,))]),
        Case(64, 64, 64, calls=[("set_mad_type", (HOST.MatrixMadType.HF32,))]),
        Case(64, 64, 64, calls=[("set_split_range", (31, -1, -1, 17))]),  # no multiple of 16 between 17 and 31
        Case(
            64, 64, 64, calls=[("set_matmul_config_params", (1, False, HOST.ScheduleType.OUTER_PRODUCT))], c="VECCALC"
        ),
        Case(64, 16, 64, calls=[("set_matmul_config_params", (1, False, HOST.ScheduleType.OUTER_PRODUCT))]),
    ],
    ids=lambda case: f"{case.m}x{case.n}x{case.k}-{'-'.join(str(arguments) for _, arguments in case.calls)}"[:60],
)
def test_the_impossible_is_refused_and_changes_nothing(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert case.refused()
    assert "no matmul tiling" in caplog.text


def test_operands_must_fit_each_other() -> None:
    request = Case(64, 64, 64).request()
    position, layout, types = HOST.TPosition.GM, HOST.CubeFormat, HOST.DataType
    request.set_b_type(position, layout.ND, types.DT_FLOAT, False)
    assert request.get_tiling(SimpleNamespace()) == -1
    request.set_b_type(position, layout.ND, types.DT_FLOAT16, False)
    request.set_a_type(position, layout.VECTOR, types.DT_FLOAT16, False)  # a vector has one row
    assert request.get_tiling(SimpleNamespace()) == -1


@pytest.mark.parametrize(("shape", "result"), [((60, 64, 64), -1), ((64, 60, 60), -1), ((64, 64, 64), 0)])
def test_nz_operands_need_aligned_shapes(shape: tuple[int, int, int], result: int) -> None:
    request = Case(*shape).request()
    request.set_a_type(HOST.TPosition.GM, HOST.CubeFormat.NZ, HOST.DataType.DT_FLOAT16, False)
    assert request.get_tiling(SimpleNamespace()) == result


def test_nothing_set_is_refused() -> None:
    tiling = HOST.MultiCoreMatmulTiling(HOST.PlatformAscendCManager.get_instance())
    assert tiling.get_tiling(SimpleNamespace()) == -1
