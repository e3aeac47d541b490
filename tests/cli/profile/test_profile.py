"""`npuscope profile`: scripts, traces, what is printed and written, exit codes, comparison."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

ROOT = Path(__file__).resolve().parents[3]
THREE = "launch(64)\nlaunch_other(64)\nlaunch(64, 2)\n"


def status(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return document


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of an example."""
    pytest.importorskip("asc")
    path = tmp_path_factory.mktemp("recorded") / "trace"
    words = ["record", "-o", str(path), str(ROOT / "examples" / "pyasc" / "add_flags.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-m", "npuscope", *words], env=environment, capture_output=True, check=True)
    return path


@pytest.fixture
def trace(npuscope: Run, script: Write, tmp_path: Path) -> Path:
    """The recorded run of THREE."""
    done = npuscope("record", "-o", "run.trace", script(THREE))
    assert done.returncode == 0, done.stderr
    return tmp_path / "run.trace"


def test_a_script(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """Its output and exit code stay its own; a part for each launch; files with an inventory."""
    done = npuscope(
        "profile", "-o", "out", script("print('mine', sys.argv[1:])\n" + THREE + "sys.exit(7)\n"), "-o", "x"
    )
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "mine ['-o', 'x']"
    heads = [line for line in lines if re.match(r"(copy|other): .* \(modelled\), ", line)]
    assert [line.split(":")[0] for line in heads] == ["copy", "other", "copy"]
    found = status(tmp_path / "out")
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert set(found["files"]) == names
    assert {"report/index.html", "report/profile.json", "copy/1/visualize_data.bin", "other/0/simulator/trace.json",
            "copy/0/report/perfetto_trace.json"} <= names  # fmt: skip
    assert lines[-1] == f"Written to out: {len(names)} files, see out/report/index.html"
    assert found["application"]["exit"] == 7 and not found["partial"]


def test_a_trace(inside: Run, trace: Path, tmp_path: Path) -> None:
    """Chosen launches; another chip, another fact; a folder that is written again loses what is old and nothing else."""

    def cycles(*words: str) -> list[int]:
        done = inside("profile", "-o", "out", "--format", "json", *words, trace)
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / "out" / "tmp_dump").exists()
        return [item["cycles"] for item in status(tmp_path / "out")["kernels"]]

    first = cycles()
    assert len(first) == 3
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert cycles("--kernel", "copy", "--skip", "1") == [first[2]]
    assert cycles("--kernel", "regex:^o", "--launches", "1") == [first[1]]
    assert cycles("--chip", "Ascend910B4") != first
    assert cycles("--fact", "timing.launch.overhead_us=100")[0] > first[0] + 100
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"notes.txt", "report", "status.json"}
    done = inside("profile", "--format", "csv", "--metrics", "basic", "-o", "out", "--page", "pipe", trace)
    assert done.returncode == 0 and {path.name for path in (tmp_path / "out").iterdir()} == {
        "notes.txt", "copy", "other", "status.json",
    }  # fmt: skip


def test_names_of_their_own(inside: Run, trace: Path, tmp_path: Path) -> None:
    """Files of several launches that are opened side by side have different names (opprof.md 9, pain 5); a run that
    writes there again removes them."""
    done = inside("profile", "-o", "out", "--unique-names", "--format", "csv,trace", trace)
    assert done.returncode == 0, done.stderr
    names = [Path(name).name for name in status(tmp_path / "out")["files"]]
    assert {"copy_0.trace.json", "copy_1.trace.json", "other_0.trace.json"} <= set(names)
    assert all(name.startswith(("copy_0.", "copy_1.", "other_0.")) for name in names if name != "status.json")
    assert any(re.fullmatch(r"other_0\.OpBasicInfo_\d{17}\.csv", name) for name in names)
    done = inside("profile", "-o", "out", "--unique-names", "--format", "csv", "--launches", "1", trace)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "copy_0.OpBasicInfo.csv").is_file() and not list((tmp_path / "out").rglob("*trace.json"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--chip", "910X"], "unknown chip '910X'"),
        (["--metrics", "Nonsense"], "--metrics Nonsense: Invalid metric options!"),
        (["--metrics", "PcSampling"], "--metrics PcSampling: Unexpected argument in --aic-metrics, maybe in wrong soc platform"),
        (["--format", "pdf"], "--format pdf: there are csv, bin, trace, json, html, perfetto and all"),
        (["--page", "all"], "--page all: there are summary, details"),
        (["--fact", "timing"], "--fact timing: write NAME=VALUE with a number"),
        (["--fact", "timing.none=1"], "timing.none"),
        (["--kernel", "regex:("], "kernel name regex:("),
        (["--fail-if", "cycles>+5%"], "--fail-if needs --baseline OLD"),
        (["--baseline", "none"], "none: cannot be read"),
        (["--rules", "none.py"], "none.py: cannot be read"),
        (["--range", "R"], "a recorded trace takes no arguments, no --range"),
        (["--launches", "0"], "Invalid value for '--launches'"),
        (["--kernel", "zzz"], "launched no kernel that fits; nothing is profiled"),
    ],
)  # fmt: skip
def test_what_is_refused(inside: Run, recorded: Path, tmp_path: Path, words: list[str], text: str) -> None:
    """One line, exit 2, nothing is created."""
    done = inside("profile", "-o", "out", *words, recorded)
    assert (done.returncode, done.stdout) == (2, "") and text in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_nothing_to_profile(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """No launch; none that was asked for; no such script."""
    done = npuscope("profile", "-o", "out", script("print(1)\n"))
    assert done.returncode == 2 and done.stderr.endswith("script.py launched no kernel; nothing is profiled\n")
    done = npuscope("profile", "-o", "out", "--kernel", "Z", script(THREE))
    assert done.returncode == 2
    assert done.stderr.endswith("none of the 3 launches was asked for; their kernels are: copy, other\n")
    assert npuscope("profile", "-o", "out", "none.py").returncode == 2
    assert not (tmp_path / "out").exists()


def test_a_list_of_launches(npuscope: Run, inside: Run, trace: Path, script: Write) -> None:
    """Number, kernel, cores, chip and place of each; those that the choice lets in are marked."""
    done = npuscope(
        "profile",
        "--list-kernels",
        "--kernel",
        "copy",
        "--range",
        "R",
        script("import mstx\n" + THREE.replace("launch(64, 2)", "mstx.range_start('R')\nlaunch(64, 2)")),
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["0", "copy"], ["1", "other"], ["2", "*"]]
    assert re.fullmatch(r"    2 \* copy  2 AIV  Ascend910B1  .*script.py:\d+  in R", lines[2])
    done = inside("profile", "--list-kernels", trace)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4


def test_comparison(inside: Run, trace: Path, tmp_path: Path) -> None:
    """T56: the same twice has no difference; a slower one breaks a limit, exit 1; two saved runs; a bad expression."""
    assert inside("profile", "-o", "old", "--format", "json", trace).returncode == 0
    done = inside("profile", "--baseline", "old", "--fail-if", "cycles>0%", trace)
    assert done.returncode == 0, done.stdout + done.stderr
    slower = ["--fact", "timing.launch.overhead_us=100"]
    done = inside(
        "profile", "-o", "new", "--format", "json", *slower, "--baseline", "old", "--fail-if", "cycles>+5%", trace
    )
    assert done.returncode == 1 and "cycles>+5%" in done.stdout
    done = inside("profile", "--baseline", "old", "--fail-if", "cycles>+5%", "new")
    assert done.returncode == 1
    assert inside("profile", "--baseline", "new/report/profile.json", "old/report/profile.json").returncode == 0
    done = inside("profile", "--baseline", "old", "--fail-if", "cycles>>5", trace)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_a_time_limit(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """The script is ended, what it launched is there, exit 124."""
    text = "launch(64)\nimport time\ntime.sleep(60)\n"
    done = npuscope("profile", "-o", "out", "--format", "json", "--time-limit", "6", script(text))
    assert done.returncode == 124, done.stderr
    assert "the time limit is reached" in done.stderr
    assert status(tmp_path / "out")["application"]["timed_out"] and status(tmp_path / "out")["partial"]


def test_enough(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """--stop ends the script when the launches are there; that is success."""
    done = npuscope(
        "profile", "-o", "out", "--format", "json", "--stop", "--launches", "1", script(THREE + "print('it goes on')\n")
    )
    assert (done.returncode, "it goes on" in done.stdout) == (0, False)
    assert len(status(tmp_path / "out")["kernels"]) == 1


def test_ctrl_c(command: Callable[..., Any], script: Write, tmp_path: Path) -> None:
    """What was launched is profiled; 130."""
    text = "launch(64)\nprint('ready', flush=True)\nimport time\ntime.sleep(60)\n"
    process = command("profile", "-o", "out", "--format", "json", script(text))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "copy: " in out
    assert status(tmp_path / "out")["application"]["interrupted"]


def test_a_folder_that_cannot_be_written(inside: Run, recorded: Path, tmp_path: Path) -> None:
    """One line, before any work; two runs into one folder at once."""
    (tmp_path / "file").write_text("")
    done = inside("profile", "-o", "file", recorded)
    assert (
        done.returncode == 2 and done.stderr.startswith("npuscope: cannot write file") and done.stderr.count("\n") == 1
    )
    from npuscope.cli.profile_folder import RunFolder

    other = RunFolder(tmp_path / "out")
    done = inside("profile", "-o", "out", recorded)
    assert done.returncode == 2 and "another run is writing to out" in done.stderr
    other.discard()
