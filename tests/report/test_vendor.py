"""The vendor's report, held against the texts of the specification (sanitizer.md 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from npuscope.report.document import Result
from npuscope.report.vendor import vendor_bytes
from npuscope.report.vendor_forms import finding_lines
from npuscope.report.vendor_lines import Page, blocks, kernel_name, ranges
from npuscope.sanitizer.findings import Finding, Owner, Severity
from npuscope.sanitizer.records import LaunchRecord
from npuscope.trace.schema import SourceFrame

Make = Callable[..., Any]


def printed(finding: Finding, arch: str = "2201") -> str:
    """A finding's lines, in a result whose launch ran on a chip of `arch`."""
    record = LaunchRecord(0, finding.kernel, "chip", arch, 8, 1000)
    return "\n".join(finding_lines(Page(Result((), (record,))), finding))


def frames(*places: str) -> tuple[SourceFrame, ...]:
    """``file:line:column`` as frames."""
    return tuple(
        SourceFrame(file, int(line), int(column)) for file, line, column in (place.split(":") for place in places)
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("illegal-write", "illegal write"),
        ("illegal-read", "illegal read"),
        ("misaligned", "misaligned access"),
        ("uninitialised-read", "uninitialized read"),
    ],
)
def test_illegal_access(make_finding: Make, make_access: Make, kind: str, words: str) -> None:
    """Headline, address and space, blocks, call site, frames."""
    where = frames("kernels/add.py:41:13", "kernels/add.py:88:5")
    found = make_finding(
        kind, access=make_access(address=0x2FF80, site=0x1C4, serial=57, frames=where),
        cores=("AIV 0", "AIV 1", "AIV 2", "AIV 3"), size=96,
    )
    assert printed(found) == f"""\
====== ERROR: {words} of size 96
======    at 0x2ff80 on UB in add_tile
======    in block aiv(0-3) on device 0
======    code in pc current 0x1c4 (serialNo:57)
======    #0 kernels/add.py:41:13
======    #1 kernels/add.py:88:5"""


def test_stomp(make_finding: Make, make_access: Make) -> None:
    """A warning that says "when writing data"."""
    owner = Owner("z", "argument", "GM", 0x12C0C0016000, 64, "float32", (16,))
    side = make_access(address=0x12C0C0016000, site=0x2B0, serial=131, frames=frames("kernels/scatter.py:27:9"))
    found = make_finding(
        "overwrite", Severity.WARNING, kernel="scatter_rows", owner=owner, access=side, cores=("AIV 1",), size=64
    )
    assert printed(found) == """\
====== WARNING: out of bounds of size 64
======    at 0x12c0c0016000 on GM when writing data in scatter_rows
======    in block aiv(1) on device 0
======    code in pc current 0x2b0 (serialNo:131)
======    #0 kernels/scatter.py:27:9"""


def test_illegal_free(make_finding: Make) -> None:
    """The space after ``free()`` is real."""
    found = make_finding(
        "illegal-free", kernel="", owner=None, access=None, cores=(), frames=frames("host/run.py:64:1"),
        facts={"address": 0x12C0C0013000, "serial": 9},
    )
    assert printed(found) == """\
====== ERROR: illegal free()\x20
======    at 0x12c0c0013000 on GM
======    code in host/run.py:64 (serialNo:9)"""


def test_leak(make_finding: Make) -> None:
    """Headline, block, summary."""
    owner = Owner("", "heap", "GM", 0x12C0C0013000, 2048, "", (), frames("host/run.py:22:1"))
    found = make_finding("leak", kernel="", owner=owner, access=None, cores=(), size=2048,
                         facts={"blocks": [[0x12C0C0013000, 2048, 3]]})
    assert printed(found) == """\
====== ERROR: LeakCheck: detected memory leaks

======    Direct leak of 2048 byte(s)
======      at 0x12c0c0013000 on GM
======      allocated in host/run.py:22 (serialNo:3)

====== SUMMARY: 2048 byte(s) leaked in 1 allocation(s)"""


def test_unused_memory(make_finding: Make) -> None:
    """No space before ``byte(s)`` in the summary."""
    owner = Owner("", "heap", "GM", 0x12C0C0014000, 512, "", (), frames("host/run.py:23:1"))
    found = make_finding(
        "unused-memory", Severity.WARNING, kernel="", owner=owner, access=None, cores=(), size=512,
        facts={"blocks": [[0x12C0C0014000, 512, 4]]},
    )
    assert printed(found) == """\
====== WARNING: Unused memory of 512 byte(s)
======    at 0x12c0c0014000 on GM
======    code in host/run.py:23 (serialNo:4)

====== SUMMARY: 512byte(s) unused memory in 1 allocation(s)"""


def test_register_not_reset(make_finding: Make) -> None:
    """One line, values decimal and unsigned."""
    found = make_finding(
        "register-not-reset", Severity.WARNING, kernel="relu", access=None, owner=None,
        facts={"register": "VECTOR_MASK_0", "expected": (1 << 64) - 1, "current": 255},
    )
    assert printed(found) == (
        "[mssanitizer] Warning:Register VECTOR_MASK_0 was not reset to default in block aiv(0) on kernel relu. "
        "Expected default value is (18446744073709551615), but current value is (255)"
    )


def test_non_default_mask(make_finding: Make) -> None:
    """The instruction, the mode and the mask."""
    found = make_finding(
        "non-default-mask", Severity.ADVISORY, kernel="relu",
        access=None, frames=frames("kernels/relu.py:19:9"),
        facts={"instruction": "VADD", "mode": "Counter", "mask_high": "0x0", "mask_low": "0x64", "site": 0x90, "row": 12},
    )
    assert printed(found) == """\
====== INFO: VADD is using non-default mask. MaskMode: Counter, MaskHigh: 0x0, MaskLow: 0x64
======    in kernel relu on device 0
======    code in pc current 0x90 (serialNo:12)
======    #0 kernels/relu.py:19:9"""


def test_race(make_race: Make) -> None:
    """The earlier access first, then the later one."""
    assert printed(make_race()) == """\
====== ERROR: Potential RAW hazard detected at UB in add_tile:
======    PIPE_MTE2 Write at RAW()+0x400 in block 0 (aiv) on device 0 at pc current 0x118 (serialNo:21)
======    #0 kernels/add.py:31:9
======    PIPE_V Read at RAW()+0x400 in block 0 (aiv) on device 0 at pc current 0x150 (serialNo:24)
======    #0 kernels/add.py:33:9"""


def test_the_hazards_name_follows_the_accesses(make_race: Make, make_access: Make) -> None:
    """Write after read, write after write."""
    write = make_access(role="write")
    assert "Potential WAR hazard" in printed(make_race(access=write, other=make_access()))
    assert "Potential WAW hazard" in printed(make_race(access=write, other=write))


def test_missing_dcci(make_finding: Make, make_access: Make) -> None:
    """The writer first, also where it came later."""
    owner = Owner("flags", "argument", "GM", 0x12C0C0041000, 64, "int32", (16,))
    writer = make_access(
        pipe="S", role="write", address=0x12C0C0041000, core="AIV 0", site=0x60, serial=14,
        frames=frames("kernels/pub.py:12:5"),
    )
    reader = make_access(
        pipe="S", role="read", address=0x12C0C0041000, core="AIV 1", site=0x9C, serial=40,
        frames=frames("kernels/pub.py:20:9"),
    )
    expected = """\
====== ERROR: Missing DCCI instructions detected on cross core data dependency at GM in publish:
======    PIPE_S Write at 0x12c0c0041000 in block 0 (aiv) on device 0 at pc current 0x60 (serialNo:14)
======    #0 kernels/pub.py:12:5
======    PIPE_S Read at 0x12c0c0041000 in block 1 (aiv) on device 0 at pc current 0x9c (serialNo:40)
======    #0 kernels/pub.py:20:9"""
    for access, other in ((reader, writer), (writer, reader)):
        found = make_finding("dcci-missing", kernel="publish", owner=owner, access=access, other=other)
        assert printed(found) == expected


@pytest.mark.parametrize(
    ("kind", "words"), [("unpaired-flag", "Unpaired set_flag"), ("flag-set-twice", "Repeated set_flag")]
)
def test_flags(make_finding: Make, kind: str, words: str) -> None:
    """From pipe to pipe."""
    found = make_finding(
        kind, Severity.WARNING, kernel="softmax", access=None, owner=None, frames=frames("kernels/softmax.py:52:9"),
        facts={"event": "V_MTE2", "id": 0, "site": 0x31C, "row": 77},
    )
    assert printed(found) == f"""\
====== WARNING: {words} instructions detected
======    from PIPE_V to PIPE_MTE2 in softmax
======    in block aiv(0) on device 0
======    code in pc current 0x31c (serialNo:77)
======    #0 kernels/softmax.py:52:9"""


def test_redundant_pairs(make_finding: Make) -> None:
    """Two identical set and wait pairs are four reports (sanitizer.md 2.4)."""
    places = [(number, [("k.py", 10 + number, 5)]) for number in range(4)]
    found = make_finding(
        "redundant-flag", Severity.WARNING, kernel="softmax", access=None, owner=None,
        facts={"event": "V_MTE2", "rows": [20, 21, 22, 23], "places": places},
    )
    reports = printed(found).split("\n\n")
    assert [report.splitlines()[0] for report in reports] == [
        *["====== WARNING: Redundant set_flag instructions detected"] * 2,
        *["====== WARNING: Redundant wait_flag instructions detected"] * 2,
    ]
    assert [report.splitlines()[-1] for report in reports] == [
        f"======    #0 k.py:{line}:5" for line in (10, 12, 11, 13)
    ]
    assert "======    code in pc current 0x2 (serialNo:22)" in reports[1]


def test_stuck(make_finding: Make) -> None:
    """A group a stalled pipe between lines that hold the prefix alone."""
    wait = {"instruction": "WAIT_FLAG", "pipe": "V", "core": "AIV 0", "site": 0x150, "row": 33,
            "frames": [("kernels/softmax.py", 40, 9)]}
    found = make_finding("deadlock", kernel="softmax", access=None, owner=None, facts={"waits": [wait]})
    assert printed(found) == """\
====== ERROR: Sync error detected. kernel locked up at
======    \n======    WAIT_FLAG in softmax
======    by PIPE_V in block aiv(0) on device 0
======    code in pc current 0x150 (serialNo:33)
======    #0 kernels/softmax.py:40:9
======    \n====== SUMMARY: 1 pipe(s) locked up."""


def test_a_class_that_the_vendor_lacks(make_finding: Make) -> None:
    """Printed in the same manner, with its name and sentence."""
    text = printed(make_finding("brand-new", summary="it is odd"))
    assert text.startswith("====== ERROR: brand new: it is odd\n======    at 0x400 on UB in add_tile\n")


def test_chips_with_one_kind_of_core(make_finding: Make) -> None:
    """310P and 910A have AI cores, not AICs and AIVs."""
    assert "======    in block aicore(0) on device 0" in printed(make_finding(), arch="2002")


def test_lists_and_names() -> None:
    """Ranges, both kinds of core, kernel names."""
    assert ranges([7, 0, 1, 2, 3, 3]) == "0-3,7"
    assert blocks(["AIC 0", "AIV 1", "AIV 0"], True) == "aiv(0-1),aic(0)"
    assert [kernel_name(name) for name in ("k_mix_aic", "k_mix_aiv", "k", "")] == ["k", "k", "k", "unknown"]


def test_a_whole_report(make_finding: Make, make_race: Make, make_access: Make, make_result: Make) -> None:
    """Start and end of each launch, findings in order of their instructions, one summary a tool."""
    late, early = make_finding(), make_finding("illegal-read", access=make_access(serial=2))
    result = make_result(
        late, early, make_race(), suppressed={"race": {"rules": 2}}, not_run={"init": "not asked for"},
        partial=("interrupted by Ctrl-C",),
    )
    lines = vendor_bytes(result).decode().splitlines()
    assert lines[0] == "[mssanitizer] Start memcheck and racecheck sanitizer on kernel add_tile"
    heads = [line for line in lines if line.startswith("====== ERROR:")]
    assert heads[0] == "====== ERROR: illegal read of size 96"
    assert "[mssanitizer] Sanitizer finished on kernel add_tile. See all detected errors above." in lines
    assert lines[-5:] == [
        "====== memcheck: ERROR SUMMARY: 2 errors, 0 warnings (0 suppressed)",
        "====== racecheck: ERROR SUMMARY: 1 errors, 0 warnings (2 suppressed)",
        "====== initcheck: ERROR SUMMARY: not run (not asked for)",
        "====== synccheck: ERROR SUMMARY: not run (not asked for)",
        "====== PARTIAL: interrupted by Ctrl-C",
    ]


def test_nothing_found_and_nothing_active(make_result: Make) -> None:
    """The other two endings."""
    text = vendor_bytes(make_result()).decode()
    assert "[mssanitizer] Sanitizer finished on kernel add_tile. No error detected.\n" in text
    skipped = LaunchRecord(0, "add_tile", "Ascend910B1", "2201", 8, 0, checked=False)
    text = vendor_bytes(make_result(launches=(skipped,))).decode()
    assert "[mssanitizer] No active sanitizer tool on kernel add_tile.\n" in text
    assert "memcheck: ERROR SUMMARY: 0 errors, 0 warnings (0 suppressed); no kernel was checked" in text


def test_frames_of_the_toolkit_are_hidden(make_finding: Make, make_access: Make) -> None:
    """Frames of files below the folder given are left out and the others numbered on."""
    side = make_access(frames=frames("/toolkit/lib/op.py:3:1", "kernels/add.py:41:13"))
    page = Page(Result(()), "/toolkit")
    lines = finding_lines(page, make_finding(access=side))
    assert lines[-1] == "======    #0 kernels/add.py:41:13"
    assert not any("toolkit" in line for line in lines)


