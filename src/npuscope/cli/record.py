"""`npuscope record`: a script's trace into a file, for any tool to read later."""

from __future__ import annotations

from pathlib import Path

import click

from npuscope.cli.attend import INTERRUPTED, Quit, say_interrupted
from npuscope.cli.collect import from_folder
from npuscope.cli.output import require_folder
from npuscope.cli.plan import Plan, spool_folder
from npuscope.cli.run_plan import run_script_in_child
from npuscope.cli.save import save_trace
from npuscope.cli.script import ARGUMENTS, require_script
from npuscope.cli.session import script_options
from npuscope.errors import UserError
from npuscope.frontends import packages
from npuscope.frontends.launch import Part
from npuscope.npu.chip import load_chip


@click.command("record", context_settings=ARGUMENTS)
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Trace file.")
@script_options
def command(
    output: Path, chip: str | None, as_module: bool, script: str, arguments: tuple[str, ...],
    programs: tuple[Part, ...], timeout: float | None,
) -> int:
    """Run SCRIPT and write the trace of every kernel it launches, also in Python processes that it starts.

    Exits with the script's own code.
    """
    if chip:
        load_chip(chip)
    require_folder(output)
    require_script(script, as_module)
    plan = Plan(checks=(), chip=chip, save=True, programs=programs, timeout=timeout)
    try:
        with spool_folder(plan, packages()) as folder:
            ended = run_script_in_child(folder, plan, script, arguments, as_module, say_interrupted)
            live = from_folder(folder, plan, ended)
            if live.trouble is not None:
                raise live.trouble
            if not live.records and not any(folder.glob("*.trace")):
                raise UserError(f"{script} launched no kernel; nothing was recorded")
            save_trace(folder, output)
    except Quit:
        return INTERRUPTED
    return ended.code
