"""InstrTimeline: what an on-board run shows of single instructions (opprof.md 3.6, T43-T46)."""

import numpy as np
import pytest

from npuscope.errors import UserError
from npuscope.profiler.instruction_timeline.instructions import instr_timeline, pair, record
from npuscope.profiler.instruction_timeline.pipes import read_pipes
from npuscope.profiler.instruction_timeline.records import Event, decode
from npuscope.profiler.instruction_timeline.regions import (
    number_regions,
    overflow,
    overflowed_pipes,
    read_region_map,
)
from npuscope.profiler.writers.trace_json import OnBoard, write_on_board
from npuscope.trace.timeline import Lane


@pytest.fixture
def addition(hand):
    """Copies, an addition in a loop, a copy back; scalar work; a SIMT function."""
    given = [{"text": "ADDI", "lane": Lane.SCALAR, "start": 0, "end": 2, "line": 1}]
    for turn in range(3):
        at = 100_000 * turn
        given += [
            {"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": at + 10, "end": at + 500, "line": 2},
            {"text": "VADD", "lane": Lane.VECTOR, "start": at + 500, "end": at + 530, "line": 3},
            {"text": "SIMT_VF", "lane": Lane.VECTOR, "start": at + 530, "end": at + 540, "line": 4},
            {"text": "MOV_UB_TO_OUT", "lane": Lane.MTE3, "start": at + 540, "end": at + 700, "line": 5},
            {"text": "RV_VADD", "lane": Lane.RVECEX, "start": at + 501, "end": at + 502, "line": 6},
        ]
    return hand(given, mhz=1650.0)


def drawn(timeline, written, **choices):
    document = written(write_on_board, timeline, OnBoard(instructions=instr_timeline(timeline, **choices)))
    return [event for event in document["traceEvents"] if event["pid"] != "NOTICE"]


def test_every_pipe_but_the_scalar_one_with_call_stacks(addition, written) -> None:
    events = drawn(addition, written)
    assert {event["tid"] for event in events} == {"MTE2", "VECTOR", "MTE3"} and len(events) == 12
    copies = [event for event in events if event["name"] == "MOV_OUT_TO_UB"]
    for turn, event in enumerate(copies):  # from raw 16-bit deltas back to the same time
        assert event["ts"] == pytest.approx((100_000 * turn + 10) / 1650, abs=2e-6)
        assert event["dur"] == pytest.approx(490 / 1650, abs=2e-6)
        assert event["args"] == {"pc_addr": "0x1004", "code": "kernel.py:2\nhost.py:7"}
        assert event["pid"] == "core0.veccore0"


@pytest.mark.parametrize("text", ["MTE2/simd", "mte2|simd", " Mte2 , SIMD "])
def test_pipes_are_chosen_in_any_spelling(addition, written, text) -> None:
    events = drawn(addition, written, choice=read_pipes(text))
    assert {event["name"] for event in events} == {"MOV_OUT_TO_UB", "VADD"}


def test_vector_is_both_kinds(addition, written) -> None:
    assert drawn(addition, written, choice=read_pipes("mte2|vector")) == drawn(
        addition, written, choice=read_pipes("MTE2/simd/simt")
    )
    simt = drawn(addition, written, choice=read_pipes("simt"))
    assert {event["name"] for event in simt} == {"SIMT_VF"}


@pytest.mark.parametrize("text", ["", "scalar", "mte2|mte4", "mte2||vector"])
def test_other_pipes_are_refused(text) -> None:
    with pytest.raises(UserError, match="--instr-timeline-pipe only support pipes in") as error:
        read_pipes(text)
    assert "\n" not in str(error.value)


def test_a_pipe_with_more_instructions_than_regions(hand, written) -> None:
    given = [{"text": "VADD", "lane": Lane.VECTOR, "start": 10 * n, "end": 10 * n + 9} for n in range(600)]
    given += [{"text": "MOV_OUT_TO_UB", "lane": Lane.MTE2, "start": 10 * n, "end": 10 * n + 9} for n in range(40)]
    timeline = hand(given)
    found = instr_timeline(timeline)
    (loss,) = found.losses
    assert loss.text == (
        "InstrTimeline of pipes[VECTOR] is incomplete because these pipes have more than 512 instructions."
    )
    assert (loss.lane, loss.count, loss.total) == (Lane.VECTOR, 88, 600)
    lanes = found.timed.lane.tolist()
    assert lanes.count(Lane.VECTOR) == 512 and lanes.count(Lane.MTE2) == 40
    document = written(write_on_board, timeline, OnBoard(instructions=found))
    assert document["partial"] is True
    assert [event["name"] for event in document["traceEvents"] if event["pid"] == "NOTICE"] == [loss.text]
    assert len(instr_timeline(timeline, limit=16).timed) == 32


def test_an_instruction_in_a_loop_has_one_region(hand) -> None:
    timeline = hand([{"text": "VADD", "lane": Lane.VECTOR, "start": 2 * n, "end": 2 * n + 1, "line": 1} for n in range(2000)])
    found = instr_timeline(timeline)
    assert len(found.timed) == 2000 and not found.losses and not found.timed.lost.any()


def without(records, rows):
    """Records with some lost on the way; the time of those that are left is right."""
    return type(records)(*(np.delete(column, rows) for column in (records.cycle, records.event, records.lane, records.number)))


def test_lost_ends_are_told_and_drawn_up_to_the_next_start(hand, written) -> None:
    timeline = hand([{"text": "VADD", "lane": Lane.VECTOR, "start": 10 * n + 5, "end": 10 * n + 9, "line": n % 4 + 1}
                     for n in range(100)])  # fmt: skip
    records = decode(record(timeline, number_regions(timeline))[0])
    ends = np.flatnonzero(records.event == Event.INSTRUCTION_END)
    found = pair({0: without(records, ends[[7, 30, 50, 51, 99]])}, ["core0.veccore0"])  # 5 of 100 ends
    (loss,) = found.losses
    assert loss.text == (
        "InstrTimeline lost 5 of 200 points on VECTOR (core core0.veccore0); use --pipe to reduce traffic, or "
        "PipeTimeline / simulator."
    )
    assert (loss.count, loss.total, loss.lane, loss.core) == (5, 200, Lane.VECTOR, 0)
    assert np.flatnonzero(found.lost).tolist() == [7, 30, 50, 51, 99]
    assert found.end[[7, 30, 50, 51]].tolist() == [85, 315, 515, 525]  # the next start on the pipe
    assert found.end[99] == records.cycle[-1]  # there is none
    whole = ~found.lost
    assert found.end[whole].tolist() == [10 * n + 9 for n in range(100) if n not in (7, 30, 50, 51, 99)]
    shown = type(instr_timeline(timeline))(found, number_regions(timeline))
    document = written(write_on_board, timeline, OnBoard(instructions=shown))
    lost = [event for event in document["traceEvents"] if event["args"].get("lost") == 1]
    assert len(lost) == 5 and document["partial"] is True
    assert [event["name"] for event in document["traceEvents"]][0] == loss.text


def test_lost_starts_are_counted(hand) -> None:
    timeline = hand([{"text": "VADD", "lane": Lane.VECTOR, "start": 10 * n + 5, "end": 10 * n + 9} for n in range(20)])
    records = decode(record(timeline, number_regions(timeline))[0])
    starts = np.flatnonzero(records.event == Event.INSTRUCTION)
    found = pair({0: without(records, starts[[3, 4]])}, ["core0.veccore0"])
    assert len(found) == 18 and (found.losses[0].count, found.losses[0].total) == (2, 40) and not found.lost.any()


def test_the_compilers_map_and_log() -> None:
    text = (
        "region_id=3,pipe=mte2,kind=dma,pc=0x1c,opcode=MOV_OUT_TO_UB\n\nregion_id=0,pipe=VECTOR,x=1,pc=0X20,opcode=VF\n"
        "region_id=1,pipe=scalar,x=1,pc=0x0,opcode=ADD\nnothing\n"
    )
    found = read_region_map(text)
    assert found.bad == 2 and len(found.regions) == 2
    copy = found.regions[Lane.MTE2, 3]
    assert (copy.address, copy.name) == (0x1C, "MOV_OUT_TO_UB")
    log = "[pipe=vector] TUNE-ERROR: all dfx ids consumed\nother [pipe=mte1]\n[pipe=mte2] TUNE-ERROR: all dfx ids consumed\n"
    assert overflowed_pipes(log) == (Lane.VECTOR, Lane.MTE2)
    losses = overflow({Lane.MTE2: 900, Lane.VECTOR: 513})
    assert [(loss.lane, loss.count) for loss in losses] == [(Lane.VECTOR, 1), (Lane.MTE2, 388)]
    assert "pipes[VECTOR, MTE2]" in losses[0].text


def test_a_launch_without_instructions(hand, written) -> None:
    assert len(instr_timeline(hand([])).timed) == 0
