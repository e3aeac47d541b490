"""SARIF 2.1.0: the form that code-scanning services and editors read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from npuscope import __version__
from npuscope.report.document import Result
from npuscope.report.kinds import help_of, title
from npuscope.report.verdict import verdict_lines
from npuscope.sanitizer.findings import Access, Finding, Severity
from npuscope.sanitizer.fingerprint import fingerprint, place, shown_path
from npuscope.trace.schema import SourceFrame

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVISORY: "note"}


def sarif_bytes(result: Result) -> bytes:
    """The SARIF log, indented, with a newline at the end."""
    kinds = list(dict.fromkeys(finding.kind for finding in result.findings))
    rules = [_rule(kind, result) for kind in kinds]
    run = {
        "tool": {"driver": {"name": "npuscope", "version": __version__, "rules": rules}},
        "originalUriBaseIds": {ROOT: {"uri": f"{Path.cwd().as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(result)],
        "results": [_result(finding, kinds.index(finding.kind)) for finding in result.findings],
        "properties": {"verdict": verdict_lines(result)},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return orjson.dumps(log, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _rule(kind: str, result: Result) -> dict[str, Any]:
    worst = max(finding.severity for finding in result.findings if finding.kind == kind)
    return {
        "id": kind,
        "name": "".join(word.capitalize() for word in kind.split("-")),
        "shortDescription": {"text": title(kind)},
        "fullDescription": {"text": help_of(kind)},
        "help": {"text": f"{help_of(kind)} docs/checks.md has an example and its cure."},
        "defaultConfiguration": {"level": LEVELS[worst]},
    }


def _invocation(result: Result) -> dict[str, Any]:
    """Whether the run was whole, and what was not looked at."""
    told = [("error", f"Partial: {reason}.") for reason in result.partial]
    told += [("note", f"{item.name}: not looked at: {limit}") for item in result.outcomes for limit in item.limits]
    told += [("note", f"{name}: not run ({why})") for name, why in result.not_run.items()]
    told += [("warning", note) for note in result.notes]
    return {
        "executionSuccessful": not result.partial,
        "toolExecutionNotifications": [{"level": level, "message": {"text": text}} for level, text in told],
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(place(finding), kernel=finding.kernel)],
        "partialFingerprints": {"npuscope/v1": fingerprint(finding)},
        "occurrenceCount": finding.count,
        "properties": {
            "check": finding.check,
            "cores": list(finding.cores),
            "launch": finding.launched,
            "missingEdge": finding.edge,
        },
    }
    related = _related(finding)
    if related:
        plain["relatedLocations"] = related
    stacks = [_stack(side) for side in (finding.access, finding.other) if side is not None and side.frames]
    if stacks:
        plain["stacks"] = stacks
    if finding.access is not None and finding.other is not None:
        steps = [
            {"location": _side(side), "executionOrder": order}
            for order, side in enumerate((finding.other, finding.access), 1)
        ]
        plain["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return plain


def _message(finding: Finding) -> str:
    parts = [f"{title(finding.kind)} in {finding.kernel or 'the program'}: {finding.summary}.", *finding.notes]
    return " ".join([*parts, finding.advice]).strip()


def _related(finding: Finding) -> list[dict[str, Any]]:
    found = []
    if finding.other is not None and finding.other.frames:
        found.append(_side(finding.other))
    owner = finding.owner
    if owner is not None and owner.frames:
        found.append(_location(owner.frames[0], f"{owner.name or 'the tensor'} was made here"))
    if finding.launch_frame is not None:
        found.append(_location(finding.launch_frame, f"launch {finding.launched}"))
    return [{"id": number, **location} for number, location in enumerate(found, 1)]


def _side(access: Access) -> dict[str, Any]:
    where = f" on {access.core}" if access.core else ""
    words = f"{access.pipe} {access.role}s {access.size} bytes at {access.address:#x} in {access.opcode}{where}".strip()
    return _location(next(iter(access.frames), None), words)


def _stack(access: Access) -> dict[str, Any]:
    frames = [{"location": _location(frame, frame.function or "")} for frame in access.frames]
    words = f"{access.pipe or access.core} {access.role}s in {access.opcode}".strip()
    return {"message": {"text": words}, "frames": frames}


def _location(frame: SourceFrame | None, words: str = "", kernel: str = "") -> dict[str, Any]:
    location: dict[str, Any] = {}
    if frame is not None:
        physical: dict[str, Any] = {"artifactLocation": _artifact(frame.file)}
        if frame.line > 0:
            physical["region"] = {"startLine": frame.line}
        location["physicalLocation"] = physical
    if kernel:
        location["logicalLocations"] = [{"name": kernel, "kind": "function"}]
    if words:
        location["message"] = {"text": words}
    return location


def _artifact(file: str) -> dict[str, str]:
    """Relative to the current folder where the file lies below it."""
    shown = shown_path(file)
    if os.path.isabs(shown):
        return {"uri": Path(shown).as_uri()}
    return {"uri": quote(shown.replace(os.sep, "/")), "uriBaseId": ROOT}
