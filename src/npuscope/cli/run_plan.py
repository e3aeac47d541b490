"""Carries out a plan: a script in a forked child of this process, or a program; both with all that they start."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from npuscope.cli.attend import Ended, Limit, attend
from npuscope.cli.hooked import Hooked
from npuscope.cli.output import complain
from npuscope.cli.plan import Plan, environment
from npuscope.cli.script import FailFast, run_script
from npuscope.errors import EXIT_FINDINGS, EXIT_USAGE, UserError

Interrupted = Callable[[], None]


def run_script_in_child(
    folder: Path, plan: Plan, script: str, arguments: Sequence[str], as_module: bool, interrupted: Interrupted,
    limit: Limit | None = None,
) -> Ended:
    """Run the script in a fork of this process, so that the report survives whatever becomes of it.

    A fork costs a few milliseconds and keeps what has been imported; terminal, standard streams and process group stay
    the script's own.
    """

    def child() -> int:
        os.environ.update(environment(folder))
        hooked = Hooked(folder, plan)
        try:
            return run_script(script, arguments, as_module)
        except FailFast:
            return EXIT_FINDINGS
        except UserError as error:
            hooked.spool.trouble = error
            return error.exit_code
        finally:
            hooked.close()

    return attend(child, interrupted, limit)


def run_program(
    folder: Path, program: Sequence[str], interrupted: Interrupted, limit: Limit | None = None,
    name: str = "[mssanitizer] ERROR:",
) -> Ended:
    """Run a program with every Python process below it hooked; `name` begins the line that says why it cannot be."""

    def child() -> int:
        try:
            os.execvpe(program[0], list(program), {**os.environ, **environment(folder)})
        except OSError as error:
            complain(f"{name} cannot run {program[0]}: {error.strerror}")
            return EXIT_USAGE

    return attend(child, interrupted, limit)
