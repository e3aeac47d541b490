"""One row for each host that was asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from npuscope.cli.dyno.errand import Verdict

Row = tuple[str, Verdict, float]


def show_hosts(rows: Sequence[Row]) -> None:
    """Print the table: drawn on a terminal, else lines whose columns are parted by two spaces or more."""
    if sys.stdout.isatty():
        Console().print(_drawn(rows))
    else:
        width = max(len(host) for host, *_ in rows)
        for host, verdict, seconds in rows:
            print(f"{host:{width}}  {_word(verdict):6}  {seconds:6.2f} s  {_text(verdict)}")
    failed = sum(not verdict.done for _, verdict, _ in rows)
    print(f"{len(rows)} hosts: {len(rows) - failed} done, {failed} failed")


def _drawn(rows: Sequence[Row]) -> Table:
    table = Table("host", "result", "seconds", "what")
    table.columns[2].justify = "right"
    for host, verdict, seconds in rows:
        colour = "green" if verdict.done else "red"
        table.add_row(escape(host), f"[{colour}]{_word(verdict)}[/{colour}]", f"{seconds:.2f}", escape(_text(verdict)))
    return table


def _word(verdict: Verdict) -> str:
    return "done" if verdict.done else "failed"


def _text(verdict: Verdict) -> str:
    parts = [verdict.summary, verdict.reason] if verdict.summary != _word(verdict) else [verdict.reason]
    return ": ".join(part for part in parts if part)
