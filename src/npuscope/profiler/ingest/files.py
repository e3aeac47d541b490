"""The files of a dump folder: which log of which core each one is (opprof.md 4.1)."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from npuscope.profiler.ingest.text import first_tick

LARGEST = 1 << 30
"""A file above this many bytes is refused (opprof.md 1.10)."""
SMALLEST_TRANSFERS = 500
"""A transfer log below this many bytes has no content (opprof.md 4.1)."""
KERNEL_OBJECT = "aicore_binary.o"
START_FILE = "pc_start_addr.txt"
"""Holds the address at which the simulator loaded the kernel, in hexadecimal."""

LOG = re.compile(
    r"(?P<core>core(?P<number>\d+)(?:\.(?P<kind>vec|cube|mix)core(?P<sub>\d+))?)[._]"
    r"(?P<log>instr_popped|instr|ifu\.icache|icache|ccu|mte)_log(?:\.(?P<part>\d+))?\.(?:dump|log)(?:\.(?P<tail>\d+))?"
)


class LogKind(Enum):
    """The logs that are read; the values are what people are told."""

    POPPED = "instr_popped"
    RETIRED = "instr"
    CACHE = "icache"
    CONTROL = "ccu"
    TRANSFERS = "mte"


KINDS = {"ifu.icache": LogKind.CACHE} | {kind.value: kind for kind in LogKind}


@dataclass
class CoreFiles:
    """The logs of one core or sub-core, each as its parts in the order of time. `kind` is vec, cube, mix or empty where
    the files do not say."""

    name: str
    number: int
    kind: str
    sub: int
    logs: dict[LogKind, list[Path]] = field(default_factory=dict)


@dataclass
class DumpFolder:
    """What one folder holds: its cores in the order of their numbers, transfer logs by core number, the kernel's
    object; `refused` are files above the limit, `empty` those without a byte."""

    path: Path
    cores: list[CoreFiles]
    transfers: dict[int, list[Path]]
    kernel: Path | None
    start: int | None
    refused: list[Path]
    empty: list[Path]


def find_folders(root: Path) -> list[DumpFolder]:
    """The folder itself and those below it that hold logs, in natural order. Raises OSError."""
    found = []
    for place, folders, names in os.walk(root):
        folders.sort(key=_natural)
        if any(LOG.fullmatch(name) for name in names):
            found.append(_folder(Path(place), sorted(names, key=_natural)))
    return found


def _folder(path: Path, names: list[str]) -> DumpFolder:
    cores: dict[str, CoreFiles] = {}
    parts: dict[tuple[str, LogKind], list[tuple[int, Path]]] = defaultdict(list)
    transfers: dict[int, list[tuple[int, Path]]] = defaultdict(list)
    refused, empty = [], []
    for name in names:
        match = LOG.fullmatch(name)
        file = path / name
        if match is None or not file.is_file():
            continue
        size = file.stat().st_size
        if size > LARGEST:
            refused.append(file)
            continue
        if size == 0:
            empty.append(file)
            continue
        kind, number = KINDS[match["log"]], int(match["number"])
        part = (int(match["part"] or match["tail"] or 0), file)
        if kind is LogKind.TRANSFERS:
            if match["kind"] is None:
                transfers[number].append(part)
            continue
        core = match["core"]
        cores.setdefault(core, CoreFiles(core, number, match["kind"] or "", int(match["sub"] or 0)))
        parts[core, kind].append(part)
    for (core, kind), pieces in parts.items():
        cores[core].logs[kind] = _in_time(pieces)
    return DumpFolder(
        path,
        sorted(cores.values(), key=lambda core: (core.number, core.kind, core.sub)),
        {number: _in_time(pieces) for number, pieces in sorted(transfers.items()) if _has_content(pieces)},
        _kernel(path),
        _start(path / START_FILE),
        refused,
        empty,
    )


def _has_content(pieces: list[tuple[int, Path]]) -> bool:
    """Whether a transfer log, all its parts together, is long enough to hold anything."""
    return sum(path.stat().st_size for _, path in pieces) >= SMALLEST_TRANSFERS


def _in_time(pieces: list[tuple[int, Path]]) -> list[Path]:
    """Parts by their numbers, upwards or downwards: logs that are rotated leave the newest lines in the lowest part."""
    order = [path for _, path in sorted(pieces)]
    if len(order) > 1 and first_tick(order[0]) > first_tick(order[-1]) >= 0:
        order.reverse()
    return order


def _kernel(path: Path) -> Path | None:
    return next((file for file in (path / KERNEL_OBJECT, path.parent / KERNEL_OBJECT) if file.is_file()), None)


def _start(file: Path) -> int | None:
    """The load address that a file names; None where there is none, or the 0 that stands for none."""
    try:
        return int(file.read_text(encoding="ascii", errors="replace").split()[0], 16) or None
    except (OSError, ValueError, IndexError):
        return None


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]
