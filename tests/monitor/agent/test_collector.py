"""The collector with a clock that the test moves: DUR-01 to DUR-06, updates, refusals, losses."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from agent.parts import Bench, OwnSource

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.commands import Command
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.standing import Ending, Standing

KERNEL, MARKER = frozenset({Kind.KERNEL}), frozenset({Kind.MARKER})


@pytest.mark.parametrize("seconds", [10.0, 0.5, 0.001, 0.333333])
def test_a_duration_ends_to_the_point(bench: Bench, seconds: float) -> None:  # DUR-01, DUR-03
    bench.start(duration=seconds)
    assert bench.told == [Standing(True)]
    assert bench.pass_seconds(seconds - 0.0005) == pytest.approx(0.0005)
    assert bench.collector.running
    assert bench.pass_seconds(0.0005) is None
    run = bench.processor.run
    assert not bench.collector.running and bench.processor.closed == 1
    assert run.ended - run.started == pytest.approx(seconds * 1e9, abs=1000)
    assert bench.told == [Standing(True), Standing(False, ending=Ending.EXPIRED)]  # the end is reported by itself


def test_a_late_look_does_not_lengthen_the_collection(bench: Bench) -> None:
    bench.start(duration=1)
    run, source = bench.processor.run, bench.source
    source.at_stop = [source.kernels(["in", "out"], [run.started + 999_000_000, run.started + 1_001_000_000])]
    bench.pass_seconds(1.7)
    assert run.ended - run.started == 1_000_000_000
    assert bench.processor.names == ["in"]


def test_what_comes_before_a_late_look_and_began_after_the_end_is_left_out(bench: Bench) -> None:
    bench.start(duration=1)
    run, source = bench.processor.run, bench.source
    bench.clock.offset += 3600 * 10**9  # the clock is set meanwhile
    end = run.started + 3601 * 10**9
    source.give("in", start=end - 1_000_000)
    bench.clock.seconds += 1.003
    source.deliver(source.kernels(["in", "out"], [end - 500_000, end + 500_000]))
    bench.pass_seconds(0)
    assert run.ended == end and bench.processor.names == ["in", "in"]


def test_no_duration_runs_until_told_to_stop(bench: Bench) -> None:  # DUR-02
    bench.start()
    for _ in range(100):
        bench.pass_seconds(3600)
    assert bench.collector.running
    bench.stop()
    assert not bench.collector.running and bench.told[-1] == Standing(False, ending=Ending.STOPPED)


def test_a_stop_comes_before_the_duration(bench: Bench) -> None:  # DUR-04
    bench.start(duration=10)
    bench.clock.seconds += 2
    bench.stop()
    assert not bench.collector.running
    assert bench.processor.run.ended - bench.processor.run.started == 2_000_000_000
    assert bench.pass_seconds(60) is None and bench.processor.closed == 1


def test_a_stop_after_the_end_is_a_warning(bench: Bench) -> None:  # DUR-06
    bench.start(duration=1)
    bench.pass_seconds(2)
    bench.stop()
    assert not bench.collector.running and bench.processor.closed == 1
    assert len(bench.lines("W")) == 1 and "nothing to stop" in bench.lines("W")[0]
    assert bench.told[-1] == Standing(False, ending=Ending.EXPIRED)


def test_a_stop_without_a_start_is_one_warning(bench: Bench) -> None:
    bench.stop()
    assert len(bench.lines("W")) == 1 and bench.told == [Standing()]


def test_a_second_start_changes_and_starts_nothing(bench: Bench) -> None:
    bench.start(duration=10)
    bench.start(duration=99, filter="Kernel:a")
    assert len(bench.made) == 1 and len(bench.lines("W")) == 1
    assert [call for call in bench.source.calls if call[0] == "start"] == [("start", KERNEL)]
    bench.pass_seconds(10)
    assert not bench.collector.running


def test_stop_wins_over_start(bench: Bench) -> None:
    bench.start()
    bench.collector.handle(Command(start=True, stop=True))
    assert not bench.collector.running and len(bench.made) == 1


def test_a_start_that_comes_as_the_old_one_expires_is_a_new_one(bench: Bench) -> None:
    bench.start(duration=1)
    bench.clock.seconds += 1  # it is over, and nobody has looked yet
    bench.start(duration=1)
    assert len(bench.made) == 2 and bench.made[0].closed == 1 and bench.lines("W") == []
    assert bench.told == [Standing(True), Standing(False, ending=Ending.EXPIRED), Standing(True, ending=Ending.EXPIRED)]
    assert bench.made[0].run.strings is not bench.made[1].run.strings


def test_a_clock_that_is_set_moves_no_end(bench: Bench) -> None:
    bench.start(duration=10, interval=3600)
    bench.clock.offset += 3600 * 10**9
    assert bench.pass_seconds(9) == pytest.approx(1)
    bench.clock.offset -= 7200 * 10**9
    assert bench.collector.running
    assert bench.pass_seconds(1) is None and not bench.collector.running


def test_reports_come_each_interval(bench: Bench) -> None:
    bench.start(interval=5)
    assert bench.pass_seconds(0) == 5
    bench.pass_seconds(5)
    bench.pass_seconds(1)
    assert len(bench.processor.reports) == 1 and bench.source.calls[-1] == "flush"
    bench.pass_seconds(400)  # the machine was asleep: one report and not eighty
    assert len(bench.processor.reports) == 2
    bench.collector.handle(Command(interval=60))  # a new interval begins with a report
    assert len(bench.processor.reports) == 3 and bench.pass_seconds(0) == 60
    bench.collector.handle(Command(interval=0))
    assert bench.pass_seconds(0) == 60


def test_the_usual_interval_is_a_minute_and_comes_back(bench: Bench) -> None:
    bench.start(interval=5)
    bench.stop()
    bench.start()
    assert bench.pass_seconds(0) == 60


def test_a_filter_changes_while_it_runs(bench: Bench) -> None:
    bench.start(filter="Kernel:Mat")
    bench.source.give("MatMul", "Conv2D")
    bench.collector.handle(Command(filter="Kernel:Conv"))
    assert bench.source.calls[-1] == "flush"  # what came before passes the old filter
    bench.source.give("MatMul", "Conv2D")
    bench.collector.handle(Command())  # an empty one clears
    bench.source.give("MatMul", "Conv2D")
    assert bench.processor.names == ["MatMul", "Conv2D", "MatMul", "Conv2D"]


def test_many_updates_in_a_short_time(bench: Bench) -> None:
    bench.start(duration=5, filter="Kernel:0")
    for number in range(200):
        bench.collector.handle(Command(filter=f"Kernel:k{number}x"))
        bench.source.give(*[f"k{other}x" for other in range(200)])
    assert bench.processor.names == [f"k{number}x" for number in range(200)]
    bench.pass_seconds(5)
    assert not bench.collector.running


def test_a_bad_filter_entry_is_named_and_the_rest_works(bench: Bench) -> None:
    bench.start(filter="oops;Kernel:Mat")
    bench.source.give("MatMul", "Conv2D")
    assert bench.processor.names == ["MatMul"]
    assert len(bench.lines("W")) == 1 and "'oops'" in bench.lines("W")[0]


def test_a_filter_without_a_good_entry_keeps_nothing_and_says_so(bench: Bench) -> None:  # FIL-08
    bench.start(filter="InvalidKind:Op")
    bench.source.give("MatMul")
    assert bench.processor.names == []
    assert any("'InvalidKind:Op'" in line for line in bench.lines("W"))
    assert any("nothing is kept but" in line for line in bench.lines("W"))


def test_kinds_change_while_it_runs(tmp_path: Path) -> None:
    one, other = OwnSource("one", [Kind.KERNEL, Kind.API]), OwnSource("other", [Kind.MARKER])
    bench = Bench(tmp_path, one, other)
    bench.start(kinds=frozenset({Kind.KERNEL}))
    bench.collector.handle(Command(kinds=frozenset({Kind.API, Kind.MARKER})))
    assert one.calls == [("start", KERNEL), "flush", ("change", frozenset({Kind.API}))]
    assert other.calls == [("start", MARKER)]
    bench.collector.handle(Command(kinds=MARKER))
    assert one.calls[-1] == "stop" and other.calls[-1] == ("change", MARKER)
    bench.collector.handle(Command())  # no kinds: they stay
    assert other.calls[-1] == "flush"
    bench.stop()
    assert one.calls.count("stop") == 1 and other.calls[-1] == "stop"


def test_a_source_that_cannot_run_is_named_once_and_the_others_go_on(tmp_path: Path) -> None:
    one, other = OwnSource("one", why="there is no card"), OwnSource("other")
    bench = Bench(tmp_path, one, other)
    for _ in range(2):
        bench.start()
        assert bench.collector.running
        bench.stop()
    assert [line for line in bench.lines("W") if "there is no card" in line] == bench.lines("W")
    assert len(bench.lines("W")) == 1 and bench.asked == 1


def test_a_source_that_breaks_does_not_end_the_others(tmp_path: Path) -> None:
    class Broken(OwnSource):
        def flush(self) -> None:
            raise RuntimeError("broken")

    bench = Bench(tmp_path, Broken("bad"), OwnSource("good"))
    bench.start(interval=1)
    bench.pass_seconds(1)
    assert bench.collector.running and len(bench.processor.reports) == 1
    assert "bad failed to flush" in bench.lines("E")[0]


@pytest.mark.parametrize("why", ["", "there is no card"])
def test_without_any_source_the_command_is_refused(tmp_path: Path, why: str) -> None:
    source = OwnSource("one", [Kind.KERNEL if why else Kind.API], why)
    bench = Bench(tmp_path, source)
    bench.start()
    assert not bench.collector.running
    assert bench.told == [Standing(code=Code.UNAVAIL)]
    (line,) = bench.lines("E")
    assert "ERR00009 IPC nothing in this process gives Kernel" in line and why in line
    bench.stop()


def test_a_kind_that_nothing_gives_is_named(bench: Bench) -> None:
    bench.start(kinds=frozenset({Kind.KERNEL, Kind.HCCL}))
    assert bench.collector.running and "gives Hccl" in bench.lines("W")[0]


def test_a_trace_keeps_the_monitor_from_starting(bench: Bench) -> None:
    bench.busy = "a trace is running in this process"
    bench.start()
    assert not bench.collector.running and bench.made == []
    assert bench.told == [Standing(code=Code.UNAVAIL)] and "a trace is running" in bench.lines("E")[0]


def test_the_folder_is_made_and_absolute(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bench.start(folder="a/b")
    assert bench.processor.command.folder == f"{tmp_path}/a/b"
    assert os.stat(tmp_path / "a" / "b").st_mode & 0o777 == 0o750


def test_a_file_in_the_folders_place_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (f"{tmp_path}/file", f"{tmp_path}/file/below", "/proc/npuscope", "/tmp/\0"):
        bench.start(folder=folder)
        assert bench.told[-1] == Standing(code=Code.PERMISSION) and bench.made == []
    assert all("ERR00012" in line and "[permission error]" in line for line in bench.lines("E"))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    bench.start(folder=f"{tmp_path}/closed")
    assert bench.told == [Standing(code=Code.PERMISSION)]


def test_a_processor_that_cannot_be_made_refuses_the_start(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    bench.collector._build = build  # type: ignore[assignment]
    bench.start()
    assert bench.told == [Standing(code=Code.PERMISSION)] and bench.source.calls == []


def test_losses_are_counted_logged_and_told(bench: Bench) -> None:
    bench.start(interval=1)
    bench.source.losses = {"buffers": 2}
    bench.processor.dropped.update({"written": 50, "ring full": 3})
    bench.pass_seconds(1)
    assert bench.told[-1] == Standing(True, lost=5)
    bench.pass_seconds(1)
    assert len(bench.told) == 2  # nothing new
    bench.stop()
    assert bench.told[-1] == Standing(False, 5, ending=Ending.STOPPED)
    assert "lost: own: buffers 2, ring full 3" in bench.lines("W")[-1]
    bench.source.losses = {}
    bench.start()
    assert bench.told[-1].lost == 0


def test_a_processor_that_fails_harms_nobody(bench: Bench) -> None:
    bench.start(interval=1)
    bench.processor.fails = OSError(errno.ENOSPC, "No space left on device")
    bench.source.give("a", "b")
    bench.pass_seconds(1)
    bench.stop()
    assert not bench.collector.running and bench.told[-1].lost == 2
    assert sum("No space left on device" in line for line in bench.lines("E")) == 2


def test_what_comes_after_the_end_is_counted(bench: Bench) -> None:
    bench.start()
    processor = bench.processor
    bench.stop()
    bench.source.give("late")
    assert processor.names == []


def test_groups_and_end_are_there_before_the_file_is_closed(bench: Bench) -> None:
    bench.start()
    bench.collector.close()
    run = bench.processor.run
    assert run.groups == '{"tp": {}}' and run.ended >= run.started and bench.processor.closed == 1


def test_the_log_has_the_vendors_form(bench: Bench) -> None:
    bench.busy = "a trace runs"
    bench.start()
    text = bench.log.path.read_text()  # type: ignore[union-attr]
    assert bench.log.path.parent.name == "msmonitor_log" and bench.log.path.name.startswith("msmonitor_")  # type: ignore[union-attr]
    assert re.search(rf"^\[ERROR\] \d{{17}} \(PID:{os.getpid()}\)ERR00009 IPC a trace runs", text, re.MULTILINE)
