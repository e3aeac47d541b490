"""The heap's rules on traces made by hand, and the same report from a file."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import pytest

from npuscope.cli.session import run_in_session
from npuscope.report.text import finding_text
from npuscope.sanitizer.suite import Settings, Suite
from npuscope.trace.file import TraceWriter, read_batches
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import (
    NO_BLOCK,
    Buffer,
    CoreInfo,
    CoreType,
    HostKind,
    Launch,
    Site,
    SourceFrame,
    Space,
)

BASE = 0x12D0_0000_0000


@pytest.fixture
def suite() -> Suite:
    """The memory check with everything asked for."""
    return Suite(("memory",), Settings(leaks=True, unused=True))


def test_a_set_is_a_write(suite: Suite) -> None:
    """It touches its block, and 8 of its bytes lie outside."""
    recorder = Recorder([suite.check])
    recorder.add_host_event(HostKind.MALLOC, 0, BASE, size=64)
    recorder.add_host_event(HostKind.SET, 0, BASE + 32, size=40)
    recorder.add_host_event(HostKind.FREE, 0, BASE)
    recorder.finish()
    assert [(found.kind, found.size) for found in suite.findings] == [("illegal-write", 8)]
    assert suite.findings[0].facts == {"address": BASE + 32, "serial": 1}


def test_equal_mistakes_of_one_line_are_one_finding(suite: Suite) -> None:
    """Ten foreign frees on one line are counted."""
    recorder = Recorder([suite.check])
    site = recorder.add_site(Site("rt.free", (SourceFrame("run.py", 3),)))
    for _ in range(10):
        recorder.add_host_event(HostKind.FREE, site, NO_BLOCK)
    recorder.finish()
    (finding,) = suite.findings
    assert (finding.kind, finding.count, finding.check) == ("illegal-free", 10, "memory")


def test_launches_that_are_not_looked_at_say_nothing_of_their_blocks() -> None:
    """A block that went to a launch which was filtered out may have been used there: it is not called unused."""
    suite = Suite(("memory",), Settings(unused=True), lambda launch: False)
    recorder = Recorder([suite.check])
    serial = recorder.add_host_event(HostKind.MALLOC, 0, BASE, size=64)
    recorder.begin(Launch(0, "kernel", "Ascend910B1", (CoreInfo(CoreType.AIV, 0),), (1,), {}, {}))
    recorder.add_buffer(Buffer(Space.GM, -1, 0, 64, "argument", "x", block=serial))
    recorder.end()
    recorder.add_host_event(HostKind.MALLOC, 0, BASE + 512, size=32)
    recorder.finish()
    assert [found.size for found in suite.findings] == [32]
    assert suite.launches == 0


def test_a_recorded_trace_gives_the_same_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: Suite
) -> None:
    """Live and replayed: equal findings, also of a script without any launch."""
    pytest.importorskip("asc")
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    script = tmp_path / "script.py"
    script.write_text(
        "import asc\nimport asc.lib.runtime as rt\nimport asc.runtime.config as config\n"
        "config.set_platform(config.Backend.Model)\n"
        "rt.malloc(96)\nfreed = rt.malloc(32)\nrt.free(freed)\nrt.free(freed)\n"
    )
    linecache.checkcache(str(script))
    with TraceWriter(tmp_path / "run.trace") as writer:
        code, _ = run_in_session((writer.write, suite.check), None, str(script), (), False)
    assert code == 1
    assert finding_text(suite.findings[0]).splitlines() == [
        "error: illegal free on the host: the block was freed before  [illegal-free]",
        f"  {script}:8  rt.free(freed)",
        f"  The block of 32 bytes was allocated by rt.malloc at {script}:6.",
        f"  It was freed by rt.free at {script}:7.",
        "  Remove the second free.",
        "  Once.",
    ]
    replayed = Suite(("memory",), Settings(leaks=True, unused=True))
    for batch in read_batches(tmp_path / "run.trace"):
        replayed.check(batch)
    assert [found.kind for found in suite.findings] == ["illegal-free", "leak", "unused-memory", "unused-memory"]
    assert [found.to_json() for found in replayed.findings] == [found.to_json() for found in suite.findings]
