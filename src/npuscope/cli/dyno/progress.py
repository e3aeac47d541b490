"""What is shown while one waits: a table that changes on a terminal, else a line for each change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from npuscope.cli.dyno.awaited import Awaited
from npuscope.cli.output import complain

LONGEST_TABLE = 40
"""More rows than fit on a screen would not be seen."""


class Lines(AbstractContextManager["Lines"]):
    """A line on the standard error for each change."""

    def __init__(self, *, many_hosts: bool) -> None:
        self._many_hosts = many_hosts
        self._said: dict[int, str] = {}

    def __exit__(self, *exception: object) -> None:
        return None

    def show(self, awaited: Sequence[Awaited]) -> None:
        """Tell what is new."""
        for number, one in enumerate(awaited):
            words = one.result or one.doing
            # Sizes change at every look.
            key = words.partition(",")[0] if one.result is None else words
            if self._said.get(number) != key:
                self._said[number] = key
                complain(f"dyno: {name(one, self._many_hosts)}: {words}")


class Drawing(AbstractContextManager["Drawing"]):
    """A table that changes."""

    def __init__(self, *, many_hosts: bool) -> None:
        self._many_hosts = many_hosts
        self._live = Live(console=Console(stderr=True), refresh_per_second=4)

    def __enter__(self) -> Drawing:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def show(self, awaited: Sequence[Awaited]) -> None:
        """Draw it anew, those first that are not done."""
        table = Table("process", "rank", "what")
        rows = sorted(awaited, key=lambda one: one.good)
        for one in rows[:LONGEST_TABLE]:
            colour = "green" if one.good else "red" if one.over else "yellow"
            rank = "" if one.process.rank is None else str(one.process.rank)
            words = escape(one.result or one.doing)
            table.add_row(escape(name(one, self._many_hosts, ranks=False)), rank, f"[{colour}]{words}[/{colour}]")
        if len(rows) > LONGEST_TABLE:
            table.add_row(f"and {len(rows) - LONGEST_TABLE} more", "", f"{sum(one.good for one in rows)} written")
        self._live.update(table)


def progress(*, many_hosts: bool) -> Lines | Drawing:
    """The way of showing that fits the standard error."""
    return Drawing(many_hosts=many_hosts) if sys.stderr.isatty() else Lines(many_hosts=many_hosts)


def name(one: Awaited, many_hosts: bool, *, ranks: bool = True) -> str:
    """A process as a person tells it from others."""
    rank = f" rank {one.process.rank}" if ranks and one.process.rank is not None else ""
    return f"process {one.process.pid}{rank}" + (f" on {one.endpoint}" if many_hosts else "")
