"""The analysis at a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from npuscope.monitor.analysis.cluster import Cluster, listed
from npuscope.report.cluster.document import communicators, ranks
from npuscope.report.cluster.words import duration, evidence, headline, link, share, verdict

MOST_RANKS, MOST_COMMUNICATORS, MOST_EXPLAINED, MOST_LINES = 16, 12, 8, 10
PLAIN_WIDTH = 132
"""Of output that goes to a file."""


def show(cluster: Cluster, *, everything: bool = False) -> None:
    """Print who is slow and why, then the ranks and communicators; all of them where `everything` is wanted."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, soft_wrap=True, width=PLAIN_WIDTH)
    console.print(escape(headline(cluster)))
    colour = "red" if cluster.slow or cluster.links else "green"
    console.print(f"[bold {colour}]{escape(verdict(cluster))}[/]")
    _explain(console, cluster, None if everything else MOST_EXPLAINED)
    for what, lines in (("left out", cluster.left_out), ("note", cluster.notes)):
        for line in lines[:MOST_LINES]:
            console.print(f"[yellow]{what}:[/] {escape(line)}")
        if len(lines) > MOST_LINES:
            console.print(f"[yellow]{what}:[/] and {len(lines) - MOST_LINES} more; --format json has all")
    console.print()
    console.print(_ranks(cluster, None if everything else MOST_RANKS))
    console.print()
    console.print(_communicators(cluster, None if everything else MOST_COMMUNICATORS))
    if cluster.commands:
        console.print("\nTo trace just these ranks:")
        for command in cluster.commands:
            console.print(f"  {escape(command)}")


def _explain(console: Console, cluster: Cluster, most: int | None) -> None:
    for one in cluster.slow[:most]:
        first, *rest = evidence(one, host=cluster.matrices.ranks[one.row].host)
        console.print(f"\n{escape(first)}")
        for line in rest:
            console.print(f"  {escape(line)}")
    if most is not None and len(cluster.slow) > most:
        left = listed([one.rank for one in cluster.slow[most:]])
        console.print(f"\nand rank {left}; --all explains them")
    for found in cluster.links[:most]:
        console.print(f"\n{escape(link(found))}")
    if cluster.slow or cluster.links:
        console.print()


def _ranks(cluster: Cluster, most: int | None) -> Table:
    """The ranks whose own time is longest, the slow ones first."""
    rows = sorted(ranks(cluster), key=lambda one: (not one["slow"], -(one["own"] or 0), one["rank"]))
    shown = rows if most is None else rows[:most]
    more = f"; the {most} with the longest own time, --all shows {len(rows):,}" if len(shown) < len(rows) else ""
    table = Table(title=f"Time a step, median{more}", title_justify="left")
    for name in ("rank", "host", "own", "compute", "idle", "communication", "waiting", "waits least in"):
        table.add_column(name, justify="left" if name == "host" else "right")
    for one in shown:
        cells = [str(one["rank"]), escape(one["host"])]
        cells += [_time(one[name]) for name in ("own", "compute", "idle", "communication", "waiting")]
        cells.append("" if one["waits_least"] is None else share(one["waits_least"]))
        table.add_row(*cells, style="red" if one["slow"] else None)
    return table


def _communicators(cluster: Cluster, most: int | None) -> Table:
    rows = communicators(cluster)
    slow = {one.name for one in cluster.links}
    shown = rows if most is None else rows[:most]
    more = f"; {most} of {len(rows):,}, --all shows the rest" if len(shown) < len(rows) else ""
    table = Table(title=f"Collectives of a step, median{more}", title_justify="left")
    for name in ("communicator", "ranks", "collectives", "transfer", "waiting a rank", "longest wait", "last"):
        table.add_column(name, justify="left" if name in ("communicator", "ranks") else "right")
    for one in shown:
        name = f"{one['title']} ({one['name']})" if one["title"] else one["name"]
        cells = [escape(name), listed(one["ranks"]), str(one["collectives"])]
        cells += [_time(one[part]) for part in ("transfer", "waiting", "longest_wait")]
        cells.append("" if one["last"] is None else f"rank {one['last']} in {share(one['last_share'])}")
        table.add_row(*cells, style="red" if name in slow else None)
    return table


def _time(value: Any) -> str:
    return "NA" if value is None else duration(value)
