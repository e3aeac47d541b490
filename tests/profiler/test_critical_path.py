"""The critical path of small launches that can be followed by hand."""

from __future__ import annotations

from lined import long_timeline, on_line
from made_timeline import Maker

from npuscope.profiler.critical_path import Piece, critical_path, lane_shares, line_cycles
from npuscope.trace.timeline import EdgeKind, Lane


def pieces(maker: Maker) -> list[tuple[int, int, int, str]]:
    path = critical_path(maker.timeline())
    rows = zip(path.slice, path.start, path.end, path.piece, strict=True)
    return [(int(at), int(start), int(end), Piece(piece).name) for at, start, end, piece in rows]


def test_a_wait_leads_to_the_set_that_ended_it() -> None:
    maker = Maker()
    copy = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 20, 120, issue=20)
    flag = maker.slice("SET_FLAG", Lane.MTE2, 120, 121, issue=22)
    wait = maker.slice("WAIT_FLAG", Lane.VECTOR, 24, 122, issue=24)
    add = maker.slice("VADD", Lane.VECTOR, 122, 150, issue=26)
    maker.edge(flag, wait, 0)
    assert pieces(maker) == [
        (-1, 0, 20, "START"), (copy, 20, 120, "WORK"), (flag, 120, 121, "WORK"), (wait, 121, 122, "WORK"),
        (add, 122, 150, "WORK"),
    ]  # fmt: skip


def test_a_set_that_stands_behind_its_copy() -> None:
    """The set begins before the copy is done, and ends with it: the copy is what takes the time."""
    maker = Maker()
    copy = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 20, 120, issue=20)
    flag = maker.slice("SET_FLAG", Lane.MTE2, 45, 120, issue=21)
    wait = maker.slice("WAIT_FLAG", Lane.VECTOR, 24, 125, issue=22)
    maker.edge(flag, wait, 0)
    assert pieces(maker) == [(-1, 0, 20, "START"), (copy, 20, 120, "WORK"), (wait, 120, 125, "WORK")]


def test_the_end_of_a_kernel_stands_behind_every_pipe() -> None:
    maker = Maker()
    copy = maker.slice("MOV_UB_TO_OUT", Lane.MTE3, 20, 120, issue=20)
    end = maker.slice("END", Lane.SCALAR, 22, 130, issue=22)
    assert pieces(maker) == [(-1, 0, 20, "START"), (copy, 20, 120, "WORK"), (end, 120, 130, "WORK")]


def test_messages_between_cores() -> None:
    """A client's message lets the server begin, its answer lets the client go on."""
    maker = Maker("vector", 2)
    post = maker.slice("KFC_POST", Lane.MTE3, 20, 40, issue=20)
    maker.slice("INIT", Lane.SCALAR, 20, 21, issue=20, core=1)
    tile = maker.slice("FIX_L0C_TO_OUT", Lane.FIXP, 140, 200, issue=138, core=1)
    answer = maker.slice("KFC_NOTIFY", Lane.FIXP, 200, 201, issue=139, core=1)
    wait = maker.slice("KFC_WAIT", Lane.SCALAR, 25, 301, issue=25)
    maker.edge(post, tile, -1, EdgeKind.CROSS)
    maker.edge(answer, wait, -1, EdgeKind.CROSS)
    assert pieces(maker) == [
        (-1, 0, 20, "START"), (post, 20, 40, "WORK"), (tile, 40, 138, "SIGNAL"), (tile, 138, 140, "ISSUE"),
        (tile, 140, 200, "WORK"), (answer, 200, 201, "WORK"), (wait, 201, 301, "SIGNAL"),
    ]  # fmt: skip
    timeline = maker.timeline()
    assert lane_shares(timeline, critical_path(timeline))["signal"] == 98 + 100


def test_a_flag_that_was_up_already_is_not_on_it() -> None:
    maker = Maker()
    maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 10, 30, issue=10)
    flag = maker.slice("SET_FLAG", Lane.MTE2, 30, 31, issue=11)
    first = maker.slice("VEXP", Lane.VECTOR, 12, 90, issue=12)
    wait = maker.slice("WAIT_FLAG", Lane.VECTOR, 90, 91, issue=13)
    maker.edge(flag, wait, 0)
    assert pieces(maker) == [
        (-1, 0, 10, "START"), (flag, 10, 11, "ISSUE"), (first, 11, 12, "ISSUE"), (first, 12, 90, "WORK"),
        (wait, 90, 91, "WORK"),
    ]  # fmt: skip


def test_a_late_scalar_unit_is_on_it() -> None:
    maker = Maker()
    first = maker.slice("VADD", Lane.VECTOR, 10, 20, issue=10)
    scalar = maker.slice("GET_VALUE", Lane.SCALAR, 12, 80, issue=12)
    last = maker.slice("VADD", Lane.VECTOR, 85, 95, issue=84)
    assert pieces(maker) == [
        (-1, 0, 10, "START"), (scalar, 10, 12, "ISSUE"), (scalar, 12, 80, "WORK"), (last, 80, 85, "ISSUE"),
        (last, 85, 95, "WORK"),
    ]  # fmt: skip
    assert first == 0


def test_a_full_queue_leads_to_the_pipe_that_filled_it() -> None:
    """The third copy cannot be issued before the second is popped, which frees its place: the pipe is what is slow."""
    maker = Maker()
    first = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 10, 100, issue=10)
    second = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 100, 200, issue=11)
    third = maker.slice("VADD", Lane.VECTOR, 201, 230, issue=201)
    full = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 200, 300, issue=100)
    maker.slices[third]["start"], maker.slices[third]["end"], maker.slices[third]["issue"] = 101, 120, 101
    assert [(at, start, end) for at, start, end, _ in pieces(maker)] == [
        (-1, 0, 10), (first, 10, 100), (second, 100, 200), (full, 200, 300),
    ]  # fmt: skip


def test_another_core_s_message() -> None:
    """A copy that only a message from another core lets the scalar unit issue."""
    maker = Maker("vector", 2)
    post = maker.slice("KFC_POST", Lane.MTE3, 40, 60, core=1, issue=40)
    early = maker.slice("INIT", Lane.SCALAR, 5, 6, issue=5)
    copy = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 70, 90, issue=70)
    maker.edge(post, copy, 1)
    assert [at for at, *_ in pieces(maker)] == [-1, post, copy, copy]
    assert early not in [at for at, *_ in pieces(maker)]


def test_every_cycle_is_counted_once() -> None:
    timeline = long_timeline(20_000)
    path = critical_path(timeline)
    assert int(path.start[0]) == 0 and int(path.end[-1]) == timeline.cycles
    assert (path.start[1:] == path.end[:-1]).all()
    assert sum(lane_shares(timeline, path).values()) == timeline.cycles


def test_lines() -> None:
    maker = Maker()
    on_line(maker, maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 10, 60, issue=10), 7)
    on_line(maker, maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 60, 100, issue=11), 7)
    on_line(maker, maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 100, 130, issue=12), 9)
    timeline = maker.timeline()
    assert line_cycles(timeline, critical_path(timeline)) == {("kernel.py", 7): 90, ("kernel.py", 9): 30}


def test_nothing_ran() -> None:
    assert pieces(Maker()) == []


def test_times_of_issue_that_are_not_known() -> None:
    """As in the dumps of a vendor simulator without a log of the control unit: the pipe is followed."""
    maker = Maker()
    first = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 10, 60)
    last = maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 70, 100)
    assert pieces(maker) == [
        (-1, 0, 10, "START"),
        (first, 10, 60, "WORK"),
        (last, 60, 70, "ISSUE"),
        (last, 70, 100, "WORK"),
    ]
