"""Pieces of PTX: what registers hold afterwards."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.tile.ptx import PtxError, known, parse, run
from npuscope.tile.ptx.registers import Registers


def after(text: str, kind: str = "b32", **given: Any) -> Any:
    """Register $0 after the text, with the given registers."""
    registers = Registers(len(next(iter(given.values()))))
    for name, value in given.items():
        registers.write(name.replace("r", "$"), np.array(value), None)
    run(parse(text), registers)
    return registers.read("$0", kind)


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    "text,values,want",
    [
        ("and.b32 $0, $1, 0xff;", [[0x1234]], [0x34]),
        ("or.b32 $0, $1, $2;", [[0x10], [3]], [0x13]),
        ("xor.b32 $0, $1, -1;", [[5]], [0xFFFFFFFA]),
        ("not.b32 $0, $1;", [[0]], [0xFFFFFFFF]),
        ("shl.b32 $0, $1, 4;", [[0xF0000001]], [0x10]),
        ("shl.b32 $0, $1, 40;", [[1]], [0]),
        ("shr.u32 $0, $1, 4;", [[0x80000000]], [0x08000000]),
        ("shr.s32 $0, $1, 4;", [[0x80000000]], [0xF8000000]),
        ("shr.s32 $0, $1, 99;", [[0x80000000]], [0xFFFFFFFF]),
        ("prmt.b32 $0, $1, $2, 0x5410;", [[0x33221100], [0x77665544]], [0x55441100]),
        ("prmt.b32 $0, $1, 0, 0x0c88;", [[0x33221180], [0]], [0x8000FFFF]),
        ("lop3.b32 $0, $1, $2, 0xF0, 0xea;", [[0xCC], [0xAA]], [0xF0 | 0xCC & 0xAA]),
        ("bfe.u32 $0, $1, 4, 8;", [[0xABCDE]], [0xCD]),
        ("bfe.s32 $0, $1, 4, 8;", [[0xABCDE]], [0xFFFFFFCD]),
        ("bfi.b32 $0, $1, $2, 8, 4;", [[0xFF], [0]], [0xF00]),
        ("popc.b32 $0, $1;", [[0xF0F0]], [8]),
        ("clz.b32 $0, $1;", [[1]], [31]),
        ("brev.b32 $0, $1;", [[1]], [0x80000000]),
        ("add.u32 $0, $1, $2;", [[0xFFFFFFFF], [2]], [1]),
        ("add.sat.s32 $0, $1, $2;", [[0x7FFFFFFF], [2]], [0x7FFFFFFF]),
        ("mul.lo.u32 $0, $1, $2;", [[0x10000], [0x10001]], [0x10000]),
        ("mul.hi.u32 $0, $1, $2;", [[0x10000], [0x50001]], [5]),
        ("mul.hi.s32 $0, $1, $2;", [[0xFFFFFFFF], [2]], [0xFFFFFFFF]),
        ("mad.lo.u32 $0, $1, $2, 5;", [[6], [7]], [47]),
        ("div.s32 $0, $1, $2;", [[0xFFFFFFF9], [2]], [0xFFFFFFFD]),
        ("rem.s32 $0, $1, $2;", [[0xFFFFFFF9], [2]], [0xFFFFFFFF]),
        ("min.s32 $0, $1, $2;", [[0xFFFFFFFF], [2]], [0xFFFFFFFF]),
        ("max.u32 $0, $1, $2;", [[0xFFFFFFFF], [2]], [0xFFFFFFFF]),
        ("abs.s32 $0, $1;", [[0xFFFFFFF9]], [7]),
        ("neg.s32 $0, $1;", [[7]], [0xFFFFFFF9]),
        ("selp.b32 $0, $1, $2, 1;", [[3], [4]], [3]),
    ],
)  # fmt: skip
def test_whole_numbers(text: str, values: list[list[int]], want: list[int]) -> None:
    given = {f"r{place + 1}": np.array(value, np.uint32) for place, value in enumerate(values)}
    assert after(text, **given).tolist() == want


@pytest.mark.parametrize(
    "text,want",
    [
        ("add.f32 $0, $1, 0.5;", 2.0), ("sub.ftz.f32 $0, $1, 0f3F800000;", 0.5), ("mul.rn.f32 $0, $1, 2.0;", 3.0), ("fma.rn.f32 $0, $1, $1, 1.0;", 3.25),
        ("div.full.f32 $0, $1, 3.0;", 0.5), ("rcp.approx.ftz.f32 $0, $1;", np.float32(1) / np.float32(1.5)), ("max.f32 $0, $1, 9.0;", 9.0), ("neg.f32 $0, $1;", -1.5),
        ("ex2.approx.ftz.f32 $0, $1;", 2.0**1.5), ("lg2.approx.f32 $0, $1;", np.log2(1.5)), ("sqrt.approx.f32 $0, $1;", np.sqrt(1.5)), ("rsqrt.approx.f32 $0, $1;", 1.5**-0.5),
        ("sin.approx.f32 $0, $1;", np.sin(1.5)), ("tanh.approx.f32 $0, $1;", np.tanh(1.5)), ("add.sat.f32 $0, $1, 4.0;", 1.0), ("cvt.rni.f32.f32 $0, $1;", 2.0),
        ("add.rz.f32 $0, $1, 0f33000000;", 1.5), ("add.rp.f32 $0, $1, 0f33000000;", np.nextafter(np.float32(1.5), np.float32(2))),
        ("copysign.f32 $0, -1.0, $1;", -1.5), ("cvt.rna.tf32.f32 $0, $1;", 1.5),
    ],
)  # fmt: skip
def test_floats(text: str, want: float) -> None:
    np.testing.assert_allclose(after(text, "f32", r1=f32(1.5))[0], np.float32(want), rtol=1e-7)


def test_small_numbers_are_flushed_only_where_asked() -> None:
    tiny = f32(1e-40)
    assert after("mul.f32 $0, $1, 1.0;", "f32", r1=tiny)[0] > 0
    assert after("mul.ftz.f32 $0, $1, 1.0;", "f32", r1=tiny)[0] == 0


def test_no_number_is_passed_on_only_where_asked() -> None:
    assert after("max.f32 $0, $1, 2.0;", "f32", r1=f32(np.nan))[0] == 2
    assert np.isnan(after("max.NaN.f32 $0, $1, 2.0;", "f32", r1=f32(np.nan))[0])


@pytest.mark.parametrize(
    "text,want",
    [
        ("cvt.rn.bf16x2.f32 $0, $1, $2;", (ml_dtypes.bfloat16, [2.25, 1.5])), ("cvt.rn.f16x2.f32 $0, $1, $2;", (np.float16, [2.25, 1.5])),
        ("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", (ml_dtypes.float8_e4m3fn, [2.25, 1.5])), ("cvt.rn.satfinite.e5m2x2.f32 $0, $1, 1e9;", (ml_dtypes.float8_e5m2, [57344, 1.5])),
    ],
)  # fmt: skip
def test_two_numbers_are_packed_the_first_operand_above(text: str, want: tuple[Any, list[float]]) -> None:
    dtype, numbers = want
    raw = after(text, "b64", r1=f32(1.5), r2=f32(2.25))
    assert raw.view(np.uint8)[: 2 * np.dtype(dtype).itemsize].view(dtype).astype(float).tolist() == numbers


def test_eight_bits_are_unpacked() -> None:
    codes = np.array([1.5, -2.0], ml_dtypes.float8_e4m3fn).view(np.uint16)
    assert after("cvt.rn.f16x2.e4m3x2 $0, $1;", "f16x2", r1=codes).tolist() == [[1.5, -2.0]]


def test_four_bits() -> None:
    byte = after(
        "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, $1, $2; mov.b32 $0, {t, t, t, t}; }", r1=f32(-6.5), r2=f32(1.6)
    )
    assert byte.tolist() == [0xF3F3F3F3]
    assert after("cvt.rn.f16x2.e2m1x2 $0, $1;", "f16x2", r1=np.array([0xF3], np.uint8)).tolist() == [[1.5, -6.0]]


@pytest.mark.parametrize("text,want", [
    ("cvt.rzi.s32.f32 $0, $1;", 0xFFFFFFFE), ("cvt.rmi.s32.f32 $0, $1;", 0xFFFFFFFD), ("cvt.rzi.u32.f32 $0, $1;", 0), ("cvt.sat.u8.s32 $0, 300;", 255), ("cvt.s32.s8 $0, 0x80;", 0xFFFFFF80),
])  # fmt: skip
def test_conversions_to_whole_numbers(text: str, want: int) -> None:
    assert after(text, r1=f32(-2.5)).tolist() == [want]


def test_halves_side_by_side() -> None:
    pair = np.array([1.5, 2.0], np.float16).view(np.uint32)
    assert after("add.f16x2 $0, $1, $1;", "f16x2", r1=pair).tolist() == [[3.0, 4.0]]
    assert after("fma.rn.f16x2 $0, $1, $1, $1;", "f16x2", r1=pair).tolist() == [[3.75, 6.0]]
    assert after("{ mov.b32 {a, b}, $1; mov.b32 $0, {b, a}; }", "f16x2", r1=pair).tolist() == [[2.0, 1.5]]
    assert after("{ setp.lt.f16x2 p|q, $1, $1; selp.b32 $0, 1, 2, q; }", r1=pair).tolist() == [2]


def test_predicates_guard_and_negate() -> None:
    text = "{ .reg .pred p; setp.gt.f32 p, $1, 1.0; mov.u32 $0, 7; @p mov.u32 $0, 8; @!p add.u32 $0, $0, 1; }"
    assert after(text, r1=f32(0.5, 2.0)).tolist() == [8, 8]
    assert after("{ setp.ge.u32 p|q, $1, 5; selp.b32 $0, 1, 2, q; }", r1=np.array([4, 5], np.uint32)).tolist() == [1, 2]
    assert after("{ setp.neu.f32 p, $1, $1; selp.b32 $0, 1, 0, p; }", r1=f32(np.nan, 1.0)).tolist() == [1, 0]


def test_comments_and_scopes() -> None:
    text = "{ // first\n .reg .b32 a, b<2>; /* a; b */ mov.b32 a, $1; }\n { .reg .b32 a; add.u32 $0, $1, 1; }"
    assert [instruction.text for instruction in parse(text)] == ["mov.b32", "add.u32"]
    assert after(text, r1=np.array([1], np.uint32)).tolist() == [2]


def test_numbers_of_64_bits() -> None:
    big = np.array([0xFFFFFFFFFFFFFFFF], np.uint64)
    assert after("add.u64 $0, $1, 2;", "b64", r1=big).tolist() == [1]
    assert after("mul.hi.u64 $0, $1, $1;", "b64", r1=big).tolist() == [0xFFFFFFFFFFFFFFFE]
    assert after("mul.wide.u32 $0, $1, $1;", "b64", r1=np.array([0xFFFFFFFF], np.uint32)).tolist() == [
        0xFFFFFFFE00000001
    ]
    (bits,) = struct.unpack("<Q", struct.pack("<d", 0.75))
    assert after(f"add.f64 $0, $1, 0d{bits:016X};", "f64", r1=np.array([1.0])).tolist() == [1.75]


@pytest.mark.parametrize("text", ["again: add.u32 $0, $1, 1;", "?;"])
def test_what_is_no_instruction(text: str) -> None:
    with pytest.raises(PtxError, match="not supported"):
        parse(text)


def test_what_is_not_known() -> None:
    assert not known(parse("atom.global.add.u32 $0, [$1], 1;")[0])
    with pytest.raises(PtxError, match=r"frob\.f32"):
        after("frob.f32 $0, $1;", r1=f32(1.0))
    with pytest.raises(PtxError, match="nothing wrote"):
        after("mov.b32 $0, nobody;", r1=f32(1.0))
    with pytest.raises(PtxError, match="type"):
        after("add.f8 $0, $1, $1;", r1=f32(1.0))
