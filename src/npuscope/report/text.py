"""Findings as a person reads them: one short paragraph first, detail after."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from npuscope.report.document import Result, number
from npuscope.report.kinds import title
from npuscope.report.verdict import verdict_lines
from npuscope.sanitizer.findings import Access, Finding, Owner
from npuscope.sanitizer.fingerprint import shown_path
from npuscope.trace.schema import SourceFrame

MAX_CORES = 4
PROGRAM = "program "
"""How the name of a program of a tile kernel begins."""


def text_bytes(result: Result) -> bytes:
    """The whole report: findings, then the verdict."""
    parts = [finding_text(finding) for finding in result.findings[: len(result.findings) - result.unlisted]]
    if result.unlisted:
        parts.append(f"{number(result.unlisted, 'more finding')} not printed (--print-limit).")
    return ("\n\n".join([*parts, "\n".join(verdict_lines(result))]) + "\n").encode()


def finding_text(finding: Finding) -> str:
    """One finding, several lines, no newline at the end."""
    where = f"in {finding.kernel}{_cores(finding)}" if finding.kernel else "on the host"
    head = f"{finding.severity.word}: {title(finding.kind)} {where}"
    lines = [f"{head}: {finding.summary}  [{finding.kind}]"]
    if finding.access is not None:
        lines.extend(_access(finding, finding.access))
    elif finding.frames:
        lines.extend(_stack(finding.frames))
    if finding.other is not None:
        lines.extend(_access(finding, finding.other))
    if finding.owner is not None and finding.owner.frames and finding.access is not None:
        lines.append(f"  {_place(finding.owner.frames[0])}  {finding.owner.name or 'the tensor'} was made here")
    lines.extend(f"  {note}" for note in finding.notes)
    if finding.edge and finding.edge not in finding.advice:
        lines.append(f"  Missing between the two: {finding.edge}.")
    if finding.advice:
        lines.append(f"  {finding.advice}")
    lines.append(f"  {_occurrence(finding)}")
    return "\n".join(lines)


def findings_text(findings: Iterable[Finding]) -> str:
    """All findings, a blank line between them."""
    return "\n\n".join(finding_text(finding) for finding in findings)


def _cores(finding: Finding) -> str:
    return f", {finding.cores[0]}" if finding.cores else ""


def _access(finding: Finding, access: Access) -> list[str]:
    """One side: its line, what it does, and the calls that led there."""
    pipe = f"{access.pipe:<5} " if access.pipe else ""
    doing = f"{pipe}{access.role}s {_touched(finding.owner, access)} in {access.opcode}"
    pair = finding.access, finding.other
    if all(pair) and len({side.core for side in pair if side is not None}) > 1:
        doing = f"{access.core}  {doing}"
    lines = _stack(access.frames)
    return [*lines[:1], f"    {doing}", *lines[1:]] if lines else [f"  {access.operation}  {doing}"]


def _touched(owner: Owner | None, access: Access) -> str:
    if owner is None:
        return f"{access.size} B at {access.address:#x}"
    name, space = (access.buffer, access.space) if access.space else (owner.name, owner.space)
    place = access.shown or f"{name or 'tensor'}[{access.first}:{access.last}]"
    return f"{place} ({space} {access.address:#x}, {access.size} B)"


def _stack(frames: tuple[SourceFrame, ...]) -> list[str]:
    lines = []
    for depth, frame in enumerate(frames):
        text = linecache.getline(frame.file, frame.line).strip()
        prefix = "  " if depth == 0 else "    called from "
        lines.append(f"{prefix}{_place(frame)}  {text}".rstrip())
    return lines


def _place(frame: SourceFrame) -> str:
    return f"{shown_path(frame.file)}:{frame.line}"


def _where(finding: Finding) -> str:
    """`` on AIV 0, AIV 1 and 6 more``, `` in programs 4, 5, 6, 7 and 44 more``."""
    cores = finding.cores
    total = int(finding.facts.get("in_programs", len(cores)))
    names = [core.removeprefix(PROGRAM) for core in cores[:MAX_CORES]]
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    if not cores[0].startswith(PROGRAM):
        return f" on {', '.join(names)}{more}"
    return f" in program{'s' * (total > 1)} {', '.join(names)}{more}"


def _occurrence(finding: Finding) -> str:
    times = "Once" if finding.count == 1 else f"{finding.count} times"
    cores = _where(finding) if finding.cores else ""
    if not finding.kernel:
        return f"{times}."
    line = f", {_place(finding.launch_frame)}" if finding.launch_frame is not None else ""
    return f"{times}{cores}. Launch {finding.launched}{line}." if finding.launched else f"{times}{cores}."
