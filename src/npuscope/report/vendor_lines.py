"""The pieces that the vendor's reports are made of (sanitizer.md 2.2)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from npuscope.report.document import Result
from npuscope.sanitizer.findings import Access, Finding, Severity
from npuscope.sanitizer.fingerprint import shown_path
from npuscope.trace.schema import SourceFrame

HEAD = "====== "
DETAIL = "======    "
DEEP = "======      "
PROGRAM = "program "
DEVICE = "on device 0"
"""There is one simulated device."""

WORDS = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.ADVISORY: "INFO"}
SPLIT_ARCHS = ("", "2201", "3510")
"""Architectures whose blocks have an AIC and AIVs; the others have one kind of core."""


@dataclass(frozen=True, slots=True)
class Page:
    """What the lines of one report depend on beside the finding: the result it stands in, and which frames to hide."""

    result: Result
    hidden_below: str = ""  # frames of files below this folder are left out

    def splits(self, finding: Finding) -> bool:
        """Whether the finding's chip has AIC and AIV cores."""
        return next(
            (record.arch in SPLIT_ARCHS for record in self.result.launches if record.index == finding.launch), True
        )


def kernel_name(name: str) -> str:
    """A kernel's name without the suffixes of its halves."""
    for suffix in ("_mix_aic", "_mix_aiv"):
        name = name.removesuffix(suffix)
    return name or "unknown"


def in_kernel(finding: Finding) -> str:
    """`` in K``; nothing for what happened on the host."""
    return f" in {kernel_name(finding.kernel)}" if finding.kernel else ""


def ranges(numbers: Iterable[int]) -> str:
    """``0-3,7``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def core_number(core: str) -> int:
    """3 for ``AIV 3``."""
    return int(core.rpartition(" ")[2] or 0)


def blocks(cores: Sequence[str], splits: bool) -> str:
    """``aiv(0-3),aic(0)``, or ``aicore(0-3)`` where a block is one core."""
    if any(core.startswith(PROGRAM) for core in cores):  # the vendor has no such thing
        return f"program({'; '.join(core.removeprefix(PROGRAM) for core in cores)})"
    kinds = ("aiv", "aic")
    if not splits:
        return f"aicore({ranges(core_number(core) for core in cores)})"
    parts = [(kind, [core_number(core) for core in cores if core.lower().startswith(kind)]) for kind in kinds]
    return ",".join(f"{kind}({ranges(numbers)})" for kind, numbers in parts if numbers)


def block_line(page: Page, finding: Finding) -> str:
    """Where it ran: blocks and device, or the device alone."""
    where = blocks(finding.cores, page.splits(finding))
    return f"{DETAIL}in block {where} {DEVICE}" if where else f"{DETAIL}{DEVICE}"


def one_block(page: Page, finding: Finding, core: str) -> str:
    """``block 0 (aiv)``."""
    if core.startswith(PROGRAM):
        return f"block {core.removeprefix(PROGRAM)} (program)"
    kind = core.split(" ")[0].lower() if page.splits(finding) else "aicore"
    return f"block {core_number(core)} ({kind or 'aiv'})"


def address_line(finding: Finding) -> str:
    """``at 0x2ff80 on UB``."""
    assert finding.access is not None
    space = finding.owner.space if finding.owner is not None else "GM"
    return f"{DETAIL}at {finding.access.address:#x} on {space}"


def location_lines(page: Page, access: Access | None, frames: tuple[SourceFrame, ...]) -> list[str]:
    """Where in the code: the call site's number and its frames, else the line alone."""
    if access is not None:
        head = f"{DETAIL}code in pc current {access.site:#x} (serialNo:{max(access.serial, 0)})"
        return [head, *frame_lines(page, access.frames)]
    if not frames:
        return [f"{DETAIL}code in <unknown> (serialNo:0)"]
    return [f"{DETAIL}code in {shown_path(frames[0].file)}:{frames[0].line} (serialNo:0)"]


def frame_lines(page: Page, frames: tuple[SourceFrame, ...]) -> list[str]:
    """``#0 kernels/add.py:41:13``, innermost first."""
    below = page.hidden_below
    shown = [frame for frame in frames if not below or not os.path.abspath(frame.file).startswith(below + os.sep)]
    return [
        f"{DETAIL}#{depth} {shown_path(frame.file)}:{frame.line}:{frame.column}" for depth, frame in enumerate(shown)
    ]
