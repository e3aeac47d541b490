"""Which launches of an application are profiled (opprof.md 1.2, 1.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from npuscope.errors import UserError

REGEX = "regex:"
"""A kernel name that begins so is one regular expression instead of prefixes."""


@dataclass(frozen=True)
class Choice:
    """Launches are looked at in the order in which they happen, in all processes of the run together: the first `skip`
    are left out; where `ranges` is not None, so are those outside of any open range whose message is in it (empty: any
    range); then those whose kernel no name of `names` fits (empty: any kernel); of the rest the first `count` are taken
    (None: all). `stop` asks to end the application when it has been taken that often."""

    names: str = ""
    count: int | None = 1
    skip: int = 0
    ranges: tuple[str, ...] | None = None
    stop: bool = False

    def __post_init__(self) -> None:
        try:
            self._pattern  # noqa: B018 - compiled here so that a bad one is said at once
        except re.error as error:
            raise UserError(f"kernel name {self.names}: {error}") from None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if self.names.startswith(REGEX):
            return re.compile(self.names.removeprefix(REGEX))
        parts = (".*".join(map(re.escape, name.split("*"))) for name in self.names.split("|"))
        return re.compile(f"^(?:{'|'.join(parts)})")

    def fits(self, kernel: str) -> bool:
        """Whether the name lets a launch in: one of the names, split by ``|``, is a prefix of it, with ``*`` for any
        characters; or the expression is found in it."""
        return self._pattern.search(kernel) is not None

    def inside(self, open_ranges: tuple[str, ...]) -> bool:
        """Whether the ranges that are open let a launch in."""
        if self.ranges is None:
            return True
        return any(not self.ranges or message in self.ranges for message in open_ranges)
