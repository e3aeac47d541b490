"""The math functions of the adv layer, element by element.

Every function computes in float64 and rounds once to the type of the operands; the device's own approximations differ
from that by what the vendor's precision pages allow. Outside the range that a page gives as valid, the function itself
is computed here, where the device's result is undefined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.composed import computes_here, map_elements
from npuscope.ascendc.adv.special_functions import digamma, erf, erfc, lgamma
from npuscope.ascendc.operand_types import check_types, types_of, wrong_types
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.numbers.dtypes import F16, F32
from npuscope.npu.tensor import Tensor

FLOATS = {"": types_of("half float")}
POWERS = {
    "": types_of("half float int32_t"),
    "3510": types_of("uint8_t int8_t uint16_t int16_t uint32_t int32_t half bfloat16_t float"),
}
BITS = {"": types_of("int16_t uint16_t")}


def frac(x: np.ndarray) -> np.ndarray:
    """The part after the point, with the sign of x."""
    return x - np.trunc(x)


UNARY: dict[str, Any] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "digamma": digamma,
    "erf": erf,
    "erfc": erfc,
    "floor": np.floor,
    "frac": frac,
    "lgamma": lgamma,
    "log": np.log,
    "round": np.rint,  # half to even (the vendor's Round page)
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


def _register(name: str, code: int, function: Any) -> None:
    def compute(values: np.ndarray) -> np.ndarray:
        return np.asarray(function(values.astype(np.float64)))

    @operation(f"ascendc.{name}")
    def unary(
        core: Core, site: int, dst: Tensor, src: Tensor, temporary: Tensor | None, count: int | None, reuse: int
    ) -> None:
        if computes_here(core):
            check_types(core, site, name, FLOATS, dst, src)
            map_elements(core, site, code, compute, dst, (src,), count, temporary, reuse)


for _name, _function in UNARY.items():
    _register(_name, opcode(_name), _function)

EXP, POWER, XOR, AXPY = opcode("exp"), opcode("power"), opcode("xor"), opcode("axpy")
CLAMP_MAX, CLAMP_MIN = opcode("clamp_max"), opcode("clamp_min")


@operation("ascendc.exp", variadic=("rest",))
def exp(core: Core, site: int, dst: Tensor, src: Tensor, count: int, level: int, rest: list[Any]) -> None:
    """Exp(dst, src, count, level, [temporary], reuse): e to the x. More terms of the device's Taylor series (`level`)
    only come closer to that."""
    *temporary, reuse = rest
    if not computes_here(core):
        return
    check_types(core, site, "exp", FLOATS, dst, src)
    work = temporary[0] if temporary else None
    map_elements(core, site, EXP, lambda x: np.exp(x.astype(np.float64)), dst, (src,), count, work, reuse)
    if not 0 <= level <= 255:
        core.fault("bad_operand", what="taylor_expand_level of exp", value=level, limit="0 to 255")


def integer_power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """base ** exponent of one integer type, wrapping, by repeated squaring; a negative exponent gives the integer part
    of the fraction (0 to the power of a negative number: 0)."""
    result, factor = np.ones_like(base), base.copy()
    rest = np.abs(exponent.astype(np.int64))
    while rest.any():
        result = np.where(rest & 1, result * factor, result)
        factor = factor * factor
        rest >>= 1
    unit = np.abs(base.astype(np.int64)) == 1
    return np.where((exponent < 0) & ~unit, 0, result).astype(base.dtype)


def power_of(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """base ** exponent: integers in their own type, floats in float64."""
    if base.dtype.kind in "iu":
        return integer_power(base, exponent)
    return np.power(base.astype(np.float64), exponent.astype(np.float64))


@operation("ascendc.power")
def power(
    core: Core, site: int, dst: Tensor, src0: Any, src1: Any, temporary: Tensor | None, count: int | None, reuse: int
) -> None:
    """Power(dst, base, exponent): two tensors, or a tensor and a scalar of its type."""
    if not computes_here(core):
        return
    tensors = [source for source in (src0, src1) if isinstance(source, Tensor)]
    check_types(core, site, "power", POWERS, dst, *tensors)

    def compute(*values: np.ndarray) -> np.ndarray:
        given = iter(values)
        base, exponent = (
            next(given) if isinstance(source, Tensor) else np.asarray(source, dst.dtype) for source in (src0, src1)
        )
        return power_of(*np.broadcast_arrays(base, exponent))

    map_elements(core, site, POWER, compute, dst, tensors, count, temporary, reuse)


@operation("ascendc.xor")
def xor(
    core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, temporary: Tensor | None, count: int | None,
    reuse: int,
) -> None:  # fmt: skip
    """Xor: bit by bit."""
    if computes_here(core):
        check_types(core, site, "xor", BITS, dst, src0, src1)
        map_elements(core, site, XOR, np.bitwise_xor, dst, (src0, src1), count, temporary, reuse)


@operation("ascendc.axpy", variadic=("rest",))
def axpy(core: Core, site: int, dst: Tensor, src: Tensor, scalar: float, rest: list[Any]) -> None:
    """Axpy(dst, src, scalar, [temporary], count, reuse): dst += src * scalar, product and sum each rounded in float32,
    the result once more to half. half, float, or half into float (the vendor's Axpy page)."""
    *temporary, count, reuse = rest
    if not computes_here(core):
        return
    if (dst.dtype, src.dtype) not in ((F16, F16), (F32, F32), (F32, F16)):
        raise wrong_types(core, site, "axpy", "half, float, or half into float", dst, src)
    factor = np.asarray(scalar, src.dtype).astype(F32)

    def compute(x: np.ndarray, old: np.ndarray) -> np.ndarray:
        return old.astype(F32) + x.astype(F32) * factor

    work = temporary[0] if temporary else None
    map_elements(core, site, AXPY, compute, dst, (src, dst), count, work, reuse)


def _clamp(name: str, code: int, beyond: Any) -> None:
    @operation(f"ascendc.{name}", variadic=("rest",))
    def clamp(core: Core, site: int, dst: Tensor, src: Tensor, rest: list[Any]) -> None:
        *temporary, scalar, count, reuse = rest
        if not computes_here(core):
            return
        check_types(core, site, name, FLOATS, dst, src)
        limit = np.asarray(scalar, src.dtype)
        work = temporary[0] if temporary else None
        map_elements(
            core, site, code, lambda x: np.where(beyond(x, limit), limit, x), dst, (src,), count, work, reuse
        )


_clamp("clamp_max", CLAMP_MAX, np.greater)
_clamp("clamp_min", CLAMP_MIN, np.less)
