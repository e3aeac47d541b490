"""`npuscope run`: a script on the simulated device, nothing checked."""

from __future__ import annotations

import click

from npuscope.cli.script import ARGUMENTS
from npuscope.cli.session import run_in_session, script_options
from npuscope.frontends.launch import Part


@click.command("run", context_settings=ARGUMENTS)
@script_options
def command(
    chip: str | None, as_module: bool, script: str, arguments: tuple[str, ...], programs: tuple[Part, ...],
    timeout: float | None,
) -> int:
    """Run SCRIPT; its kernels run on the simulated device. Exits with the script's own code."""
    code, _ = run_in_session((), chip, script, arguments, as_module, programs, timeout)
    return code
