"""The `msopprof` command, and `msprof op`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from npuscope import __version__
from npuscope.cli.attend import Quit
from npuscope.cli.msopprof.grammar import Refused, Words, take_apart
from npuscope.cli.msopprof.help import HELP
from npuscope.cli.msopprof.log import Log, say
from npuscope.cli.msopprof.options import read_options
from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_USAGE, UserError

INTERRUPTED = 130


def main() -> None:
    """Entry point of `msopprof`."""
    sys.exit(run(sys.argv[1:]))


def msprof() -> None:
    """Entry point of `msprof`, of which there is `msprof op` only."""
    if sys.argv[1:2] != ["op"]:
        Log().error("this msprof has one command, op: msprof op [simulator] [options] <app> [app args]")
        sys.exit(EXIT_USAGE)
    sys.exit(run(sys.argv[2:]))


def run(words: Sequence[str]) -> int:
    """Carry out the words after ``msprof op``; returns the exit code."""
    log = Log()
    try:
        found = take_apart(words)
        if found.shows:
            say(HELP if found.shows == "help" else f"msopprof {__version__} (npuscope)")
            return EXIT_CLEAN
        return _profile(found, log)
    except Refused as refused:
        log.error(str(refused))
        log.info("Use msprof op --help or msprof op simulator --help for more details")
        return EXIT_USAGE
    except (Quit, KeyboardInterrupt):
        return INTERRUPTED
    except UserError as error:
        log.error(str(error))
        return error.exit_code


def _profile(found: Words, log: Log) -> int:
    options = read_options(found)
    for line in options.warnings:
        log.warn(line)
    from npuscope.cli.msopprof.task import Task  # all that profiles, which help and refusals need not wait for

    return EXIT_CLEAN if Task(options, log).run() else EXIT_FINDINGS


if __name__ == "__main__":
    main()
