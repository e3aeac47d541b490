"""Which launches are looked at."""

from __future__ import annotations

import re
from dataclasses import dataclass

from npuscope.errors import UserError
from npuscope.trace.schema import Launch


@dataclass(frozen=True, slots=True)
class LaunchFilter:
    """Launches by kernel name and by number.

    A launch is chosen when its kernel's name holds one of `names` or matches one of `patterns` (both empty: any name)
    and holds none of `excluded`. Of those, the first `skip` are left out and at most `count` are taken.
    """

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    skip: int = 0
    count: int | None = None

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UserError(f"--kernel-regex {pattern}: {error}") from None

    def takes_name(self, kernel: str) -> bool:
        """Whether the name alone lets a launch in."""
        wanted = (
            not (self.names or self.patterns)
            or any(name in kernel for name in self.names)
            or any(re.search(pattern, kernel) for pattern in self.patterns)
        )
        return wanted and not any(name in kernel for name in self.excluded)


class LaunchSelector:
    """A filter at work: counts the launches of one process that pass by."""

    def __init__(self, rule: LaunchFilter) -> None:
        self.rule = rule
        self._passed = 0

    def __call__(self, launch: Launch) -> bool:
        """Whether this launch is looked at; to be asked once a launch, in order."""
        if not self.rule.takes_name(launch.kernel):
            return False
        self._passed += 1
        number = self._passed - self.rule.skip
        return number > 0 and (self.rule.count is None or number <= self.rule.count)
