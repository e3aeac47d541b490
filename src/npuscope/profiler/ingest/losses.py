"""What dumps lack, in the words that people must see (opprof.md 1.8, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npuscope.profiler.ingest.files import LARGEST, LogKind
from npuscope.trace.timeline import Loss

NO_DUMPS = "Failed to get any available dump file to parse, please check"
NO_CODE = (
    "Failed to parse pc to code, maybe kernel missed debug_line information. If you need code call stack, please "
    "recompile kernel with -g option"
)
SHOWN = 10
"""How many addresses a sentence names."""


def missing_log(core: str, kind: LogKind, pcs: np.ndarray) -> Loss:
    """A log that its core needs; `pcs` are those of the instructions that cannot be drawn without it."""
    addresses = first_addresses(pcs)
    text = (
        f"Core {core}: {kind.value} log is missing; {pcs.size} instructions cannot be drawn, first pcs: "
        f"{hexadecimal(addresses)}"
    )
    return Loss("log", text, count=pcs.size, total=pcs.size, addresses=addresses, level="error")


def missing_spans(cores: Sequence[str], pcs: np.ndarray) -> Loss:
    """The instruction cache log of some cores: their scalar spans (D3) are lost."""
    return missing_log(", ".join(cores), LogKind.CACHE, pcs)


def empty_file(file: Path) -> Loss:
    """A log without a byte."""
    return Loss("empty", f"file is empty or not exist. splitFile: {file}", level="error")


def large_file(file: Path) -> Loss:
    """A log above the limit."""
    return Loss("size", f"{file} is larger than {LARGEST >> 30} GB and is not read", level="error")


def unread_file(file: Path, reason: str) -> Loss:
    """A file that the system does not let us read."""
    return Loss("unread", f"{file} cannot be read: {reason}", level="error")


def cut_line(core: str, kind: LogKind) -> Loss:
    """A last line that ends in the middle of an instruction."""
    return Loss("cut", f"Core {core}: the last line of the {kind.value} log is cut off and is left out", count=1)


def unpaired(core: str, what: str, pcs: np.ndarray, total: int) -> Loss:
    """Pops without retirement, or the reverse (`what` says which), or both in the wrong order."""
    addresses = first_addresses(pcs)
    text = f"Core {core}: {pcs.size} of {total} instructions {what}, first pcs: {hexadecimal(addresses)}"
    return Loss("pair", text, count=pcs.size, total=total, addresses=addresses)


def unbalanced_mark(mark: str, core: str) -> Loss:
    """A user mark that is nested in itself, or begins or ends only."""
    why = "loop nesting exists or TraceStart is not equal to TraceStop"
    text = f"Failed to create userMark {mark} for {core} because {why}."
    return Loss("mark", text, count=1)


def homeless(core: str, count: int, total: int) -> Loss:
    """Transfers of instructions that no log has."""
    text = f"Core {core}: {count} of {total} transfers belong to no instruction and are left out"
    return Loss("transfer", text, count=count, total=total)


def no_code(reason: str = "") -> Loss:
    """No source lines; the times are whole."""
    return Loss("code", f"{NO_CODE} ({reason})" if reason else NO_CODE, partial=False)


def no_control(cores: Sequence[str]) -> Loss:
    """No control unit log: spans of scalar work are drawn in one piece (D3)."""
    text = f"Core {', '.join(cores)}: ccu log is missing; scalar spans are drawn in one piece"
    return Loss("ccu", text, level="info", partial=False)


def first_addresses(pcs: np.ndarray) -> tuple[int, ...]:
    """The first distinct addresses as they come."""
    head, first = np.unique(pcs, return_index=True)
    return tuple(int(pc) for pc in head[np.argsort(first)][:SHOWN])


def hexadecimal(addresses: Sequence[int]) -> str:
    """``0x10d0d000, 0x10d0d004``."""
    return ", ".join(f"0x{address:x}" for address in addresses)
