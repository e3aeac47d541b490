"""The options of `npuscope profile`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from npuscope.errors import UserError

FORMATS = ("csv", "bin", "trace", "json", "html", "perfetto")
"""What of a launch can be written."""

PATH = click.Path(path_type=Path)
MOST = 20
"""Launches that are profiled where the user does not say how many."""


def profile_options(command: Callable[..., int]) -> Callable[..., int]:
    """All options and arguments."""
    for decorate in reversed((
        click.option("--output", "-o", type=PATH, metavar="DIR", help="Write files to DIR (without: print only)."),
        click.option("--format", "form", default="all", metavar="NAMES",
                     help=f"Which files, by comma: {', '.join(FORMATS)} or all (default)."),
        click.option("--unique-names", "unique", is_flag=True,
                     help="Begin the names of a launch's files with KERNEL_ORDER., to open several side by side."),
        click.option("--metrics", default="full,TimelineDetail", metavar="NAMES",
                     help="What of a launch, by comma, as --aic-metrics of msopprof; basic, full, timeline: several."),
        click.option("--kernel", default="", metavar="NAMES",
                     help="Only kernels with these prefixes, split by |; * is any text; regex:RE."),
        click.option("--skip", type=click.IntRange(0), default=0, help="Leave out the first N launches."),
        click.option("--launches", type=click.IntRange(1), default=MOST, show_default=True,
                     help="Profile the first N launches that fit."),
        click.option("--range", "ranges", multiple=True, metavar="TEXT",
                     help="Only launches inside mstx ranges of this message (repeatable; '*': any range)."),
        click.option("--stop", is_flag=True, help="End the script when --launches are there."),
        click.option("--time-limit", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                     help="End the script then; what it launched is profiled; exit with 124."),
        click.option("--list-kernels", is_flag=True, help="Run SCRIPT and list its launches; nothing is profiled."),
        click.option("--chip", help="Simulate and time this chip (default: the script's, else Ascend910B1)."),
        click.option("--fact", "facts", multiple=True, metavar="NAME=VALUE",
                     help="A fact of the chip for this run, such as frequency_mhz=1500 (repeatable)."),
        click.option("--l2", type=click.Choice(("cold", "warm")), default="cold", show_default=True,
                     help="The L2 cache when a launch begins: empty, or as the launch before left it."),
        click.option("--core", "cores", multiple=True, type=click.IntRange(0, 49), metavar="N",
                     help="Timelines of these cores only (repeatable)."),
        click.option("--page", default="summary", metavar="NAME",
                     help="What is printed: summary, details, source, memory or pipe."),
        click.option("--rules", type=PATH, metavar="FILE", help="Advise by the rules of this Python file as well."),
        click.option("--baseline", type=PATH, metavar="OLD", help="Compare with a folder or profile.json of before."),
        click.option("--fail-if", "limits", multiple=True, metavar="EXPR",
                     help="Exit with 1 where this holds against the baseline, as 'cycles>+5%' (repeatable)."),
        click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module name, as with python -m."),
        click.argument("script"),
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
    )):  # fmt: skip
        command = decorate(command)
    return command


def facts_of(words: Iterable[str]) -> dict[str, float]:
    """``NAME=VALUE`` as numbers by name. Raises UserError."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            found[name] = float(value) if equals and name else float("nan")
        except ValueError:
            found[name] = float("nan")
        if found[name] != found[name]:
            raise UserError(f"--fact {word}: write NAME=VALUE with a number, such as frequency_mhz=1500")
    return found


def formats_of(text: str) -> frozenset[str]:
    """The forms of output that a list names. Raises UserError."""
    names = FORMATS if text == "all" else tuple(text.split(","))
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        raise UserError(f"--format {unknown[0]}: there are {', '.join(FORMATS)} and all")
    return frozenset(names)
