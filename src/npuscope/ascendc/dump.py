"""Printing from a kernel: printf, DumpTensor and its relatives (pages printf, DumpTensor, DumpAccChkPoint,
PrintTimeStamp, LocalTensor Print and ToFile). Lines go to the machine's output in the order they are printed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.queue import elsewhere
from npuscope.ascendc.registry import operation
from npuscope.ascendc.tensor import shape_of
from npuscope.npu.core import READ, Core, opcode
from npuscope.npu.layout import BLOCK, contiguous
from npuscope.npu.numbers import is_floating
from npuscope.npu.tensor import Pointer, Tensor
from npuscope.trace.schema import Origin, Pipe

PRINTF, DUMP, TIME_STAMP = opcode("printf"), opcode("dump_tensor"), opcode("print_time_stamp")
BARRIER = opcode("pipe_barrier")
S, ALL = int(Pipe.S), int(Pipe.ALL)

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?P<size>hh|h|ll|l|z)?(?P<kind>.)")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
_ESCAPE = re.compile(r"\\[nt\"\\]")
_BITS = {"hh": 8, "h": 16, None: 32, "l": 64, "ll": 64, "z": 64}


def printed_by(core: Core) -> str:
    """What the vendor puts before a core's lines: ``[AIV Block 0/8] ``."""
    kind = core.info.type
    total = sum(1 for info in core.machine.infos if info.type is kind)
    return f"[{kind.name} Block {core.info.block}/{total}] "


def _say(core: Core, text: str) -> None:
    """Print `text`, each of its lines marked with the core."""
    head = printed_by(core)
    core.machine.output.extend(head + line for line in text.removesuffix("\n").split("\n"))


# -- printf ----------------------------------------------------------------------------------------------------------


@operation("ascendc.printf", variadic=("values",))
def printf(core: Core, site: int, values: list[Any], *, desc: str, operand_types: tuple[str, ...] = ()) -> None:
    """printf(format, ...): d i u x X f F e g c s p with flags, width, precision and the sizes h, l, ll.

    Integers print in the width of their type (of the conversion where the type is not known), so %x of -1 in int8 is
    ff. A conversion without a value stays as it is.
    """
    core.begin(site, S, PRINTF, origin=Origin.FRAMEWORK)
    widths = [_width(text) for text in operand_types] + [None] * len(values)
    _say(core, formatted(_ESCAPE.sub(lambda match: _ESCAPES[match.group()], desc), values, widths))


def _width(type_text: str) -> int | None:
    """Bits of an integer type's text, None for anything else."""
    match = re.fullmatch(r"[su]?i(\d+)", type_text.strip())
    return int(match.group(1)) if match else None


def formatted(text: str, values: list[Any], widths: list[int | None]) -> str:
    """`text` with its conversions filled in from `values`; `widths` are the bits of integer values."""
    waiting = list(zip(values, widths, strict=False))

    def fill(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        if kind not in "diuxXofFeEgGcsp" or not waiting:
            return match.group()
        value, bits = waiting.pop(0)
        form = f"%{match['flags']}{match['width']}{match['precision'] or ''}"
        return _converted(form, kind, value, bits or _BITS[match["size"]])

    return _CONVERSION.sub(fill, text)


def _converted(form: str, kind: str, value: Any, bits: int) -> str:
    address = value.address if isinstance(value, (Pointer, Tensor)) else None
    if kind == "s":
        return (form + "s") % (f"0x{address:x}" if address is not None else value)
    number = address if address is not None else value
    if kind in "fFeEgG":
        return (form + kind) % float(number)
    whole = int(number)
    if kind == "p":
        return (form + "s") % f"0x{whole & (1 << 64) - 1:x}"
    if kind == "c":
        return (form + "c") % chr(whole & 0xFF)
    if kind in "uxXo":
        return (form + ("d" if kind == "u" else kind)) % (whole & (1 << bits) - 1)
    return (form + "d") % (whole - (1 << bits) if whole >> (bits - 1) & 1 and whole >= 0 else whole)


# -- tensors ---------------------------------------------------------------------------------------------------------


@operation("ascendc.dump_tensor")
def dump_tensor(
    core: Core, site: int, tensor: Tensor, desc: int, dump_size: int, shape_info: Record | None = None
) -> None:
    """DumpTensor(tensor, desc, elements[, shape]): a head line and the values, in the shape when there is one: extents
    without data show as "-", data past the shape is left out. All pipes are drained first."""
    if not elsewhere(core, tensor.memory.space):
        _dump(core, site, tensor, desc, dump_size, shape_of(shape_info) if shape_info is not None else ())


@operation("ascendc.dump_acc_chk_point")
def dump_acc_chk_point(core: Core, site: int, tensor: Tensor, index: int, count_off: int, dump_size: int) -> None:
    """DumpAccChkPoint(tensor, index, offset, elements): as dump_tensor from element `offset` on."""
    if not elsewhere(core, tensor.memory.space):
        _dump(core, site, tensor.at(count_off), index, dump_size, ())


def _dump(core: Core, site: int, tensor: Tensor, desc: int, count: int, shape: tuple[int, ...]) -> None:
    values = _values(core, site, tensor, count, desc)
    lines = [
        f"DumpTensor: desc={desc}, addr=0x{tensor.address:x}, data_type={tensor.dtype.name}, "
        f"position={tensor.memory.space.name}, dump_size={count}"
    ]
    words = [_number(value) for value in values]
    if not shape:
        lines.append(f"[{', '.join(words)}]")
    else:
        room = int(np.prod(shape))
        if room != count:
            relation = "dumpSize is greater than shapeSize." if room < count else "data is not enough."
            lines.append(f"shape is [{', '.join(map(str, shape))}], dumpSize is {count}, {relation}")
        lines.append(_nested(words[:room] + ["-"] * (room - count), shape))
    core.machine.output.append(printed_by(core) + lines[0])
    core.machine.output.extend("\n".join(lines[1:]).split("\n"))


def _values(core: Core, site: int, tensor: Tensor, count: int, label: int) -> np.ndarray:
    """Elements of a tensor for printing; the row says that they were read."""
    core.begin(site, ALL, BARRIER, origin=Origin.FRAMEWORK)
    layout = contiguous(count, tensor.dtype.itemsize)
    core.begin(site, S, DUMP, label, count, work=count * tensor.dtype.itemsize, origin=Origin.FRAMEWORK)
    core.note(READ, tensor, layout)
    return np.array(core.view(tensor, layout))


def _number(value: Any) -> str:
    return f"{float(value):f}" if is_floating(np.asarray(value).dtype) else str(int(value))


def _nested(words: list[str], shape: tuple[int, ...]) -> str:
    """Words in brackets, one row of the last extent a line."""
    if len(shape) == 1:
        return f"[{','.join(words)}]"
    step = len(words) // shape[0] if shape[0] else 0
    parts = [_nested(words[at * step : (at + 1) * step], shape[1:]) for at in range(shape[0])]
    return "[" + ",\n".join(parts) + "]"


@operation("ascendc.print_time_stamp")
def print_time_stamp(core: Core, site: int, desc_id: int) -> None:
    """PrintTimeStamp(id): the instruction count of the launch stands for the system counter."""
    core.begin(site, S, TIME_STAMP, desc_id, origin=Origin.FRAMEWORK)
    _say(core, f"descId is {desc_id}, rsv is 0, timeStamp is {core.row}, pcPtr is {4 * site}, entry is 0.")


@operation("ascendc.local_tensor.print")
def print_tensor(core: Core, site: int, tensor: Tensor, length: int | None = None) -> None:
    """Print([elements]): one line for each 32 bytes, begun with the number of its first element."""
    if elsewhere(core, tensor.memory.space):
        return
    whole = max(tensor.length, 0)
    count = whole if length is None else min(length, whole)
    values = _values(core, site, tensor, count, 0)
    row = BLOCK // tensor.dtype.itemsize
    words = [f"{float(value):g}" if is_floating(tensor.dtype) else str(int(value)) for value in values]
    _say(core, "\n".join(f"{at:04d} : {' '.join(words[at : at + row])}" for at in range(0, count, row)))


@operation("ascendc.local_tensor.to_file")
def to_file(core: Core, site: int, tensor: Tensor, *, file_name: str) -> None:
    """ToFile(name): the tensor's bytes, into a file of the working directory."""
    if not elsewhere(core, tensor.memory.space):
        _values(core, site, tensor, max(tensor.length, 0), 0).tofile(file_name)
