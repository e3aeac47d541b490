"""The rows of the scenario catalogue about cache maintenance (sanitizer.md 6.4, D01 to D14), as pyasc kernels with
clean twins, by the exact model and by the vendor's rule. D14 needs by-pass accessors, which pyasc does not have."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

Sanitize = Callable[..., Any]

HANDOVER = """
@asc.jit
def kernel(x: asc.GlobalAddress, out: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    out_gm = asc.GlobalTensor()
    out_gm.set_global_buffer(out)
    local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 16)
    if asc.get_block_idx() == 1:
{warm}
    asc.sync_all()
    if asc.get_block_idx() == 0:
{write}
    asc.sync_all()
    if asc.get_block_idx() == 1:
{read}
    {end}

x = np.arange(1, {length} + 1).astype(np.int32)
out = np.zeros(64, np.int32)
kernel[2](x, out)
{after}
"""


def dcci(element: int = 0, kind: str = "SINGLE_CACHE_LINE", target: str = "CACHELINE_OUT", tensor: str = "x_gm") -> str:
    """DataCacheCleanAndInvalid from an element of x on."""
    return f"asc.data_cache_clean_and_invalid(asc.CacheLine.{kind}, {tensor}[{element}:], asc.DcciDst.{target})"


SET = "x_gm.set_value(0, 70)"
GET = "out_gm.set_value(0, x_gm.get_value(0))"
MTE3 = ["local.set_value(0, 70)", "asc.set_flag(asc.HardEvent.S_MTE3, 0)", "asc.wait_flag(asc.HardEvent.S_MTE3, 0)",
        "asc.data_copy(x_gm, local, 16)"]
MTE2 = ["asc.data_copy(local, x_gm, 16)"]
WARM = [GET]


@pytest.fixture
def handover(sanitize: Sanitize) -> Sanitize:
    """Core 0 writes, core 1 reads after a SyncAll; what core 1 does before anything else is `warm`."""

    def run(
        write: list[str], read: list[str], warm: list[str] | None = None, length: int = 64, after: str = "",
        mode: str = "exact", end: str = "pass",
    ) -> Any:
        bodies = {
            name: "\n".join("        " + line for line in lines or ["pass"])
            for name, lines in (("write", write), ("read", read), ("warm", warm))
        }
        checked = sanitize(HANDOVER.format(length=length, after=after, end=end, **bodies), checks=("dcci",), dcci=mode)
        assert (checked.code, checked.launches) == (0, 1)
        return checked

    return run


def lines(finding: Any) -> tuple[str, str]:
    """Source lines of the earlier and the later access."""
    sides = (finding.other.frames[0], finding.access.frames[0])
    return tuple(linecache.getline(frame.file, frame.line).strip() for frame in sides)  # type: ignore[return-value]


# -- the three scenarios, exactly ------------------------------------------------------------------------------------


def test_d01_store_without_dcci(handover: Sanitize) -> None:
    """D01: the value stays in the writer's cache: both lines are named, and where the DCCI goes."""
    (finding,) = handover([SET], [dcci(), GET], after="assert out[0] == 1", end="asc.sync_all()").findings
    assert (finding.kind, finding.severity.word) == ("dcci-missing", "error")
    assert lines(finding) == (SET, GET)
    assert finding.facts["missing"] == ["after the write"]
    assert finding.cores == ("AIV 1", "AIV 0") and (finding.access.core, finding.other.core) == ("AIV 1", "AIV 0")
    assert (finding.owner.name, finding.size) == ("x", 4)
    assert f"after the store on line {finding.other.frames[0].line} on AIV 0" in finding.advice
    assert "PipeBarrier and flags do not clean the data cache" in finding.advice


def test_end_of_a_core_is_no_flush_to_count_on(handover: Sanitize) -> None:
    """Core 0 happens to end before core 1 reads, so that the value is right in this run; nothing orders the two."""
    (finding,) = handover([SET], [dcci(), GET], after="assert out[0] == 70").findings
    assert (finding.kind, finding.facts["missing"]) == ("dcci-missing", ["after the write"])
    assert any("the end of AIV 0 had written it" in note for note in finding.notes)


def test_d02_load_from_an_old_line(handover: Sanitize) -> None:
    """D02: the reader has the line from before; the value it got and the one it missed are in the report."""
    (finding,) = handover([SET, dcci()], [GET], WARM, after="assert out[0] == 1").findings
    assert (finding.kind, finding.facts["missing"]) == ("dcci-missing", ["before the read"])
    assert lines(finding) == (SET, GET)
    assert f"before the load on line {finding.access.frames[0].line} on AIV 1" in finding.advice
    assert any("the load gave 1, memory held 70" in note for note in finding.notes)


def test_both_sides_missing(handover: Sanitize) -> None:
    """A store without DCCI read from an old line: one finding that asks for both."""
    (finding,) = handover([SET], [GET], WARM).findings
    assert finding.facts["missing"] == ["after the write", "before the read"]


def test_d03_copy_to_memory_and_an_old_line(handover: Sanitize) -> None:
    """D03: MTE3 writes, the reader has the line from before."""
    (finding,) = handover(MTE3, [GET], WARM, after="assert out[0] == 1").findings
    assert (finding.kind, finding.facts["missing"]) == ("dcci-missing", ["before the read"])
    assert (finding.other.pipe, finding.access.pipe) == ("MTE3", "S")
    assert lines(finding) == (MTE3[-1], GET)


def test_d04_store_and_a_copy_from_memory(handover: Sanitize) -> None:
    """D04: the copy does not see what is in another core's cache."""
    (finding,) = handover([SET], MTE2).findings
    assert (finding.kind, finding.facts["missing"]) == ("dcci-missing", ["after the write"])
    assert lines(finding) == (SET, MTE2[0])


@pytest.mark.parametrize(
    ("write", "read", "result"),
    [([SET, dcci()], [dcci(), GET], 70), (MTE3, [dcci(), GET], 70), ([SET, dcci()], MTE2, 1)],
    ids=["D05", "D06", "D07"],
)
def test_d05_to_d07_complete_scenarios(handover: Sanitize, write: list[str], read: list[str], result: int) -> None:
    """D05 to D07: every DCCI in place: clean by both rules, and the value arrives."""
    assert handover(write, read, WARM, after=f"assert out[0] == {result}").findings == []
    assert handover(write, read, mode="strict").findings == []


def test_cold_reader_needs_no_dcci_in_this_run(handover: Sanitize) -> None:
    """Exactly: a core that never had the line reads memory. By the vendor's rule its DCCI is missing all the same."""
    assert handover([SET, dcci()], [GET], after="assert out[0] == 70").findings == []
    (finding,) = handover([SET, dcci()], [GET], mode="strict").findings
    assert finding.facts["missing"] == ["before the read"]


# -- which DCCI counts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "missing"),
    [
        ([SET, dcci(16)], True),
        ([SET, dcci(target="CACHELINE_UB")], True),
        ([SET, dcci(target="CACHELINE_ALL")], False),
        ([SET, dcci(target="CACHELINE_ATOMIC")], False),
        ([SET, dcci(kind="ENTIRE_DATA_CACHE")], False),
        ([SET, dcci(40, kind="ENTIRE_DATA_CACHE")], False),
        ([dcci(), SET], True),
        ([SET, "asc.pipe_barrier(asc.PipeID.PIPE_ALL)"], True),
    ],
    ids=["D08 other line", "D09 UB", "all", "atomic", "D10 entire", "D10 entire, elsewhere", "too early", "barrier"],
)
def test_d08_to_d10_which_dcci_counts(handover: Sanitize, write: list[str], missing: bool) -> None:
    """D08 to D10: another line, the UB destination, the whole cache; a DCCI before the store and a barrier do not."""
    expected = ["dcci-missing"] if missing else []
    assert handover(write, [dcci(), GET]).kinds == expected
    far = [line.replace("x_gm[16:]", "x_gm[64:]") for line in write]  # the vendor's lines have 256 bytes here
    assert handover(far, [dcci(), GET], length=128, mode="strict").kinds == expected


def test_d11_values_that_lie_in_two_lines(handover: Sanitize) -> None:
    """D11: a DCCI covers the line of its address and nothing beyond: from element 12 on eight values lie in two."""
    write = ["for i in range(8):", "    x_gm.set_value(12 + i, 70)", dcci(12)]
    read = ["asc.data_copy(local, x_gm[12:], 8)"]
    (finding,) = handover(write, read).findings
    assert (finding.kind, finding.facts["missing"]) == ("dcci-missing", ["after the write"])
    assert finding.other.first == 16  # the first element of the second line
    assert handover([*write, dcci(16)], read).findings == []


# -- lines that destroy -----------------------------------------------------------------------------------------------


SHARED = """
@asc.jit
def kernel(x: asc.GlobalAddress, apart: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    block = asc.get_block_idx()
    x_gm.set_value(block * apart, 5 + block)
    asc.sync_all()
    asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, x_gm[block * apart:], asc.DcciDst.CACHELINE_OUT)

x = np.zeros(64, np.int32)
kernel[2](x, {apart})
print(x[0], x[{apart}])
"""


def test_d12_without_an_order(sanitize: Sanitize) -> None:
    """D12 as it is mostly written: every block stores its own result, nobody waits for anybody. One core after the
    other, as here, the values survive; on a device the lines meet."""
    text = """
        @asc.jit
        def kernel(x: asc.GlobalAddress, apart: asc.ConstExpr[int]):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            x_gm.set_value(asc.get_block_idx() * apart, 5)

        x = np.zeros(64, np.int32)
        kernel[4](x, {apart})
        assert (x[::{apart}][:4] == 5).all()
        """
    checked = sanitize(text.format(apart=1), checks=("dcci",))
    assert (checked.code, checked.kinds) == (0, ["false-sharing"])
    assert sanitize(text.format(apart=16), checks=("dcci",)).findings == []


def test_d12_two_cores_write_one_line(sanitize: Sanitize) -> None:
    """D12: neighbouring integers of one line: the line that goes to memory last destroys the other's value."""
    (finding,) = sanitize(SHARED.format(apart=1), checks=("dcci",)).findings
    assert (finding.kind, finding.severity.word, finding.size) == ("false-sharing", "error", 4)
    assert set(finding.cores) == {"AIV 0", "AIV 1"}
    assert {finding.access.first, finding.other.first} == {0, 1}
    assert any(note.startswith("Seen in this run: 1 bytes") for note in finding.notes)
    assert sanitize(SHARED.format(apart=16), checks=("dcci",)).findings == []


OWN = """
@asc.jit
def kernel(x: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 16)
    asc.duplicate(local, 9, 16)
    x_gm.set_value(0, 5)
{between}
    asc.data_copy(x_gm[8:], local, 8)

x = np.ones(64, np.int32)
kernel[1](x)
assert x[0] == 5
assert (x[8:16] == {expected}).all()
"""


def test_line_written_back_over_a_copy(sanitize: Sanitize) -> None:
    """hardware.md 3.5: a dirty line and a copy of the same core into it: at the kernel's end the line destroys what the
    copy stored. A DCCI between the two: clean."""
    checked = sanitize(OWN.format(between="    pass", expected=1), checks=("dcci",))
    (finding,) = checked.findings
    assert (checked.code, finding.kind, finding.size) == (0, "stale-write-back", 32)
    assert finding.notes[0].endswith("is written back at the end of the kernel.")
    assert "8 bytes from" in finding.notes[1]  # those whose value differs: one of each integer
    clean = sanitize(OWN.format(between="    " + dcci(), expected=9), checks=("dcci",))
    assert (clean.code, clean.findings) == (0, [])


EVICT = """
@asc.jit
def kernel(x: asc.GlobalAddress, n: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 16)
    x_gm.set_value(0, 5)
    asc.data_copy(x_gm[8:], local, 8)
    for i in range(1, n):
        local.set_value(0, x_gm.get_value(16 * i))
    asc.data_copy(local, x_gm, 8)

kernel[1](np.ones(16 * 520, np.int32), {n})
"""


def test_eviction_writes_back(sanitize: Sanitize) -> None:
    """A cache of 32 KB holds 512 lines: the 513th drives the first out. Until then its store has not reached memory."""
    (early, _) = sanitize(EVICT.format(n=512), checks=("dcci",)).findings
    assert early.kind == "dcci-missing"
    (finding,) = sanitize(EVICT.format(n=513), checks=("dcci",)).findings
    assert finding.kind == "stale-write-back" and "when the line is evicted" in finding.notes[0]


def test_own_copy_of_an_own_store(sanitize: Sanitize) -> None:
    """One core: MTE2 does not see what the scalar unit wrote; with a DCCI it does."""
    text = """
        @asc.jit
        def kernel(x: asc.GlobalAddress):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 16)
            x_gm.set_value(3, 5)
            {between}
            asc.data_copy(local, x_gm{offset}, 8)

        kernel[1](np.ones(64, np.int32))
        """
    (finding,) = sanitize(text.format(between="pass", offset=""), checks=("dcci",)).findings
    assert (finding.kind, finding.cores) == ("dcci-missing", ("AIV 0",))
    assert "before the signal to pipe MTE2" in finding.advice
    assert sanitize(text.format(between=dcci(), offset=""), checks=("dcci",)).findings == []
    assert sanitize(text.format(between="pass", offset="[8:]"), checks=("dcci",)).findings == []


# -- strict ----------------------------------------------------------------------------------------------------------


SCENARIOS = {1: ([SET, dcci()], [dcci(), GET]), 2: (MTE3, [dcci(), GET]), 3: ([SET, dcci()], MTE2)}


@pytest.mark.parametrize("mode", ["exact", "strict"])
@pytest.mark.parametrize(
    ("scenario", "side"), [(1, "write"), (1, "read"), (2, "read"), (3, "write")],
)
def test_each_scenario_with_a_dcci_removed(handover: Sanitize, scenario: int, side: str, mode: str) -> None:
    """The three scenarios of the design: found by both rules when either DCCI is taken out."""
    write, read = (list(part) for part in SCENARIOS[scenario])
    (write if side == "write" else read).remove(dcci())
    (finding,) = handover(write, read, WARM if mode == "exact" else None, mode=mode).findings
    assert finding.kind == "dcci-missing"
    assert finding.facts["missing"] == ["after the write" if side == "write" else "before the read"]


@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_strict_wants_the_dcci_right_beside(handover: Sanitize, scenario: int) -> None:
    """Anything in between breaks the pair by the vendor's rule, exactly it does not matter."""
    write, read = (list(part) for part in SCENARIOS[scenario])
    between = "asc.pipe_barrier(asc.PipeID.PIPE_ALL)"
    write = [step for line in write for step in ((between, line) if line == dcci() else (line,))]
    read = [step for line in read for step in ((line, between) if line == dcci() else (line,))]
    assert handover(write, read, WARM).findings == []
    assert handover(write, read, mode="strict").kinds == ["dcci-missing"]


def test_strict_line_is_256_bytes_on_910b(handover: Sanitize) -> None:
    """A DCCI 192 bytes further is the same line by the vendor's rule for 910B; exactly it is another."""
    write = [SET, dcci(48)]
    assert handover(write, [dcci(), GET], mode="strict").findings == []
    assert handover(write, [dcci(), GET]).kinds == ["dcci-missing"]


def test_strict_leaves_out_reads_that_come_first(handover: Sanitize) -> None:
    """The reader reads, then a SyncAll, then the other core writes: nothing is handed over."""
    assert handover([SET], [], [dcci(), GET], mode="strict").findings == []


D13 = """
@asc.jit
def kernel(x: asc.GlobalAddress, out: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    out_gm = asc.GlobalTensor()
    out_gm.set_global_buffer(out)
    if asc.get_block_idx() == 0:
        x_gm.set_value(0, 1)
    if asc.get_block_idx() == 1:
        x_gm.set_value(0, 2)
    asc.sync_all()
    if asc.get_block_idx() == 2:
        out_gm.set_value(0, x_gm.get_value(0))
    asc.sync_all()

kernel[3](np.zeros(16, np.int32), np.zeros(16, np.int32))
"""


@pytest.mark.parametrize("mode", ["exact", "strict"])
def test_d13_two_writers_and_one_reader(sanitize: Sanitize, mode: str) -> None:
    """D13: none flushed: a finding for each writer (the races are another check's)."""
    found = sanitize(D13, checks=("dcci",), dcci=mode).findings
    missing = [finding for finding in found if finding.kind == "dcci-missing"]
    assert sorted(finding.other.core for finding in missing) == ["AIV 0", "AIV 1"]


def test_off(handover: Sanitize) -> None:
    """Nothing is looked at."""
    assert handover([SET], [GET], WARM, mode="off").findings == []


# -- polling ----------------------------------------------------------------------------------------------------------

POLL = """
@asc.jit
def kernel(x: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    if asc.get_block_idx() == 0:
        while x_gm.get_value(0) == 0:
            {inside}
    if asc.get_block_idx() == 1:
        x_gm.set_value(0, 1)
        {after}

kernel[2](np.zeros(16, np.int32))
"""


def test_polling_loop(sanitize: Sanitize) -> None:
    """A loop that polls a flag: with a DCCI on either side clean; without one in the loop it never ends, and both
    checks say why."""
    both = ("sync", "dcci")
    assert sanitize(POLL.format(inside=dcci(), after=dcci()), checks=both).findings == []
    checked = sanitize(POLL.format(inside="pass", after=dcci()), checks=both)
    assert checked.kinds == ["deadlock", "dcci-missing"]
    deadlock, missing = checked.findings
    assert any("put one into the loop" in note for note in deadlock.notes)
    assert missing.facts["missing"] == ["before the read"] and missing.count > 1


def test_launches_are_apart(sanitize: Sanitize) -> None:
    """The next launch starts with empty caches, whatever the previous one left."""
    text = """
        @asc.jit
        def kernel(x: asc.GlobalAddress):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 16)
            asc.data_copy(local, x_gm, 16)
            x_gm.set_value(0, 5)

        x = np.ones(16, np.int32)
        kernel[1](x)
        kernel[1](x)
        """
    checked = sanitize(text, checks=("dcci",))
    assert (checked.launches, checked.findings) == (2, [])
