from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from npuscope.errors import Unsupported
from npuscope.npu.numbers import dtype_of, is_floating, pack_int4, type_name, unpack_int4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f32", np.float32),
        ("f64", np.float64),
        ("i1", np.bool_),
        ("i4", ml_dtypes.int4),
        ("i8", np.int8),
        ("si8", np.int8),
        ("ui8", np.uint8),
        ("i16", np.int16),
        ("ui16", np.uint16),
        ("i32", np.int32),
        ("ui32", np.uint32),
        ("i64", np.int64),
        ("ui64", np.uint64),
        ("index", np.int64),
        ("half", np.float16),
        ("bfloat16_t", ml_dtypes.bfloat16),
        ("float", np.float32),
        ("double", np.float64),
        ("bool", np.bool_),
        ("int4b_t", ml_dtypes.int4),
        ("int8_t", np.int8),
        ("uint8_t", np.uint8),
        ("int16_t", np.int16),
        ("uint16_t", np.uint16),
        ("int32_t", np.int32),
        ("uint32_t", np.uint32),
        ("int64_t", np.int64),
        ("uint64_t", np.uint64),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("f8E5M2", ml_dtypes.float8_e5m2),
    ],
)
def test_dtype_of(name: str, expected: type) -> None:
    assert dtype_of(name) == np.dtype(expected)


def test_unknown_type_is_named() -> None:
    with pytest.raises(Unsupported, match="'f128'"):
        dtype_of("f128")


def test_type_name_is_the_ascend_c_spelling() -> None:
    assert [type_name(dtype_of(name)) for name in ("f16", "bf16", "ui8", "i4")] == [
        "half",
        "bfloat16_t",
        "uint8_t",
        "int4b_t",
    ]
    assert type_name(np.dtype(np.complex64)) == "complex64"


def test_is_floating_counts_the_ml_dtypes() -> None:
    assert [is_floating(dtype_of(name)) for name in ("f16", "bf16", "f8E5M2", "f64", "i4", "i8", "i1")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_pack_int4_puts_the_first_element_low() -> None:
    # The example of the vendor's LoadDataWithTranspose page: 6 and 7 make 118.
    assert pack_int4(np.array([6, 7], np.int8)).tolist() == [118]
    assert pack_int4(np.array([-1, -8], np.int8)).tolist() == [0x8F]


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (16,), (3, 5), (2, 3, 4)])
def test_pack_int4_round_trip(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(-8, 8, shape, np.int8)
    packed = pack_int4(values.astype(ml_dtypes.int4))
    assert packed.dtype == np.uint8
    assert packed.shape == (*shape[:-1], (shape[-1] + 1) // 2)
    unpacked = unpack_int4(packed, shape[-1])
    assert unpacked.dtype == np.dtype(ml_dtypes.int4)
    np.testing.assert_array_equal(unpacked.astype(np.int8), values)


def test_pack_int4_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="-8 to 7"):
        pack_int4(np.array([8], np.int32))
    with pytest.raises(ValueError, match="-8 to 7"):
        pack_int4(np.array([-9, 0], np.int64))


def test_unpack_int4_takes_all_or_as_many_as_there_are() -> None:
    assert unpack_int4(np.array([0x21, 0xF8], np.uint8)).astype(int).tolist() == [1, 2, -8, -1]
    assert unpack_int4(np.array([0x21, -8], np.int8)).astype(int).tolist() == [1, 2, -8, -1]
    with pytest.raises(ValueError, match="2 bytes hold 4 int4, not 5"):
        unpack_int4(np.zeros(2, np.uint8), 5)
