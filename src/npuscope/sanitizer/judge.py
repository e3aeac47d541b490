"""What of the findings is reported: each one passes screens that may suppress it, and what they suppress is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.fingerprint import fingerprint, place
from npuscope.sanitizer.suite import Outcome


@dataclass(frozen=True, slots=True)
class Screen:
    """A reason to keep findings out of the report, and which ones."""

    reason: str
    suppresses: Callable[[Finding], bool]


@dataclass(frozen=True, slots=True)
class Judged:
    """What is left to report, and per check and reason how many findings are not."""

    outcomes: tuple[Outcome, ...]
    suppressed: Mapping[str, Mapping[str, int]]


def judge(outcomes: Iterable[Outcome], screens: Sequence[Screen]) -> Judged:
    """Pass every finding through the screens; the first that suppresses it is the reason."""
    left = []
    suppressed: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        kept = []
        for finding in outcome.findings:
            reason = next((screen.reason for screen in screens if screen.suppresses(finding)), None)
            if reason is None:
                kept.append(finding)
            else:
                suppressed.setdefault(outcome.name, Counter())[reason] += 1
        left.append(replace(outcome, findings=tuple(kept)))
    return Judged(tuple(left), suppressed)


class Baseline:
    """Findings that an earlier report had: each of them covers one finding of this run."""

    def __init__(self, fingerprints: Iterable[str]) -> None:
        self._left = Counter(fingerprints)

    def __call__(self, finding: Finding) -> bool:
        """Whether the earlier report had this one."""
        mark = fingerprint(finding)
        if not self._left[mark]:
            return False
        self._left[mark] -= 1
        return True


class PerSite:
    """At most `limit` findings on one line of source."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._seen: Counter[tuple[str, int]] = Counter()

    def __call__(self, finding: Finding) -> bool:
        """Whether the line has had its share."""
        frame = place(finding)
        if frame is None:
            return False
        self._seen[frame.file, frame.line] += 1
        return self._seen[frame.file, frame.line] > self.limit


ADVISORIES = "advisories"
"""The reason for which advisories are left out; they are counted apart from what the user suppresses."""

ALWAYS_SHOWN = frozenset({"non-default-mask"})
"""Advisories that are there only because they were asked for."""


def is_quiet_advisory(finding: Finding) -> bool:
    """An advisory that only ``--strict`` shows."""
    return finding.severity is Severity.ADVISORY and finding.kind not in ALWAYS_SHOWN


def of_other_block(block: int) -> Callable[[Finding], bool]:
    """Findings that have nothing to do with one block's cores; those of tile kernels have no blocks."""
    return lambda finding: bool(finding.cores) and not any(
        core.rpartition(" ")[2] == str(block) or core.startswith("program ") for core in finding.cores
    )


def counts_as_error(finding: Finding, strict: bool) -> bool:
    """Whether a finding makes a run fail."""
    return finding.severity >= (Severity.WARNING if strict else Severity.ERROR)
