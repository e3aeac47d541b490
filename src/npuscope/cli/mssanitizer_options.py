"""The options of `mssanitizer`: the vendor's with their rules (sanitizer.md 1.2, 1.3), and those it shares with
`npuscope check`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npuscope.cli.getopt_long import Unrecognised, Word, parse

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

HELP = """\
usage: mssanitizer [options] [--] PROGRAM [ARGUMENTS]

Runs PROGRAM; every kernel that it or a Python process below it launches is checked on a simulated device.

  -h, --help                    print this and end
  -V, --version                 print the version and end
  -t, --tool NAME               memcheck (default), racecheck, initcheck or synccheck; repeatable
      --log-level LEVEL         print info, warn (default) and above, or error only
      --log-file FILE           reports go to FILE
      --max-debuglog-size MB    1 to 1024*10; accepted, no debug log is written
      --leak-check yes|no       memcheck: device memory that is never freed
      --check-unused-memory yes|no
                                memcheck: device memory that is never touched
      --check-device-heap yes|no, --check-cann-heap yes|no
                                memcheck: host side memory calls only, kernels are not checked; one of the two
      --block-id N              0 to 200: this block only
      --cache-size MB           1 to 8192; accepted, recording has no such limit here: nothing is dropped
      --kernel-name TEXT        kernels whose name has TEXT
      --full-backtrace yes|no   also frames of files below ASCEND_HOME_PATH
      --demangle full|simple|no how kernel names print; names of Python kernels are not mangled
      --padding BYTES           32 to 1024; accepted, arrays have guard zones here in any case
      --check-cross-npu-races yes|no
                                racecheck: one device is simulated, which has no such races
      --check-dcci yes|no, --dcci-check yes|no
                                racecheck: missing cache maintenance, by the rule of neighbouring instructions
      --trace-non-default-spr-reg vector
                                memcheck: list vector instructions that run under a non-default mask

Additions, none of which changes what the options above do:
      --error-exitcode N        exit code when there are findings of error severity (default 0: the program's own)
      --format NAMES, --output PREFIX
                                besides the text, write json, sarif, junit (or xml) or github to PREFIX.suffix
      --strict                  warnings count as errors for --error-exitcode
      --suppressions FILE, --gen-suppressions, --baseline FILE, --print-limit N, --max-per-site N, --fail-fast
      --kernel-regex RE, --kernel-name-exclude TEXT, --launch-skip N, --launch-count N
                                as for npuscope check
      --all-blocks              races inside a core on every block, not on block 0 only
      --dcci exact|strict       which rule --check-dcci follows
      --save FILE               also keep the trace; --replay FILE checks one instead of running a program
      --chip NAME               simulate this chip

Exit codes: the program's own (128+n when signal n ended it); N with --error-exitcode N and findings; 2 for an option
that cannot be followed or output that cannot be written; 130 after a second Ctrl-C.
"""


@dataclass(slots=True)
class Options:
    """What the user chose, defaults as the vendor's."""

    tools: list[str] = field(default_factory=list)
    level: str = "warn"
    log_file: str | None = None
    leaks: bool = False
    unused: bool = False
    device_heap: bool = False
    cann_heap: bool = False
    block: int | None = None
    kernel_names: list[str] = field(default_factory=list)
    full_backtrace: bool = False
    demangle: str = "full"
    cross_npu: bool = False
    check_dcci: bool = False
    masks: bool = False
    error_exitcode: int = 0
    formats: list[str] = field(default_factory=list)
    output: Path | None = None
    strict: bool = False
    suppressions: list[Path] = field(default_factory=list)
    generate: bool = False
    baseline: Path | None = None
    print_limit: int | None = None
    max_per_site: int | None = None
    fail_fast: bool = False
    kernel_patterns: list[str] = field(default_factory=list)
    kernel_excluded: list[str] = field(default_factory=list)
    launch_skip: int = 0
    launch_count: int | None = None
    all_blocks: bool = False
    dcci: str = "strict"
    save: Path | None = None
    replay: Path | None = None
    chip: str | None = None
    shows: str = ""  # "help" or "version": print that and end
    warnings: list[str] = field(default_factory=list)


class Refused(Exception):
    """An option that cannot be followed. `helps`: the help comes after the line."""

    def __init__(self, line: str, helps: bool = False) -> None:
        super().__init__(line)
        self.helps = helps


Setter = Callable[[Options, str], None]


class Bad(Exception):
    """A value outside what its option takes."""


class Ignored(Exception):
    """A value with characters that its option does not take: said, and the option is as if not given."""


def _flag(name: str, value: bool = True) -> Setter:
    return lambda options, _: setattr(options, name, value)


def _yes_no(name: str) -> Setter:
    def take(options: Options, value: str) -> None:
        if value not in ("yes", "no"):
            raise Bad
        setattr(options, name, value == "yes")

    return take


def _one_of(name: str, *words: str) -> Setter:
    def take(options: Options, value: str) -> None:
        if value not in words:
            raise Bad
        setattr(options, name, value)

    return take


def _integer(name: str | None, low: int, high: int | None = None) -> Setter:
    """A decimal number in a range; without `name` it is checked and has no effect here."""

    def take(options: Options, value: str) -> None:
        if not re.fullmatch(r"\d{1,9}", value, re.ASCII):
            raise Bad
        if int(value) < low or (high is not None and int(value) > high):
            raise Bad
        if name is not None:
            setattr(options, name, int(value))

    return take


def _more(name: str, kind: Callable[[str], object] = str) -> Setter:
    def take(options: Options, value: str) -> None:
        if not value:
            raise Bad
        getattr(options, name).append(kind(value))

    return take


def _path(name: str) -> Setter:
    def take(options: Options, value: str) -> None:
        if not value:
            raise Bad
        setattr(options, name, Path(value))

    return take


def _tool(options: Options, value: str) -> None:
    if value not in TOOLS:
        raise Bad
    options.tools.append(value)


def _log_file(options: Options, value: str) -> None:
    if not value or len(value) > 4096:
        raise Bad
    if not re.fullmatch(r"[0-9A-Za-z./_-]+", value):
        raise Ignored
    options.log_file = value


def _kernel_name(options: Options, value: str) -> None:
    if not value or len(value) > 2047:
        raise Bad
    if not re.fullmatch(r"[0-9A-Za-z_-]+", value):
        raise Ignored
    options.kernel_names = [value]


def _masks(options: Options, value: str) -> None:
    if value != "vector":
        raise Bad
    options.masks = True


def _formats(options: Options, value: str) -> None:
    names = [{"xml": "junit"}.get(word, word) for word in value.split(",")]
    if any(name not in ("text", "json", "sarif", "junit", "github") for name in names):
        raise Bad
    options.formats = list(dict.fromkeys(names))


def _shows(what: str) -> Setter:
    return lambda options, _: setattr(options, "shows", options.shows or what)


VENDOR: dict[str, tuple[bool, Setter]] = {
    "help": (False, _shows("help")),
    "version": (False, _shows("version")),
    "tool": (True, _tool),
    "log-level": (True, _one_of("level", "info", "warn", "error")),
    "log-file": (True, _log_file),
    "max-debuglog-size": (True, _integer(None, 1, 10240)),
    "leak-check": (True, _yes_no("leaks")),
    "check-unused-memory": (True, _yes_no("unused")),
    "check-device-heap": (True, _yes_no("device_heap")),
    "check-cann-heap": (True, _yes_no("cann_heap")),
    "block-id": (True, _integer("block", 0, 200)),
    "cache-size": (True, _integer(None, 1, 8192)),
    "kernel-name": (True, _kernel_name),
    "full-backtrace": (True, _yes_no("full_backtrace")),
    "demangle": (True, _one_of("demangle", "full", "simple", "no")),
    "padding": (True, _integer(None, 32, 1024)),
    "check-cross-npu-races": (True, _yes_no("cross_npu")),
    "check-dcci": (True, _yes_no("check_dcci")),
    "dcci-check": (True, _yes_no("check_dcci")),
    "trace-non-default-spr-reg": (True, _masks),
}
"""Whether an option takes a value, and what it does."""

ADDED: dict[str, tuple[bool, Setter]] = {
    "error-exitcode": (True, _integer("error_exitcode", 0, 255)),
    "format": (True, _formats),
    "output": (True, _path("output")),
    "strict": (False, _flag("strict")),
    "suppressions": (True, _more("suppressions", Path)),
    "gen-suppressions": (False, _flag("generate")),
    "baseline": (True, _path("baseline")),
    "print-limit": (True, _integer("print_limit", 0)),
    "max-per-site": (True, _integer("max_per_site", 1)),
    "fail-fast": (False, _flag("fail_fast")),
    "kernel-regex": (True, _more("kernel_patterns")),
    "kernel-name-exclude": (True, _more("kernel_excluded")),
    "launch-skip": (True, _integer("launch_skip", 0)),
    "launch-count": (True, _integer("launch_count", 0)),
    "all-blocks": (False, _flag("all_blocks")),
    "dcci": (True, _one_of("dcci", "exact", "strict")),
    "save": (True, _path("save")),
    "replay": (True, _path("replay")),
    "chip": (True, lambda options, value: setattr(options, "chip", value)),
}

SHORT = {"h": "help", "V": "version", "v": "version", "t": "tool"}


def read_options(words: Sequence[str]) -> tuple[Options, list[str]]:
    """The options, and the program with its arguments. Raises Refused."""
    groups = [{name: takes for name, (takes, _) in group.items()} for group in (VENDOR, ADDED)]
    try:
        given, program = parse(words, SHORT, groups)
    except Unrecognised:
        raise Refused("[mssanitizer] ERROR: unrecognized command", helps=True) from None
    options = Options()
    if any(re.match(r"-[hVv]*v", word) for word in words[: len(words) - len(program)]):
        options.warnings.append("WARNING: '-v' is deprecated; use '-V' instead.")
    for word in given:
        _apply(options, word)
    if options.device_heap and options.cann_heap:
        raise Refused("[mssanitizer] ERROR: CANNOT enable both --check-cann-heap and --check-device-heap")
    options.tools = list(dict.fromkeys(options.tools)) or ["memcheck"]
    if options.masks:
        options.level = "info"
    _notice_children(options, {word.name for word in given if word.value != "no"})
    return options, program


def _apply(options: Options, word: Word) -> None:
    _, setter = VENDOR.get(word.name) or ADDED[word.name]
    try:
        setter(options, word.value or "")
    except Bad:
        raise Refused(f"[mssanitizer] ERROR: --{word.name} param is invalid", helps=True) from None
    except Ignored:
        options.warnings.append(
            f"[mssanitizer] ERROR: param '{word.value}' contains invalid characters and is ignored."
        )


PARENTS = {
    "leak-check": "memcheck", "check-unused-memory": "memcheck", "check-device-heap": "memcheck",
    "check-cann-heap": "memcheck", "trace-non-default-spr-reg": "memcheck", "check-cross-npu-races": "racecheck",
    "check-dcci": "racecheck", "dcci-check": "racecheck",
}
"""Options that work only with a tool."""


def _notice_children(options: Options, given: set[str]) -> None:
    for name, tool in PARENTS.items():
        if name in given and tool not in options.tools:
            options.warnings.append(
                f"[mssanitizer] WARNING: '--{name}' is a sub-option for {tool}, you must enable both '--{name}' and "
                f"'--tool={tool}', otherwise this option will not work."
            )
