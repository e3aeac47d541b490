"""Source lines of a kernel's addresses, from the debug information of its object (opprof.md 4.1)."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from npuscope.trace.schema import SourceFrame

FUNCTIONS = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine")
"""Entries of the debug information that cover code of one function."""


class NoCode(Exception):
    """An object has no usable debug information; the text says why."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A function, or a call that was put in line: the addresses that it covers, its name, and the place of the call."""

    ranges: tuple[tuple[int, int], ...]
    name: str
    file: str
    line: int
    column: int
    depth: int


@dataclass
class CodeMap:
    """`addresses` ascend and each begins a stretch of code that belongs to the same place of `places` (None: to none).
    `functions` are the names that others can call, with their addresses."""

    addresses: list[int] = field(default_factory=list)
    places: list[tuple[str, int, int] | None] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    functions: dict[str, int] = field(default_factory=dict)

    def frames(self, address: int) -> tuple[SourceFrame, ...]:
        """Where an instruction comes from, the innermost line first and then its callers; empty where nothing says."""
        number = bisect_right(self.addresses, address) - 1
        place = self.places[number] if number >= 0 else None
        if place is None:
            return ()
        low, high, owner = self._stretches
        inside = [self.scopes[scope] for scope in np.unique(owner[(low <= address) & (address < high)])]
        inside.sort(key=lambda scope: -scope.depth)
        frames = []
        for scope in inside:
            frames.append(SourceFrame(*place, scope.name or None))
            place = (scope.file, scope.line, scope.column)
        return tuple(frames) if frames else (SourceFrame(*place),)

    @cached_property
    def _stretches(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(low, high, scope) of every stretch of every scope."""
        table = [(low, high, number) for number, scope in enumerate(self.scopes) for low, high in scope.ranges]
        low, high, owner = np.array(table, np.int64).reshape(-1, 3).T
        return low, high, owner


def read_code(path: Path) -> CodeMap:
    """The map of an ELF object. Raises NoCode."""
    try:
        from elftools.common.exceptions import DWARFError, ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise NoCode("pyelftools is not installed (pip install 'npuscope[dumps]')") from None
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            found = CodeMap(functions=_functions(elf))
            if not elf.has_dwarf_info():
                raise NoCode(f"{path.name} has no debug information")
            for unit in _dwarf(elf).iter_CUs():
                _lines(unit, found)
                found.scopes += _scopes(unit)
    except (ELFError, DWARFError, OSError, ValueError, KeyError, AttributeError, IndexError, AssertionError) as error:
        raise NoCode(f"{path.name}: {error}") from error
    _sort(found)
    if not found.addresses:
        raise NoCode(f"{path.name} has no debug_line section")
    return found


def _dwarf(elf: Any) -> Any:
    """Debug information, relocated where the library knows the machine's relocations."""
    from elftools.common.exceptions import ELFRelocationError

    try:
        return elf.get_dwarf_info(relocate_dwarf_sections=True)
    except ELFRelocationError:
        return elf.get_dwarf_info(relocate_dwarf_sections=False)


def _functions(elf: Any) -> dict[str, int]:
    """Global functions by name."""
    from elftools.elf.sections import SymbolTableSection

    return {
        symbol.name: int(symbol["st_value"])
        for section in elf.iter_sections()
        if isinstance(section, SymbolTableSection)
        for symbol in section.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol.name
    }


def _lines(unit: Any, found: CodeMap) -> None:
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return
    files = _files(unit, program)
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        found.addresses.append(state.address)
        file = files.get(state.file, "")
        found.places.append(None if state.end_sequence or not state.line else (file, state.line, state.column))


def _files(unit: Any, program: Any) -> dict[int, str]:
    """File numbers of a unit. They count from 1 up to DWARF 4, from 0 after; folders do so, too, 0 being the
    compiler's."""
    header = program.header
    first = 0 if header.version >= 5 else 1
    root = _text(unit.get_top_DIE(), "DW_AT_comp_dir")
    folders = [_decoded(folder) for folder in header.include_directory]
    if first:
        folders.insert(0, root)
    names = {}
    for number, entry in enumerate(header.file_entry, first):
        folder = folders[entry.dir_index] if entry.dir_index < len(folders) else ""
        names[number] = posixpath.normpath(posixpath.join(root, folder, _decoded(entry.name)))
    return names


def _scopes(unit: Any) -> Iterator[Scope]:
    program = unit.dwarfinfo.line_program_for_CU(unit)
    files = _files(unit, program) if program is not None else {}
    waiting = [(unit.get_top_DIE(), 0)]
    while waiting:
        entry, depth = waiting.pop()
        if entry.tag in FUNCTIONS and (ranges := tuple(_ranges(entry))):
            line, column = (_number(entry, f"DW_AT_call_{what}") for what in ("line", "column"))
            file = files.get(_number(entry, "DW_AT_call_file"), "")
            yield Scope(ranges, _name(entry), file, line, column, depth)
        waiting += [(child, depth + 1) for child in entry.iter_children()]


def _ranges(entry: Any) -> Iterator[tuple[int, int]]:
    """The stretches of addresses of a function or call."""
    attributes = entry.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
    elif "DW_AT_ranges" in attributes:
        lists = entry.dwarfinfo.range_lists()
        base = _number(entry.cu.get_top_DIE(), "DW_AT_low_pc")
        for item in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, cu=entry.cu):
            if hasattr(item, "base_address"):
                base = item.base_address
            elif getattr(item, "is_absolute", False):
                yield item.begin_offset, item.end_offset
            else:
                yield base + item.begin_offset, base + item.end_offset


def _name(entry: Any) -> str:
    """The name of a function, which an inlined call has from the function that it is a copy of."""
    for _ in range(4):
        if name := _text(entry, "DW_AT_name"):
            return name
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in entry.attributes:
                entry = entry.get_DIE_from_attribute(link)
                break
        else:
            break
    return ""


def _sort(found: CodeMap) -> None:
    """Order the stretches; where one ends and another begins at one address, the beginning counts."""
    order = sorted(range(len(found.addresses)), key=lambda n: (found.addresses[n], found.places[n] is not None, n))
    found.addresses = [found.addresses[number] for number in order]
    found.places = [found.places[number] for number in order]


def _number(entry: Any, attribute: str) -> int:
    held = entry.attributes.get(attribute)
    return int(held.value) if held is not None else 0


def _text(entry: Any, attribute: str) -> str:
    held = entry.attributes.get(attribute)
    return _decoded(held.value) if held is not None else ""


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def kernel_name(functions: Sequence[str]) -> str:
    """The kernel's own name where an object has just one: a mixed kernel is two functions with endings."""
    names = {name.removesuffix("_mix_aic").removesuffix("_mix_aiv") for name in functions}
    return names.pop() if len(names) == 1 else ""
