"""What `dyno` refuses before it connects: the published texts, to the byte, and exit code 2."""

from __future__ import annotations

import sys

import pytest

from npuscope import __version__
from npuscope.cli.dyno import main
from npuscope.monitor.protocol.npu_monitor import KINDS

NPUTRACE = ["nputrace", "--iterations", "1", "--start-step", "1", "--log-file", "/tmp/x"]
GPUTRACE = ["gputrace", "--log-file", "/tmp/x.json"]
TOO_LONG = "The input string is too long, max allowed: 1024"
ALL_KINDS = (
    '{"Marker", "Kernel", "API", "Hccl", "Memory", "MemSet", "MemCpy", "Communication", "AclAPI", "NodeAPI", '
    '"RuntimeAPI"}'
)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs `dyno`, which has to refuse; returns what it says."""

    def run(*words: str) -> str:
        # Nobody listens on port 1: what is not refused would exit 101.
        monkeypatch.setattr(sys, "argv", ["dyno", "--hostname", "127.0.0.1", "--port", "1", *words])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert (end.value.code, said.out) == (2, "")
        return said.err

    return run


@pytest.mark.parametrize(
    ("words", "flag", "value", "text"),
    [
        (NPUTRACE, "--iterations", "0", "Must be a positive integer"),
        (NPUTRACE, "--iterations", "-7", "Must be a positive integer"),
        (NPUTRACE, "--iterations", "x", "invalid digit found in string"),
        (NPUTRACE, "--iterations", "", "cannot parse integer from empty string"),
        (NPUTRACE, "--iterations", "9" * 30, "number too large to fit in target type"),
        (NPUTRACE, "--start-step", "-2", "Must be non-negative integer or -1"),
        (NPUTRACE, "--start-step", "1.5", "invalid digit found in string"),
        (NPUTRACE, "--pids", "1," * 600, TOO_LONG),
        (NPUTRACE, "--job-id", "-1", "invalid digit found in string"),
        (NPUTRACE, "--process-limit", "4294967296", "4294967296 is not in 0..=4294967295"),
        (NPUTRACE, "--gc-detect-threshold", "much", "invalid float literal"),
        (NPUTRACE, "--host-sys", "cpu,gpu", 'Invalid NPU Trace host system: gpu, Possible values: {"cpu", "mem", "disk", "network", "osrt"}.]'),
        (["npu-monitor"], "--duration", "-1", "Must be a positive number"),
        (["npu-monitor"], "--duration", "nan", "Must be a positive number"),
        (["npu-monitor"], "--duration", "soon", "invalid float literal"),
        (["npu-monitor"], "--report-interval-s", "-1", "-1 is not in 0..=4294967295"),
        (["npu-monitor"], "--mspti-activity-kind", "kernel", f"Invalid MSPTI activity kind: kernel, Possible values: {ALL_KINDS}.]"),
        (["npu-monitor"], "--mspti-activity-kind", "", f"Invalid MSPTI activity kind: , Possible values: {ALL_KINDS}.]"),
        (["npu-monitor"], "--json-rotate-log-lines", "99", "Must be an integer in [100, 500000]"),
        (["npu-monitor"], "--json-rotate-log-lines", "500001", "Must be an integer in [100, 500000]"),
        (["npu-monitor"], "--json-rotate-log-files", "1", "Must be -1 or an integer greater than or equal to 2"),
        (["npu-monitor"], "--json-rotate-log-files", "-2", "Must be -1 or an integer greater than or equal to 2"),
        (["npu-monitor"], "--filter", "x" * 1025, TOO_LONG),
        (GPUTRACE, "--pids", "1,x", "a comma-separated list of process numbers is expected"),
        (GPUTRACE, "--duration-ms", "-1", "invalid digit found in string"),
        (["dcgm-pause"], "--duration-s", "2147483648", "2147483648 is not in -2147483648..=2147483647"),
    ],
)  # fmt: skip
def test_values(refused, words: list[str], flag: str, value: str, text: str) -> None:
    shown = f"{flag} <{flag[2:].upper().replace('-', '_')}>"
    expected = f"error: invalid value '{value}' for '{shown}': {text}\n"
    assert refused(*words, f"{flag}={value}") == expected
    assert refused(*words, flag, value) == expected  # a minus after a space is no flag


@pytest.mark.parametrize(
    ("words", "flag", "possible"),
    [
        (NPUTRACE, "--activities", "CPU,NPU, NPU,CPU, CPU, NPU"),
        (NPUTRACE, "--profiler-level", "Level0, Level1, Level2, Level_none"),
        (NPUTRACE, "--aic-metrics", "AiCoreNone, PipeUtilization, ArithmeticUtilization, Memory, MemoryL0, ResourceConflictRatio, MemoryUB, L2Cache, MemoryAccess"),
        (NPUTRACE, "--data-simplification", "true, false"),
        (NPUTRACE, "--export-type", "Text, Db"),
        (["npu-monitor"], "--export-type", "DB, Jsonl"),
    ],
)  # fmt: skip
def test_words(refused, words: list[str], flag: str, possible: str) -> None:
    shown = f"{flag} <{flag[2:].upper().replace('-', '_')}>"
    assert refused(*words, flag, "db") == (
        f"error: invalid value 'db' for '{shown}'\n  [possible values: {possible}]\n"
    )  # fmt: skip


MISSING = "error: the following required arguments were not provided:\n"


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["gputrace"], ["--log-file <LOG_FILE>"]),
        (["nputrace"], ["--iterations <ITERATIONS>", "--log-file <LOG_FILE>", "--start-step <START_STEP>"]),
        (["nputrace", "--iterations", "1"], ["--log-file <LOG_FILE>", "--start-step <START_STEP>"]),
        (["nputrace", "--duration-ms", "5"], ["--log-file <LOG_FILE>"]),
        (["nputrace", "--duration-ms", "5", "--log-file", "/x", "--start-step", "1"], ["--iterations <ITERATIONS>"]),
        (["nputrace", "--duration-ms", "5", "--log-file", "/x", "--iterations", "1"], ["--start-step <START_STEP>"]),
    ],
)
def test_missing_flags_are_all_named(refused, words: list[str], missing: list[str]) -> None:
    assert refused(*words) == MISSING + "".join(f"  {one}\n" for one in missing)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nonsense"], "unrecognized subcommand 'nonsense'"),
        (["help", "nonsense"], "unrecognized subcommand 'nonsense'"),
        (["status", "x"], "unexpected argument 'x' found"),
        (["gputrace", "--with-stack"], "unexpected argument '--with-stack' found; a similar argument exists: '--with-stacks'"),
        (["nputrace", "--with-stacks"], "unexpected argument '--with-stacks' found; a similar argument exists: '--with-stack'"),
        (["gputrace", "--log_file", "x"], "unexpected argument '--log_file' found; a similar argument exists: '--log-file'"),
        (["status", "--port", "5"], "unexpected argument '--port' found; it goes before the sub-command"),
        (["gputrace", "--log-file"], "a value is required for '--log-file <LOG_FILE>' but none was supplied"),
        (["gputrace", "--log-file", "--json"], "a value is required for '--log-file <LOG_FILE>' but none was supplied"),
        (["status", "--json=3"], "unexpected value for '--json' found; no more were expected"),
        (["status", "--hosts", "a:b"], "not a port: 'b' in 'a:b'"),
        (["status", "--hosts", "[::1"], "not a host: '[::1'"),
        (["status", "--hosts", ","], "no host is named by --hosts and --hostfile"),
        ([*GPUTRACE, "--start-time-delay", "5", "--iterations", "3"], "the argument '--start-time-delay' cannot be used with '--iterations'"),
        ([*GPUTRACE, "--start-time-delay", "5", "--profile-start-time", "3"], "the argument '--start-time-delay' cannot be used with '--profile-start-time'"),
        ([*NPUTRACE, "--start-time-delay", "5"], "the argument '--start-time-delay' cannot be used with '--iterations'"),
    ],
)  # fmt: skip
def test_other_mistakes(refused, words: list[str], text: str) -> None:
    assert refused(*words) == f"error: {text}\n"


def test_a_bad_port(refused) -> None:
    text = "error: invalid value '65536' for '--port <PORT>': 65536 is not in 0..=65535\n"
    assert refused("--port", "65536", "status") == text


def test_no_command(refused, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused() == "error: 'dyno' requires a subcommand but one was not provided\n"
    monkeypatch.setattr(sys, "argv", ["dyno"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    help_text = capsys.readouterr().err
    for command in ("status", "version", "gputrace", "nputrace", "npu-monitor", "dcgm-pause", "dcgm-resume", "metrics"):
        assert f"\n  {command} " in help_text


@pytest.mark.parametrize("words", [["--version"], ["help"], ["help", "nputrace"], ["nputrace", "--help"]])
def test_what_needs_no_daemon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words) -> None:
    monkeypatch.setattr(sys, "argv", ["dyno", *words])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().out
    assert end.value.code == 0
    assert said == f"dyno {__version__}\n" if words == ["--version"] else "--help" in said


def test_the_kinds_are_those_published() -> None:
    assert tuple(ALL_KINDS.strip("{}").replace('"', "").split(", ")) == KINDS
