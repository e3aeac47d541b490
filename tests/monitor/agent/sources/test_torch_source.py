"""The source for stock PyTorch, against PyTorch: what it calls happens, no more and no less."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import record_function
from training import wait_until

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_windows
from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_profiler import TorchSource

SECONDS = 60.0
MARKED = {getattr(torch.autograd.profiler.record_function, name) for name in ("__enter__", "__exit__")}


@dataclass
class Taken:
    """What a source delivered."""

    source: TorchSource = field(default_factory=TorchSource)
    strings: Strings = field(default_factory=Strings)
    batches: list[Batch] = field(default_factory=list)

    def start(self, *kinds: Kind) -> None:
        self.source.start(frozenset(kinds), self.strings, self.batches.append)

    def of(self, kind: Kind) -> Batch | None:
        """All records of a kind."""
        parts = [one for one in self.batches if one.kind is kind]
        return joined(parts) if parts else None

    def names(self, kind: Kind) -> list[str]:
        """Their names, in the order of the records."""
        found = self.of(kind)
        return [self.strings.texts[number] for number in found["name"]] if found else []


@pytest.fixture
def taken() -> Iterator[Taken]:
    """A source that is stopped in the end."""
    one = Taken()
    yield one
    one.source.stop()
    assert {getattr(torch.autograd.profiler.record_function, name) for name in ("__enter__", "__exit__")} == MARKED


def on_a_thread(work: Any) -> None:
    """Run it on another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()


def product(times: int = 1) -> None:
    """`aten::mm`, so many times."""
    left, right = torch.ones(8, 8), torch.ones(8, 8)
    for _ in range(times):
        torch.mm(left, right)


def without_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One window for the whole of the test."""
    for name in ("FIRST", "SHORTEST", "LONGEST"):
        monkeypatch.setattr(torch_windows, name, 3600.0)


def test_every_operator_of_a_loop_is_counted(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    without_gaps(monkeypatch)
    before = time.time_ns()
    taken.start(Kind.API)
    product(300)
    torch.ones(3).add(1)
    taken.source.stop()
    after = time.time_ns()
    calls = taken.of(Kind.API)
    assert calls is not None
    counts = Counter(taken.names(Kind.API))
    assert counts["aten::mm"] == 300
    assert counts["aten::add"] == 1
    assert counts["aten::ones"] == 3
    assert (before <= calls["start"]).all()
    assert (calls["start"] <= calls["end"]).all()
    assert (calls["end"] <= after).all()
    assert set(calls["process"]) == {os.getpid()}
    assert set(calls["thread"]) == {threading.get_native_id()}
    assert len(set(calls["correlation"])) == len(calls)
    names = taken.names(Kind.API)
    order = np.argsort(calls["start"], kind="stable")
    assert [names[at] for at in order if names[at] in ("aten::mm", "aten::add")] == ["aten::mm"] * 300 + ["aten::add"]
    assert not taken.source.losses


def test_operators_of_every_thread_are_seen(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    without_gaps(monkeypatch)
    numbers = []

    def work() -> None:
        numbers.append(threading.get_native_id())
        product(20)

    on_a_thread(lambda: taken.start(Kind.API))
    on_a_thread(work)
    on_a_thread(work)
    product(20)
    on_a_thread(taken.source.stop)
    calls = taken.of(Kind.API)
    assert calls is not None
    mm = calls["name"] == taken.strings.number("aten::mm")
    assert Counter(calls["thread"][mm].tolist()) == dict.fromkeys([*numbers, threading.get_native_id()], 20)


def test_windows_that_change_between_steps_miss_nothing(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_windows, "FIRST", 0.0)
    monkeypatch.setattr(torch_windows, "LONGEST", 0.0)
    monkeypatch.setattr(torch_windows, "SHORTEST", 0.0)
    monkeypatch.setattr(torch_windows, "GRACE", 1e9)
    monkeypatch.setattr(torch_windows, "GRACE_SECONDS", 3600.0)
    taken.source.step(0)
    taken.source.step(0)
    taken.start(Kind.API)
    taken.source.step(1)
    for number in range(2, 22):
        product(7)
        taken.source.step(number)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 20 * 7
    assert len({id(one) for one in taken.batches}) > 5
    assert not taken.source.losses


def test_windows_of_a_job_that_does_not_step_follow_each_other(taken: Taken) -> None:
    taken.start(Kind.API)

    def seen() -> bool:
        product(50)
        return len(taken.batches) > 6

    wait_until(seen, SECONDS)
    taken.source.stop()
    calls = taken.of(Kind.API)
    assert calls is not None
    assert taken.source.losses.keys() == {torch_windows.BETWEEN}
    assert "aten::mm" in taken.names(Kind.API)


def test_user_ranges_become_markers(taken: Taken) -> None:
    with record_function("before"):
        taken.start(Kind.MARKER)
    before = time.time_ns()
    with record_function("outer"), record_function("inner"):
        product()

    @record_function("decorated")
    def work() -> None:
        product()

    on_a_thread(work)
    open_at_the_end = record_function("open")
    open_at_the_end.__enter__()
    taken.source.stop()
    open_at_the_end.__exit__(None, None, None)
    with record_function("after"):
        pass
    marks = taken.of(Kind.MARKER)
    assert marks is not None
    seen = list(zip(taken.names(Kind.MARKER), marks["flag"].tolist(), strict=True))
    start, end = int(Flag.START), int(Flag.END)
    assert seen == [
        ("outer", start), ("inner", start), ("inner", end), ("outer", end), ("decorated", start), ("decorated", end),
        ("open", start),
    ]  # fmt: skip
    assert marks["id"].tolist() == [marks["id"][at] for at in (0, 1, 1, 0, 4, 4, 6)]
    assert len(set(marks["id"])) == 4
    assert (np.diff(marks["time"]) >= 0).all()
    assert before <= marks["time"][0]
    assert marks["time"][-1] <= time.time_ns()
    assert set(marks["side"]) == {Side.HOST}
    assert marks["thread"][0] == threading.get_native_id() != marks["thread"][4]
    assert not torch._C._autograd._profiler_enabled()


def test_an_error_inside_a_range_ends_it_and_goes_on(taken: Taken) -> None:
    taken.start(Kind.MARKER)
    with pytest.raises(ZeroDivisionError), record_function("bad"):
        raise ZeroDivisionError
    taken.source.flush()
    assert taken.names(Kind.MARKER) == ["bad", "bad"]


def test_ranges_that_nobody_fetches_are_counted(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuscope.monitor.agent.sources import torch_ranges

    monkeypatch.setattr(torch_ranges, "MOST", 10)
    taken.start(Kind.MARKER)
    for _ in range(8):
        with record_function("x"):
            pass
    taken.source.stop()
    assert taken.names(Kind.MARKER) == ["x"] * 10
    assert taken.source.losses == {"ranges beyond what may wait": 3}


def test_scripted_and_compiled_functions_work_while_ranges_are_taken(taken: Taken) -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.profiler.record_function("hello"):
            return x + 1

    taken.start(Kind.MARKER)
    scripted = torch.jit.script(work)
    compiled = torch.compile(work, backend="eager", fullgraph=True)
    for one in (scripted, compiled):
        assert one(torch.ones(2)).tolist() == [2.0, 2.0]
    taken.source.stop()
    for one in (scripted, compiled):
        assert one(torch.ones(2)).tolist() == [2.0, 2.0]


def test_allocations_and_releases(taken: Taken) -> None:
    taken.start(Kind.MEMORY, Kind.API)
    taken.source.step(1)  # now the window is this thread's
    held = torch.empty(1 << 18, dtype=torch.float32)  # 1 MiB
    address = held.data_ptr()
    del held
    taken.source.stop()
    memory = taken.of(Kind.MEMORY)
    assert memory is not None
    ours = memory.where(memory["address"] == address)
    assert ours["bytes"].tolist() == [1 << 20, 1 << 20]
    assert ours["operation"].tolist() == [0, 1]
    assert ours["start"][0] < ours["start"][1]
    assert set(memory["device"]) == {-1}
    calls = taken.of(Kind.API)
    assert calls is not None
    by = calls["correlation"] == ours["correlation"][0]
    assert [taken.strings.texts[number] for number in calls["name"][by]] == ["aten::empty"]


def test_a_job_that_does_not_step_has_its_operators_but_no_allocations(
    taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_windows, "MEMORY_SECONDS", 0.2)
    taken.start(Kind.MEMORY, Kind.API)

    def seen() -> bool:
        product()
        return "aten::mm" in taken.names(Kind.API)

    wait_until(seen, SECONDS)
    taken.source.stop()
    assert taken.of(Kind.MEMORY) is None
    assert taken.source.losses[torch_windows.UNBOUND] > 0


def test_a_window_of_the_job_that_no_step_closes(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_windows, "STOP_SECONDS", 0.1)
    taken.start(Kind.MEMORY)
    taken.source.step(1)
    on_a_thread(taken.source.stop)
    assert taken.source.losses == {torch_windows.LEFT: 1}
    taken.source.step(2)
    taken.start(Kind.API)
    taken.source.step(3)  # one was taken a moment ago, so the next one is waited for
    product()
    taken.source.stop()
    assert taken.names(Kind.API).count("aten::mm") == 1
    assert taken.of(Kind.MEMORY) is None


def test_a_stop_waits_for_the_step_that_closes_the_window(taken: Taken) -> None:
    taken.start(Kind.MEMORY)
    taken.source.step(1)
    held = torch.empty(1 << 18)
    stopping = threading.Thread(target=taken.source.stop)
    stopping.start()
    while stopping.is_alive():
        taken.source.step(2)
        time.sleep(0.001)
    memory = taken.of(Kind.MEMORY)
    assert memory is not None
    assert held.data_ptr() in memory["address"]
    assert not taken.source.losses


def test_the_jobs_own_profiler_comes_first(taken: Taken) -> None:
    with torch.profiler.profile() as own:
        with pytest.raises(Unavailable, match="another PyTorch profiler is running"):
            taken.start(Kind.API)
        product(3)
    assert Counter(event.name for event in own.events())["aten::mm"] == 3
    taken.start(Kind.API)
    product()
    taken.source.stop()
    assert "aten::mm" in taken.names(Kind.API)


def test_a_profiler_that_only_warms_up_is_noticed(taken: Taken) -> None:
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(schedule=schedule) as own:
        with pytest.raises(Unavailable):
            taken.start(Kind.API)
        own.step()
        product(2)
        own.step()
    assert Counter(event.name for event in own.events())["aten::mm"] == 2


def test_ours_makes_way_for_the_jobs_own_profiler_and_comes_back(taken: Taken) -> None:
    taken.start(Kind.API)
    product(5)
    with torch.profiler.profile() as own:
        product(3)
    assert Counter(event.name for event in own.events())["aten::mm"] == 3
    taken.source.flush()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 5
    wait_until(lambda: taken.source._windows._window is not None, SECONDS)
    product(2)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 7


def test_ranges_go_on_while_the_jobs_own_profiler_runs(taken: Taken) -> None:
    with torch.profiler.profile() as own:
        taken.start(Kind.API, Kind.MARKER)
        with record_function("mine"):
            product()
        wait_until(lambda: taken.source.losses.get(torch_windows.OTHER, 0) > 0, SECONDS)
        taken.source.stop()
    assert taken.names(Kind.MARKER) == ["mine", "mine"]
    assert Counter(event.name for event in own.events())["mine"] == 1


def test_started_and_stopped_fifty_times(taken: Taken) -> None:
    threads = threading.active_count()
    for _ in range(50):
        taken.start(Kind.API, Kind.MARKER)
        with record_function("round"):
            product(2)
        taken.source.stop()
        taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 100
    assert taken.names(Kind.MARKER) == ["round"] * 100
    assert threading.active_count() == threads


def test_other_kinds_while_it_runs(taken: Taken) -> None:
    taken.start(Kind.MARKER)
    product()
    taken.source.change(frozenset({Kind.API}))
    product(4)
    with record_function("unseen"):
        pass
    taken.source.change(frozenset({Kind.MARKER}))
    product()
    with record_function("seen"):
        pass
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 4
    assert taken.names(Kind.MARKER) == ["seen", "seen"]


def test_nothing_is_written_to_the_jobs_streams(taken: Taken, capfd: pytest.CaptureFixture[str]) -> None:
    taken.start(Kind.API)
    product()
    taken.source.stop()
    capfd.readouterr()  # the first use of the profiler's library in a process may say a line
    taken.start(Kind.API)
    product()
    taken.source.stop()
    assert capfd.readouterr() == ("", "")


def test_a_fork_lets_go(taken: Taken) -> None:
    taken.start(Kind.API, Kind.MARKER)
    product()
    child = os.fork()
    if not child:
        status = 1
        try:
            taken.source.abandon()
            with torch.profiler.profile() as own:
                product(3)
            status = int(Counter(event.name for event in own.events())["aten::mm"] != 3)
        finally:
            os._exit(status)
    assert ended(child) == 0
    product()
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 2


def ended(child: int) -> int:
    """How a child ended."""
    states: list[int] = []

    def gone() -> bool:
        pid, state = os.waitpid(child, os.WNOHANG)
        states.append(state)
        return pid == child

    wait_until(gone, SECONDS, "the child hangs")
    return os.waitstatus_to_exitcode(states[-1])


def test_on_a_card_of_the_vendors_the_ranges_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TorchSource().kinds == {Kind.MARKER, Kind.API, Kind.MEMORY, Kind.COMMUNICATION}
    monkeypatch.setitem(__import__("sys").modules, "torch_npu", object())
    assert TorchSource().kinds == {Kind.MARKER}


def test_without_pytorch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "torch.autograd.profiler")
    with pytest.raises(Unavailable, match="not imported"):
        Taken().start(Kind.MARKER)
