"""Suppression rules: what they match, how a file is read, what a bad one is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from npuscope.errors import UserError
from npuscope.sanitizer.findings import Access, Finding, Owner, Severity
from npuscope.sanitizer.fingerprint import fingerprint
from npuscope.sanitizer.judge import Baseline, PerSite, Screen, judge, of_other_block
from npuscope.sanitizer.suite import Outcome
from npuscope.sanitizer.suppressions import Rules, allowed_in_source, parse_rules, rule_for
from npuscope.trace.schema import SourceFrame

READ = Access(
    "add", "vadd", "V", "read", 0, 64, 0, 16,
    (SourceFrame("kernels/add.py", 41, 1, "tile"), SourceFrame("lib/loop.py", 7, 1, "driver")), "AIV 0",
)
WRITE = replace(READ, pipe="MTE2", role="write", frames=(SourceFrame("kernels/add.py", 36, 1, "tile"),))
RACE = Finding(
    "race-raw", Severity.ERROR, "unordered", "", "add_kernel", 0, ("AIV 0",), READ,
    Owner("x", "tensor", "UB", 0, 64, "float32", (16,)), other=WRITE,
)


@pytest.mark.parametrize(
    "line",
    [
        "race-raw", "race-*", "*", "race-raw kernel=add_*", "race-raw space=UB", "race-raw space=U*",
        "race-raw at=kernels/add.py", "race-raw at=add.py:41", "race-raw at=add.py:36", "race-raw at=*/add.py:30-40",
        "race-raw pipes=V,MTE2", "race-raw pipes=MTE2,V", "race-raw frame=driver", "race-raw frame=lib/*.py",
        "race-raw frame=loop.py", "race-[rw]a[rw] kernel=add_kernel space=UB at=add.py:41 pipes=V,MTE2 frame=tile",
        "'race-raw'  'at=kernels/add.py:41'   # with a reason",
    ],
)
def test_a_rule_that_matches(line: str) -> None:
    (rule,) = parse_rules(line, "rules.txt")
    assert rule.matches(RACE)


@pytest.mark.parametrize(
    "line",
    [
        "race-war", "race", "race-raw kernel=sub_*", "race-raw space=GM", "race-raw at=add.py:42", "race-raw at=dd.py",
        "race-raw at=add.py:37-40", "race-raw pipes=V", "race-raw pipes=V,MTE3", "race-raw frame=main",
        "race-raw at=lib/loop.py:7",
    ],
)
def test_a_rule_that_does_not(line: str) -> None:
    (rule,) = parse_rules(line, "rules.txt")
    assert not rule.matches(RACE)


def test_a_file() -> None:
    """Comments and empty lines; a rule knows its reason and its line."""
    rules = parse_rules("# all of these are known\n\nrace-raw at=a#b.py   # why not\nleak\n", "rules.txt")
    assert [(rule.kind, rule.at, rule.reason, rule.source) for rule in rules] == [
        ("race-raw", "a#b.py", "why not", "rules.txt:3"), ("leak", "", "", "rules.txt:4")
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("kernel=x", "a rule starts with a class"),
        ("race-raw kernel", "kernel is not one of kernel=..."),
        ("race-raw kernel=", "kernel= is not one of"),
        ("race-raw core=3", "core=3 is not one of"),
        ("race-raw kernel=a kernel=b", "kernel is given twice"),
        ("race-raw space=L9", "no memory is called L9"),
        ("race-raw 'at=x", "no closing quotation"),
    ],
)
def test_a_bad_rule_is_named_by_line(line: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        parse_rules(f"leak\n{line}\n", "rules.txt")
    assert str(caught.value).startswith("rules.txt:2: ")
    assert caught.value.exit_code == 2


def test_a_generated_rule_matches_what_it_was_made_for() -> None:
    """Also when names need quotes, and for findings without an access."""
    odd = replace(
        RACE, kernel="add kernel", access=replace(READ, frames=(SourceFrame("my kernels/a'b.py", 4),)), other=None
    )
    bare = Finding("deadlock", Severity.ERROR, "stuck", "", "k", 0, (), frames=(SourceFrame("k.py", 3),))
    for finding in (RACE, odd, bare):
        (rule,) = parse_rules(rule_for(finding).line(), "rules.txt")
        assert rule.matches(finding)
        assert rule.reason == finding.summary
    assert not rule.matches(replace(bare, frames=(SourceFrame("k.py", 4),)))


def test_unused_rules_are_known() -> None:
    rules = Rules(tuple(parse_rules("race-raw\nleak\n", "r")))
    assert rules(RACE)
    assert [rule.kind for rule in rules.unused] == ["leak"]


def test_a_comment_in_the_source(tmp_path: Path) -> None:
    """On the line of either access; the class may be a glob or one of several."""
    file = tmp_path / "k.py"
    file.write_text("copy()  # npuscope: allow[leak, race-*]\nadd()\nadd()  # npuscope: allow[leak]\n")

    def at(line: int) -> Access:
        return replace(READ, frames=(SourceFrame(str(file), line),))

    assert allowed_in_source(replace(RACE, access=at(1), other=at(2)))
    assert allowed_in_source(replace(RACE, access=at(2), other=at(1)))
    assert not allowed_in_source(replace(RACE, access=at(2), other=at(3)))


def test_the_first_screen_that_suppresses_is_the_reason() -> None:
    """Every finding is either reported or counted."""
    others = replace(RACE, kind="leak")
    screens = [Screen("rules", lambda found: found.kind == "leak"), Screen("all", lambda found: True)]
    judged = judge([Outcome("race", (RACE, others, RACE))], screens)
    assert judged.outcomes == (Outcome("race", ()),)
    assert judged.suppressed == {"race": {"rules": 1, "all": 2}}


def test_a_baseline_covers_each_finding_once() -> None:
    """A second finding with the same mark is new."""
    baseline = Baseline([fingerprint(RACE)])
    assert [baseline(RACE), baseline(replace(RACE, count=9, cores=("AIV 5",))), baseline(RACE)] == [True, False, False]


def test_limit_per_site() -> None:
    """Other lines have their own share."""
    limit = PerSite(1)
    elsewhere = replace(RACE, access=WRITE)
    assert [limit(RACE), limit(RACE), limit(elsewhere)] == [False, True, False]


def test_other_blocks() -> None:
    """A finding that is the block's too stays; one without cores as well."""
    other = of_other_block(3)
    assert other(RACE)
    assert not other(replace(RACE, cores=("AIV 0", "AIV 3")))
    assert not other(replace(RACE, cores=()))
