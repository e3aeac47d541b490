"""`npuscope profile`: where the time of a script's kernels goes, or of a recorded trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from npuscope.cli.heap import leave_as_it_is, without_collection
from npuscope.cli.profile_options import profile_options
from npuscope.cli.script import ARGUMENTS


@click.command("profile", context_settings=ARGUMENTS)
@profile_options
def command(script: str, arguments: tuple[str, ...], as_module: bool, **options: Any) -> int:
    """Run SCRIPT, or read a trace that `npuscope record` wrote, and tell where the time of its kernels goes, also in
    Python processes that it starts. All times are modelled.

    With --baseline OLD, SCRIPT may also be a folder or a profile.json of a later run: then the two are compared, and
    nothing is run.

    Exit codes: the script's own; 1 where a --fail-if holds; 2 usage error, nothing to profile or output that cannot be
    written; 124 the script was ended by --time-limit; 128+n it died by signal n; 130 Ctrl-C.
    """
    with without_collection():  # imports the profiler, which `npuscope --help` does not pay for
        from npuscope.cli.profile_compare import Baseline
        from npuscope.cli.profile_request import Run
    baseline = Baseline(options["baseline"], options["limits"])
    if not as_module and baseline.compares(script):
        return baseline.compare_saved(Path(script))
    code = Run(script, arguments, as_module, baseline, options).carry_out()
    leave_as_it_is()
    return code
