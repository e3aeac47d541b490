"""Enumerations of `asc.lib.host`, with the values of the vendor's public header (`matmul_tiling_base.h`), and what
operands Matmul takes of them."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from npuscope.frontends.pyasc_tiling import Matrix, Place


class CubeFormat(Enum):
    """Layout of a matrix."""

    ND, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR, COLUMN_MAJOR = range(9)
    ROW_MAJOR = ND


class DataType(Enum):
    """Type of an element."""

    DT_FLOAT, DT_FLOAT16, DT_INT8, DT_INT32, DT_UINT8 = range(5)
    DT_INT16, DT_UINT16, DT_UINT32, DT_INT64, DT_UINT64, DT_DOUBLE, DT_BOOL, DT_STRING = range(6, 14)
    DT_COMPLEX64, DT_COMPLEX128, DT_QINT8, DT_QINT16, DT_QINT32, DT_QUINT8, DT_QUINT16 = range(16, 23)
    DT_STRING_REF, DT_DUAL, DT_VARIANT, DT_BF16, DT_UNDEFINED, DT_INT4, DT_UINT1, DT_INT2 = range(24, 32)
    DT_BFLOAT16 = 33
    DT_MAX = 40


class TPosition(Enum):
    """Logical position of a tensor (frontends.md 2)."""

    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, SPM, TSCM, MAX = range(15)
    LCM = VECCALC
    SHM = SPM


class MatrixTraverse(Enum):
    """Axis along which the base blocks of C are walked first."""

    NOSET, FIRSTM, FIRSTN = range(3)


class DequantType(Enum):
    """One factor for all of C, or one for each column."""

    SCALAR, TENSOR = range(2)


class ScheduleType(Enum):
    """Axis of the copies from L1 to L0: K, or M and N."""

    INNER_PRODUCT, OUTER_PRODUCT = range(2)


class MatrixMadType(Enum):
    """Mode of the cube."""

    NORMAL, HF32, MXMODE = range(3)


_BITS = {
    DataType.DT_FLOAT: 32,
    DataType.DT_INT32: 32,
    DataType.DT_FLOAT16: 16,
    DataType.DT_BF16: 16,
    DataType.DT_BFLOAT16: 16,
    DataType.DT_INT8: 8,
    DataType.DT_UINT8: 8,
    DataType.DT_INT4: 4,
}
INPUTS = frozenset(_BITS) - {DataType.DT_INT32, DataType.DT_UINT8}
OUTPUTS = frozenset(_BITS) - {DataType.DT_INT4}
BIASES = frozenset(kind for kind, bits in _BITS.items() if bits >= 16)
PLACES = {
    TPosition.GM: Place.GM,
    TPosition.VECIN: Place.UB,
    TPosition.VECOUT: Place.UB,
    TPosition.VECCALC: Place.UB,
    TPosition.TSCM: Place.L1,
}
A_PLACES = PLACES | {TPosition.A1: Place.L1}
B_PLACES = PLACES | {TPosition.B1: Place.L1}
BIAS_PLACES = PLACES | {TPosition.C1: Place.L1}

AnyEnum = TypeVar("AnyEnum", bound=Enum)


def checked(value: object, kind: type[AnyEnum]) -> AnyEnum:
    """The value, if it is a member of that enumeration; TypeError otherwise, as the bindings do."""
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} is expected, not {value!r}")
    return value


def operand(
    places: dict[TPosition, Place],
    formats: tuple[CubeFormat, ...],
    types: frozenset[DataType],
    pos: TPosition,
    layout: CubeFormat,
    data_type: DataType,
) -> Matrix | None:
    """An operand, or None where Matmul takes none of that position, layout or type."""
    place = places.get(checked(pos, TPosition))
    if place is None or checked(layout, CubeFormat) not in formats or checked(data_type, DataType) not in types:
        return None
    return Matrix(bits=_BITS[data_type], place=place, nz=layout is CubeFormat.NZ)
