"""The vendor's report: per launch what was started, each finding, how it ended, and a summary for every tool."""

from __future__ import annotations

from collections import defaultdict

from npuscope.report.document import Result, number
from npuscope.report.vendor_forms import finding_lines
from npuscope.report.vendor_lines import HEAD, Page, kernel_name
from npuscope.sanitizer.findings import Finding, Severity

TOOLS: dict[str, tuple[str, ...]] = {
    "memcheck": ("memory", "registers"),
    "racecheck": ("race", "dcci"),
    "initcheck": ("init",),
    "synccheck": ("sync",),
}
"""The vendor's tools and the checks that each of them stands for."""

SAY = "[mssanitizer] "


def vendor_bytes(result: Result, hidden_below: str = "") -> bytes:
    """The whole report."""
    page = Page(result, hidden_below)
    parts = [*_launches(page), *_host(page), "\n".join(_summaries(result)) + "\n"]
    return "".join(parts).encode()


def _launches(page: Page) -> list[str]:
    """Each launch's findings between its first and its last line; a finding stands at its first launch."""
    result = page.result
    by_launch: dict[int, list[Finding]] = defaultdict(list)
    for finding in _listed(result):
        by_launch[finding.launch if finding.kernel else -1].append(finding)
    tools = active(result)
    parts = []
    for record in result.launches:
        name = kernel_name(record.kernel)
        if not record.checked or not tools:
            parts.append(f"{SAY}No active sanitizer tool on kernel {name}.\n")
            continue
        found = sorted(by_launch[record.index], key=_order)
        parts.append(f"{SAY}Start {_enumerated(tools)} sanitizer on kernel {name}\n")
        parts += ["\n".join(finding_lines(page, finding)) + "\n\n" for finding in found]
        ending = "See all detected errors above." if found else "No error detected."
        parts.append(f"{SAY}Sanitizer finished on kernel {name}. {ending}\n")
    return parts


def _host(page: Page) -> list[str]:
    """What was found outside every launch."""
    known = {record.index for record in page.result.launches}
    rest = [finding for finding in _listed(page.result) if not finding.kernel or finding.launch not in known]
    return ["\n".join(finding_lines(page, finding)) + "\n\n" for finding in rest]


def _listed(result: Result) -> tuple[Finding, ...]:
    return result.findings[: len(result.findings) - result.unlisted]


def _order(finding: Finding) -> int:
    return finding.access.serial if finding.access is not None else 1 << 62


def active(result: Result) -> list[str]:
    """The tools that were run."""
    ran = {outcome.name for outcome in result.outcomes}
    return [tool for tool, checks in TOOLS.items() if ran.intersection(checks)]


def _nothing(result: Result) -> str:
    if result.checked:
        return ""
    return "; no kernel was checked" if result.launches else "; nothing checked: no kernel was launched"


def _enumerated(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _summaries(result: Result) -> list[str]:
    """One line a tool, also for one that was not run."""
    lines = [f"{HEAD}{number(result.unlisted, 'more finding')} not printed (--print-limit)"] if result.unlisted else []
    for tool, checks in TOOLS.items():
        ran = [outcome for outcome in result.outcomes if outcome.name in checks]
        if not ran:
            why = next((result.not_run[check] for check in checks if check in result.not_run), "not asked for")
            lines.append(f"{HEAD}{tool}: ERROR SUMMARY: not run ({why})")
            continue
        errors = sum(result.count(Severity.ERROR, outcome.name) for outcome in ran)
        warnings = sum(result.count(Severity.WARNING, outcome.name) for outcome in ran)
        hidden = sum(result.hidden(outcome.name) for outcome in ran)
        words = f"{errors} errors, {warnings} warnings ({hidden} suppressed)"
        lines.append(f"{HEAD}{tool}: ERROR SUMMARY: {words}{_nothing(result)}")
        lines += [f"{HEAD}{tool}: not looked at: {limit}" for outcome in ran for limit in outcome.limits]
    lines += [f"{HEAD}PARTIAL: {reason}" for reason in result.partial]
    return [*lines, *(f"{HEAD}NOTE: {note}" for note in result.notes)]
