"""The options of `npuscope check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)

OPTIONS = (
    click.option("--check", multiple=True, metavar="NAME", help="Run this check only (repeatable; default: all)."),
    click.option(
        "--format", "form", default="text", metavar="NAMES",
        help="Form of the report: text, json, sarif, junit, github or vendor; several with commas between.",
    ),
    click.option(
        "--output", "-o", type=FILE, help="Write the report to a file; with several formats, to files of that prefix."
    ),
    click.option("--save", type=FILE, help="Also keep the trace, as `npuscope record` does."),
    click.option("--strict", is_flag=True, help="Warnings count as errors for the exit code; advisories are shown."),
    click.option(
        "--error-exitcode", type=click.IntRange(0, 255), metavar="N",
        help="Exit code for findings (default 1; 0: the script's own).",
    ),
    click.option("--suppressions", multiple=True, type=FILE, help="Rules for findings to leave out (repeatable)."),
    click.option("--gen-suppressions", is_flag=True, help="After the report, print a rule for each finding."),
    click.option("--baseline", type=FILE, help="An earlier JSON report: only what it does not have counts."),
    click.option("--print-limit", type=click.IntRange(0), metavar="N", help="Print at most N findings; all count."),
    click.option(
        "--max-per-site", type=click.IntRange(1), metavar="N", help="At most N findings on a line; more are suppressed."
    ),
    click.option("--fail-fast", is_flag=True, help="Stop the script at the first launch with an error."),
    click.option(
        "--kernel-name", multiple=True, metavar="TEXT",
        help="Check kernels with TEXT in their name (repeatable)."
    ),
    click.option("--kernel-regex", multiple=True, metavar="RE", help="Check kernels whose name matches (repeatable)."),
    click.option("--kernel-name-exclude", multiple=True, metavar="TEXT", help="Leave these kernels out (repeatable)."),
    click.option(
        "--launch-skip", type=click.IntRange(0), default=0, metavar="N",
        help="Leave the first N launches out."
    ),
    click.option("--launch-count", type=click.IntRange(0), metavar="N", help="Check at most N launches of a process."),
    click.option("--block-id", type=click.IntRange(0), metavar="N", help="Report on this block only."),
    click.option(
        "--dcci", type=click.Choice(["exact", "strict", "off"]), default="exact",
        help="Cache maintenance: a model of each core's lines, the vendor's rule of neighbours, or nothing.",
    ),
    click.option("--trace-masks", is_flag=True, help="List vector instructions that run under a non-default mask."),
    click.option("--nan", is_flag=True, help="Say where the first NaN of a Triton launch comes from."),
    click.option(
        "--launch-log", is_flag=True,
        help="Report results of Triton launches that a later one writes over before any launch has read them.",
    ),
    click.option("--leak-check", is_flag=True, help="Report device memory that is never freed."),
    click.option("--check-unused-memory", is_flag=True, help="Report device memory that is never touched."),
)


def check_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
