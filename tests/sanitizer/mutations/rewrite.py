"""One-line mutations of scenario texts (in the notation of scenarios.model), every place of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Lines = list[str]
Change = tuple[str, Lines]  # what was done, the text's lines afterwards


@dataclass(frozen=True)
class Mutant:
    """A mutated program."""

    kind: str
    base: str
    what: str
    text: str


def _without(lines: Lines, *places: int) -> Lines:
    """The text with lines made empty, so that line numbers stay; `pass` keeps a block that would be empty."""
    gone = list(lines)
    for place in places:
        indent = len(gone[place]) - len(gone[place].lstrip())
        gone[place] = " " * indent + "asc.get_block_idx()"
    return gone


def _lines_with(lines: Lines, pattern: str) -> Iterator[int]:
    return (place for place, line in enumerate(lines) if re.search(pattern, line))


def drop_pair(lines: Lines) -> Iterator[Change]:
    """A set_flag and its wait_flag that stand together."""
    for place in _lines_with(lines, r"^\s*sync\("):
        yield lines[place].strip(), _without(lines, place)


def drop_apart(lines: Lines) -> Iterator[Change]:
    """A flag whose set and wait stand apart: all its lines."""
    for name in dict.fromkeys(re.findall(r"^\s*(?:set|wait)\((\w+),", "\n".join(lines), re.M)):
        places = list(_lines_with(lines, rf"^\s*(set|wait)\({name},"))
        yield f"all of {name}", _without(lines, *places)


def late_wait(lines: Lines) -> Iterator[Change]:
    """A wait that comes one line too late."""
    for place in _lines_with(lines, r"^\s*(wait|sync)\("):
        following = lines[place + 1]
        if re.match(r"\s*(asc\.|load\()", following) and _indent(following) == _indent(lines[place]):
            swapped = [*lines[:place], following, lines[place], *lines[place + 2 :]]
            yield f"{lines[place].strip()} after {following.strip()}", swapped


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def swap_ids(lines: Lines) -> Iterator[Change]:
    """A wait for the other slot's flag, and the other way round."""
    for one, two in (("now", "after"), ("slot", "(1 - slot)"), ("i % 2", "(1 - i % 2)"), ("0", "1")):
        for place in _lines_with(lines, rf"^\s*wait\(\w+, {re.escape(one)}\)"):
            changed = list(lines)
            changed[place] = lines[place].replace(f", {one})", f", {two})")
            yield f"{lines[place].strip()} for {two}", changed


def drop_barrier(lines: Lines) -> Iterator[Change]:
    """A pipe barrier."""
    for place in _lines_with(lines, r"^\s*(barrier\(|asc\.pipe_barrier)"):
        yield lines[place].strip(), _without(lines, place)


def drop_rendezvous(lines: Lines) -> Iterator[Change]:
    """A SyncAll, or both ends of a flag between cores."""
    for place in _lines_with(lines, r"asc\.sync_all"):
        yield lines[place].strip(), _without(lines, place)
    for word in ("ib_set|asc.ib_wait",):
        places = list(_lines_with(lines, rf"asc\.({word})"))
        if places:
            yield word, _without(lines, *places)
    for number in dict.fromkeys(re.findall(r"cross_core_wait_flag\((.+?), \d", "\n".join(lines))):
        places = list(_lines_with(lines, rf"cross_core_(set|wait)_flag\({re.escape(number)}, "))
        yield f"flag {number} between cores", _without(lines, *places)


def drop_dcci(lines: Lines) -> Iterator[Change]:
    """A DataCacheCleanAndInvalid."""
    for place in _lines_with(lines, r"asc\.data_cache_clean_and_invalid"):
        yield f"line {place}: {lines[place].strip()}", _without(lines, place)


def drop_load(lines: Lines) -> Iterator[Change]:
    """Whatever fills on-chip memory: a copy from global memory, a duplicate, a load."""
    for place in _lines_with(lines, r"^\s*asc\.(data_copy(_pad)?\(\w+(\[.*?\])?, \w+_gm|duplicate|load_data)"):
        yield lines[place].strip(), _without(lines, place)


def shrink_buffer(lines: Lines) -> Iterator[Change]:
    """A local tensor of half the size."""
    for place in _lines_with(lines, r"= (ub\(|asc\.LocalTensor\()"):
        changed = list(lines)
        changed[place] = re.sub(r"(ub\(\d+, |TPosition\.\w+, \d+, )(\d+)", _halved, lines[place])
        if changed[place] != lines[place]:
            yield lines[place].strip(), changed


def _halved(found: re.Match[str]) -> str:
    return f"{found.group(1)}{int(found.group(2)) // 2}"


def shift_buffer(lines: Lines) -> Iterator[Change]:
    """A local tensor that reaches 256 bytes into the one before it."""
    for place in _lines_with(lines, r"= ub\("):
        found = re.search(r"ub\((\d+),", lines[place])
        if found and int(found.group(1)) >= 256:
            changed = list(lines)
            changed[place] = lines[place].replace(found.group(0), f"ub({int(found.group(1)) - 256},")
            yield lines[place].strip(), changed


def shift_offset(lines: Lines) -> Iterator[Change]:
    """A copy to or from global memory 32 bytes too far on."""
    for place in _lines_with(lines, r"asc\.data_copy"):
        found = re.search(r"(\w+_gm)(\[(.*?):\])?", lines[place])
        if found:
            start = f"{found.group(3)} + 8" if found.group(2) else "8"
            changed = list(lines)
            changed[place] = lines[place].replace(found.group(0), f"{found.group(1)}[{start}:]", 1)
            yield lines[place].strip(), changed


def widen_copy(lines: Lines) -> Iterator[Change]:
    """A copy of 32 bytes more."""
    for place in _lines_with(lines, r"asc\.data_copy\(.*, \d+\)"):
        changed = list(lines)
        changed[place] = re.sub(r", (\d+)\)", lambda found: f", {int(found.group(1)) + 8})", lines[place])
        yield lines[place].strip(), changed


KINDS: dict[str, Callable[[Lines], Iterator[Change]]] = {
    "drop a flag": drop_pair,
    "drop a flag whose ends stand apart": drop_apart,
    "wait too late": late_wait,
    "swap ids": swap_ids,
    "drop a pipe barrier": drop_barrier,
    "drop a rendezvous": drop_rendezvous,
    "drop a DCCI": drop_dcci,
    "drop an initialisation": drop_load,
    "shrink a buffer": shrink_buffer,
    "shift a buffer": shift_buffer,
    "shift an offset": shift_offset,
    "widen a copy": widen_copy,
}


def mutants(kind: str, base: str, text: str) -> Iterator[Mutant]:
    """Every mutant of one kind of one program."""
    for what, lines in KINDS[kind](text.splitlines()):
        yield Mutant(kind, base, what, "\n".join(lines) + "\n")
