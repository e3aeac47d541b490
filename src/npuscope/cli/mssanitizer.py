"""The `mssanitizer` command: any program, its Python children, the vendor's options and the vendor's report."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from npuscope import __version__
from npuscope.cli.attend import Ended, Quit
from npuscope.cli.collect import Collected, from_batches, from_folder
from npuscope.cli.mssanitizer_options import HELP, Options, Refused, read_options
from npuscope.cli.output import complain, discard, require_folder
from npuscope.cli.plan import Plan, spool_folder
from npuscope.cli.program import found_program
from npuscope.cli.reporting import (
    Reporting,
    failing,
    generated,
    read_baseline,
    read_rules,
    result_of,
    write_files,
)
from npuscope.cli.run_plan import run_program
from npuscope.cli.save import saved
from npuscope.errors import EXIT_CLEAN, EXIT_USAGE, UserError
from npuscope.frontends import packages
from npuscope.npu.chip import load_chip
from npuscope.report.document import Result
from npuscope.report.vendor import TOOLS, vendor_bytes
from npuscope.sanitizer.filters import LaunchFilter
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.judge import ADVISORIES, Screen
from npuscope.sanitizer.suite import CHECKS, Settings
from npuscope.trace.file import is_trace, read_batches

PRESSED = "Ctrl-C received. Running kernel will be killed, and you can press Ctrl-C again to force quit."
LEVELS = {"info": Severity.ADVISORY, "warn": Severity.WARNING, "error": Severity.ERROR}
INTERRUPTED = 130


def main() -> None:
    """Entry point."""
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Carry out a command line; returns the exit code."""
    try:
        options, program = read_options(words)
    except Refused as refused:
        print(refused, file=sys.stderr)
        if refused.helps:
            print(HELP, end="", file=sys.stderr)
        return EXIT_USAGE
    for line in options.warnings:
        print(line, file=sys.stderr)
    if options.shows:
        print(HELP if options.shows == "help" else f"mssanitizer {__version__} (npuscope)\n", end="")
        return EXIT_CLEAN
    try:
        return _check(options, program)
    except Quit:
        return INTERRUPTED
    except UserError as error:
        complain(f"[mssanitizer] ERROR: {error}")
        return error.exit_code


def _check(options: Options, program: list[str]) -> int:
    plan, choices = plan_of(options), _reporting(options)
    if options.replay is not None:
        if program:
            raise UserError("--replay takes no program")
        if not is_trace(options.replay):
            raise UserError(f"{options.replay}: not a trace of this program")
    elif not program:
        raise UserError("no program specified")
    else:
        program = found_program(program)
    if options.chip:
        load_chip(options.chip)  # refuses a name that it does not know
    for path in (options.output, options.save):
        if path is not None:
            require_folder(path)
    log = _open_log(options.log_file) if options.log_file is not None else None
    if options.replay is not None:
        ended, collected = Ended(EXIT_CLEAN), from_batches(read_batches(options.replay), plan)
    else:
        ended, collected = _run(plan, program, options.save)
    result = result_of(collected, choices, _not_run(options))
    _report(options, choices, result, log)
    if options.replay is None:
        _tell_ending(program, ended)
    if options.error_exitcode and failing(result, options.strict):
        return options.error_exitcode
    return ended.code


def _run(plan: Plan, program: list[str], save: Path | None) -> tuple[Ended, Collected]:
    with spool_folder(plan, packages()) as folder:
        ended = run_program(folder, program, lambda: complain(PRESSED))
        live = from_folder(folder, plan, ended)
        return ended, live if save is None else saved(folder, save, plan, live)


def _tell_ending(program: list[str], ended: Ended) -> None:
    if ended.signal:
        print(f"[mssanitizer] user program {program[0]} exited by signal({ended.signal})", file=sys.stderr)
    elif ended.code:
        print(f"[mssanitizer] user program {program[0]} exited abnormally", file=sys.stderr)


def plan_of(options: Options) -> Plan:
    """What the processes of the run are to do."""
    heap_only = options.device_heap or options.cann_heap
    memcheck, racecheck = "memcheck" in options.tools, "racecheck" in options.tools
    settings = Settings(
        dcci=options.dcci if racecheck and options.check_dcci else "off",
        trace_masks=memcheck and options.masks and not heap_only,
        leaks=memcheck and (options.leaks or heap_only),
        unused=memcheck and options.unused,
        block=options.block,
    )
    launches = LaunchFilter(
        tuple(options.kernel_names), tuple(options.kernel_patterns), tuple(options.kernel_excluded),
        options.launch_skip, 0 if heap_only else options.launch_count,
    )
    return Plan(
        checks_of(options), settings, launches, options.chip, options.save is not None, options.fail_fast,
        options.strict, read_rules(tuple(options.suppressions)),
    )


def checks_of(options: Options) -> tuple[str, ...]:
    """The checks behind the tools. The heap modes leave the kernels alone: only the memory check is there to listen."""
    if options.device_heap or options.cann_heap:
        return ("memory",) if "memcheck" in options.tools else ()
    wanted = {check for tool in options.tools for check in TOOLS[tool]}
    if not options.check_dcci:
        wanted.discard("dcci")
    return tuple(name for name in CHECKS if name in wanted)


def _not_run(options: Options) -> dict[str, str]:
    ran = checks_of(options)
    reason = "host memory calls only" if options.device_heap or options.cann_heap else "not asked for"
    absent = [check for tool in options.tools for check in TOOLS[tool] if check not in CHECKS]
    return {name: reason for name in CHECKS if name not in ran} | dict.fromkeys(absent, "not in this version")


def _reporting(options: Options) -> Reporting:
    formats = tuple(name for name in options.formats if name != "text")
    if formats and options.output is None:
        raise UserError("--format needs --output PREFIX")
    screens = [Screen("log level", lambda finding: _below(finding, options.level))]
    if options.level != "info":
        screens.insert(0, Screen(ADVISORIES, lambda finding: finding.severity is Severity.ADVISORY))
    if not options.all_blocks and options.block is None:
        screens.append(Screen("blocks other than 0 (--all-blocks)", _inside_another_block))
    return Reporting(
        formats, options.output, options.strict, read_rules(tuple(options.suppressions)), options.generate,
        read_baseline(options.baseline), options.print_limit, options.max_per_site, options.block, tuple(screens),
        advisories=True, always_suffix=True,
    )


def _below(finding: Finding, level: str) -> bool:
    """What a log level hides. At `error` stomps are not looked for at all, whatever their severity."""
    return finding.severity < LEVELS[level] or (level == "error" and finding.kind == "overwrite")


def _inside_another_block(finding: Finding) -> bool:
    """A race inside a core that is not block 0's: the vendor's racecheck does not look there unless told to."""
    sides = finding.access, finding.other
    if not finding.kind.startswith("race-") or any(side is None for side in sides):
        return False
    cores = {side.core for side in sides if side is not None}
    return len(cores) == 1 and all(core.rpartition(" ")[2] != "0" for core in (*cores, *finding.cores))


def _open_log(path: str) -> IO[bytes]:
    """The log file, emptied, readable for its owner only."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(handle, 0o600) if os.path.isfile(path) else None
        return os.fdopen(handle, "wb", buffering=0)
    except OSError as error:
        raise UserError(f"cannot open --log-file {path}: {error.strerror}") from None


def _report(options: Options, choices: Reporting, result: Result, log: IO[bytes] | None) -> None:
    """The vendor's text to the log file or standard output, the other forms to their files."""
    hidden = "" if options.full_backtrace else os.environ.get("ASCEND_HOME_PATH", "")
    data = vendor_bytes(result, os.path.abspath(hidden) if hidden else "") + generated(result, choices)
    sys.stdout.flush()
    try:
        if log is None:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            with log:
                log.write(data)
    except OSError as error:
        if log is None:
            discard(1)
        raise UserError(f"cannot write {options.log_file or 'the report'}: {error.strerror}") from None
    write_files(result, choices)


if __name__ == "__main__":
    main()
