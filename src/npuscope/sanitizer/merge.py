"""One result from the processes of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npuscope.sanitizer.findings import Access, Collector, Finding
from npuscope.sanitizer.suite import Outcome
from npuscope.trace.schema import NO_LAUNCH


def merged(parts: Sequence[tuple[tuple[Outcome, ...], int]]) -> tuple[Outcome, ...]:
    """The outcomes of several processes as one; each comes with the number of launches before its first one.

    What several processes found on the same line is one finding that happened more often.
    """
    if len(parts) == 1:
        return parts[0][0]
    collectors: dict[str, Collector] = {}
    limits: dict[str, dict[str, None]] = {}
    for outcomes, offset in parts:
        for outcome in outcomes:
            collector = collectors.setdefault(outcome.name, Collector())
            limits.setdefault(outcome.name, {}).update(dict.fromkeys(outcome.limits))
            for finding in outcome.findings:
                collector.add((sameness(finding),), _moved(finding, offset))
    return tuple(
        Outcome(name, tuple(collector.findings), tuple(limits[name])) for name, collector in collectors.items()
    )


def _moved(finding: Finding, offset: int) -> Finding:
    return finding if finding.launch == NO_LAUNCH else replace(finding, launch=finding.launch + offset)


def sameness(finding: Finding) -> str:
    """All of a finding that does not depend on which core, launch or process it was."""
    return repr(
        replace(
            finding, launch=0, launched="", count=1, cores=(), access=_anywhere(finding.access),
            other=_anywhere(finding.other),
        )
    )


def _anywhere(access: Access | None) -> Access | None:
    return replace(access, core="", serial=0, site=0, address=0) if access is not None else None
