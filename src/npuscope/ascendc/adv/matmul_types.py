"""What a Matmul object is made of: the type parameters in the text of its IR type, and the fields of its tiling."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from npuscope.ascendc.params import FIELDS, Record
from npuscope.errors import Unsupported
from npuscope.npu.numbers import dtype_of
from npuscope.npu.tensor import DType

ND, NZ = 0, 1
"""CubeFormat: rows one after the other, or blocks of 32 bytes' worth of columns one after the other."""
NONE, NORMAL, BSNGD, SBNGD, BNGS1S2 = range(5)
"""LayoutMode: how the matrices of a batch lie in memory (the vendor's IterateBatch page)."""
ORDER_M, ORDER_N, ORDER_UNSET = range(3)
OUTER_PRODUCT = 1


@dataclass(frozen=True, slots=True)
class Operand:
    """One MatmulType: position in lower case (``gm``, ``veccalc``), format, element type, transposition, layout."""

    position: str
    format: int
    dtype: DType
    transposed: bool = False
    layout: int = NONE


@dataclass(frozen=True, slots=True)
class MatmulType:
    """The type of a Matmul object; `config` has the fields of MatmulConfig under their IR names, flags as 0 and 1."""

    a: Operand
    b: Operand
    c: Operand
    bias: Operand
    config: dict[str, int]


def _number(text: str) -> int:
    word = text.split(":")[0].strip()
    return {"true": 1, "false": 0}.get(word) if word in ("true", "false") else int(word)  # type: ignore[return-value]


def _operand(words: list[str]) -> Operand:
    position, layout, dtype, *rest = (word.split(":")[0].strip() for word in words)
    return Operand(
        position, int(layout), dtype_of(dtype), *(([rest[0] == "true", int(rest[1])]) if rest else ())
    )


@lru_cache(maxsize=256)
def matmul_type(text: str) -> MatmulType:
    """Read ``!ascendc.matmul<gm, 0 : i32, f16, false, 0 : i32, ... <do_norm = true, ...>>``.

    Raises Unsupported for a format other than ND and NZ, and for the templates whose cores share one product.
    """
    body = re.sub(r"^[^<]*<|>\s*$", "", text.strip())
    head, _, tail = body.partition("<")
    words = [word.strip() for word in head.split(",") if word.strip()]
    pairs = (item.split("=") for item in tail.rstrip("> ").split(",") if "=" in item)
    config = {name.strip(): _number(value.strip()) for name, value in pairs}
    a, b, c = (_operand(words[at : at + 5]) for at in (0, 5, 10))
    found = MatmulType(a, b, c, _operand(words[15:18]), config)
    for name, operand in (("a", a), ("b", b), ("c", c)):
        if operand.format not in (ND, NZ):
            raise Unsupported(f"Matmul: format {operand.format} of {name} is not simulated; use CubeFormat ND or NZ")
    for name in ("intra_block_part_sum", "enable_mix_dual_master"):
        if config.get(name):
            raise Unsupported(f"Matmul: MatmulConfig({name}=True) is not simulated; leave it off")
    return found


_AXES = ("ALayoutInfoB ALayoutInfoS ALayoutInfoN ALayoutInfoG ALayoutInfoD "
         "BLayoutInfoB BLayoutInfoS BLayoutInfoN BLayoutInfoG BLayoutInfoD "
         "CLayoutInfoB CLayoutInfoS1 CLayoutInfoN CLayoutInfoG CLayoutInfoS2 BatchNum")
_COMMON = ("usedCoreNum M N Ka Kb singleCoreM singleCoreN singleCoreK baseM baseN baseK depthA1 depthB1 stepM stepN "
           "isBias iterateOrder shareMode shareL1Size shareL0CSize shareUbSize stepKa stepKb depthAL1CacheUB "
           "depthBL1CacheUB dbL0A dbL0B dbL0C " + _AXES)
CONFIG_FIELDS = (
    "do_norm do_basic_block do_multi_data_load basic_m basic_n basic_k intrinsics_check is_n_batch en_vec_nd2nz "
    "do_special_basic_block do_mte2_preload single_core_m single_core_n single_core_k step_m step_n base_mn "
    "single_core_mn en_unit_flag is_per_tensor has_anti_quant_offset do_ib_share_norm do_special_mdl enable_init "
    "batch_mode enable_end enable_get_tensor_c enable_set_org_shape enable_set_bias enable_set_tail "
    "enable_quant_vector enable_set_define_data iterate_mode enable_reuse enable_ub_reuse enable_l1_cache_ub "
    "intra_block_part_sum iterate_order schedule_type enable_double_cache is_bias_batch enable_static_pad_zeros "
    "is_partial_output enable_mix_dual_master is_a2b2_shared is_enable_channel_split enable_kdim_reorder_load "
    "is_co1_shared shared_co1_buffer_size batch_out_mode"
)
"""Fields of MatmulConfig in the order of its constructor."""

FIELDS.update(
    {
        "cube_tiling": dict.fromkeys(
            (_COMMON + " trans_length batchM batchN singleBatchM singleBatchN").split(), 0
        ),
        "matmul_api_static_tiling": dict.fromkeys((_COMMON + " transLength mxTypePara").split(), -1),
        "matmul_config": dict.fromkeys(CONFIG_FIELDS.split(), 0),
        "matrix_offset": {"offset": 0, "row": 0, "col": 0, "height": 0, "width": 0},
    }
)


@dataclass(frozen=True, slots=True)
class Tiling:
    """The fields of TCubeTiling that the product depends on, in elements and under the names of the struct."""

    M: int
    N: int
    Ka: int
    Kb: int
    singleCoreM: int
    singleCoreN: int
    singleCoreK: int
    baseM: int
    baseN: int
    baseK: int
    stepM: int
    stepN: int
    stepKa: int
    stepKb: int
    isBias: int
    iterateOrder: int
    ALayoutInfoB: int
    ALayoutInfoS: int
    ALayoutInfoN: int
    ALayoutInfoG: int
    ALayoutInfoD: int
    BLayoutInfoB: int
    BLayoutInfoS: int
    BLayoutInfoN: int
    BLayoutInfoG: int
    BLayoutInfoD: int
    CLayoutInfoB: int
    CLayoutInfoS1: int
    CLayoutInfoN: int
    CLayoutInfoG: int
    CLayoutInfoS2: int
    BatchNum: int

    @classmethod
    def of(cls, record: Any) -> Tiling:
        """The tiling in a struct of the kernel; what it lacks is 0."""
        return cls(*(int(getattr(record, field.name, 0)) for field in fields(cls)))


def static_tiling(config: Record, l1_bytes: int, a_bits: int, b_bits: int, bias: bool) -> Record:
    """GetMatmulApiTiling: the tiling that MatmulConfig fixes at compile time (the vendor's page of that name).

    With base sizes only, just those are filled and the rest stays -1. With single-core sizes too, the whole shape is
    the single core's, base tiles go one by one, and L1 holds as many steps of K, twice, as fit into `l1_bytes`.
    """
    from npuscope.ascendc.params import construct

    tiling = construct("matmul_api_static_tiling", config.type_name)
    base = (config.basic_m, config.basic_n, config.basic_k)
    single = (config.single_core_m, config.single_core_n, config.single_core_k)
    if not all(base):
        return tiling
    values = dict(zip(("baseM", "baseN", "baseK"), base, strict=True)) | {"isBias": int(bias)}
    if all(single):
        steps = -(-single[2] // base[2])
        step_bytes = base[2] * (base[0] * a_bits + base[1] * b_bits) // 8
        held = max(min(l1_bytes // (2 * step_bytes), steps), 1)
        values |= dict(zip(("singleCoreM", "singleCoreN", "singleCoreK"), single, strict=True))
        values |= {"M": single[0], "N": single[1], "Ka": single[2], "Kb": single[2], "stepM": 1, "stepN": 1}
        values |= {"stepKa": held, "stepKb": held, "depthA1": 2 * held, "depthB1": 2 * held, "iterateOrder": 0}
        values |= {"dbL0C": 1, "shareMode": 0, "shareUbSize": 0, "shareL0CSize": base[0] * base[1] * 4}
        values |= {"shareL1Size": 2 * held * step_bytes}
    tiling.__dict__.update(values)
    return tiling
