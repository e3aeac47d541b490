"""`npuscope profile`: where the time of a script's kernels goes, or of a recorded trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from npuscope.cli.check import say_interrupted
from npuscope.cli.plan import Plan, spool_folder
from npuscope.cli.run_plan import run_script_in_child
from npuscope.cli.save import save_trace
from npuscope.cli.script import require_script
from npuscope.cli.session import ARGUMENTS, script_options
from npuscope.frontends import packages
from npuscope.frontends.launch import Part
from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.profile import Profile
from npuscope.trace.file import is_trace, read_batches
from npuscope.trace.rows import launches


@click.command("profile", context_settings=ARGUMENTS)
@click.option("--output", "-o", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder.")
@script_options
def command(
    output: Path, chip: str | None, as_module: bool, script: str, arguments: tuple[str, ...],
    programs: tuple[Part, ...], timeout: float | None,
) -> int:
    """Run SCRIPT, or read a recorded trace, and tell where the time of its kernels goes."""
    output.mkdir(parents=True, exist_ok=True)
    if is_trace(script):
        for profile in profiles(Path(script), chip):
            say(profile)
        return 0
    require_script(script, as_module)
    plan = Plan(checks=(), chip=chip, save=True, programs=programs, timeout=timeout)
    with spool_folder(plan, packages()) as folder:
        ended = run_script_in_child(folder, plan, script, arguments, as_module, say_interrupted)
        save_trace(folder, folder / "whole")
        for profile in profiles(folder / "whole", chip):
            say(profile)
    return ended.code


def profiles(trace: Path, chip: str | None) -> Iterator[Profile]:
    """The profile of each launch of a trace, on its own chip or another."""
    for rows in launches(read_batches(trace)):
        on = load_chip(chip or rows.launch.chip)
        yield Profile(time_launch(rows, on), on)


def say(profile: Profile) -> None:
    """One launch in a few lines."""
    timeline = profile.timeline
    click.echo(f"{timeline.launch.kernel}: {timeline.microseconds:.2f} us ({timeline.source.word})")
    for line in profile.hot_spots.lines[:3]:
        click.echo(f"  {line.frame.file}:{line.frame.line}  {int(line.cycles.sum())} cycles")
