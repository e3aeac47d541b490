"""`npuscope profile`: where the time of a script's kernels goes, or of a recorded trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from npuscope.cli.attend import Quit
from npuscope.cli.check import INTERRUPTED, say_interrupted
from npuscope.cli.keeping import Launched
from npuscope.cli.output import complain
from npuscope.cli.plan import Plan
from npuscope.cli.profile_compare import compare, judged, read_profiles
from npuscope.cli.profile_files import FORMATS, Wanted
from npuscope.cli.profile_folder import RunFolder
from npuscope.cli.profile_launches import Model, chip_with, from_batches, from_run
from npuscope.cli.profile_options import numbers, profile_options, split
from npuscope.cli.profile_run import SPOOL, Gathered, gathered
from npuscope.cli.profile_status import Status
from npuscope.cli.profile_write import Writer
from npuscope.cli.run_plan import run_script_in_child
from npuscope.cli.script import require_script
from npuscope.cli.session import ARGUMENTS
from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_TIMEOUT, EXIT_USAGE, UserError
from npuscope.frontends.launch import DEFAULT_CHIP
from npuscope.npu.chip import load_chip
from npuscope.profiler.choice import Choice
from npuscope.profiler.profile import Profile
from npuscope.profiler.selection import Refused, columns_of, select
from npuscope.trace.file import is_trace, read_batches

EVERYTHING = ("full", "TimelineDetail")


@click.command("profile", context_settings=ARGUMENTS)
@profile_options
def command(script: str, arguments: tuple[str, ...], **options: Any) -> int:
    """Run SCRIPT, or read a trace that `npuscope record` wrote, and tell where the time of its kernels goes.

    All times are modelled. With --baseline OLD, SCRIPT may also be a folder or profile.json of an earlier run, which is
    then only compared.

    Exit codes: the script's own; 1 where a --fail-if holds; 2 usage error, nothing to profile or output that cannot be
    written; 124 the script was ended by --time-limit; 130 after a second Ctrl-C.
    """
    return Command(script, arguments, options).run()
