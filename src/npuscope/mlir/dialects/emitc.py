"""emitc: C constants and casts that pyasc passes through; includes and macros carry no meaning here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_number
from npuscope.mlir.dialects.arith import convert, float_literal
from npuscope.mlir.types import is_float, is_integer

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op

OPAQUE = {
    "TOTAL_L1_SIZE": "core.chip.memories.l1.bytes",
    "TOTAL_L0A_SIZE": "core.chip.memories.l0a.bytes",
    "TOTAL_L0B_SIZE": "core.chip.memories.l0b.bytes",
    "TOTAL_L0C_SIZE": "core.chip.memories.l0c.bytes",
    "TOTAL_UB_SIZE": "core.chip.memories.ub.bytes",
    "TOTAL_VEC_LOCAL_SIZE": "core.chip.memories.ub.user_bytes",
    "DEFAULT_C0_SIZE": "32",
    "ONE_BLK_SIZE": "32",
    "DEFAULT_BLK_NUM": "8",
    "DEFAULT_REPEAT_STRIDE": "8",
    "MASK_PLACEHOLDER": "0",
}
"""Library constants that reach the IR as C text (frontends.md 2)."""


def constant(writer: Writer, op: Op) -> None:
    """emitc.constant: a number, or a library constant by name."""
    text = op.attributes["value"]
    named = re.search(r'opaque<"(?:::)?(?:AscendC::)?(\w+)">', text)
    if named:
        known = OPAQUE.get(named.group(1))
        if known is None:
            raise writer.unsupported(f"names the unknown constant {named.group(1)}")
        writer.alias(op.results[0], known)
        return
    value = parse_number(text)
    writer.alias(op.results[0], float_literal(value) if isinstance(value, float) else f"({int(value)})")


def cast(writer: Writer, op: Op) -> None:
    """emitc.cast: a scalar conversion, or another name for a handle."""
    source, target = op.operands[0].type, op.results[0].type
    if (is_integer(source) or is_float(source)) and (is_integer(target) or is_float(target)):
        convert(writer, op)
    else:
        writer.alias(op.results[0], writer.use(op.operands[0]))


def nothing(writer: Writer, op: Op) -> None:
    """No meaning for execution."""


LOWERINGS = {
    "emitc.constant": constant,
    "emitc.cast": cast,
    "emitc.include": nothing,
    "emitc.verbatim": nothing,
}
