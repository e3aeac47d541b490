"""The synchronisation rows of the scenario catalogue (sanitizer.md 6.4) and bug corpus, as pyasc kernels with clean
twins."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

Sanitize = Callable[..., Any]

ONE = """
@asc.jit
def kernel(x: asc.GlobalAddress{parameters}):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 64)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 256, 64)
{body}

kernel[{blocks}](np.zeros(64, np.float32){arguments})
"""

COPY = "asc.data_copy(a, x_gm, 64)"
ADD = "asc.add(b, a, a, 64)"
STORE = "asc.data_copy(x_gm, b, 64)"


def flag(call: str, event: str, number: int | str = 0) -> str:
    """A set_flag or wait_flag."""
    return f"asc.{call}_flag(asc.HardEvent.{event}, {number})"


def pair(event: str, number: int | str = 0) -> tuple[str, str]:
    """Set and wait."""
    return flag("set", event, number), flag("wait", event, number)


@pytest.fixture
def sync(sanitize: Sanitize) -> Sanitize:
    """Run program text under the synchronisation check alone."""

    def run(text: str, **settings: Any) -> Any:
        checked = sanitize(text, checks=("sync",), **settings)
        assert checked.launches == 1
        assert checked.code == ("deadlock" in checked.kinds)
        return checked

    return run


@pytest.fixture
def one(sync: Sanitize) -> Sanitize:
    """Run the lines given as one kernel's body."""

    def run(*lines: str, blocks: int = 1, parameters: str = "", arguments: str = "", **settings: Any) -> Any:
        body = "\n".join("    " + line for line in lines)
        return sync(ONE.format(body=body, blocks=blocks, parameters=parameters, arguments=arguments), **settings)

    return run


def line_of(finding: Any) -> str:
    """The source line that a finding names."""
    frame = finding.frames[0]
    return linecache.getline(frame.file, frame.line).strip()


# -- flags of one core -----------------------------------------------------------------------------------------------


def test_s01_lone_set(one: Sanitize) -> None:
    """S01: a set that nobody waits for, with its line; the clean twin waits."""
    (finding,) = one(COPY, ADD, flag("set", "V_MTE2")).findings
    assert (finding.kind, finding.severity.word, finding.count) == ("unpaired-flag", "warning", 1)
    assert line_of(finding) == flag("set", "V_MTE2")
    assert finding.facts["event"] == "V_MTE2" and finding.facts["id"] == 0
    assert one(COPY, ADD, *pair("V_MTE2")).findings == []


def test_s01_on_every_core_is_one_finding(one: Sanitize) -> None:
    """The cores are united."""
    (finding,) = one(flag("set", "V_MTE2", 3), blocks=3).findings
    assert (finding.count, finding.cores) == (3, ("AIV 0", "AIV 1", "AIV 2"))


def test_block_limits_what_is_said(one: Sanitize) -> None:
    """With a block chosen the other cores' flags are left out."""
    (finding,) = one(flag("set", "V_MTE2", 3), blocks=3, block=1).findings
    assert finding.cores == ("AIV 1",)


def test_set_twice(one: Sanitize) -> None:
    """A flag is one bit: the second set is undefined. Both lines are named, and it is no redundant pair."""
    checked = one(COPY, flag("set", "MTE2_V"), COPY, flag("set", "MTE2_V"), flag("wait", "MTE2_V"), ADD)
    (finding,) = checked.findings
    assert (finding.kind, finding.severity.word) == ("flag-set-twice", "error")
    first, second = finding.notes[0].split("kernel.py:")[1].split(",")[0], finding.frames[0].line
    assert second == int(first) + 2


def test_s02_two_identical_pairs(one: Sanitize) -> None:
    """S02: two pairs back to back: one finding that holds the four instructions the vendor lists."""
    (finding,) = one(COPY, *pair("MTE2_V"), *pair("MTE2_V"), ADD).findings
    assert (finding.kind, finding.severity.word, finding.count) == ("redundant-flag", "warning", 1)
    assert len(set(finding.facts["rows"])) == 4
    assert (finding.facts["source"], finding.facts["target"]) == ("MTE2", "V")


def test_s02_in_a_loop(one: Sanitize) -> None:
    """Five identical pairs of one line: four of them repeat the one before."""
    lines = [COPY, "for i in range(5):", *("    " + line for line in pair("MTE2_V")), ADD]
    (finding,) = one(*lines).findings
    assert (finding.kind, finding.count) == ("redundant-flag", 4)


def test_s09_barrier_between_the_pairs(one: Sanitize) -> None:
    """S09: a barrier of either pipe, or of all, does not make the second pair useful."""
    for pipe in ("PIPE_V", "PIPE_MTE2", "PIPE_ALL"):
        barrier = f"asc.pipe_barrier(asc.PipeID.{pipe})"
        assert one(COPY, *pair("MTE2_V"), barrier, *pair("MTE2_V"), ADD).kinds == ["redundant-flag"]


@pytest.mark.parametrize(
    "lines",
    [
        (COPY, *pair("MTE2_V", 0), *pair("MTE2_V", 1), ADD),
        (COPY, *pair("MTE2_V"), *pair("MTE2_MTE3"), ADD),
        (COPY, *pair("MTE2_V"), COPY, *pair("MTE2_V"), ADD),
        (COPY, *pair("MTE2_V"), ADD, *pair("MTE2_V"), ADD),
        (COPY, *pair("MTE2_V"), *pair("V_MTE2"), *pair("MTE2_V"), ADD),
    ],
    ids=["other id", "other pipe", "source works", "target works", "other flag between"],
)
def test_s10_pairs_that_differ(one: Sanitize, lines: tuple[str, ...]) -> None:
    """S10: another id, another pipe, or work in between."""
    assert one(*lines).findings == []


def test_pair_that_is_idle_in_some_iterations_only(one: Sanitize) -> None:
    """A tile that has nothing to do now and then is no redundancy: the lines are needed in the other iterations."""
    lines = ["for i in range(6):", "    if i % 3 == 0:", f"        {COPY}", *("    " + line for line in pair("MTE2_V")),
             "    if i % 3 == 0:", f"        {ADD}", *("    " + line for line in pair("V_MTE2"))]
    assert one(*lines).findings == []


def test_scalar_wait_holds_back_later_instructions(one: Sanitize) -> None:
    """A wait of the scalar unit orders what is issued after it on any pipe, so the second one is of use."""
    lines = (COPY, *pair("MTE2_S"), STORE, *pair("MTE2_S"), STORE)
    assert one(*lines).findings == []
    assert one(COPY, *pair("MTE2_S"), *pair("MTE2_S"), STORE).kinds == ["redundant-flag"]


PING_PONG = """
@asc.jit
def kernel(x: asc.GlobalAddress, tiles: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    buffers = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 128)
    asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
    asc.set_flag(asc.HardEvent.MTE3_MTE2, 1)
    for i in range(tiles):
        slot = i % 2
        part = buffers[slot * 64:]
        asc.wait_flag(asc.HardEvent.MTE3_MTE2, slot)
        asc.data_copy(part, x_gm[i * 64:], 64)
        asc.set_flag(asc.HardEvent.MTE2_V, slot)
        asc.wait_flag(asc.HardEvent.MTE2_V, slot)
        asc.add(part, part, part, 64)
        asc.set_flag(asc.HardEvent.V_MTE3, slot)
        asc.wait_flag(asc.HardEvent.V_MTE3, slot)
        asc.data_copy(x_gm[i * 64:], part, 64)
        asc.set_flag(asc.HardEvent.MTE3_MTE2, slot)
    {drain}

x = np.ones({tiles} * 64, np.float32)
kernel[1](x, {tiles})
assert (x == 2).all()
"""
DRAIN = "\n    ".join(flag("wait", "MTE3_MTE2", number) for number in (0, 1))


@pytest.mark.parametrize("tiles", [1, 2, 3, 8])
def test_c02_ping_pong_with_prime_and_drain(sync: Sanitize, tiles: int) -> None:
    """C02: prime and drain are no findings, whatever the number of tiles; without the drain both flags are left."""
    assert sync(PING_PONG.format(tiles=tiles, drain=DRAIN)).findings == []
    left = sync(PING_PONG.format(tiles=tiles, drain="pass")).findings
    assert [finding.kind for finding in left] == ["unpaired-flag"] * len(left)
    assert {finding.facts["id"] for finding in left} == {0, 1}


def test_more_instructions_than_a_batch(sync: Sanitize) -> None:
    """Ranks and last sets carry over from batch to batch: 4000 tiles are some 36,000 rows."""
    assert sync(PING_PONG.format(tiles=4000, drain=DRAIN)).findings == []
    (early, late) = sync(PING_PONG.replace("x_gm[i * 64:]", "x_gm").replace("assert (x == 2).all()", "").format(
        tiles=3001, drain="pass")).findings
    assert {line_of(early), line_of(late)} == {"asc.set_flag(asc.HardEvent.MTE3_MTE2, slot)"}


def test_set_long_before_the_end(one: Sanitize) -> None:
    """The line of a flag left set is found although its row went by batches before."""
    lines = [flag("set", "V_MTE2", 2), "for i in range(20000):", f"    {ADD}"]
    (finding,) = one(*lines).findings
    assert (finding.kind, line_of(finding)) == ("unpaired-flag", flag("set", "V_MTE2", 2))


def test_reserved_id_is_an_advisory(one: Sanitize) -> None:
    """Ids 6 and 7 belong to the device and to automatic synchronisation while that is on."""
    (finding,) = one(COPY, *pair("MTE2_V", 7), ADD).findings
    assert (finding.kind, finding.severity.word) == ("reserved-event-id", "advisory")
    assert one(COPY, *pair("MTE2_V", 5), ADD).findings == []


def test_m32_id_out_of_range(one: Sanitize) -> None:
    """M32: the device has eight ids; larger ones lose their high bits."""
    checked = one(COPY, *pair("MTE2_V", 9), ADD)
    assert set(checked.kinds) == {"bad-operand"}


def test_event_of_pipes_that_the_launch_lacks(one: Sanitize) -> None:
    """A flag of the cube's pipes in a vector kernel orders nothing; in a mixed kernel it is the other core's."""
    (finding,) = one(COPY, *pair("M_FIX"), blocks=2).findings
    assert (finding.kind, finding.severity.word) == ("event-elsewhere", "advisory")
    assert finding.facts["pipes"] == ["S", "V", "MTE2", "MTE3"]


def test_a09_flag_from_a_pipe_to_itself(one: Sanitize) -> None:
    """A09: set and wait of V_V are named, and the run ends with a deadlock that names the pipe, not by time."""
    checked = one(COPY, *pair("MTE2_V"), ADD, *pair("V_V"))
    assert checked.kinds == ["bad-event", "deadlock"]
    notes = checked.findings[1].notes
    assert any("AIV 0 pipe V" in note and "kernel.py" in note for note in notes)
    assert any("no flag to itself" in note for note in notes)


# -- deadlocks -------------------------------------------------------------------------------------------------------


def test_s03_wait_without_a_set(one: Sanitize) -> None:
    """S03: core, pipe, flag and line; all cores are one line of the report."""
    checked = one(flag("wait", "MTE2_V", 3), blocks=2)
    (finding,) = checked.findings
    assert (checked.code, finding.kind, finding.severity.word) == (1, "deadlock", "error")
    assert finding.cores == ("AIV 0", "AIV 1")
    assert finding.notes[0].startswith("AIV 0, AIV 1 pipe V waits for flag MTE2_V id 3 at ")
    assert "has not been set on this core" in finding.notes[1]
    assert [wait["instruction"] for wait in finding.facts["waits"]] == ["WAIT_FLAG"] * 2
    assert line_of(finding) == flag("wait", "MTE2_V", 3)


def test_wrong_direction(one: Sanitize) -> None:
    """R15, the part that hangs: V_MTE3 is set, MTE3_V is waited for."""
    (finding,) = one(ADD, flag("set", "V_MTE3"), flag("wait", "MTE3_V"), STORE).findings
    assert finding.kind == "deadlock"
    assert any("opposite order" in note and "V_MTE3 id 0" in note for note in finding.notes)


def test_r15_wrong_direction_that_goes_on(one: Sanitize) -> None:
    """R15: an MTE3_V that is up from before lets the wrong wait pass; the V_MTE3 is left set."""
    lines = (STORE, flag("set", "MTE3_V"), ADD, flag("set", "V_MTE3"), flag("wait", "MTE3_V"), STORE)
    (finding,) = one(*lines).findings
    assert (finding.kind, line_of(finding)) == ("unpaired-flag", flag("set", "V_MTE3"))


def test_wrong_id(one: Sanitize) -> None:
    """The set has another id."""
    (finding,) = one(COPY, flag("set", "MTE2_V", 1), flag("wait", "MTE2_V", 2), ADD).findings
    assert any(note.strip().startswith("id 1 of MTE2_V is up") for note in finding.notes)


PREFETCH = """
@asc.jit
def kernel(x: asc.GlobalAddress, tiles: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 64)
    asc.data_copy(a, x_gm, 64)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.data_copy(a, x_gm, 64)
    asc.set_flag(asc.HardEvent.MTE2_V, 1)
    for i in range({steps}):
        for slot in range(2):
            asc.wait_flag(asc.HardEvent.MTE2_V, slot)
            asc.add(a, a, a, 64)
            if 2 * i + slot + {ahead} < tiles:
                asc.data_copy(a, x_gm, 64)
                asc.set_flag(asc.HardEvent.MTE2_V, slot)

kernel[1](np.zeros(64, np.float32), {tiles})
"""


def test_s05_prefetch_with_an_odd_number_of_tiles(sync: Sanitize) -> None:
    """S05: both slots are primed and the loop takes two at a time: right for even counts, stuck for odd ones."""
    assert sync(PREFETCH.format(tiles=4, steps="tiles // 2", ahead=2)).findings == []
    (finding,) = sync(PREFETCH.format(tiles=5, steps="(tiles + 1) // 2", ahead=2)).findings
    assert finding.kind == "deadlock"
    assert "MTE2_V id 1 was set twice" in finding.notes[1] and "waited for twice" in finding.notes[1]
    left = sync(PREFETCH.format(tiles=5, steps="tiles // 2", ahead=2)).findings
    assert [item.kind for item in left] == ["unpaired-flag"]


def test_s06_wait_hoisted_out_of_the_condition(one: Sanitize) -> None:
    """S06: the set stays in the branch that only some cores take, the wait does not."""
    lines = ("if asc.get_block_idx() > 0:", f"    {COPY}", "    " + flag("set", "MTE2_V"), flag("wait", "MTE2_V"), ADD)
    (finding,) = one(*lines, blocks=3).findings
    assert (finding.kind, finding.cores) == ("deadlock", ("AIV 0",))
    assert any("On AIV 1, AIV 2 it is set at" in note for note in finding.notes)


A11 = """
@asc.jit({options})
def kernel(steps: asc.ConstExpr[int]):
    a1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 256)
    b1 = asc.LocalTensor(asc.float16, asc.TPosition.B1, 512, 256)
    a2 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 256)
    b2 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 256)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
    {prime}
    for i in range(steps):
        asc.wait_flag(asc.HardEvent.M_MTE1, 2)
        asc.wait_flag(asc.HardEvent.M_MTE1, 3)
        asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))
        asc.load_data(b2, b1, asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))
        asc.set_flag(asc.HardEvent.MTE1_M, 0)
        asc.wait_flag(asc.HardEvent.MTE1_M, 0)
        asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
        asc.set_flag(asc.HardEvent.M_MTE1, 2)
        asc.set_flag(asc.HardEvent.M_MTE1, 3)
    {drain}

kernel[1](2)
"""


def test_a11_loop_whose_first_iteration_waits_on_an_id_never_set(sync: Sanitize) -> None:
    """A11: pipe pair, id and first iteration (no earlier set), and the circle it makes; balanced: clean; without the
    drain: both flags left set."""
    both = "\n    ".join(flag("set", "M_MTE1", number) for number in (2, 3))
    drain = "\n    ".join(flag("wait", "M_MTE1", number) for number in (2, 3))
    options = "kernel_type=config.KernelType.AIC_ONLY"
    (finding,) = sync(A11.format(options=options, prime=flag("set", "M_MTE1", 2), drain=drain)).findings
    assert finding.kind == "deadlock"
    assert any("AIC 0 pipe MTE1 waits for flag M_MTE1 id 3" in note for note in finding.notes)
    assert any("Pipe M, which would set it, waits itself" in note for note in finding.notes)
    assert finding.facts["cycle"] == ["AIC 0 M", "AIC 0 MTE1", "AIC 0 M"]
    assert sync(A11.format(options=options, prime=both, drain=drain)).findings == []
    left = sync(A11.format(options=options, prime=both, drain="pass")).findings
    assert [(item.kind, item.facts["id"]) for item in left] == [("unpaired-flag", 2), ("unpaired-flag", 3)]


# -- between cores ---------------------------------------------------------------------------------------------------

MIXED = """
@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(x: asc.GlobalAddress):
    if asc.ascend_is_aiv():
{vector}
    if asc.ascend_is_aic():
{cube}

kernel[{blocks}](np.zeros(64, np.float32))
"""


@pytest.fixture
def mixed(sync: Sanitize) -> Sanitize:
    """A mixed kernel from the lines of its vector and its cube cores."""

    def run(vector: list[str], cube: list[str], blocks: int = 1) -> Any:
        indented = {
            name: "\n".join("        " + line for line in lines or ["pass"])
            for name, lines in (("vector", vector), ("cube", cube))
        }
        return sync(MIXED.format(blocks=blocks, **indented))

    return run


def cross_set(number: int | str, mode: int = 2, pipe: str = "MTE3") -> str:
    """CrossCoreSetFlag."""
    return f"asc.cross_core_set_flag({number}, {mode}, asc.PipeID.PIPE_{pipe})"


def cross_wait(number: int | str, mode: int = 2, pipe: str = "MTE2") -> str:
    """CrossCoreWaitFlag."""
    return f"asc.cross_core_wait_flag({number}, {mode}, asc.PipeID.PIPE_{pipe})"


def test_s04_cross_core_flag_never_set(mixed: Sanitize) -> None:
    """S04: the AIVs wait for a flag that the AIC never sets, and the AIC for one of theirs: all are listed, with the
    circle."""
    (finding,) = mixed([cross_wait(3), cross_set(4)], [cross_wait(4), cross_set(3, pipe="FIX")]).findings
    assert (finding.kind, finding.cores) == ("deadlock", ("AIC 0", "AIV 0", "AIV 1"))
    assert any("waits for cross-core flag 3 (mode 2)" in note for note in finding.notes)
    assert finding.facts["cycle"] == ["AIC 0 S", "AIV 0 S", "AIC 0 S"]
    assert {wait["instruction"] for wait in finding.facts["waits"]} == {"WAIT_FLAG_DEV"}


def test_one_of_two_vector_cores_has_not_set(mixed: Sanitize) -> None:
    """Mode 2 towards the AIC needs both AIVs; the one that did not is named, and that it has ended."""
    lines = ["if asc.get_sub_block_idx() == 0:", "    " + cross_set(1)]
    (finding,) = mixed(lines, [cross_wait(1)]).findings
    text = " ".join(finding.notes)
    assert "In mode 2 it rises for the first time when AIV 0, AIV 1 set it; done: AIV 0" in text
    assert "missing: AIV 1 (has ended)" in text


def test_events_of_the_other_core_type(mixed: Sanitize) -> None:
    """Mixed kernels may run one program on both core types."""
    assert mixed([*pair("M_FIX")], [*pair("MTE2_V")]).findings == []


def test_wrong_mode(mixed: Sanitize) -> None:
    """A set in mode 0 by the AIVs does not reach the AIC."""
    (finding,) = mixed([cross_set(1, mode=0), cross_wait(1, mode=0)], [cross_wait(1)]).findings
    assert any("set in mode 0" in note or "In mode 0" in note for note in finding.notes)


def test_c05_handshake_both_ways(mixed: Sanitize) -> None:
    """C05: a ring of two slots, mode 2, both directions: clean."""
    vector = ["for i in range(6):", "    " + cross_set("i % 2"), "    " + cross_wait("2 + i % 2")]
    cube = ["for i in range(6):", "    " + cross_wait("i % 2"), "    " + cross_set("2 + i % 2", pipe="FIX")]
    assert mixed(vector, cube, blocks=2).findings == []


def test_s07_counter_overflow(mixed: Sanitize) -> None:
    """S07: the sixteenth set without a wait passes what the counter holds; fifteen and their waits are clean."""
    waits = ["for i in range({}):", "    " + cross_wait(5)]
    def run(sets: int) -> Any:
        vector = [f"for i in range({sets}):", "    " + cross_set(5)]
        cube = [cross_wait(6), waits[0].format(15), waits[1]]
        return mixed([*vector, cross_set(6)], cube)
    checked = run(16)
    assert checked.kinds == ["cross-core-overflow"]
    (finding,) = checked.findings
    assert (finding.severity.word, finding.facts["count"], finding.facts["limit"]) == ("error", 16, 15)
    assert run(15).findings == []


def test_counter_left_set(mixed: Sanitize) -> None:
    """A set more than waits: the counter is up when the kernel ends; the line of the set is named."""
    (finding,) = mixed([cross_set(2), cross_set(2)], [cross_wait(2)]).findings
    assert (finding.kind, finding.severity.word) == ("cross-core-left-set", "warning")
    assert finding.cores == ("AIC 0",) and finding.facts["count"] == 1
    assert line_of(finding) == cross_set(2)


def test_two_modes_on_one_flag(mixed: Sanitize) -> None:
    """Mode 1 raises a counter that still holds a set of mode 0; drained first, it is clean."""
    both = [cross_set(7, 0), cross_set(7, 1), cross_wait(7, 0), cross_wait(7, 1)]
    checked = mixed(both, [])
    assert set(checked.kinds) == {"cross-core-mode"}
    assert (checked.findings[0].facts["before"], checked.findings[0].facts["mode"]) == (0, 1)
    drained = [cross_set(7, 0), cross_wait(7, 0), cross_set(7, 1), cross_wait(7, 1)]
    assert mixed(drained, []).findings == []


SYNC_ALL = """
@asc.jit
def kernel(x: asc.GlobalAddress):
    {guard}
        asc.sync_all()

kernel[4](np.zeros(64, np.float32))
"""


def test_s08_sync_all_reached_by_some_blocks(sync: Sanitize) -> None:
    """S08: the cores that do not come are named, and that they have ended."""
    (finding,) = sync(SYNC_ALL.format(guard="if asc.get_block_idx() != 2:")).findings
    assert (finding.kind, finding.cores) == ("deadlock", ("AIV 0", "AIV 1", "AIV 3"))
    assert any("Not there for SyncAll number 1: AIV 2 (has ended)" in note for note in finding.notes)
    assert sync(SYNC_ALL.format(guard="if asc.get_block_idx() >= 0:")).findings == []


SOFT = """
@asc.jit
def kernel(w: asc.GlobalAddress, cores: asc.ConstExpr[int]):
    w_gm = asc.GlobalTensor()
    w_gm.set_global_buffer(w)
    local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 256)
    asc.sync_all(w_gm, local, cores)

kernel[4](np.zeros(256, np.int32), {cores})
"""


def test_s11_soft_sync_all_with_another_number_of_cores(sync: Sanitize) -> None:
    """S11: six cores are waited for, four were launched."""
    assert sync(SOFT.format(cores=4)).findings == []
    (finding,) = sync(SOFT.format(cores=6)).findings
    assert finding.kind == "deadlock"
    assert any("All 4 cores of the launch are there" in note for note in finding.notes)


IB = """
@asc.jit
def kernel(w: asc.GlobalAddress):
    w_gm = asc.GlobalTensor()
    w_gm.set_global_buffer(w)
    local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 64)
    if asc.get_block_idx() == 0:
        asc.ib_set(w_gm, local, 0, {set})
    if asc.get_block_idx() == 1:
        asc.ib_wait(w_gm, local, 0, {wait})

kernel[2](np.zeros(256, np.int32))
"""


def test_ib_wait_for_another_event(sync: Sanitize) -> None:
    """IBWait on an event that nobody sets, and what was set instead."""
    assert sync(IB.format(set=1, wait=1)).findings == []
    (finding,) = sync(IB.format(set=0, wait=1)).findings
    assert any("No core has done IBSet for block 0, event 1; done were block 0 event 0." in note for note in finding.notes)


QUEUE = """
@asc.jit
def kernel(x: asc.GlobalAddress, n: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    pipe = asc.TPipe()
    inq = asc.TQue(asc.TPosition.VECIN, 2)
    outq = asc.TQue(asc.TPosition.VECOUT, 2)
    pipe.init_buffer(inq, 2, 256)
    pipe.init_buffer(outq, 2, 256)
    for i in range(n):
        a = inq.alloc_tensor(asc.float32)
        asc.data_copy(a, x_gm, 64)
        inq.enque(a)
        b = inq.deque(asc.float32)
        c = outq.alloc_tensor(asc.float32)
        asc.add(c, b, b, 64)
        outq.enque(c)
        inq.free_tensor(b)
        d = outq.deque(asc.float32)
        asc.data_copy(x_gm, d, 64)
        outq.free_tensor(d)

kernel[2](np.zeros(64, np.float32), 5)
"""


def test_c01_queues_are_clean(sync: Sanitize) -> None:
    """C01: the framework's own flags are no findings, not even those that stay up at the end."""
    assert sync(QUEUE).findings == []
