"""The timing model on traces made by hand. What is expected follows from the chip's facts by hand arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from made_rows import Trace

from npuscope.errors import Unsupported
from npuscope.npu.chip import Chip, load_chip
from npuscope.npu.timing import cold, time_launch
from npuscope.trace.events import HardEvent
from npuscope.trace.schema import Launch, Pipe, Programs, Role, Space
from npuscope.trace.timeline import EdgeKind, Timeline

NEAR = 3
"""Cycles that issue and rounding may add."""


@pytest.fixture
def chip() -> Chip:
    return load_chip("910B1")


def at(timeline: Timeline, name: str, row: int) -> int:
    return int(timeline.slice(name)[row])


def port(chip: Chip, name: str) -> float:
    """Bytes per cycle that one core reaches on a path."""
    path = chip.path(name)
    assert path is not None and path.ceiling is not None
    return path.ceiling * 1e3 / chip.frequency_mhz


def alone(chip: Chip, nbytes: int, hit: bool = False) -> float:
    """Cycles of a copy of one row into UB by itself."""
    facts = chip.timing.mte2
    moving = max(facts.row, nbytes / port(chip, "gm_to_ub"))
    return facts.setup + moving + (facts.latency_hit if hit else facts.latency)


# -- inside a core -----------------------------------------------------------------------------------------------------


def test_a_copy_takes_its_setup_its_bytes_and_its_latency(chip: Chip) -> None:
    trace = Trace()
    row = trace.load(0, 16384)
    timeline = time_launch(trace.end(), chip)
    assert at(timeline, "end", row) - at(timeline, "start", row) == pytest.approx(alone(chip, 16384), abs=1)
    assert at(timeline, "bytes", row) == 16384


def test_a_tiny_copy_keeps_the_pipe_for_the_least_spacing(chip: Chip) -> None:
    trace = Trace()
    rows = [trace.load(at * 4096, 64) for at in range(9)]
    timeline = time_launch(trace.end(), chip)
    between = (at(timeline, "start", rows[-1]) - at(timeline, "start", rows[0])) / 8
    assert between == pytest.approx(chip.timing.mte2.spacing, abs=0.5)


def test_a_flag_releases_its_pipe_when_the_copy_before_it_is_complete(chip: Chip) -> None:
    trace = Trace()
    copy = trace.load(0, 4096)
    flag, wait = trace.flag(HardEvent.MTE2_V)
    work = trace.vector(8192, [0], 1024)
    timeline = time_launch(trace.end(), chip)
    assert at(timeline, "end", flag) == at(timeline, "end", copy)
    assert at(timeline, "end", wait) == pytest.approx(at(timeline, "end", copy) + chip.timing.sync.flag, abs=1)
    assert at(timeline, "start", work) >= at(timeline, "end", wait)
    assert timeline.edges.T.tolist() == [[flag, wait, EdgeKind.FLAG, 0]]


def test_a_vector_instruction_takes_its_start_and_a_cycle_for_each_repeat(chip: Chip) -> None:
    trace = Trace()
    row = trace.vector(0, [65536], 4096, name="vabs")
    timeline = time_launch(trace.end(), chip)
    facts = chip.timing.vector
    expected = facts.start + 4096 * 4 / 256 + facts.latency
    assert at(timeline, "end", row) - at(timeline, "start", row) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(("name", "cycles"), [("vabs", 1), ("vexp", 2), ("vmla", 2), ("vcadd", 7)])
def test_rates_of_float_instructions_are_those_of_the_table(chip: Chip, name: str, cycles: float) -> None:
    """hardware.md 6.2: cycles of a repeat of 64 floats."""
    trace = Trace()
    short, long = trace.vector(0, [65536], 640, name=name), trace.vector(32768, [98304], 6400, name=name)
    timeline = time_launch(trace.end(), chip)
    lengths = [at(timeline, "end", row) - at(timeline, "start", row) for row in (short, long)]
    assert lengths[1] - lengths[0] == pytest.approx(90 * cycles, abs=1)


@pytest.mark.parametrize("ordered", ["True", "False"])
def test_the_compilers_barriers_hold_back_what_depends(chip: Chip, ordered: str) -> None:
    trace = Trace(auto_sync=ordered)
    first, second = trace.vector(32768, [0], 1024, name="vabs"), trace.vector(65536, [32768], 1024, name="vabs")
    timeline = time_launch(trace.end(), chip)
    waits = at(timeline, "start", second) >= at(timeline, "end", first)
    assert waits == (ordered == "True")


def test_a_barrier_waits_for_its_pipe(chip: Chip) -> None:
    trace = Trace(auto_sync="False")
    first = trace.vector(32768, [0], 1024, name="vabs")
    barrier = trace.add("pipe_barrier", Pipe.V)
    second = trace.vector(98304, [65536], 1024, name="vabs")
    timeline = time_launch(trace.end(), chip)
    assert at(timeline, "end", first) <= at(timeline, "end", barrier) <= at(timeline, "start", second)


def test_a_full_queue_holds_up_the_scalar_unit(chip: Chip) -> None:
    """While V waits for a flag 32 entries fit (the wait has begun and is out of the queue): the next waits for room."""
    trace = Trace(auto_sync="False")
    trace.load(0, 32768)
    _, wait = trace.flag(HardEvent.MTE2_V)
    rows = [trace.vector(0, [65536], 64, name="vabs") for _ in range(40)]
    timeline = time_launch(trace.end(), chip)
    depth = chip.timing.scalar.depth
    released = at(timeline, "end", wait)
    assert at(timeline, "issue", rows[depth - 1]) < released
    assert at(timeline, "issue", rows[depth]) >= released
    assert timeline.core("stall_vector")[0] > 0 and timeline.core("stall_mte2")[0] == 0


def test_two_buffers_hide_the_copies(chip: Chip) -> None:
    """The second copy is under way while the first one's data is worked on."""
    lengths = {}
    for buffers in (1, 2):
        trace = Trace(auto_sync="False")
        for tile in range(8):
            buffer = tile % buffers
            if tile >= buffers:
                trace.wait(HardEvent.V_MTE2, buffer)
            trace.load(tile * 16384, 16384, to=buffer * 16384)
            trace.flag(HardEvent.MTE2_V, buffer)
            trace.vector(98304, [buffer * 16384], 4096, name="vexp")
            trace.set(HardEvent.V_MTE2, buffer)
        timeline = time_launch(trace.end(), chip)
        lengths[buffers] = int(timeline.slice("end").max() - timeline.slice("start").min())
    assert lengths[2] < 0.7 * lengths[1]


def test_scalar_loads_of_gm_go_through_the_data_cache(chip: Chip) -> None:
    trace = Trace()
    rows = []
    for place in (0, 8, 64, 0):
        rows.append(trace.add("scalar_load", Pipe.S, work=4))
        trace.touch(Role.READ, Space.GM, 0x1000_0000_0000 + place, 4)
    timeline = time_launch(trace.end(), chip)
    took = [at(timeline, "end", row) - at(timeline, "start", row) for row in rows]
    facts = chip.timing.scalar
    assert took == [facts.cache_miss_gm, facts.cache_hit, facts.cache_miss_gm, facts.cache_hit]
    assert (timeline.core("dcache_hits")[0], timeline.core("dcache_misses")[0]) == (2, 2)


def test_code_is_fetched_once_for_each_line(chip: Chip) -> None:
    trace = Trace()
    for _ in range(50):
        trace.load(0, 64)
    timeline = time_launch(trace.end(), chip)
    assert timeline.core("icache_requests")[0] >= 50
    words = sum(chip.timing.calls[name] + 1 for name in ("kernel", "copy", "kernel_end"))
    assert timeline.core("icache_misses")[0] == pytest.approx(words * 4 / chip.timing.icache.line_bytes, abs=2)


# -- banks (E-BK22, hardware.md 7 rows 1 to 4) ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("places", "ratio", "column"),
    [
        ((0, 256, 65536), 1.0, None),  # the sources half a row of banks apart
        ((0, 512, 65792), 1.74, "bank_group"),  # both sources in one group
        ((0, 256, 32), 1.57, "bank"),  # the result one block after a source
    ],
)
def test_bank_conflicts(chip: Chip, places: tuple[int, int, int], ratio: float, column: str | None) -> None:
    """An Add of 4096 floats over and over, relative to one without a conflict (88.4 cycles)."""
    one, other, result = places
    trace = Trace()
    rows = []
    for _ in range(10):
        row = trace.add("vadd", Pipe.V, a=64, c=-1, d=-1, work=4096)
        for role, address in ((Role.READ, one), (Role.READ, other), (Role.WRITE, result)):
            trace.touch(role, Space.UB, address, 256, (64, 512))
        rows.append(row)
    timeline = time_launch(trace.end(), chip)
    each = (at(timeline, "start", rows[-1]) - at(timeline, "start", rows[0])) / 9
    assert each / 88.4 == pytest.approx(ratio, rel=0.1)
    for name in ("bank_group", "bank"):
        assert (at(timeline, name, rows[0]) > 0) == (name == column)


# -- the cube ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("buffer", "elements"), [("float16", 16), ("float32", 4)])
def test_products_take_their_fractals(chip: Chip, buffer: str, elements: int) -> None:
    """8 Mmads of 128 x 256 x 64 halves: 4209 cycles measured (hardware.md 7 row 34); floats are four times as slow."""
    trace = Trace(kind="cube")
    for _ in range(8):
        trace.add("mmad", Pipe.M, a=128, b=256, c=64, work=128 * 256 * 64)
        trace.touch(Role.READ, Space.L0C if buffer == "float32" else Space.L0A, 0, 16384)
    timeline = time_launch(trace.end(), chip)
    length = at(timeline, "end", 7) - at(timeline, "start", 0)
    body = 8 * (128 // 16) * (256 // 16) * (64 // elements)
    assert length == pytest.approx(body + 4209 - 4096, rel=0.02)


def test_a_unit_flag_lets_fixpipe_wait_on_its_own_pipe(chip: Chip) -> None:
    trace = Trace(kind="cube")
    product = trace.add("mmad", Pipe.M, a=128, b=256, c=64, d=3, work=128 * 256 * 64)
    trace.touch(Role.READ, Space.L0A, 0, 16384)
    out = trace.add("fixpipe", Pipe.FIX, a=128, b=256, d=3, work=65536)
    trace.touch(Role.READ, Space.L0C, 0, 131072)
    trace.touch(Role.WRITE, Space.GM, 0x1000_0000_0000, 512, (128, 512))
    timeline = time_launch(trace.end(), chip)
    assert at(timeline, "start", out) < at(timeline, "end", product) < at(timeline, "end", out)


def test_a_tile_of_the_library_waits_for_its_data_and_takes_k_in_steps(chip: Chip) -> None:
    """One tile of 128 x 128 x 4096 halves: a step of K is 32 KB of either operand, 128 elements, so there are 32."""
    trace = Trace(kind="cube")
    m, n, k = 128, 128, 4096
    copies = []
    for rows, columns in ((m, k), (k, n)):
        copies.append(trace.add("copy_gm_to_l1", Pipe.MTE2, a=rows, b=columns, work=rows * columns * 2))
        trace.touch(Role.READ, Space.GM, 0x1000_0000_0000, rows * columns * 2)
        trace.add("load_data", Pipe.MTE1, a=rows, b=columns, work=rows * columns * 2)
    product = trace.add("mmad", Pipe.M, a=m, b=n, c=k, work=m * n * k)
    out = trace.add("fixpipe", Pipe.FIX, a=m, b=n, work=m * n * 4)
    timeline = time_launch(trace.end(), chip)
    facts, start, end = chip.timing.cube, at(timeline, "start", product), at(timeline, "end", product)
    assert end - start == pytest.approx(32 * (facts.gap + 8 * 8 * 8) + facts.latency, abs=2)
    assert start > at(timeline, "start", copies[1]), "its first operands are there"
    assert start < at(timeline, "end", copies[1]) < end, "it begins before the last are"
    assert at(timeline, "start", out) >= end


# -- cores together ------------------------------------------------------------------------------------------------------


def test_all_cores_share_what_gm_gives(chip: Chip) -> None:
    """48 cores read 4 MB each: all of it at the rate that the whole chip reaches."""
    trace = Trace(48)
    for turn in range(64):
        for core in range(48):
            trace.load((core * 64 + turn) * 65536, 65536, core)
    timeline = time_launch(trace.end(), chip)
    rate = chip.bandwidth.gm * chip.timing.memory.gm * 1e3 / chip.frequency_mhz
    span = int(timeline.slice("end").max() - timeline.slice("start")[: 48 * 64].min())
    assert span == pytest.approx(48 * 64 * 65536 / rate, rel=0.03)


def test_a_copy_alone_has_its_port_to_itself(chip: Chip) -> None:
    """Two cores do not come near what GM gives: each is as fast as one."""
    trace = Trace(2)
    rows = [trace.load(core * 65536, 65536, core) for core in range(2)]
    timeline = time_launch(trace.end(), chip)
    for row in rows:
        assert at(timeline, "end", row) - at(timeline, "start", row) == pytest.approx(alone(chip, 65536), abs=1)


def test_a_second_pass_finds_its_lines_in_l2(chip: Chip) -> None:
    trace = Trace()
    first = trace.load(0, 65536)
    trace.add("pipe_barrier", Pipe.MTE2)
    second = trace.load(0, 65536)
    timeline = time_launch(trace.end(), chip)
    assert timeline.transfer("hits").tolist() == [0, 128] and timeline.transfer("misses").tolist() == [128, 0]
    assert at(timeline, "end", first) - at(timeline, "start", first) == pytest.approx(alone(chip, 65536), abs=1)
    assert at(timeline, "end", second) - at(timeline, "start", second) == pytest.approx(
        alone(chip, 65536, hit=True), abs=1
    )
    lines = timeline.lines
    assert int(lines[2].sum()) == 128 and int(lines[3].sum()) == 128


def test_l2_is_cold_unless_it_is_carried_over(chip: Chip) -> None:
    trace = Trace()
    trace.load(0, 8192)
    rows = trace.end()
    l2 = cold(chip)
    found = [time_launch(rows, chip, l2) for _ in range(2)]
    assert [int(one.transfer("hits").sum()) for one in found] == [0, 16]
    assert [one.notes["l2"] for one in found] == ["cold", "warm"]
    assert int(time_launch(rows, chip).transfer("hits").sum()) == 0


def test_a_written_line_makes_room_first(chip: Chip) -> None:
    """An L2 of one set of two ways: the line that was written goes before the one that was read earlier."""
    small = load_chip("910B1", {"l2.bytes": 1024, "timing.memory.ways": 2})
    trace = Trace()
    trace.load(0, 512)
    trace.flag(HardEvent.MTE2_MTE3)
    trace.store(512, 512)
    trace.flag(HardEvent.MTE3_MTE2)
    trace.load(1024, 512)
    trace.add("pipe_barrier", Pipe.MTE2)
    trace.load(0, 512)
    timeline = time_launch(trace.end(), small)
    assert timeline.transfer("victims").tolist() == [0, 0, 1, 0]
    assert timeline.transfer("hits").tolist() == [0, 0, 0, 1]


def test_a_cross_core_flag_waits_for_the_whole_group(chip: Chip) -> None:
    trace = Trace(2)
    slow = trace.load(0, 65536, core=1)
    sets = [trace.add("cross_core_set", Pipe.MTE2, core, a=3, c=1, d=1) for core in (0, 1)]
    waits = [trace.add("cross_core_wait", Pipe.S, core, a=3, c=1, d=1) for core in (0, 1)]
    timeline = time_launch(trace.end(), chip)
    for wait in waits:
        assert at(timeline, "end", wait) == pytest.approx(at(timeline, "end", slow) + chip.timing.sync.cross, abs=1)
    assert {tuple(edge) for edge in timeline.edges.T.tolist()} == {
        (one, wait, int(EdgeKind.CROSS), 3) for one in sets for wait in waits
    }


def test_blocks_beyond_the_cores_wait_for_one_to_end(chip: Chip) -> None:
    trace = Trace(50)
    for core in range(50):
        trace.load(core * 65536, 65536, core)
    timeline = time_launch(trace.end(), chip)
    start, end = timeline.core("start"), timeline.core("end")
    assert start[:48].max() < end.min()
    assert sorted(start[48:]) == pytest.approx(sorted(end[:48])[:2] + np.array(chip.timing.launch.dispatch), abs=1)


def test_the_same_trace_gives_the_same_times(chip: Chip) -> None:
    trace = Trace(8)
    for turn in range(20):
        for core in range(8):
            trace.load((core * 20 + turn) * 32768, 32768, core)
            trace.flag(HardEvent.MTE2_V, 0, core)
            trace.vector(65536, [0], 4096, core)
            trace.flag(HardEvent.V_MTE3, 0, core)
            trace.store((1 << 28) + (core * 20 + turn) * 16384, 16384, core, 65536)
    rows = trace.end()
    one, other = time_launch(rows, chip), time_launch(rows, chip)
    np.testing.assert_array_equal(one.slices, other.slices)
    np.testing.assert_array_equal(one.lines, other.lines)


# -- facts, chips, what cannot be timed -------------------------------------------------------------------------------------


def test_a_changed_fact_changes_the_times(chip: Chip) -> None:
    trace = Trace()
    row = trace.load(0, 16384)
    rows = trace.end()
    slower = load_chip("910B1", {"timing.mte2.setup": chip.timing.mte2.setup + 100})
    before, after = (time_launch(rows, one) for one in (chip, slower))
    assert at(after, "end", row) - at(before, "end", row) == pytest.approx(100, abs=1)


def test_a_trace_can_be_timed_on_another_chip() -> None:
    trace = Trace()
    row = trace.load(0, 65536)
    rows = trace.end()
    for name in ("910B4", "910_9392", "310P3", "950PR"):
        chip = load_chip(name)
        timeline = time_launch(rows, chip)
        assert timeline.chip == chip.name and timeline.mhz == chip.frequency_mhz
        assert at(timeline, "end", row) > at(timeline, "start", row) > timeline.overhead - NEAR


def test_what_waits_for_ever_is_a_loss(chip: Chip) -> None:
    """Two cores, each of which waits for the other's flag before it sets its own: no trace of a device says so, but a
    damaged file may."""
    trace = Trace(2)
    waits = [trace.add("cross_core_wait", Pipe.S, core, a=1, d=2 - core) for core in (0, 1)]
    for core in (0, 1):
        trace.add("cross_core_set", Pipe.MTE3, core, a=1, d=core + 1)
    timeline = time_launch(trace.rows(), chip)
    assert timeline.partial and timeline.losses[0].kind == "untimed" and timeline.losses[0].count == 4
    assert at(timeline, "end", waits[0]) == -1


def test_a_trace_that_breaks_off_says_so(chip: Chip) -> None:
    trace = Trace()
    trace.load(0, 512)
    timeline = time_launch(trace.rows(whole=False), chip)
    assert [loss.kind for loss in timeline.losses] == ["trace"]
    assert at(timeline, "end", 0) > 0


def test_a_tile_kernel_has_no_pipes(chip: Chip) -> None:
    trace = Trace()
    trace.launch = Launch(0, "tile", "Ascend910B1", Programs((4,)), (4,), {}, {})
    with pytest.raises(Unsupported, match="tile"):
        time_launch(trace.rows(), chip)
