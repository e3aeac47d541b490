"""The last lines of a report: one a check, then what was looked at."""

from __future__ import annotations

from npuscope.report.document import NO_TILES, Result, applies, number
from npuscope.sanitizer.findings import Severity
from npuscope.sanitizer.suite import Outcome


def verdict_lines(result: Result) -> list[str]:
    """What each check came to, what was not run and why, how much was looked at, and the notes."""
    lines = [f"{outcome.name}: {_found(result, outcome)}" for outcome in result.outcomes]
    lines += [f"{name}: not run ({why})" for name, why in result.not_run.items()]
    return [*lines, looked_at(result), *(f"note: {note}" for note in result.notes)]


def _found(result: Result, outcome: Outcome) -> str:
    """Of one check: counts, or clean when everything asked for was looked at and nothing found."""
    hidden, name = result.hidden(outcome.name), outcome.name
    advisories = result.count(Severity.ADVISORY, name)
    if not result.checked:
        words = "nothing checked"
    elif not applies(result, name):
        words = f"nothing to check: {NO_TILES[name]}"
    elif outcome.findings:
        errors, warnings = result.count(Severity.ERROR, name), result.count(Severity.WARNING, name)
        words = f"{number(errors, 'error')}, {number(warnings, 'warning')}"
        words += f", {number(advisories, 'advisory', 'advisories')}" if advisories else ""
    elif outcome.limits or result.partial:
        words = "nothing found in what was looked at"
    else:
        words = "clean"
    words += f", {hidden:,} suppressed" if hidden else ""
    quiet = result.quiet(name)
    words += f", {number(quiet, 'advisory', 'advisories')} not shown (--strict)" if quiet else ""
    return f"{words}. Not looked at: {'; '.join(outcome.limits)}" if outcome.limits else words


def looked_at(result: Result) -> str:
    """Launches and instructions, and why the result may not cover the whole run."""
    checked, skipped = len(result.checked), len(result.launches) - len(result.checked)
    if checked:
        words = f"{number(checked, 'launch', 'launches')}, {number(result.instructions, 'instruction')} checked"
    else:
        words = "no launch was checked" if skipped else "no kernel was launched"
    words += f", {number(skipped, 'launch', 'launches')} left out by filters" if skipped else ""
    partial = f" Partial: {'; '.join(result.partial)}." if result.partial else ""
    return f"{words}.{partial}"
