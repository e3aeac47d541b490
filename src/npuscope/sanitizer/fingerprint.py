"""A finding's identity from one run to the next, whatever was edited above its line."""

from __future__ import annotations

import hashlib
import linecache
import os

from npuscope.sanitizer.findings import Access, Finding
from npuscope.trace.schema import SourceFrame


def fingerprint(finding: Finding) -> str:
    """32 hex digits over the class, the kernel, the buffer, and of each side the file, function and text of its line.

    Line numbers, addresses, counts and cores are left out: they change when nothing that matters has.
    """
    owner = finding.owner
    parts = [finding.kind, finding.kernel, owner.name if owner else "", owner.space if owner else "", finding.edge]
    parts += _access(finding.access) + _access(finding.other)
    if finding.access is None:
        parts += _line(finding.frames[:1])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def place(finding: Finding) -> SourceFrame | None:
    """The line that a finding stands on."""
    frames = finding.access.frames if finding.access is not None else finding.frames
    return next(iter(frames or finding.frames), finding.launch_frame)


def shown_path(file: str) -> str:
    """A path as short as it can be named from the current folder."""
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return relative if not relative.startswith("..") else file


def _access(access: Access | None) -> list[str]:
    return [access.operation, access.pipe, access.role, *_line(access.frames[:1])] if access is not None else []


def _line(frames: tuple[SourceFrame, ...]) -> list[str]:
    return [part for frame in frames for part in (shown_path(frame.file), frame.function or "", _text(frame))]


def _text(frame: SourceFrame) -> str:
    """The line's own text; its number where the source is not at hand."""
    return linecache.getline(frame.file, frame.line).strip() or str(frame.line)
