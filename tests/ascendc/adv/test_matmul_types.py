"""The text of a Matmul object's IR type."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.ascendc.adv.matmul_types import NZ, Operand, Tiling, matmul_type
from npuscope.ascendc.params import construct
from npuscope.errors import Unsupported

TEXT = (
    "!ascendc.matmul<gm, 0 : i32, f16, false, 0 : i32, tscm, 1 : i32, f16, true, 2 : i32, veccalc, 0 : i32, f32, "
    "false, 0 : i32, gm, 0 : i32, f32, <do_norm = true, is_partial_output = {}, iterate_order = 1 : i32>>"
)


def test_operands_and_config_are_read() -> None:
    found = matmul_type(TEXT.format("false"))
    assert found.a == Operand("gm", 0, np.dtype(np.float16), False, 0)
    assert found.b == Operand("tscm", NZ, np.dtype(np.float16), True, 2)
    assert found.c == Operand("veccalc", 0, np.dtype(np.float32), False, 0)
    assert found.bias == Operand("gm", 0, np.dtype(np.float32))
    assert found.config == {"do_norm": 1, "is_partial_output": 0, "iterate_order": 1}
    assert matmul_type(TEXT.format("true")).config["is_partial_output"] == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("veccalc, 0 : i32", "veccalc, 2 : i32", "format 2 of c"),
        ("do_norm = true", "intra_block_part_sum = true", "intra_block_part_sum"),
        ("do_norm = true", "enable_mix_dual_master = true", "enable_mix_dual_master"),
    ],
)
def test_what_is_not_simulated_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        matmul_type(TEXT.format("false").replace(old, new))


def test_a_tiling_may_lack_fields() -> None:
    record = construct("cube_tiling", "!ascendc.cube_tiling")
    record.__dict__.update(M=3, baseN=16)
    del record.__dict__["stepM"]
    tiling = Tiling.of(record)
    assert (tiling.M, tiling.baseN, tiling.stepM, tiling.BatchNum) == (3, 16, 0, 0)
