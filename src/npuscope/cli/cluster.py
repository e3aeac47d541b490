"""`npuscope cluster`: which rank of a training job is slow, from the files of all its ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from npuscope.cli.output import require_folder, write_atomically
from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, UserError


@click.command("cluster")
@click.argument("places", nargs=-1, required=True, metavar="FOLDER|FILE|URL...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="Write cluster.html, cluster.json, rank_steps.csv and communicator_steps.csv there.",
)
@click.option("--all", "everything", is_flag=True, help="Show every rank and communicator.")
@click.option("--fail-if-slow", is_flag=True, help="Exit 1 when a slow rank is named.")
@click.option("--skip-steps", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N steps.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1000, min_open=True),
    default=2.0,
    show_default=True,
    metavar="PERCENT",
    help="A rank is slow when its own time is so much above that of its peers.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(50, 100, max_open=True),
    default=99.9,
    show_default=True,
    metavar="PERCENT",
    help="Name a rank only when it is so sure that it is no accident.",
)
@click.option("--processes", type=click.IntRange(1), metavar="N", help="That read files. Default: one a core.")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Read with the workers of this Dask scheduler (tcp://...), which see the files under the same paths.",
)
@click.option(
    "--scrapes",
    type=click.IntRange(3),
    default=30,
    show_default=True,
    metavar="N",
    help="How often the daemons of URLs are asked.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="The time from one to the next.",
)
def command(
    places: tuple[str, ...],
    form: str,
    folder: Path | None,
    everything: bool,
    fail_if_slow: bool,
    skip_steps: int,
    threshold: float,
    confidence: float,
    processes: int | None,
    scheduler: str | None,
    scrapes: int,
    interval: float,
) -> int:
    """Say which rank of a job the others wait for, how sure that is, and why.

    FOLDER holds the files of all ranks, in any depth: the monitor's databases or JSON lines (msmonitor_PID_TIME_RANK.db
    or .jsonl), or the profiler's databases (ascend_pytorch_profiler_RANK.db). The newest of each rank counts. A URL is
    the /metrics of a daemon (http://HOST:1779/metrics), which is asked several times; .prom files are earlier answers,
    in the order of their names.

    Exit codes: 0; 1 a slow rank is named and --fail-if-slow is given; 2 usage error, nothing to compare or output that
    cannot be written; 130 Ctrl-C.
    """
    if scheduler and processes:
        raise UserError("--processes are this machine's, and --scheduler reads elsewhere: give one of them")
    if folder:
        make_folder(folder)
    settings = {"threshold": threshold / 100, "confidence": confidence / 100, "skip": skip_steps}
    cluster = analysed(places, settings, processes, scheduler, scrapes, interval)
    if folder:
        write(cluster, folder)
    if form == "json":
        from npuscope.report.cluster.document import json_bytes

        sys.stdout.buffer.write(json_bytes(cluster))
    else:
        from npuscope.report.cluster.text import show

        show(cluster, everything=everything)
    return EXIT_FINDINGS if fail_if_slow and cluster.slow else EXIT_CLEAN


def analysed(
    places: tuple[str, ...],
    settings: dict[str, Any],
    processes: int | None,
    scheduler: str | None,
    scrapes: int,
    interval: float,
) -> Any:
    """Find, reduce and compare. Raises UserError where that cannot be done."""
    from npuscope.monitor.analysis.cluster import analyse, analyse_files
    from npuscope.monitor.analysis.exposition import is_url, read_expositions, scraped
    from npuscope.monitor.analysis.files import EXPOSITION, find
    from npuscope.monitor.analysis.slow_links import LinkLimits
    from npuscope.monitor.analysis.slow_ranks import Limits

    limits = Limits(own=settings["threshold"], confidence=settings["confidence"])
    links = LinkLimits(confidence=settings["confidence"])
    urls = [place for place in places if is_url(place)]
    if urls and len(urls) < len(places):
        raise UserError("either URLs or files can be compared, not both at once")
    if urls:
        return analyse(scraped(urls, scrapes, interval), limits=limits, link_limits=links, skip=settings["skip"])
    found = find(places)
    forms = {one.form == EXPOSITION for one in found.recordings}
    if forms == {True}:
        texts = [one.paths[0] for one in found.recordings]
        summaries = read_expositions(texts)
        return analyse(summaries, found.left_out, limits=limits, link_limits=links, skip=settings["skip"])
    return analyse_files(
        found.without(EXPOSITION), limits=limits, link_limits=links, skip=settings["skip"], processes=processes,
        scheduler=scheduler,
    )  # fmt: skip


def make_folder(folder: Path) -> None:
    """Make the output's folder before the work is done. Raises UserError when it cannot be had."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}") from None
    require_folder(folder / "cluster.html")


def write(cluster: Any, folder: Path) -> None:
    """The page, the document and the tables. Raises UserError for what cannot be written."""
    from npuscope.report.cluster.document import json_bytes
    from npuscope.report.cluster.page import page
    from npuscope.report.cluster.tables import communicator_steps, rank_steps

    write_atomically(folder / "rank_steps.csv", rank_steps(cluster))
    write_atomically(folder / "communicator_steps.csv", communicator_steps(cluster))
    write_atomically(folder / "cluster.json", json_bytes(cluster))
    write_atomically(folder / "cluster.html", page(cluster))
