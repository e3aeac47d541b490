"""`npuscope record`: a script's trace into a file, for any tool to read later."""

from __future__ import annotations

from pathlib import Path

import click

from npuscope.cli.session import ARGUMENTS, run_in_session, script_options
from npuscope.errors import UserError
from npuscope.trace.file import TraceWriter


@click.command("record", context_settings=ARGUMENTS)
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Trace file.")
@script_options
def command(output: Path, chip: str | None, as_module: bool, script: str, arguments: tuple[str, ...]) -> int:
    """Run SCRIPT and write the trace of every kernel it launches. Exits with the script's own code."""
    try:
        writer = TraceWriter(output)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
    with writer:
        code, session = run_in_session((writer.write,), chip, script, arguments, as_module)
        if not session.launches and not session.recorder.host_events:
            raise UserError(f"{script} launched no kernel; nothing was recorded")
    return code
