"""Two saved profiles: what changed, and what limits say of it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import orjson
import pytest
from lined import on_line, profile
from made_timeline import Maker

from npuscope.errors import UserError
from npuscope.profiler.compare.difference import Change, compare
from npuscope.profiler.compare.limits import judge, read_limit
from npuscope.profiler.compare.saved import read_launches
from npuscope.report.profile.comparison import comparison_json, comparison_junit, comparison_text
from npuscope.report.profile.document import profile_json
from npuscope.trace.timeline import Lane


def launch(copy: int = 600, line: int = 7) -> dict[str, Any]:
    """A copy of so many cycles on a line, then 300 cycles of computation on line 9."""
    maker = Maker()
    on_line(maker, maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 100, 100 + copy, issue=100), line)
    on_line(maker, maker.slice("VADD", Lane.VECTOR, 100 + copy, 400 + copy), 9)
    document = orjson.loads(profile_json([profile(maker, 400 + copy)]))
    return document["launches"][0]


def test_identical_runs_have_no_changes() -> None:
    """T56 of the specification."""
    found = compare([launch()], [launch()])
    assert not found.changed
    assert all(change.delta in (0, None) for change in found.launches[0].metrics.values())
    assert [(line.cycles.delta, line.critical.delta) for line in found.launches[0].lines] == [(0, 0), (0, 0)]
    assert comparison_text(found).splitlines()[-1] == "nothing changed"


def test_changes_have_their_signs() -> None:
    found = compare([launch(600)], [launch(300)]).launches[0]
    for name, old, new in [
        ("cycles", 1000, 700),
        ("busy:MTE2", 600, 300),
        ("critical:MTE2", 600, 300),
        ("busy:VECTOR", 300, 300),
    ]:
        assert (found.metrics[name].old, found.metrics[name].new) == (old, new), name
    assert found.metrics["cycles"].relative == pytest.approx(-0.3)
    assert found.metrics["time_us"].delta == pytest.approx(-300 / 1650)
    first = found.lines[0]
    assert (first.place, first.cycles.delta, first.critical.delta) == ("kernel.py:7", -300, -300)


def test_a_line_that_moved_is_the_same_line() -> None:
    old, new = launch(), launch(line=8)
    for one, text in ((old, "copy(x)"), (new, "copy(x)")):
        one["lines"][0]["text"] = text
    line = next(line for line in compare([old], [new]).launches[0].lines if line.text == "copy(x)")
    assert (line.place, line.cycles.delta) == ("kernel.py:7 -> 8", 0)


def test_a_line_that_is_gone_and_one_that_is_new() -> None:
    lines = {line.place: line.cycles for line in compare([launch(line=7)], [launch(line=8)]).launches[0].lines}
    assert (lines["kernel.py:7"].old, lines["kernel.py:7"].new) == (600, 0)
    assert (lines["kernel.py:8"].old, lines["kernel.py:8"].new) == (0, 600)


def test_launches_are_paired_by_kernel_and_order() -> None:
    other = launch() | {"kernel": "other"}
    found = compare([launch(), other, launch(300)], [launch(), launch(400), launch()])
    assert [(one.kernel, one.number, one.metrics["cycles"].delta) for one in found.launches] == [
        ("made", 0, 0),
        ("made", 1, 100),
    ]
    assert (found.only_old, found.only_new) == ((("other", 0),), (("made", 2),))


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("cycles>+5%", True), ("cycles > 10%", False), ("cycles>=+10%", True), ("cycles>+10%", False), ("duration>+5%", True),
        ("cycles>+99", True), ("cycles>+100", False), ("cycles>1099", True), ("cycles>1100", False), ("cycles<+5%", False),
        ("busy:MTE2>+16%", True), ("busy:MTE2>+17%", False), ("line:kernel.py:7>+0", True), ("line:kernel.py:9>+0", False),
        ("line:*>+0", True), ("critical:MTE2>=700", True), ("cycles<-1%", False),
    ],
)  # fmt: skip
def test_limits(text: str, broken: bool) -> None:
    """From 1000 to 1100 cycles: exactly 10 % more; the copy from 600 to 700."""
    verdicts = judge(compare([launch(600)], [launch(700)]), [read_limit(text)])
    assert [verdict.broken for verdict in verdicts] == [broken]


def test_a_figure_that_was_nothing() -> None:
    assert Change("x", 0, 5).relative == float("inf") and Change("x", 0, 0).relative == 0
    assert read_limit("x>+5%").broken(Change("x", 0, 5)) is True
    assert read_limit("x>+5%").broken(Change("x", None, 5)) is None


@pytest.mark.parametrize("text", ["", "cycles", "cycles>", ">5", "cycles=5", "cycles>5 %%", "cycles>five", "cycles>>5"])
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(UserError, match="not of the form") as raised:
        read_limit(text)
    assert "\n" not in str(raised.value)


def test_a_metric_that_there_is_not() -> None:
    with pytest.raises(UserError, match=r"no metric 'cycle'; there is cycles"):
        judge(compare([launch()], [launch()]), [read_limit("cycle>+5%")])
    with pytest.raises(UserError, match="no launch has cycles at kernel.py:99"):
        judge(compare([launch()], [launch()]), [read_limit("line:kernel.py:99>+5%")])
    with pytest.raises(UserError, match="no launch in common"):
        judge(compare([launch()], [launch() | {"kernel": "other"}]), [read_limit("cycles>+5%")])


def test_text_and_documents() -> None:
    difference = compare([launch(600)], [launch(700)])
    verdicts = judge(difference, [read_limit("cycles>+5%"), read_limit("busy:VECTOR>+0")])
    text = comparison_text(difference, verdicts)
    assert "modelled" in text
    assert "FAILED: cycles>+5%: made (launch 1): cycles 1,000 -> 1,100 (+100, +10.0 %)" in text
    assert "ok: busy:VECTOR>+0" in text
    found = json.loads(comparison_json(difference, verdicts))
    assert found["changed"] and found["failed"]
    assert found["launches"][0]["metrics"]["cycles"] == {
        "old": 1000,
        "new": 1100,
        "delta": 100,
        "relative": pytest.approx(0.1),
    }
    suite = Xml.fromstring(comparison_junit(verdicts))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.find("failure") is not None for case in suite] == [True, False]


def test_a_different_chip_is_said() -> None:
    assert "do not compare like with like" in comparison_text(compare([launch()], [launch() | {"chip": "Ascend910B1"}]))


def test_folders(tmp_path: Path) -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 0, 10)
    for number in (2, 10, 1):
        folder = tmp_path / "kernel" / str(number) / "report"
        folder.mkdir(parents=True)
        document = orjson.loads(profile_json([profile(maker)]))
        document["launches"][0]["index"] = number
        (folder / "profile.json").write_bytes(orjson.dumps(document))
    assert [launch["index"] for launch in read_launches(tmp_path)] == [1, 2, 10]
    assert [launch["index"] for launch in read_launches(tmp_path / "kernel/2/report/profile.json")] == [2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "holds no JSON"), (b"[]", "not a profile that npuscope wrote"), (b'{"format": "npuscope profile", "version": 99}', "version 99"),
        (b'{"format": "npuscope profile", "version": 1, "launches": 5}', "damaged"),
    ],
)  # fmt: skip
def test_files_that_are_no_profiles(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_launches(tmp_path / "x.json")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_launches(tmp_path / "none.json")
    with pytest.raises(UserError, match="no profile.json"):
        read_launches(tmp_path)


def test_a_pipe_that_came_into_use() -> None:
    new = deepcopy(launch())
    new["pipes"]["MTE3"] = {"busy": 50, "wait": 0, "instructions": 3}
    change = compare([launch()], [new]).launches[0].metrics["busy:MTE3"]
    assert (change.old, change.delta) == (0, 50)
