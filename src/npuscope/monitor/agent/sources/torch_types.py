"""Our numbers of element types by the many names that PyTorch gives them."""

from __future__ import annotations

INVALID_TYPE = 65535
DATA_TYPES = {
    "signed char": 0, "char": 0, "int8": 0, "short": 1, "short int": 1, "int16": 1, "int": 2, "int32": 2, "half": 3,
    "float16": 3, "float": 4, "float32": 4, "long": 5, "long int": 5, "int64": 5, "unsigned char": 7, "byte": 7,
    "uint8": 7, "uint16": 8, "uint32": 9, "uint64": 6, "double": 10, "float64": 10, "bfloat16": 11,
    "float8_e4m3fn": 15, "float8_e5m2": 16,
}  # fmt: skip


def number_of_type(name: str) -> int:
    """The number of a type (`torch.float32`, `Float`, `c10::BFloat16`), INVALID_TYPE for one that has none."""
    return DATA_TYPES.get(name.lower().removeprefix("torch.").removeprefix("c10::"), INVALID_TYPE)
