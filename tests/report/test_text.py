"""The form for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuscope.report.text import finding_text, text_bytes
from npuscope.sanitizer.findings import Severity
from npuscope.sanitizer.suite import Outcome
from npuscope.trace.schema import SourceFrame

Make = Callable[..., Any]


def test_a_pair(make_race: Make, make_access: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both accesses with their stacks and source lines, buffer and elements, the missing edge, the launch's constants."""
    (tmp_path / "k.py").write_text("copy(x, x_gm)\nadd(z, x, y)\ntile()\n")
    monkeypatch.chdir(tmp_path)
    later = make_access(frames=(SourceFrame("k.py", 2), SourceFrame("k.py", 3)))
    earlier = make_access(pipe="MTE2", role="write", opcode="copy_gm_to_ub", frames=(SourceFrame("k.py", 1),))
    found = make_race(access=later, other=earlier, count=16, cores=tuple(f"AIV {n}" for n in range(8)))
    assert finding_text(found) == """\
error: race (read after write) in add_tile, AIV 0: something is wrong  [race-raw]
  k.py:2  add(z, x, y)
    V     reads x_local[0:128] (UB 0x400, 512 B) in vadd
    called from k.py:3  tile()
  k.py:1  copy(x, x_gm)
    MTE2  writes x_local[0:128] (UB 0x400, 512 B) in copy_gm_to_ub
  Missing between the two: MTE2_V.
  Do it right.
  16 times on AIV 0, AIV 1, AIV 2, AIV 3 and 4 more. Launch add_tile[8](n=2048), run.py:63."""


def test_a_pair_of_two_cores_names_them(make_race: Make, make_access: Make) -> None:
    """Each side says which core it was."""
    text = finding_text(make_race(other=make_access(core="AIV 3", role="write")))
    assert "    AIV 0  V     reads" in text
    assert "    AIV 3  V     writes" in text


def test_the_edge_is_not_said_twice(make_race: Make) -> None:
    """When the advice names it, that is enough."""
    assert finding_text(make_race(advice="Set MTE2_V after line 31.")).count("MTE2_V") == 1


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "memory: clean"),
        ({"suppressed": {"memory": {"rules": 2}}}, "memory: clean, 2 suppressed"),
        ({"suppressed": {"memory": {"advisories": 1}}}, "memory: clean, 1 advisory not shown (--strict)"),
        ({"partial": ("it was interrupted",)}, "memory: nothing found in what was looked at"),
        ({"outcomes": (Outcome("memory", (), ("blocks above 99",)),)},
         "memory: nothing found in what was looked at. Not looked at: blocks above 99"),
        ({"launches": ()}, "memory: nothing checked"),
        ({"not_run": {"init": "not asked for"}}, "init: not run (not asked for)"),
    ],
)
def test_clean_is_said_only_of_what_was_checked(make_result: Make, changes: dict[str, Any], line: str) -> None:
    """The last lines of a report without findings."""
    lines = text_bytes(make_result(**changes)).decode().splitlines()
    assert line in lines
    assert ("memory: clean" in lines[0]) == line.startswith("memory: clean") or "not_run" in changes


def test_counts_per_check(make_finding: Make, make_race: Make, make_result: Make) -> None:
    """One line a check, then what was looked at."""
    findings = [make_finding(), make_finding("overwrite", Severity.WARNING), make_race()]
    lines = text_bytes(make_result(*findings, suppressed={"race": {"baseline": 2}})).decode().splitlines()
    assert lines[-3:] == [
        "memory: 1 error, 1 warning", "race: 1 error, 0 warnings, 2 suppressed", "1 launch, 1,000 instructions checked."
    ]


def test_print_limit(make_finding: Make, make_result: Make) -> None:
    """What is not printed is still counted."""
    text = text_bytes(make_result(make_finding(), make_finding("illegal-read"), unlisted=1)).decode()
    assert "[illegal-write]" in text and "[illegal-read]" not in text
    assert "1 more finding not printed (--print-limit)." in text
    assert "memory: 2 errors, 0 warnings" in text
