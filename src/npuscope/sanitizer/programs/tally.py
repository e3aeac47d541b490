"""Findings of tile kernels, counted over programs and batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from npuscope.sanitizer.findings import Finding
from npuscope.trace.schema import Fault, Launch

MOST_NAMED = 8
"""Programs that a finding names."""

Key = tuple[Any, ...]


@dataclass(slots=True)
class _Entry:
    finding: Finding
    stretches: list[tuple[int, int]] = field(default_factory=list)
    launches: dict[int, None] = field(default_factory=dict)
    times: int = 0


@dataclass(slots=True)
class ProgramTally:
    """Merges faults that say the same: in how many programs, and how often."""

    _found: dict[Key, _Entry] = field(default_factory=dict)

    def add(self, key: Key, finding: Finding, fault: Fault, launch: Launch) -> None:
        """Add a fault; equal keys are one finding, and the first one's particulars are kept."""
        entry = self._found.get(key)
        if entry is None:
            entry = self._found[key] = _Entry(finding)
        facts = fault.facts
        entry.times += facts.get("among", 1) + facts.get("more", 0)
        if launch.index == entry.finding.launch:
            entry.stretches = united([*entry.stretches, *(tuple(pair) for pair in facts.get("programs", ()))])
            entry.finding = self._named(entry, launch)
        entry.finding = replace(entry.finding, count=entry.times)

    def _named(self, entry: _Entry, launch: Launch) -> Finding:
        count = sum(last - first + 1 for first, last in entry.stretches)
        numbers = [number for first, last in entry.stretches for number in range(first, last + 1)[:MOST_NAMED]]
        names = tuple(launch.cores[number].name for number in numbers[:MOST_NAMED])
        plain = {name: value for name, value in entry.finding.facts.items() if name != "programs"}
        return replace(entry.finding, cores=names, facts={**plain, "in_programs": count})

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return [entry.finding for entry in self._found.values()]


def united(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches (first, last) as the fewest that hold the same numbers, sorted."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if result and first <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(last, result[-1][1])
        else:
            result.append((first, last))
    return result
