"""Findings as a person reads them: one short paragraph first, detail after."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable

from npuscope.sanitizer.findings import Access, Finding, Owner
from npuscope.trace.schema import SourceFrame

MAX_CORES = 4


def finding_text(finding: Finding) -> str:
    """One finding, several lines, no newline at the end."""
    where = f"in {finding.kernel}{_cores(finding)}" if finding.kernel else "on the host"
    head = f"{finding.severity.word}: {finding.kind.replace('-', ' ')} {where}"
    lines = [f"{head}: {finding.summary}".ljust(0) + f"  [{finding.kind}]"]
    if finding.access is not None and finding.owner is not None:
        lines.extend(_access(finding.access, finding.owner))
    elif finding.frames:
        lines.extend(_stack(finding.frames))
    if finding.owner is not None and finding.owner.frames and finding.access is not None:
        lines.append(f"  {_place(finding.owner.frames[0])}  {finding.owner.name or 'the tensor'} was made here")
    lines.extend(f"  {note}" for note in finding.notes)
    if finding.advice:
        lines.append(f"  {finding.advice}")
    lines.append(f"  {_occurrence(finding)}")
    return "\n".join(lines)


def findings_text(findings: Iterable[Finding]) -> str:
    """All findings, a blank line between them."""
    return "\n\n".join(finding_text(finding) for finding in findings)


def _cores(finding: Finding) -> str:
    return f", {finding.cores[0]}" if finding.cores else ""


def _access(access: Access, owner: Owner) -> list[str]:
    name = owner.name or "tensor"
    touched = f"{name}[{access.first}:{access.last}]"
    where = f"{owner.space} {access.address:#x}, {access.size} B"
    lines = _stack(access.frames)
    doing = f"{access.pipe:<5} {access.role}s {touched} ({where}) in {access.opcode}"
    return [*lines[:1], f"    {doing}", *lines[1:]] if lines else [f"  {access.operation}  {doing}"]


def _stack(frames: tuple[SourceFrame, ...]) -> list[str]:
    lines = []
    for depth, frame in enumerate(frames):
        text = linecache.getline(frame.file, frame.line).strip()
        prefix = "  " if depth == 0 else "    called from "
        lines.append(f"{prefix}{_place(frame)}  {text}".rstrip())
    return lines


def _place(frame: SourceFrame) -> str:
    return f"{shown_path(frame.file)}:{frame.line}"


def shown_path(file: str) -> str:
    """A path as short as it can be named from here."""
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return relative if not relative.startswith("..") else file


def _occurrence(finding: Finding) -> str:
    times = "Once" if finding.count == 1 else f"{finding.count} times"
    cores = ""
    if finding.cores:
        named = ", ".join(finding.cores[:MAX_CORES])
        more = f" and {len(finding.cores) - MAX_CORES} more" if len(finding.cores) > MAX_CORES else ""
        cores = f" on {named}{more}"
    if not finding.kernel:
        return f"{times}."
    line = f", {_place(finding.launch_frame)}" if finding.launch_frame is not None else ""
    return f"{times}{cores}. Launch {finding.launched}{line}."
