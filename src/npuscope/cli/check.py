"""`npuscope check`: a script, or a recorded trace, under the sanitizer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from npuscope.cli.output import write_atomically
from npuscope.cli.session import ARGUMENTS, run_in_session, script_options
from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, UserError
from npuscope.report.document import Result
from npuscope.report.text import findings_text
from npuscope.sanitizer.findings import Severity, worst
from npuscope.sanitizer.suite import Suite
from npuscope.trace.file import is_trace, read_batches


@click.command("check", context_settings=ARGUMENTS)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to a file.")
@click.option("--strict", is_flag=True, help="Warnings count as errors for the exit code.")
@script_options
def command(
    form: str, output: Path | None, strict: bool, chip: str | None, as_module: bool, script: str,
    arguments: tuple[str, ...],
) -> int:
    """Run SCRIPT and check every kernel it launches; or check a trace that `npuscope record` wrote.

    The report goes to standard error (or --output), so that standard output stays the script's own.
    Exit codes: 0 clean, 1 findings of error severity (with --strict: warnings too), 2 usage or unsupported, else
    the script's own.
    """
    check = Suite()
    trouble: UserError | None = None
    code = EXIT_CLEAN
    if not as_module and os.path.isfile(script) and is_trace(script):
        if arguments or chip:
            raise UserError("a recorded trace takes no --chip and no arguments")
        for batch in read_batches(script):
            check.check(batch)
    else:
        try:
            code, _ = run_in_session((check.check,), chip, script, arguments, as_module)
        except UserError as error:
            if not check.launches:
                raise
            trouble = error
    partial = "; ".join(dict.fromkeys(check.stopped)) or (f"the run stopped early, {trouble}" if trouble else "")
    result = Result(tuple(check.findings), tuple(item.name for item in check.checks), check.launches, check.instructions, partial)
    _write(result, form, output)
    if trouble is not None:
        print(f"npuscope: {trouble}", file=sys.stderr)
    found = worst(result.findings)
    if found is not None and found >= (Severity.WARNING if strict else Severity.ERROR):
        return EXIT_FINDINGS
    return trouble.exit_code if trouble is not None else code


def _write(result: Result, form: str, output: Path | None) -> None:
    if form == "json":
        data = result.to_json()
    else:
        text = findings_text(result.findings)
        data = f"{text}{chr(10) * 2 if text else ''}{result.summary()}\n".encode()
    if output is None:
        sys.stdout.flush()
        sys.stderr.buffer.write(data)
        sys.stderr.flush()
    else:
        write_atomically(output, data)
