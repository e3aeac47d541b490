"""The options of mssanitizer, against the rules of sanitizer.md 1.2 and 1.3."""

from __future__ import annotations

from typing import Any

import pytest

from npuscope.cli.mssanitizer import checks_of, plan_of
from npuscope.cli.mssanitizer_options import ADDED, HELP, VENDOR, Options, Refused, read_options

PROGRAM = ["prog", "-t", "x"]


def options(*words: str) -> Options:
    """The options of a command line that ends in a program with arguments of its own."""
    found, program = read_options([*words, *PROGRAM])
    assert program == PROGRAM
    return found


def refusal(*words: str) -> Refused:
    """Why a command line is refused."""
    with pytest.raises(Refused) as caught:
        read_options([*words, *PROGRAM])
    return caught.value


def test_defaults() -> None:
    """As in the table of options."""
    found = options()
    assert (found.tools, found.level, found.demangle, found.error_exitcode) == (["memcheck"], "warn", "full", 0)
    assert not (found.leaks or found.unused or found.check_dcci or found.full_backtrace or found.masks)


@pytest.mark.parametrize(
    ("words", "tools"),
    [
        (["-t", "racecheck"], ["racecheck"]),
        (["-tracecheck", "--tool=initcheck"], ["racecheck", "initcheck"]),
        (["--tool", "synccheck", "-t", "memcheck", "--too", "synccheck"], ["synccheck", "memcheck"]),
    ],
)
def test_tools_are_a_union_that_replaces_the_default(words: list[str], tools: list[str]) -> None:
    assert options(*words).tools == tools


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--log-level", "info"], "level", "info"),
        (["--log-level=error"], "level", "error"),
        (["--log-l", "error"], "level", "error"),
        (["--log-file", "a/b-c_1.log"], "log_file", "a/b-c_1.log"),
        (["--leak-check", "yes"], "leaks", True),
        (["--leak-check", "yes", "--leak-check=no"], "leaks", False),
        (["--check-unused-memory=yes"], "unused", True),
        (["--check-device-heap=yes"], "device_heap", True),
        (["--check-c", "yes"], "cann_heap", None),
        (["--block-id", "0"], "block", 0),
        (["--block-id=200"], "block", 200),
        (["--b", "7"], "block", 7),
        (["--kernel-name", "add_1-x"], "kernel_names", ["add_1-x"]),
        (["--full-backtrace", "yes"], "full_backtrace", True),
        (["--demangle=no"], "demangle", "no"),
        (["--check-cross-npu-races", "yes"], "cross_npu", True),
        (["--check-dcci", "yes"], "check_dcci", True),
        (["--dcci-check=yes"], "check_dcci", True),
        (["--trace-non-default-spr-reg", "vector"], "masks", True),
        (["--p", "64"], "level", "warn"),
        (["--cache-size", "8192", "--max-debuglog-size=1"], "level", "warn"),
        (["--error-exitcode", "3"], "error_exitcode", 3),
        (["--format", "json,xml", "--output", "r"], "formats", ["json", "junit"]),
    ],
)
def test_values(words: list[str], name: str, value: Any) -> None:
    """Both spellings of a value, prefixes, ranges. ``--p`` is still the vendor's --padding, not --print-limit."""
    if value is None:
        assert str(refusal(*words)) == "[mssanitizer] ERROR: unrecognized command"  # --check-cann-heap, --check-cross...
    else:
        assert getattr(options(*words), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tool", "helgrind"), ("log-level", "debug"), ("leak-check", "maybe"), ("block-id", "201"), ("block-id", "-1"),
        ("block-id", "1x"), ("cache-size", "0"), ("cache-size", "8193"), ("max-debuglog-size", "10241"),
        ("padding", "31"), ("padding", "1025"), ("demangle", "half"), ("trace-non-default-spr-reg", "cube"),
        ("kernel-name", "k" * 2048), ("log-file", "l" * 4097), ("error-exitcode", "256"), ("dcci", "perhaps"),
        ("format", "yaml"), ("launch-count", "some"),
    ],
)
def test_bad_values(name: str, value: str) -> None:
    """The vendor's line, then the help."""
    found = refusal(f"--{name}={value}")
    assert (str(found), found.helps) == (f"[mssanitizer] ERROR: --{name} param is invalid", True)


@pytest.mark.parametrize("word", ["--nonsense", "-x", "--log", "--help=yes", "--leak-check"])
def test_unrecognised(word: str) -> None:
    """Unknown, ambiguous, an unwanted value, a value that is missing."""
    with pytest.raises(Refused) as caught:
        read_options([word])
    assert str(caught.value) == "[mssanitizer] ERROR: unrecognized command"


@pytest.mark.parametrize(("name", "value"), [("kernel-name", "add kernel"), ("log-file", "a;b"), ("log-file", "ä")])
def test_illegal_characters_are_ignored_in_words(name: str, value: str) -> None:
    found = options(f"--{name}", value)
    assert found.warnings == [f"[mssanitizer] ERROR: param '{value}' contains invalid characters and is ignored."]
    assert (found.kernel_names, found.log_file) == ([], None)


def test_where_options_end() -> None:
    """At the first word that is none, or at ``--``."""
    assert read_options(["-t", "racecheck", "--", "-t", "x"])[1] == ["-t", "x"]
    assert read_options(["prog", "--tool", "racecheck"])[0].tools == ["memcheck"]


def test_heap_modes_exclude_each_other() -> None:
    found = refusal("--check-device-heap=yes", "--check-cann-heap=yes")
    assert str(found) == "[mssanitizer] ERROR: CANNOT enable both --check-cann-heap and --check-device-heap"


def test_heap_modes_leave_kernels_alone() -> None:
    found = options("--check-device-heap=yes", "-t", "memcheck", "-t", "racecheck")
    assert checks_of(found) == ("memory",)
    assert plan_of(found).settings.leaks


def test_a_sub_option_without_its_tool_is_noticed() -> None:
    (line,) = options("-t", "racecheck", "--leak-check=yes").warnings
    assert "'--leak-check' is a sub-option for memcheck, you must enable both" in line
    assert line.endswith("otherwise this option will not work.")
    assert options("-t", "racecheck", "--leak-check=no").warnings == []


def test_trace_of_masks_forces_the_level() -> None:
    found = options("--log-level=error", "--trace-non-default-spr-reg=vector")
    assert found.level == "info"
    assert plan_of(found).settings.trace_masks


def test_dcci_needs_racecheck_and_its_option() -> None:
    """Off unless asked for; then the vendor's rule."""
    assert plan_of(options("-t", "racecheck")).settings.dcci == "off"
    assert plan_of(options("-t", "racecheck", "--dcci-check=yes")).settings.dcci == "strict"
    assert plan_of(options("-t", "racecheck", "--dcci-check=yes", "--dcci=exact")).settings.dcci == "exact"
    assert plan_of(options("--check-dcci=yes")).settings.dcci == "off"


def test_version_letters() -> None:
    """-v still works and says that it is on its way out."""
    found, _ = read_options(["-v"])
    assert (found.shows, found.warnings) == ("version", ["WARNING: '-v' is deprecated; use '-V' instead."])
    assert read_options(["-V"])[0].warnings == []
    assert read_options(["-hV"])[0].shows == "help"


def test_the_help_names_every_option() -> None:
    for name in [*VENDOR, *ADDED]:
        assert f"--{name}" in HELP, name


def test_an_added_option_never_shadows_a_prefix_of_the_vendors() -> None:
    """Every prefix that is unambiguous among the vendor's options means the same with ours beside them."""
    for full in VENDOR:
        for length in range(1, len(full) + 1):
            prefix = full[:length]
            if prefix not in ADDED and [name for name in VENDOR if name.startswith(prefix)] == [full]:
                words = [f"--{prefix}=yes"] if VENDOR[full][0] else [f"--{prefix}"]
                try:
                    read_options(words)
                except Refused as refused:
                    assert f"--{full} " in str(refused), (prefix, str(refused))
