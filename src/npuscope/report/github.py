"""Workflow commands that GitHub Actions turns into annotations on the lines of a pull request."""

from __future__ import annotations

import os

from npuscope.report.document import Result
from npuscope.report.kinds import title
from npuscope.report.text import finding_text
from npuscope.report.verdict import verdict_lines
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.fingerprint import place

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVISORY: "notice"}


def github_bytes(result: Result) -> bytes:
    """A command a finding, then the verdict as plain lines of the log."""
    lines = [_command(finding) for finding in result.findings[: len(result.findings) - result.unlisted]]
    if result.partial:
        lines.append(f"::warning title=npuscope::{_data('Partial: ' + '; '.join(result.partial))}")
    return ("\n".join([*lines, *verdict_lines(result)]) + "\n").encode()


def _command(finding: Finding) -> str:
    frame = place(finding)
    parts = [("file", _path(frame.file)), ("line", str(frame.line))] if frame is not None else []
    parts.append(("title", f"{title(finding.kind)} in {finding.kernel}" if finding.kernel else title(finding.kind)))
    properties = ",".join(f"{name}={_property(value)}" for name, value in parts)
    return f"::{COMMANDS[finding.severity]} {properties}::{_data(finding_text(finding))}"


def _path(file: str) -> str:
    """Relative to the checkout, as annotations need it."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    relative = os.path.relpath(os.path.abspath(file), root)
    return file if relative.startswith("..") else relative


def _data(text: str) -> str:
    """A command's message: its line ends and per cent signs as the runner reads them back."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
