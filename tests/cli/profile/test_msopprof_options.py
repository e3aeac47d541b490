"""The command line of `msopprof`: what is refused, in which words and in which order (opprof.md 1.5, T20 to T23)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from npuscope.cli.msopprof import main as command
from npuscope.cli.msopprof.grammar import take_apart
from npuscope.cli.msopprof.options import Options, read_options
from npuscope.profiler.instruction_timeline.pipes import PipeChoice
from npuscope.trace.timeline import Lane

MORE = "[INFO]  Use msprof op --help or msprof op simulator --help for more details"
APP = "python app.py"
Refuse = Callable[[str], str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MSOPT_LOG_LEVEL", raising=False)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """The text that a command line is refused with; nothing may be created."""

    def run(line: str) -> str:
        before = sorted(tmp_path.iterdir())
        assert command.run(line.split()) == 2
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1] == MORE and lines[-2].startswith("[ERROR] ")
        assert sorted(tmp_path.iterdir()) == before
        return lines[-2].removeprefix("[ERROR] ")

    return run


def options(line: str) -> Options:
    return read_options(take_apart(line.split()))


COUNT = "Launch count should within [1, 5000]"
CORES = (
    "--core-id is invalid, the cores to be parsed should be separated by '|', "
    "and each core id should be an integer which within [0, 49]."
)
NAME = (
    "invalid kernel name, name contains unsupported character in name,"
    "Support characters in one kernel name are: A-Z a-z 0-9 _ *"
)
NONE = "Input parameter config, export and application can not be used together or empty at the same time"
SOC = "Unexpected argument in --aic-metrics, maybe in wrong soc platform"
B1 = f"{SOC} (Ascend910B1 is assumed: name the kernel's chip with --soc-version)"
BOTH = "Unexpected argument --aic-metrics, 'PipeTimeline' and 'InstrTimeline' cannot be specified together."
A5 = "--soc-version=Ascend950PR_9589"
PIPES = "[cube fixp vector simd simt mte1 mte2 mte3]"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", NONE),
        (f"--application=python {APP}", NONE),
        (f"--config=c.json {APP}", NONE),
        ("no_such_program_anywhere", "application to be profiled is not exist or not executable."),
        ("--application=/etc/passwd", "application to be profiled is not exist or not executable."),
        ("--output out python app.py", "argument --output miss value"),
        (f"--foo=1 {APP}", "unexpected argument --foo"),
        (f"-x {APP}", "unexpected argument -x"),
        (f"--export=logs {APP}", "unexpected argument --export"),
        (f"simulator --warm-up=1 {APP}", "unexpected argument --warm-up"),
        (f"--output={'o' * 201} {APP}", "--output parameter length is larger than 200."),
        (
            f"--output=/etc/passwd {APP}",
            "--output parameter is not a folder but already exist, please check output path is correct.",
        ),
        (f"--kernel-name=a/b {APP}", NAME),
        (f"--kernel-name=a||b {APP}", "invalid kernel name, name is too long or empty"),
        (f"--kernel-name={'a' * 300} {APP}", "invalid kernel name, name is too long or empty"),
        (f"--kernel-name={'a|' * 600} {APP}", "--kernel-name input length exceeds limitation."),
        (f"--launch-count=0 {APP}", COUNT),
        (f"--launch-count=5001 {APP}", COUNT),
        (f"--launch-count=99999999999999999999 {APP}", COUNT),
        (f"--launch-count=abc {APP}", "Launch count should be number and within [1, 5000]"),
        (f"--launch-count=-1 {APP}", "Launch count should be number and within [1, 5000]"),
        (f"--launch-skip-before-match=1001 {APP}", "Launch-skip-before-match should within [0, 1000]"),
        (f"--launch-skip-before-match=x {APP}", "Launch-skip-before-match should be number and within [0, 1000]"),
        (f"--mstx=yes {APP}", "--mstx should use on/off"),
        (f"--mstx-include=R {APP}", "--mstx-include only support when --mstx=on"),
        (f"--mstx=on --mstx-include={'r' * 1100} {APP}", "--mstx-include input length exceeds limitation"),
        (f"--aic-metrics={'Memory,' * 40} {APP}", "Invalid --aic-metrics options!"),
        (f"--aic-metrics=Memory,,L2Cache {APP}", "Invalid metric options!"),
        (f"--aic-metrics=Nonsense {APP}", "Invalid metric options!"),
        (f"--aic-metrics=PMSampling {APP}", "Unexpected argument in --aic-metrics, maybe in wrong run mode"),
        (f"simulator --aic-metrics=Roofline {APP}", "Unexpected argument in --aic-metrics, maybe in wrong run mode"),
        (f"simulator --aic-metrics=TimelineDetail {APP}", "--aic-metrics=TimelineDetail is invalid in simulator"),
        (f"--aic-metrics=PcSampling {APP}", B1),
        (f"--aic-metrics=instrTimeline {APP}", B1),
        (f"--soc-version=Ascend910B1 --aic-metrics=instrTimeline {APP}", SOC),
        (f"{A5} --aic-metrics=PipeTimeline,InstrTimeline {APP}", BOTH),
        (f"--core-id=0 {APP}", "--core-id requires --aic-metrics=TimelineDetail."),
        (f"--aic-metrics=TimelineDetail --core-id=50 {APP}", CORES),
        (f"simulator --core-id=1,2 {APP}", CORES),
        (f"simulator --core-id={'1|' * 101} {APP}", "--core-id input length exceeds limitation."),
        (f"simulator --dump=1 {APP}", "--dump should be on/off"),
        (f"--dump=on {APP}", "--dump requires --aic-metrics=TimelineDetail."),
        (f"simulator --timeout=0 {APP}", "--timeout is invalid, it should be an integer which within [1, 2880]."),
        (f"--timeout=2881 {APP}", "--timeout is invalid, it should be an integer which within [1, 2880]."),
        (f"--kill=1 {APP}", "Kill should be on/off"),
        (f"--replay-mode=none {APP}", "Replay mode should be application/kernel/range"),
        (f"--soc-version=Ascend310P3 --replay-mode=range {APP}", "Replay mode should be application/kernel"),
        (f"--replay-mode=range {APP}", "--replay-mode=range only support when --mstx=on"),
        (
            f"--replay-mode=application --aic-metrics=TimelineDetail {APP}",
            "--aic-metrics=TimelineDetail is invalid when --replay-mode=application",
        ),
        (
            f"--mstx=on --replay-mode=range --aic-metrics=Source {APP}",
            "--aic-metrics=TimelineDetail/Source/MemoryDetail is invalid when --replay-mode=range",
        ),
        (f"--warm-up=501 {APP}", "Warm up times should within [0, 500]"),
        (f"--warm-up=x {APP}", "Warm up times should be number and within [0, 500]"),
        (f"--pipe=MTE2 {APP}", "--instr-timeline-pipe only support when --aic-metrics include InstrTimeline."),
        (
            f"{A5} --aic-metrics=InstrTimeline --pipe=scalar {APP}",
            f"--instr-timeline-pipe only support pipes in {PIPES} and separated by '|'.",
        ),
    ],
)
def test_what_is_refused(refuse: Refuse, line: str, text: str) -> None:
    """The vendor's words, and nothing is created."""
    assert refuse(line) == text


def test_a_simulator_that_there_is_not(refuse: Refuse) -> None:
    """The text names those that there are."""
    text = refuse(f"simulator --soc-version=Ascend999 {APP}")
    assert re.fullmatch(r"--soc-version is invalid, please specify a simulator in \[.*Ascend910B1 .*\]", text)


def test_the_first_mistake_is_told(refuse: Refuse) -> None:
    """In the order of the specification, not of the command line."""
    assert refuse(f"--warm-up=501 --kill=1 --aic-metrics=Nonsense --launch-count=0 {APP}") == COUNT
    assert refuse(f"--warm-up=501 --kill=1 --launch-skip-before-match=x {APP}").startswith("Launch-skip")
    assert refuse(f"simulator --timeout=0 --soc-version=x {APP}").startswith("--soc-version")


def test_everything_after_the_first_bare_word_is_the_applications() -> None:
    """Also what looks like ours, of which there is a warning; an empty value keeps the default; the last one counts."""
    found = options("--output= --launch-count=3 --launch-count=4 python app.py --kernel-name=x -h")
    assert (
        found.program[1:] == ["app.py", "--kernel-name=x", "-h"] and found.command == "python app.py --kernel-name=x -h"
    )
    assert (found.output, found.count, found.names) == (Path("."), 4, "")
    assert found.warnings == [
        "--kernel-name=x stands after the application and belongs to it; our options come before it"
    ]


def test_what_is_taken() -> None:
    """A full line of each mode."""
    found = options(
        "--kernel-name=add*|mul --launch-count=5000 --launch-skip-before-match=1000 --mstx=on --mstx-include=a|b c "
        "--kill=on --replay-mode=application --warm-up=0 --timeout=2880 python app.py".replace("b c", "b")
    )
    assert (found.choice.names, found.choice.count, found.choice.skip) == ("add*|mul", 5000, 1000)
    assert (found.choice.ranges, found.choice.stop, found.replay, found.warm_up) == (("a", "b"), True, "application", 0)
    assert found.timeout == 2880 and not found.simulator
    found = options(
        "simulator --core-id=3|0|3 --dump=on --soc-version=Ascend910B4 --aic-metrics=PipeUtilization python a"
    )
    assert (found.cores, found.dump, found.chip, found.simulator) == ((0, 3), True, "Ascend910B4", True)
    assert not found.selection.waits and found.selection.simulated_timeline


@pytest.mark.parametrize("words", ["--pipe=MTE2/simd", "--instr-timeline-pipe=mte2|SIMD", "--pipe=mte2,simd"])
def test_both_spellings_of_the_pipes(words: str) -> None:
    """In any letter case, with any of the separators (D1); as the name of the group (D17)."""
    found = options(f"{A5} --aic-metrics=instrtimeline {words} python app.py")
    assert found.pipes == PipeChoice(frozenset({Lane.MTE2, Lane.VECTOR}), simd=True, simt=False)
    assert found.selection.instructions


def test_the_simulator_is_the_first_word_only() -> None:
    """Later it is a program."""
    assert take_apart(["--launch-count=1", "simulator"]).application == ["simulator"]


def test_the_chip_of_the_library_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator's own library names its chip."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/a:/cann/tools/simulator/Ascend910B4/lib:/b")
    assert options("simulator python app.py").chip == "Ascend910B4"
    assert options("python app.py").chip is None


def test_scalar_spans_where_there_are_none() -> None:
    """OverHead on A5: a notice, and the run goes on (T32)."""
    found = options(f"simulator {A5} --aic-metrics=OverHead python app.py")
    assert [line for line in found.warnings if "OverHead is not supported" in line]


def test_a_folder_that_is_a_link_or_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T59: warnings; results go elsewhere where they cannot go there."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = options("--output=link python app.py")
    assert found.output == Path("link") and "soft link" in found.warnings[0]
    monkeypatch.setattr(
        "npuscope.cli.msopprof.options.os",
        SimpleNamespace(
            path=__import__("os").path, environ={}, access=lambda path, mode: "real" not in str(path), W_OK=2, X_OK=1
        ),
    )
    found = options("--output=real/new python app.py")
    assert found.output == Path(".") and "not writable" in found.warnings[0]


CONFIG = {
    "kernel_name": "add",
    "kernel_path": "add.o",
    "blockdim": 8,
    "test_cases": [{"param_desc": [{"param_type": "input"}]}],
}


def test_a_kernel_object(tmp_path: Path, refuse: Refuse, capsys: pytest.CaptureFixture[str]) -> None:
    """Is looked at, and then it is said in a line that it cannot run here."""
    path = tmp_path / "case.json"
    path.write_text(json.dumps(CONFIG))
    assert command.run([f"--config={path}"]) == 2
    assert "a kernel object needs a card" in capsys.readouterr().out
    assert refuse(f"--config={path} --kernel-name=add") == "--kernel-name only supports application mode"
    assert refuse(f"--config={path} --soc-version=Ascend910B1") == "--soc-version is not effective in config mode"
    for change, text in (
        ({"test_cases": [{}, {}]}, "Only support one case for kernel."),
        ({"kernel_path": ""}, "kernel_path should be a text"),
        ({"blockdim": 0}, "blockdim should be a number of at least 1"),
        ({"mode": "other"}, "mode should be onboard or ca"),
        ({"magic": "elf"}, "magic should be one of"),
        ({"test_cases": [{"param_desc": [{"param_type": "inout"}]}]}, "param_type should be one of"),
    ):
        path.write_text(json.dumps({**CONFIG, **change}))
        assert text in refuse(f"--config={path}")
    path.write_text("{")
    assert "is no JSON" in refuse(f"--config={path}")
    assert "cannot be read" in refuse("--config=none.json")


def test_names_for_time_stamps(tmp_path: Path, refuse: Refuse) -> None:
    """T53: decimal and hexadecimal ids; 1025 of them, or a name with other letters, are refused."""
    path = tmp_path / "labels.json"

    def write(names: dict[str, str], **more: object) -> str:
        path.write_text(json.dumps({"mc2_trace_config": {"descid_display": names, **more}}))
        return f"--custom-input={path} {APP}"

    labels = options(write({"65535": "copy in", "0x10000": "all-reduce"}, enable_block_time=False)).labels
    assert labels.names == {65535: "copy in", 65536: "all-reduce"} and not labels.block_time
    assert "at most 1024 entries, found 1025" in refuse(write({str(number): "x" for number in range(1025)}))
    assert "is not a decimal or 0x number" in refuse(write({"0xzz": "x"}))
    assert "longer than 64" in refuse(write({"1": "a" * 65}))
    assert "may hold letters" in refuse(write({"1": "a/b"}))
    assert "enable_block_time" in refuse(write({}, enable_block_time="yes"))


def test_help_version_and_msprof(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`msprof` has one command here."""
    assert command.run(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: msprof op [options] <app> [app args]\n")
    assert command.run(["simulator", "-v"]) == 0
    assert capsys.readouterr().out.startswith("msopprof ")
    monkeypatch.setattr("sys.argv", ["msprof", "--application=x"])
    with pytest.raises(SystemExit) as ended:
        command.msprof()
    assert ended.value.code == 2
    assert capsys.readouterr().out.splitlines() == [
        "[ERROR] this msprof has one command, op: msprof op [simulator] [options] <app> [app args]"
    ]
    monkeypatch.setattr("sys.argv", ["msprof", "op", "-v"])
    with pytest.raises(SystemExit) as ended:
        command.msprof()
    assert ended.value.code == 0


def test_levels_of_the_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """3: errors only; a bad value is told and ignored; a long message is cut at 1000 characters."""
    monkeypatch.setenv("MSOPT_LOG_LEVEL", "3")
    assert command.run(["--launch-count=0", *APP.split()]) == 2
    assert capsys.readouterr().out == f"[ERROR] {COUNT}\n"
    monkeypatch.setenv("MSOPT_LOG_LEVEL", "4")
    assert command.run(["-v"]) == 0
    assert capsys.readouterr().out.startswith("[WARN]  MSOPT_LOG_LEVEL should be 0, 1, 2 or 3; 4 is ignored\n")
    assert command.run([f"--{'x' * 2000}=1"]) == 2
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("[ERROR]"))
    assert len(line) == len("[ERROR] ") + 1000
