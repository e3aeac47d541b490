"""A check's result as one JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from npuscope.sanitizer.findings import Finding, Severity

VERSION = 1

UNCHECKED = ("races", "uninitialised reads", "synchronisation")
"""What no check looks at yet; every report says so."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of checks came to."""

    findings: tuple[Finding, ...]
    checks: tuple[str, ...]
    launches: int
    instructions: int
    partial: str = ""  # why the result does not cover the whole run

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def summary(self) -> str:
        """The last line of a report: what was found, what was looked at, what was not."""
        errors, warnings = self.count(Severity.ERROR), self.count(Severity.WARNING)
        if not self.launches and not self.findings:
            return "nothing checked: no kernel was launched"
        found = f"{_number(errors, 'error')}, {_number(warnings, 'warning')}"
        if not self.findings:
            found = "clean" if not self.partial else "nothing found in the part that ran"
        looked = f"{_number(self.launches, 'launch', 'launches')}, {_number(self.instructions, 'instruction')}"
        tail = f" Partial: {self.partial}." if self.partial else ""
        return f"{', '.join(self.checks)}: {found} ({looked}). Not checked: {', '.join(UNCHECKED)}.{tail}"

    def to_json(self) -> bytes:
        """The JSON document, indented, with a newline at the end."""
        document: dict[str, Any] = {
            "version": VERSION,
            "checks": list(self.checks),
            "not_checked": list(UNCHECKED),
            "launches": self.launches,
            "instructions": self.instructions,
            "errors": self.count(Severity.ERROR),
            "warnings": self.count(Severity.WARNING),
            "partial": self.partial,
            "findings": [finding.to_json() for finding in self.findings],
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _number(count: int, word: str, words: str | None = None) -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"
