"""ascendc: calls into the Ascend C library of `npuscope.ascendc`; handle arithmetic is written in place."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from npuscope.ascendc.params import construct as construct_record
from npuscope.ascendc.registry import Entry, entries
from npuscope.mlir.attributes import parse_array, parse_number, parse_string
from npuscope.mlir.types import element_type

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op


def attribute_value(text: str) -> Any:
    """An attribute as a Python value: unit attributes are True, enumerations their number or word."""
    text = text.strip()
    if text in ("unit", "true"):
        return True
    if text == "false":
        return False
    if text.startswith('"'):
        return parse_string(text)
    if text.startswith(("[", "array<")):
        return parse_array(text)
    if re.match(r"[-+]?\d", text):
        return parse_number(text)
    return text


def result_dtype(type_text: str) -> Any:
    """The numpy type of a handle's elements, None where there is none."""
    from npuscope.npu.numbers import dtype_of

    try:
        return dtype_of(element_type(type_text))
    except (KeyError, ValueError):
        return None


def _keyword(name: str, op: Op) -> Any:
    """The value of keyword `name` of a library function, or the Ellipsis when the operation does not say."""
    if name == "result_dtype":
        return result_dtype(op.results[0].type)
    if name == "operand_dtypes":
        return tuple(result_dtype(value.type) for value in op.operands)
    if name == "result_type":
        return op.results[0].type
    if name == "operand_types":
        return tuple(value.type for value in op.operands)
    if name == "result_types":
        return tuple(value.type for value in op.results)
    head, *tail = name.split("_")
    camel = head + "".join(part.capitalize() for part in tail)
    for spelling in (camel, name):
        if spelling in op.attributes:
            return attribute_value(op.attributes[spelling])
    wanted = name.replace("_", "").lower()
    for spelling, text in op.attributes.items():  # isAIVOnly and the like
        if spelling.lower() == wanted:
            return attribute_value(text)
    return ...


def operand_groups(writer: Writer, op: Op, entry: Entry) -> list[str]:
    """One expression per parameter of `entry`: a value, a list, or None for an absent optional operand."""
    operands = writer.uses(op.operands)
    sizes = _segment_sizes(op, entry)
    if sizes is None or len(sizes) != len(entry.parameters):
        raise writer.unsupported(f"has {len(operands)} operands, which do not fit ({', '.join(entry.parameters)})")
    texts: list[str] = []
    at = 0
    for name, size in zip(entry.parameters, sizes, strict=True):
        group = operands[at : at + size]
        at += size
        if name in entry.variadic:
            texts.append(f"[{', '.join(group)}]")
        elif size == 0:
            texts.append("None")
        else:
            texts.append(group[0])
    return texts


def _segment_sizes(op: Op, entry: Entry) -> list[int] | None:
    """How many operands each parameter takes."""
    if "operandSegmentSizes" in op.attributes:
        return [int(size) for size in parse_array(op.attributes["operandSegmentSizes"])]
    count, wanted = len(op.operands), len(entry.parameters)
    if len(entry.variadic) == 1:
        return [count - wanted + 1 if name in entry.variadic else 1 for name in entry.parameters]
    if count == wanted:
        return [1] * wanted
    missing = wanted - count
    if 0 < missing <= len(entry.optional):
        return [1] * count + [0] * missing
    return None


def library_call(writer: Writer, op: Op) -> None:
    """Any operation with a function in the library."""
    entry = entries().get(op.name)
    if entry is None:
        raise writer.unsupported("has no lowering")
    arguments = ["core", str(writer.site()), *operand_groups(writer, op, entry)]
    for name, default in entry.attributes.items():
        if name == "address_dtype":
            arguments.append(f"address_dtype={writer.constant(_address_dtype(writer, op), 'dtype')}")
            continue
        value = _keyword(name, op)
        if value is ...:
            if default is inspect.Parameter.empty:
                raise writer.unsupported(f"lacks the attribute for {name}")
            continue
        literal = isinstance(value, (bool, int, float, str, type(None)))
        arguments.append(f"{name}={value!r}" if literal else f"{name}={writer.constant(value)}")
    if entry.polling is not None and writer.while_depth and not any(id(item) in writer.varying for item in op.operands):
        arguments.append("fixed=True")
    names = [writer.define(result) for result in op.results]
    names += [_renamed(writer, op, entry, output) for output in entry.outputs]
    call = f"{_callee(writer, op, entry)}({', '.join(arguments)})"
    writer.emit(f"{', '.join(names)} = {call}" if names else call)
    _remember_address(writer, op)


def _remember_address(writer: Writer, op: Op) -> None:
    """Note of what elements an address, or a tensor that addresses are stored in, speaks: pyasc infers the element type
    of TransDataTo5HD from the get_phy_addr behind its addresses."""
    if op.name == "ascendc.local_tensor.get_phy_addr":
        writer.address_dtypes[id(op.results[0])] = result_dtype(op.operands[0].type)
    elif op.name == "ascendc.local_tensor.set_value" and id(op.operands[-1]) in writer.address_dtypes:
        writer.address_dtypes[id(op.operands[0])] = writer.address_dtypes[id(op.operands[-1])]


def _address_dtype(writer: Writer, op: Op) -> Any:
    """The element type behind the addresses that an operation takes."""
    for value in op.operands:
        if id(value) in writer.address_dtypes:
            return writer.address_dtypes[id(value)]
    raise writer.unsupported("takes addresses of unknown elements: take them with get_phy_addr in the same function")


def _callee(writer: Writer, op: Op, entry: Entry) -> str:
    """The text before the arguments: the function, or what the core makes of it while one of its pipes is stalled."""
    if entry.polling is not None and writer.while_depth:
        return f"yield from {writer.constant(entry.polling, entry.polling.__name__)}"
    name = writer.constant(entry.function, entry.function.__name__)
    if entry.blocking:
        return f"yield from {name}"
    if not writer.may_stall:
        return name
    result = ", True" if op.results else ""
    return f"({name} if not core.stalled else core.issue({name}{result}))"


def _renamed(writer: Writer, op: Op, entry: Entry, output: str) -> str:
    """The variable of an operand that the operation gives a new value; later operations see it."""
    value = op.operands[entry.parameters.index(output)]
    known = writer.use(value)
    return known if known.isidentifier() else writer.define(value)


def type_name(type_text: str) -> str:
    """``data_copy_params`` of ``!ascendc.data_copy_params``, type parameters dropped."""
    match = re.match(r"!\w+\.(\w+)|([\w:]+)", type_text.strip())
    return (match.group(1) or match.group(2)) if match else type_text


def construct(writer: Writer, op: Op) -> None:
    """ascendc.construct: a parameter record by its type's name."""
    helper = writer.constant(construct_record, "construct")
    result = op.results[0]
    arguments = ", ".join([repr(type_name(result.type)), repr(result.type), *writer.uses(op.operands)])
    writer.emit(f"{writer.define(result)} = {helper}({arguments})")


def subindex(writer: Writer, op: Op) -> None:
    """tensor[offset:], in elements."""
    base, index = writer.uses(op.operands)
    writer.emit(f"{writer.define(op.results[0])} = {base}.at({index})")


def expression(text: str) -> Any:
    """An operation whose result is a plain expression of the core."""

    def lower(writer: Writer, op: Op) -> None:
        writer.emit(f"{writer.define(op.results[0])} = {text}")

    return lower


def nothing(writer: Writer, op: Op) -> None:
    """No meaning for execution."""


def reinterpret(writer: Writer, op: Op) -> None:
    """ascendc.reinterpret_cast: the same bytes as another element type."""
    dtype = writer.constant(result_dtype(op.results[0].type), "dtype")
    writer.emit(f"{writer.define(op.results[0])} = {writer.use(op.operands[0])}.cast({dtype})")


def alias(writer: Writer, op: Op) -> None:
    """The result is the operand under another type."""
    writer.alias(op.results[0], writer.use(op.operands[0]))


LOWERINGS = {
    "ascendc.*": library_call,
    "ascendc.construct": construct,
    "ascendc.global_tensor.subindex": subindex,
    "ascendc.local_tensor.subindex": subindex,
    "ascendc.reinterpret_cast": reinterpret,
    "ascendc.to_que_bind": alias,
    "ascendc.get_block_idx": expression("core.info.block"),
    "ascendc.get_block_num": expression("core.block_count"),
    "ascendc.get_sub_block_idx": expression("core.info.sub_block"),
    "ascendc.ascend_is_aic": expression("1 if core.is_aic else 0"),
    "ascendc.ascend_is_aiv": expression("1 if core.is_aiv else 0"),
    "ascendc.noop": nothing,
    "ascendc.set_ffts_base_addr": nothing,
}


def library_names() -> frozenset[str]:
    """Every ascendc operation that has a lowering."""
    return frozenset(entries()) | frozenset(name for name in LOWERINGS if not name.endswith("*"))

