"""Cast, CastDequant and SetDeqScale, against numpy and the vendor's rules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import Unsupported, UserError
from npuscope.trace.schema import OPCODES, Pipe, Role

F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16
I8, U8, I16, I32, I64 = np.int8, np.uint8, np.int16, np.int32, np.int64
NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)


def params(dst: tuple[int, int] = (1, 8), src: tuple[int, int] = (1, 8)) -> Any:
    return construct("unary_repeat_params", "", dst[0], src[0], dst[1], src[1])


def cast(device: Any, values: np.ndarray, dtype: Any, mode: int) -> np.ndarray:
    src, dst = device.local(values), device.local(np.zeros(values.size, dtype))
    device.run("cast_l2", dst, src, values.size, round_mode=mode)
    return device.values(dst)


HALVES = np.array([-2.5, -1.5, -0.5, -0.3, 0.0, 0.5, 0.7, 1.5, 2.5, 100.25, -7.75])
ROUNDED = {
    RINT: np.rint, FLOOR: np.floor, CEIL: np.ceil, TRUNC: np.trunc,
    ROUND: lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}


@pytest.mark.parametrize("mode", ROUNDED)
@pytest.mark.parametrize(
    ("src", "dst"),
    [(F32, I32), (F32, I16), (F32, I64), (F32, F32), (F16, I32), (F16, I16), (F16, I8), (BF16, I32)],
)
def test_rounding_to_integers(device: Any, src: Any, dst: Any, mode: int) -> None:
    values = HALVES.astype(src)
    assert np.array_equal(cast(device, values, dst, mode), ROUNDED[mode](values.astype(np.float64)).astype(dst))


@pytest.mark.parametrize(
    ("src", "dst", "values", "mode", "result"),
    [
        (F32, F16, [1 + 2**-11, 1 + 3 * 2**-11, 1e6, -1e6], RINT, [1, 1 + 2**-9, np.inf, -np.inf]),
        (F32, F16, [1 + 2**-12, 1, 1 + 2**-10 + 2**-12], ODD, [1 + 2**-10, 1, 1 + 2**-10]),
        (F32, F16, [1 + 2**-11, 1 + 3 * 2**-11], NONE, [1, 1 + 2**-9]),
        (F32, BF16, [1 + 2**-8, 1 + 3 * 2**-8], TRUNC, [1, 1 + 2**-7]),
        (F16, F32, [0.1, 65504, -6e-8], NONE, [0.1, 65504, -6e-8]),
        (BF16, F32, [0.1, 3e38], NONE, [0.1, 3e38]),
        (I8, F16, [-128, 127], NONE, [-128, 127]),
        (U8, F16, [0, 255], NONE, [0, 255]),
        (I16, F16, [2049, 2051], RINT, [2048, 2052]),
        (I16, F32, [-32768, 32767], NONE, [-32768, 32767]),
        (I32, F32, [16777217, 16777219], RINT, [16777216, 16777220]),
        (I32, I16, [40000, -40000, 5], NONE, [32767, -32768, 5]),
        (I32, I64, [-5, 2**31 - 1], NONE, [-5, 2**31 - 1]),
        (I64, I32, [2**40, -(2**40), 7], NONE, [2**31 - 1, -(2**31), 7]),
        (I64, F32, [2**24 + 1, 3], RINT, [2**24, 3]),
        (F16, U8, [300, -5, 2.5, np.nan, np.inf], NONE, [255, 0, 2, 0, 255]),
        (F32, I32, [1e10, -1e10, np.nan, np.inf], TRUNC, [2**31 - 1, -(2**31), 0, 2**31 - 1]),
    ],
)
def test_published_rules(device: Any, src: Any, dst: Any, values: Any, mode: int, result: Any) -> None:
    got = cast(device, np.array(values).astype(src), dst, mode)
    np.testing.assert_array_equal(got, np.array(result).astype(src if dst is F32 and src in (F16, BF16) else dst))


def test_saturation_keeps_half_finite(device: Any) -> None:
    device.core.registers.saturate = True
    got = cast(device, np.array([1e6, -np.inf, np.nan, 1], F32), F16, RINT)
    assert got.tolist() == [65504, -65504, 0, 1]


def test_int32_to_half_takes_the_scale_of_set_deq_scale(device: Any) -> None:
    values = np.array([100, -7, 2049], I32)
    assert cast(device, values, F16, FLOOR).tolist() == [100, -7, 2048]
    device.run("set_deq_scale", 0.5)
    assert cast(device, values, F16, NONE).tolist() == [50, -3.5, 1024]


@pytest.mark.parametrize("count", [1, 63, 64, 200])
def test_counts(device: Any, count: int) -> None:
    values = np.arange(200, dtype=F32)
    src, dst = device.local(values), device.local(np.full(200, -1, F16))
    device.run("cast_l2", dst, src, count, round_mode=NONE)
    assert np.array_equal(device.values(dst), np.where(np.arange(200) < count, values, -1))


def test_repeats_have_the_lanes_of_the_wider_type(device: Any) -> None:
    values = np.arange(256, dtype=F16)
    src, dst = device.local(values), device.local(np.full(256, -1, F32))
    device.run("cast_l0", dst, src, 50, 4, params((1, 8), (1, 4)), round_mode=NONE, is_set_mask=True)
    assert np.array_equal(device.values(dst), np.where(np.arange(256) % 64 < 50, values, -1))
    back = device.local(np.full(256, -1, F16))
    words = [0x5555_5555_5555_5555, 0]
    device.run("cast_l1", back, dst, words, 4, params((1, 4), (1, 8)), round_mode=RINT, is_set_mask=True)
    taken = (np.arange(256) % 2 == 0)
    assert np.array_equal(device.values(back), np.where(taken, device.values(dst), -1))


def test_counter_mode(device: Any) -> None:
    values = np.arange(150, dtype=F32)
    src, dst = device.local(values), device.local(np.full(150, -1, F16))
    device.run("set_mask_count")
    device.run("cast_l0", dst, src, 130, 1, params((1, 4), (1, 8)), round_mode=NONE, is_set_mask=True)
    assert np.array_equal(device.values(dst), np.where(np.arange(150) < 130, values, -1))


@pytest.mark.parametrize(
    ("src", "dst", "mode", "words"),
    [
        (F16, np.uint16, RINT, "ascendc.cast does not take uint16_t from half on Ascend910B1; it takes"),
        (F32, I32, NONE, "ascendc.cast does not round float to int32_t with CAST_NONE on Ascend910B1; it takes CAST_R"),
        (I8, I16, NONE, "does not take int16_t from int8_t"),
    ],
)
def test_what_the_chip_does_not_cast(device: Any, src: Any, dst: Any, mode: int, words: str) -> None:
    with pytest.raises(UserError) as error:
        cast(device, np.zeros(32, src), dst, mode)
    assert words in str(error.value)


def test_int4_is_not_simulated(device: Any) -> None:
    with pytest.raises(Unsupported, match="int4b_t"):
        cast(device, np.zeros(32, F16), ml_dtypes.int4, NONE)


@pytest.mark.parametrize(("src", "dst", "mode"), [(I8, I32, NONE), (F16, BF16, RINT), (np.uint32, U8, NONE)])
def test_casts_that_arch_3510_adds(make_device: Any, src: Any, dst: Any, mode: int) -> None:
    got = cast(make_device("Ascend950PR"), np.arange(0, 50).astype(src), dst, mode)
    assert np.array_equal(got, np.arange(50).astype(dst))


# -- CastDequant -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 16, 128, 200])
@pytest.mark.parametrize("half_block", [False, True])
def test_bytes_fill_one_half_of_each_block(device: Any, count: int, half_block: bool) -> None:
    values = np.random.default_rng(1).integers(-300, 300, 208).astype(I16)
    src, dst = device.local(values), device.local(np.full(416, 99, I8))
    device.run("set_deq_scale", 0.5, 3, 1)
    device.run("cast_deq_l2", dst, src, count, half_block=half_block)
    result = np.clip(np.rint(values * 0.5) + 3, -128, 127).astype(I8)
    whole = np.full((13, 2, 16), 99, I8)
    whole[:, int(half_block)] = np.where(np.arange(208) < count, result, 99).reshape(13, 16)
    assert np.array_equal(device.values(dst), whole.reshape(-1))


def test_unsigned_bytes_under_a_mask(device: Any) -> None:
    values = np.arange(-100, 156, dtype=I16)
    src, dst = device.local(values), device.local(np.full(512, 7, U8))
    device.run("set_deq_scale", 2.0, -10, 0)
    device.run("cast_deq_l1", dst, src, [0xF0F0, 1], 2, params(), is_set_mask=True)
    result = np.clip(values * 2 - 10, 0, 255).astype(U8).reshape(2, 128)
    on = np.array([((0xF0F0 | 1 << 64) >> lane) & 1 for lane in range(128)], bool)
    whole = np.full((2, 8, 2, 16), 7, U8)
    whole[:, :, 0] = np.where(on, result, 7).reshape(2, 8, 16)
    assert np.array_equal(device.values(dst), whole.reshape(-1))


def test_the_vector_form_has_a_word_for_each_element_of_a_block(device: Any) -> None:
    scales = np.arange(1, 17) / 4
    offsets = np.arange(16) - 8
    signs = np.arange(16) % 2
    info = construct("vdeq_info", "", scales.tolist(), offsets.tolist(), signs.tolist())
    vdeq = device.local(np.zeros(16, np.uint64))
    device.run("set_deq_scale_l4", vdeq, info)
    assert device.touched(vdeq, Role.WRITE) == set(range(vdeq.address, vdeq.address + 128))
    values = np.arange(-64, 64, dtype=I16)
    src, dst = device.local(values), device.local(np.zeros(256, U8))
    device.run("cast_deq_l0", dst, src, 128, 1, params(), is_set_mask=True, is_vec_deq=True)
    grid = np.rint(values.reshape(8, 16) * scales) + offsets
    result = np.where(signs == 1, np.clip(grid, -128, 127).astype(I8).view(U8), np.clip(grid, 0, 255).astype(U8))
    assert np.array_equal(device.values(dst).reshape(8, 2, 16)[:, 0], result)
    assert device.touched(vdeq, Role.READ) == set(range(vdeq.address, vdeq.address + 128))


@pytest.mark.parametrize("saturate", [False, True])
def test_int32_to_half(device: Any, saturate: bool) -> None:
    src, dst = device.local(np.array([0, 65504, -65504, 2**31 - 1, -(2**31)], I32)), device.local(np.zeros(5, F16))
    device.core.registers.saturate = saturate
    device.run("set_deq_scale", 1.0)
    device.run("cast_deq_l2", dst, src, 5)
    large = 65504 if saturate else np.inf
    assert device.values(dst).tolist() == [0, 65504, -65504, large, -large]
    device.run("cast_deq_l0", dst, src, 2, 1, params((1, 4)), is_set_mask=True)
    assert device.values(dst)[1] == 65504


def test_dequantisation_operands_out_of_range_are_faults(device: Any) -> None:
    device.run("set_deq_scale", 1.0, 300, 1)
    device.run("set_deq_scale", float("inf"), 0, 1)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"] * 2
    with pytest.raises(UserError, match="ascendc.cast_deq does not take"):
        device.run("cast_deq_l2", device.local(np.zeros(4, F32)), device.local(np.zeros(4, I16)), 4)


def test_trace(device: Any) -> None:
    src, dst = device.local(np.zeros(128, I16)), device.local(np.zeros(256, I8))
    device.run("set_deq_scale", 1.0, 0, 1)
    device.run("cast_deq_l2", dst, src, 20, half_block=True)
    batch = device.trace()
    names = [OPCODES.names[number] for number in batch.column("opcode")]
    assert list(zip(names, batch.column("pipe").tolist(), strict=True)) == [
        ("set_deq_scale", Pipe.S), ("vconv_deq", Pipe.V)
    ]
    device.run("cast_deq_l2", dst, src, 20, half_block=True)
    written = device.touched(dst, Role.WRITE)
    assert written == {dst.address + at for at in (*range(16, 32), *range(48, 52))}
