"""Findings made by hand, and results that hold them."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from npuscope.report.document import Result
from npuscope.sanitizer.findings import Access, Finding, Owner, Severity
from npuscope.sanitizer.records import LaunchRecord
from npuscope.sanitizer.suite import Outcome
from npuscope.trace.schema import SourceFrame

LATER = (SourceFrame("kernels/add.py", 33, 9, "add_tile"),)
EARLIER = (SourceFrame("kernels/add.py", 31, 9, "add_tile"),)


def access(**changes: Any) -> Access:
    """A read by V of 128 elements."""
    plain = Access("add", "vadd", "V", "read", 0x400, 512, 0, 128, LATER, "AIV 0", 24, 0x150)
    return replace(plain, **changes)


def finding(kind: str = "illegal-write", severity: Severity = Severity.ERROR, **changes: Any) -> Finding:
    """A finding about x_local in UB."""
    owner = Owner("x_local", "tensor", "UB", 0x400, 512, "float32", (128,))
    plain = Finding(
        kind, severity, "something is wrong", "Do it right.", "add_tile", 0, ("AIV 0",), access(), owner, size=96,
        launched="add_tile[8](n=2048)", launch_frame=SourceFrame("run.py", 63), check="memory",
    )
    return replace(plain, **changes)


def race(**changes: Any) -> Finding:
    """V reads what MTE2 writes."""
    earlier = access(
        operation="data_copy", opcode="copy_gm_to_ub", pipe="MTE2", role="write", frames=EARLIER, serial=21, site=0x118
    )
    plain: dict[str, Any] = {"check": "race", "other": earlier, "edge": "MTE2_V"}
    return finding("race-raw", **{**plain, **changes})


def result(*findings: Finding, **changes: Any) -> Result:
    """One launch on 8 cores; every check that found something, and the memory check in any case."""
    names = dict.fromkeys(["memory", *(item.check for item in findings)])
    outcomes = tuple(Outcome(name, tuple(item for item in findings if item.check == name)) for name in names)
    record = LaunchRecord(0, "add_tile", "Ascend910B1", "2201", 8, 1000)
    return replace(Result(outcomes, (record,)), **changes)


@pytest.fixture(autouse=True)
def fresh_sources() -> None:
    """Source lines are read anew: tests reuse file names."""
    linecache.clearcache()


@pytest.fixture
def make_finding() -> Callable[..., Finding]:
    """See :func:`finding`."""
    return finding


@pytest.fixture
def make_race() -> Callable[..., Finding]:
    """See :func:`race`."""
    return race


@pytest.fixture
def make_access() -> Callable[..., Access]:
    """See :func:`access`."""
    return access


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """See :func:`result`."""
    return result
