"""A check's result: what every printer is given, and its JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.fingerprint import fingerprint
from npuscope.sanitizer.judge import ADVISORIES
from npuscope.sanitizer.records import LaunchRecord
from npuscope.sanitizer.suite import Outcome

VERSION = 2
"""Of the JSON document. 1 was one list of findings; 2 says what became of each check."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of checks came to.

    `outcomes` hold the findings that are reported. `suppressed` counts, per check and reason, those that an option kept
    out of the report; `not_run` says of each check that was not run why. `partial` says why the result does not cover
    the whole run, `notes` what else the user should know, a line each.
    """

    outcomes: tuple[Outcome, ...]
    launches: tuple[LaunchRecord, ...] = ()
    partial: tuple[str, ...] = ()
    suppressed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unlisted: int = 0  # findings that count, but that a person did not want to read (--print-limit)
    strict: bool = False  # warnings make the run fail

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is reported, check by check."""
        return tuple(finding for outcome in self.outcomes for finding in outcome.findings)

    @property
    def checked(self) -> tuple[LaunchRecord, ...]:
        """The launches that were looked at."""
        return tuple(record for record in self.launches if record.checked)

    @property
    def instructions(self) -> int:
        """Instructions that were looked at."""
        return sum(record.instructions for record in self.launches)

    def count(self, severity: Severity, check: str | None = None) -> int:
        """Findings of one severity, of one check or of all."""
        return sum(
            finding.severity is severity
            for outcome in self.outcomes
            if check in (None, outcome.name)
            for finding in outcome.findings
        )

    def hidden(self, check: str) -> int:
        """Findings of a check that an option kept out of the report."""
        return sum(count for reason, count in self.suppressed.get(check, {}).items() if reason != ADVISORIES)

    def quiet(self, check: str) -> int:
        """Advisories of a check that were left out because nobody asked for them."""
        return self.suppressed.get(check, {}).get(ADVISORIES, 0)


def document(result: Result) -> dict[str, Any]:
    """The result as plain values."""
    return {
        "version": VERSION,
        "checks": [_check(result, outcome) for outcome in result.outcomes]
        + [{"name": name, "status": "not run", "reason": why} for name, why in result.not_run.items()],
        "launches": len(result.checked),
        "skipped": len(result.launches) - len(result.checked),
        "instructions": result.instructions,
        "errors": result.count(Severity.ERROR),
        "warnings": result.count(Severity.WARNING),
        "advisories": result.count(Severity.ADVISORY),
        "suppressed": sum(result.hidden(outcome.name) for outcome in result.outcomes),
        "quiet_advisories": sum(result.quiet(outcome.name) for outcome in result.outcomes),
        "partial": "; ".join(result.partial),
        "notes": list(result.notes),
        "kernels": [asdict(record) for record in result.launches],
        "findings": [{**finding.to_json(), "fingerprint": fingerprint(finding)} for finding in result.findings],
    }


def _check(result: Result, outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "status": status(result, outcome),
        "errors": result.count(Severity.ERROR, outcome.name),
        "warnings": result.count(Severity.WARNING, outcome.name),
        "advisories": result.count(Severity.ADVISORY, outcome.name),
        "suppressed": dict(result.suppressed.get(outcome.name, {})),
        "limits": list(outcome.limits),
    }


def status(result: Result, outcome: Outcome) -> str:
    """``findings``, ``clean``, ``nothing checked``, ``not applicable``, or ``incomplete``: nothing found, but not
    everything looked at."""
    if outcome.findings:
        return "findings"
    if not result.checked:
        return "nothing checked"
    if not applies(result, outcome.name):
        return "not applicable"
    return "incomplete" if outcome.limits or result.partial else "clean"


NO_TILES = {
    "registers": "a tile kernel sets no mask registers",
    "dcci": "a tile kernel has no cached scalar data",
}
"""Checks that have nothing to look at in tile kernels, and why."""


def applies(result: Result, name: str) -> bool:
    """Whether any launch that was looked at has what a check looks at."""
    return name not in NO_TILES or not all(record.tile for record in result.launches if record.checked)


def json_bytes(result: Result) -> bytes:
    """The JSON document, indented, with a newline at the end."""
    return orjson.dumps(document(result), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def number(count: int, word: str, words: str | None = None) -> str:
    """``1 error``, ``2 errors``."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"
