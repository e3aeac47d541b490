"""Stand-in for the C++ module behind `asc.lib.host`, which pyasc builds against the vendor's toolkit.

`host_module(chip)` gives a namespace to put into `asc.lib.host.loader.Loader.module`. Its classes have the names that
pyasc's proxies look up, the signatures and defaults of the real bindings, and their return values: a setter gives 0, or
-1 where it refuses (then nothing is changed); `get_tiling` fills a `TCubeTiling` and gives 0, or gives -1, leaves the
struct as it was and logs the reason. The numbers come from `pyasc_tiling`; they are legal and good, not the vendor's.

Settings that no field of a tiling depends on here: `set_mad_type` (HF32 halves no buffer), the two conversion flags of
`set_double_buffer` (MTE2 and FIX convert on the way, without UB), and the scalar `set_dequant_type` (a register).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from math import prod
from types import SimpleNamespace
from typing import Any

from npuscope.errors import Unsupported
from npuscope.frontends.pyasc_host_types import (
    A_PLACES,
    B_PLACES,
    BIAS_PLACES,
    BIASES,
    INPUTS,
    OUTPUTS,
    PLACES,
    CubeFormat,
    DataType,
    DequantType,
    MatrixMadType,
    MatrixTraverse,
    ScheduleType,
    TPosition,
    checked,
    operand,
)
from npuscope.frontends.pyasc_tiling import (
    DB_L0,
    MNK,
    CoreMemory,
    Matrix,
    NoTiling,
    Request,
    Tiling,
    ceil_div,
    solve,
)
from npuscope.npu.chip import Chip

log = logging.getLogger(__name__)

OK = 0
REFUSED = -1
INT32_MAX = 2**31 - 1
_MEMORIES = [field.name for field in fields(CoreMemory)]
_LAYOUT_AXES = {"a": "b s n g d", "b": "b s n g d", "c": "b s1 n g s2"}

Axes = tuple[int, int, int, int, int]


def _positive(*values: int) -> bool:
    return all(0 < value <= INT32_MAX for value in values)


def _optional(*values: int) -> MNK | None:
    """Three settings where -1 means "choose" (0 in a request); None where one is neither -1 nor positive."""
    if not all(value == -1 or _positive(value) for value in values):
        return None
    return MNK(*(max(value, 0) for value in values))


@dataclass
class MatmulConfigParams:
    """Settings that must agree with the kernel's MatmulConfig. `mm_config_type`: 0 Norm, 1 MDL."""

    mm_config_type: int = 1
    enable_l1_cache_ub: bool = False
    schedule_type: ScheduleType = ScheduleType.INNER_PRODUCT
    traverse: MatrixTraverse = MatrixTraverse.NOSET
    en_vec_nd2nz: bool = False


class PlatformAscendC:
    """What a tiling has to know of the chip: how many cores, and the bytes a mixed kernel may use of their buffers."""

    def __init__(self, chip: Chip) -> None:
        memories = chip.memories
        self.soc_version = chip.name
        self.cores = max(chip.cores.aic, chip.cores.aiv)
        self.memory = CoreMemory(**{name: getattr(memories, name).limit(mix=True) for name in _MEMORIES})
        self.whole = CoreMemory(**{name: getattr(memories, name).bytes for name in _MEMORIES})


class _MatmulTiling:
    """The settings common to all tiling classes. Shapes are in elements, buffer sizes in bytes."""

    def __init__(self, platform: PlatformAscendC) -> None:
        if not isinstance(platform, PlatformAscendC):
            raise TypeError(f"PlatformAscendC is expected, not {platform!r}")
        self._platform = platform
        nothing = MNK(0, 0, 0)
        self._request = Request(shape=nothing, org_m=0, org_n=0, org_ka=0, org_kb=0, memory=platform.memory)
        self._bias = Matrix()
        self._bias_enabled = False
        self._a_type = DataType.DT_FLOAT
        self._mad = MatrixMadType.NORMAL
        self._layouts: dict[str, Axes] = dict.fromkeys(_LAYOUT_AXES, (0, 0, 0, 0, 0))
        self._normal_batch: tuple[int, int, MNK] | None = None
        self._batch_num = 0
        self._result: Tiling | None = None

    def _set(self, **settings: Any) -> int:
        self._request = replace(self._request, **settings)
        return OK

    # ------------------------------------------------------------------------------------------------ operands

    def set_a_type(self, pos: TPosition, type: CubeFormat, data_type: DataType, is_trans: bool) -> int:
        """Place, layout, element type and transposition of A."""
        formats = (CubeFormat.ND, CubeFormat.NZ, CubeFormat.VECTOR)
        matrix = operand(A_PLACES, formats, INPUTS, pos, type, data_type)
        if matrix is None:
            return REFUSED
        self._a_type = data_type
        return self._set(a=replace(matrix, transposed=bool(is_trans), gemv=type is CubeFormat.VECTOR))

    def set_b_type(self, pos: TPosition, type: CubeFormat, data_type: DataType, is_trans: bool) -> int:
        """Place, layout, element type and transposition of B."""
        matrix = operand(B_PLACES, (CubeFormat.ND, CubeFormat.NZ), INPUTS, pos, type, data_type)
        return REFUSED if matrix is None else self._set(b=replace(matrix, transposed=bool(is_trans)))

    def set_c_type(self, pos: TPosition, type: CubeFormat, data_type: DataType) -> int:
        """Place, layout and element type of C."""
        formats = (CubeFormat.ND, CubeFormat.NZ, CubeFormat.ND_ALIGN)
        matrix = operand(PLACES, formats, OUTPUTS, pos, type, data_type)
        return REFUSED if matrix is None else self._set(c=matrix)

    def set_bias_type(self, pos: TPosition, type: CubeFormat, data_type: DataType) -> int:
        """Place, layout and element type of the bias; it counts once `enable_bias` is called."""
        matrix = operand(BIAS_PLACES, (CubeFormat.ND, CubeFormat.VECTOR), BIASES, pos, type, data_type)
        if matrix is None:
            return REFUSED
        self._bias = matrix
        return OK

    def enable_bias(self, is_bias_in: bool = False) -> int:
        """Whether a bias is added."""
        self._bias_enabled = bool(is_bias_in)
        return OK

    def set_dequant_type(self, dequant_type: DequantType) -> int:
        """One factor for C, or a vector of them, which takes 8 bytes of L1 for each column of the base block."""
        return self._set(quant_vector=checked(dequant_type, DequantType) is DequantType.TENSOR)

    def set_sparse(self, is_sparce_in: bool = False) -> int:
        """Whether B is 4:2 sparse (int8 only); its index takes room in L1. The parameter is spelt as in the binding."""
        return self._set(sparse=bool(is_sparce_in))

    def set_mad_type(self, mad_type: MatrixMadType) -> int:
        """Mode of the cube. MXMODE is refused: it needs scale matrices, which this interface cannot describe."""
        if checked(mad_type, MatrixMadType) is MatrixMadType.MXMODE:
            return REFUSED
        self._mad = mad_type
        return OK

    # ------------------------------------------------------------------------------------------------ shapes

    def set_shape(self, m: int, n: int, k: int) -> int:
        """The part of the product that is computed, by all cores together."""
        return self._set(shape=MNK(m, n, k)) if _positive(m, n, k) else REFUSED

    def set_org_shape(self, org_m_in: int, org_n_in: int, org_ka_in: int, org_kb_in: int | None = None) -> int:
        """The whole matrices, for addressing; the last is Kb where it differs from Ka."""
        org_kb_in = org_ka_in if org_kb_in is None else org_kb_in
        if not _positive(org_m_in, org_n_in, org_ka_in, org_kb_in):
            return REFUSED
        return self._set(org_m=org_m_in, org_n=org_n_in, org_ka=org_ka_in, org_kb=org_kb_in)

    def set_fix_split(self, base_m_in: int = -1, base_n_in: int = -1, base_k_in: int = -1) -> int:
        """The base block; -1 leaves an axis open."""
        base = _optional(base_m_in, base_n_in, base_k_in)
        return REFUSED if base is None else self._set(base=base)

    def set_split_range(
        self,
        max_base_m: int = -1,
        max_base_n: int = -1,
        max_base_k: int = -1,
        min_base_m: int = -1,
        min_base_n: int = -1,
        min_base_k: int = -1,
    ) -> int:
        """Bounds of the base block where it is not fixed; -1 sets none."""
        high, low = _optional(max_base_m, max_base_n, max_base_k), _optional(min_base_m, min_base_n, min_base_k)
        return REFUSED if high is None or low is None else self._set(base_max=high, base_min=low)

    # ------------------------------------------------------------------------------------------------ buffers

    def set_buffer_space(self, l1_size: int = -1, l0_c_size: int = -1, ub_size: int = -1, bt_size: int = -1) -> int:
        """Bytes of L1, L0C, UB and bias table that Matmul may use; -1 is all that a mixed kernel has."""
        mine, whole = self._platform.memory, self._platform.whole
        limits = {"l1": whole.l1, "l0c": whole.l0c, "ub": whole.ub, "bt": whole.bt}
        sizes = dict(zip(limits, (l1_size, l0_c_size, ub_size, bt_size), strict=True))
        if any(size < -1 or size > limits[name] for name, size in sizes.items()):
            return REFUSED
        return self._set(memory=replace(mine, **{name: size for name, size in sizes.items() if size >= 0}))

    def set_double_buffer(
        self, a: bool, b: bool, c: bool, bias: bool, trans_nd2nz: bool = True, trans_nz2nd: bool = True
    ) -> int:
        """Whether A and B are held twice in L1, C twice in L0C, and the bias twice."""
        return self._set(double_a=bool(a), double_b=bool(b), double_c=bool(c), double_bias=bool(bias))

    def set_traverse(self, traverse: MatrixTraverse) -> int:
        """Axis walked first; NOSET leaves what was set before (at first: M)."""
        if checked(traverse, MatrixTraverse) is MatrixTraverse.NOSET:
            return OK
        return self._set(n_first=traverse is MatrixTraverse.FIRSTN)

    def set_matmul_config_params(
        self,
        mm_config_type: int | MatmulConfigParams = 1,
        enable_l1_cache_ub: bool = False,
        schedule_type: ScheduleType = ScheduleType.INNER_PRODUCT,
        traverse: MatrixTraverse = MatrixTraverse.NOSET,
        en_vec_nd2nz: bool = False,
        *,
        config_params: MatmulConfigParams | None = None,
    ) -> None:
        """What the kernel's MatmulConfig says, as one value or in parts.

        Raises Unsupported for a template other than Norm and MDL, and for blocks of UB cached in L1.
        """
        parts = (mm_config_type, enable_l1_cache_ub, schedule_type, traverse, en_vec_nd2nz)
        given = config_params or (mm_config_type if isinstance(mm_config_type, MatmulConfigParams) else None)
        config = given or MatmulConfigParams(*parts)  # type: ignore[arg-type]
        if config.mm_config_type not in (0, 1):
            raise Unsupported(
                f"set_matmul_config_params: mm_config_type {config.mm_config_type} is not known; 0 is Norm, 1 is MDL"
            )
        if config.enable_l1_cache_ub:
            raise Unsupported(
                "set_matmul_config_params: enable_l1_cache_ub exists on chips without split cores only; leave it off"
            )
        schedule = checked(config.schedule_type, ScheduleType)
        self.set_traverse(config.traverse)
        self._set(
            norm_template=config.mm_config_type == 0,
            outer_product=schedule is ScheduleType.OUTER_PRODUCT,
            vector_nd2nz=bool(config.en_vec_nd2nz),
        )

    # ------------------------------------------------------------------------------------------------ batches

    def set_a_layout(self, b: int, s: int, n: int, g: int, d: int) -> int:
        """Batch layout of A."""
        return self._set_layout("a", (b, s, n, g, d))

    def set_b_layout(self, b: int, s: int, n: int, g: int, d: int) -> int:
        """Batch layout of B."""
        return self._set_layout("b", (b, s, n, g, d))

    def set_c_layout(self, b: int, s: int, n: int, g: int, d: int) -> int:
        """Batch layout of C; s and d are the axes S1 and S2 of the struct."""
        return self._set_layout("c", (b, s, n, g, d))

    def _set_layout(self, name: str, axes: Axes) -> int:
        if not _positive(*axes):
            return REFUSED
        self._layouts |= {name: axes}
        return OK

    def set_batch_info_for_normal(self, batch_a: int, batch_b: int, m: int, n: int, k: int) -> int:
        """Batches of plain matrices one behind the other (layout NORMAL)."""
        if not _positive(batch_a, batch_b, m, n, k):
            return REFUSED
        self._normal_batch = (batch_a, batch_b, MNK(m, n, k))
        return OK

    def set_batch_num(self, batch: int) -> int:
        """Largest number of batches of one call."""
        if not _positive(batch):
            return REFUSED
        self._batch_num = batch
        return OK

    def _batched(self) -> bool:
        return bool(self._batch_num or self._normal_batch or any(axes[0] for axes in self._layouts.values()))

    def _batch_fields(self) -> dict[str, int]:
        """Batch fields of the struct. In layout NORMAL a matrix is S rows of D elements, as it lies in GM."""
        layouts, batch_num = self._layouts, self._batch_num
        if self._normal_batch:
            batch_a, batch_b, (m, n, k) = self._normal_batch
            a_rows, a_width = (k, m) if self._request.a.transposed else (m, k)
            b_rows, b_width = (n, k) if self._request.b.transposed else (k, n)
            batch_num = batch_num or max(batch_a, batch_b)
            layouts = {
                "a": (batch_a, a_rows, 1, 1, a_width),
                "b": (batch_b, b_rows, 1, 1, b_width),
                "c": (max(batch_a, batch_b), m, 1, 1, n),
            }
        layout_fields = {
            f"{name}_layout_info_{axis}": value
            for name, axes in _LAYOUT_AXES.items()
            for axis, value in zip(axes.split(), layouts[name], strict=True)
        }
        return layout_fields | {"batch_num": batch_num}

    # ------------------------------------------------------------------------------------------------ the answer

    def get_tiling(self, tiling: Any) -> int:
        """Fill the fields of a `TCubeTiling`; -1, and nothing filled, where no tiling is legal (the log says why)."""
        try:
            request = self._complete()
            self._result = result = solve(request)
        except NoTiling as error:
            self._result = None
            log.warning("no matmul tiling: %s", error)
            return REFUSED
        for name, value in (_struct_fields(request, result) | self._batch_fields()).items():
            setattr(tiling, name, value)
        return OK

    def _complete(self) -> Request:
        """The request with what the script left out: shape and original shape stand in for each other."""
        request = self._request
        if self._mad is MatrixMadType.HF32 and self._a_type is not DataType.DT_FLOAT:
            raise NoTiling("HF32 is a mode for float A and B")
        if request.shape.m == 0:
            shape = MNK(request.org_m, request.org_n, min(request.org_ka, request.org_kb))
            request = replace(request, shape=shape)
        if request.org_m == 0:
            m, n, k = request.shape
            request = replace(request, org_m=m, org_n=n, org_ka=k, org_kb=k)
        bias = self._bias if self._bias_enabled else None
        return replace(request, bias=bias, cores=self._cores(request.shape))

    def _cores(self, shape: MNK) -> int:
        return 1

    def get_base_m(self) -> int:
        """baseM as fixed or, after `get_tiling`, as chosen; 0 before."""
        return self._request.base.m or (self._result.base.m if self._result else 0)

    def get_base_n(self) -> int:
        """baseN as fixed or, after `get_tiling`, as chosen; 0 before."""
        return self._request.base.n or (self._result.base.n if self._result else 0)

    def get_base_k(self) -> int:
        """baseK as fixed or, after `get_tiling`, as chosen; 0 before."""
        return self._request.base.k or (self._result.base.k if self._result else 0)


class MatmulApiTiling(_MatmulTiling):
    """Tiling of a product that one core computes."""


class MultiCoreMatmulTiling(_MatmulTiling):
    """Tiling of a product that several cores share. A batch is not cut: each core that runs `iterate_batch` gets whole
    matrices, as the published batch kernels expect."""

    def __init__(self, platform: PlatformAscendC) -> None:
        super().__init__(platform)
        self._dim = 0

    def set_dim(self, dim: int) -> int:
        """Cores that may be used: vector cores for a mixed kernel, cube cores for a pure cube kernel."""
        if not _positive(dim):
            return REFUSED
        self._dim = dim
        return OK

    def enable_multi_core_split_k(self, flag: bool) -> None:
        """Whether K may be shared too; the cores then add up into GM."""
        self._set(split_k=bool(flag))

    def set_align_split(self, align_m: int, align_n: int, align_k: int) -> int:
        """Multiples for the part of a core on an axis that is shared; -1 or 0 leaves an axis open."""
        align = _optional(*(value or -1 for value in (align_m, align_n, align_k)))
        return REFUSED if align is None else self._set(align=align)

    def set_single_shape(self, single_m_in: int = -1, single_n_in: int = -1, single_k_in: int = -1) -> int:
        """The part of a core; -1 leaves an axis open."""
        single = _optional(single_m_in, single_n_in, single_k_in)
        return REFUSED if single is None else self._set(single=single)

    def set_single_range(
        self, max_m: int = -1, max_n: int = -1, max_k: int = -1, min_m: int = -1, min_n: int = -1, min_k: int = -1
    ) -> int:
        """Bounds of the part of a core on an axis that is shared; -1 sets none."""
        high, low = _optional(max_m, max_n, max_k), _optional(min_m, min_n, min_k)
        return REFUSED if high is None or low is None else self._set(single_max=high, single_min=low)

    def _cores(self, shape: MNK) -> int:
        single = self._request.single
        needed = prod(ceil_div(length, part) for length, part in zip(shape, single, strict=True) if part)
        dim = needed if self._batched() else self._dim or needed
        return min(dim, self._platform.cores)

    def get_core_num(self) -> tuple[int, int, int] | None:
        """(cores used, parts of M, parts of N) after `get_tiling`; None before."""
        return (self._result.cores, self._result.parts.m, self._result.parts.n) if self._result else None

    def get_single_shape(self) -> tuple[int, int, int] | None:
        """The part of a core after `get_tiling`; None before."""
        if self._result is None:
            return None
        m, n, k = self._result.single
        return m, n, k


class BatchMatmulTiling(_MatmulTiling):
    """Tiling of a batch of products on one core."""

    def get_core_num(self) -> tuple[int, int, int, int, int] | None:
        """(cores used, parts of M, parts of N, of the batch along M, along N) after `get_tiling`; None before."""
        return (self._result.cores, self._result.parts.m, self._result.parts.n, 1, 1) if self._result else None


def _struct_fields(request: Request, result: Tiling) -> dict[str, int]:
    """Fields of pyasc's `TCubeTiling` but those of a batch."""
    shape = {"m": request.org_m, "n": request.org_n, "k_a": request.org_ka, "k_b": request.org_kb}
    single = {f"single_core_{axis}": value for axis, value in result.single._asdict().items()}
    base = {f"base_{axis}": value for axis, value in result.base._asdict().items()}
    chosen = {
        "used_core_num": result.cores,
        "depth_a1": result.depth_a1,
        "depth_b1": result.depth_b1,
        "step_m": result.step_m,
        "step_n": result.step_n,
        "step_k_a": result.step_ka,
        "step_k_b": result.step_kb,
        "is_bias": int(request.bias is not None),
        "trans_length": result.trans_bytes,
        "iterate_order": int(request.n_first),
        "share_mode": 0,
        "share_l1_size": result.l1_bytes,
        "share_l0c_size": result.l0c_bytes,
        "share_ub_size": result.trans_bytes,
        "batch_m": 1,
        "batch_n": 1,
        "single_batch_m": 1,
        "single_batch_n": 1,
        "depth_a_l1_cache_ub": 0,
        "depth_b_l1_cache_ub": 0,
        "db_l0a": DB_L0,
        "db_l0b": DB_L0,
        "db_l0c": result.db_l0c,
    }
    return shape | single | base | chosen


def host_module(chip: Chip) -> SimpleNamespace:
    """The namespace for `Loader.module`. Every platform it hands out is the given chip, because that is the one the
    kernel will run on; where a script names another, the log says so."""
    platform = PlatformAscendC(chip)

    class PlatformAscendCManager:
        """Hands out the platform."""

        @staticmethod
        def get_instance(soc_version: str | None = None) -> PlatformAscendC:
            """The simulated chip's platform."""
            if soc_version not in (None, platform.soc_version):
                log.info("the script asks for a tiling for %s; it is made for %s", soc_version, platform.soc_version)
            return platform

    classes: list[type] = [MultiCoreMatmulTiling, MatmulApiTiling, BatchMatmulTiling, MatmulConfigParams]
    classes += [PlatformAscendC, PlatformAscendCManager]
    classes += [CubeFormat, DataType, TPosition, MatrixTraverse, DequantType, ScheduleType, MatrixMadType]
    return SimpleNamespace(**{cls.__name__: cls for cls in classes})
