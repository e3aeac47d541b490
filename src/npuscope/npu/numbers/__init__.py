"""Number semantics of the vector and cube units: types, casts, integer arithmetic, HF32, quantisation.

Pure numpy: every function takes and returns whole arrays, so lowerings, instructions and tests share one definition.
"""

from npuscope.npu.numbers.casting import cast, cast_modes, convert
from npuscope.npu.numbers.dtypes import dtype_of, is_floating, pack_int4, type_name, unpack_int4
from npuscope.npu.numbers.hf32 import Hf32Mode, to_hf32
from npuscope.npu.numbers.integers import add, mul, shift_left, shift_right, sub
from npuscope.npu.numbers.precision import compute_in_f32
from npuscope.npu.numbers.quantisation import (
    QuantWord,
    cast_dequant_b8,
    cast_dequant_f16,
    decode_quant_word,
    decode_right_shift,
    dequantise_f16,
    encode_quant_word,
    narrow_f32,
    quantise_f32_to_b8,
    requantise,
)
from npuscope.npu.numbers.rounding import RoundMode, round_to_float, round_to_int, round_to_integer

__all__ = [
    "Hf32Mode",
    "QuantWord",
    "RoundMode",
    "add",
    "cast",
    "cast_dequant_b8",
    "cast_dequant_f16",
    "cast_modes",
    "compute_in_f32",
    "convert",
    "decode_quant_word",
    "decode_right_shift",
    "dequantise_f16",
    "dtype_of",
    "encode_quant_word",
    "is_floating",
    "mul",
    "narrow_f32",
    "pack_int4",
    "quantise_f32_to_b8",
    "requantise",
    "round_to_float",
    "round_to_int",
    "round_to_integer",
    "shift_left",
    "shift_right",
    "sub",
    "to_hf32",
    "type_name",
    "unpack_int4",
]
