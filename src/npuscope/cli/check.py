"""`npuscope check`: a script, or a recorded trace, under the sanitizer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from npuscope.cli.attend import INTERRUPTED, Ended, Quit, say_interrupted
from npuscope.cli.check_options import check_options
from npuscope.cli.collect import Collected, from_batches, from_folder
from npuscope.cli.output import complain, require_folder
from npuscope.cli.plan import Plan, spool_folder
from npuscope.cli.reporting import (
    Reporting,
    chosen_formats,
    failing,
    not_asked,
    read_baseline,
    read_rules,
    result_of,
    write_reports,
)
from npuscope.cli.run_plan import run_script_in_child
from npuscope.cli.save import saved
from npuscope.cli.script import ARGUMENTS, require_script
from npuscope.cli.session import script_options
from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_TIMEOUT, UserError
from npuscope.frontends import packages
from npuscope.npu.chip import load_chip
from npuscope.sanitizer.filters import LaunchFilter
from npuscope.sanitizer.suite import Settings, Suite
from npuscope.trace.file import is_trace, read_batches


@click.command("check", context_settings=ARGUMENTS)
@check_options
@script_options
def command(
    chip: str | None, as_module: bool, script: str, arguments: tuple[str, ...], error_exitcode: int | None,
    save: Path | None, **options: Any,
) -> int:
    """Run SCRIPT and check every kernel it launches, also in the Python processes that it starts; or check a trace that
    `npuscope record` wrote.

    The report goes to standard error (or --output), so that standard output stays the script's own.

    Exit codes: 0 clean, 1 findings of error severity (--strict: warnings too; --error-exitcode N: N), 2 usage error,
    something unsupported or output that cannot be written, 124 a kernel did not end within --timeout (findings or not),
    128+n the script died by signal n (130: Ctrl-C), else the script's own.
    """
    plan, choices = _plan(chip, save is not None, options), _reporting(options)
    if chip:
        load_chip(chip)  # refuses a name that it does not know
    for path in (choices.output, save):
        if path is not None:
            require_folder(path)
    Suite(plan.checks, plan.settings)  # names a check that there is not, before anything runs
    if not as_module and os.path.isfile(script) and is_trace(script):
        if arguments or chip or save is not None:
            raise UserError("a recorded trace takes no --chip, no --save and no arguments")
        if plan.programs or plan.timeout or plan.settings.nan:
            raise UserError("a recorded trace takes no --programs, no --timeout and no --nan: it is what ran")
        ended = Ended(EXIT_CLEAN)
        collected = from_batches(read_batches(script), plan)
    else:
        require_script(script, as_module)
        try:
            ended, collected = _run(plan, script, arguments, as_module, save)
        except Quit:
            return INTERRUPTED
    if collected.trouble is not None and not collected.records:
        raise collected.trouble
    result = result_of(collected, choices, not_asked(plan.checks))
    write_reports(result, choices)
    if collected.trouble is not None:
        complain(f"npuscope: {collected.trouble}")
    if collected.trouble is not None and collected.trouble.exit_code == EXIT_TIMEOUT and error_exitcode is None:
        return EXIT_TIMEOUT
    return exit_code(failing(result, choices.strict), ended, error_exitcode)


def exit_code(failed: bool, ended: Ended, asked: int | None) -> int:
    """Findings count before the script's own status; a signal counts before findings, unless the code for findings was
    asked for by number."""
    died = ended.signal or (ended.interrupted and ended.code == INTERRUPTED)
    if failed and asked != 0 and (asked is not None or not died):
        return EXIT_FINDINGS if asked is None else asked
    return ended.code


def _run(
    plan: Plan, script: str, arguments: tuple[str, ...], as_module: bool, save: Path | None
) -> tuple[Ended, Collected]:
    with spool_folder(plan, packages()) as folder:
        ended = run_script_in_child(folder, plan, script, arguments, as_module, say_interrupted)
        live = from_folder(folder, plan, ended)
        return ended, live if save is None else saved(folder, save, plan, live)


def _plan(chip: str | None, save: bool, options: dict[str, Any]) -> Plan:
    launches = LaunchFilter(
        options["kernel_name"], options["kernel_regex"], options["kernel_name_exclude"], options["launch_skip"],
        options["launch_count"],
    )
    settings = Settings(
        options["dcci"], options["trace_masks"], options["leak_check"], options["check_unused_memory"],
        options["block_id"], launch_log=options["launch_log"], nan=options["nan"],
    )
    names = tuple(options["check"]) or None
    rules = read_rules(options["suppressions"])
    return Plan(names, settings, launches, chip, save, options["fail_fast"], options["strict"], rules,
                options["programs"], options["timeout"])


def _reporting(options: dict[str, Any]) -> Reporting:
    formats, output = chosen_formats(options["form"]), options["output"]
    if len(formats) > 1 and output is None:
        raise UserError(f"{len(formats)} formats need --output PREFIX, to which each adds its suffix")
    return Reporting(
        formats, output, options["strict"], read_rules(options["suppressions"]), options["gen_suppressions"],
        read_baseline(options["baseline"]), options["print_limit"], options["max_per_site"], options["block_id"],
    )
