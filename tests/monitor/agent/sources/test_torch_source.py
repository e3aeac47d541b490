"""The source for stock PyTorch, against PyTorch: what it calls happens, no more and no less."""

from __future__ import annotations

import os
import sys
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
from npuscope.monitor.agent.sources import torch_recording
from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_profiler import RECORDING, TorchSource

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
    RECORDING._stepped = float("-inf")  # the last test's steps are not this one's
    yield one
    one.source.stop()
    assert {getattr(torch.autograd.profiler.record_function, name) for name in ("__enter__", "__exit__")} == MARKED


def on_a_thread(work: Any) -> None:
    """Run it on another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()


def meanwhile(work: Any) -> None:
    """Run it on another thread, while the main one goes on."""
    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: not thread.is_alive(), SECONDS)


def recorded() -> None:
    """Wait until the main thread is recorded."""
    wait_until(lambda: RECORDING._going is not None, SECONDS)


def product(times: int = 1) -> None:
    """`aten::mm`, so many times."""
    left, right = torch.ones(8, 8), torch.ones(8, 8)
    for _ in range(times):
        torch.mm(left, right)


def without_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One recording for the whole of the test."""
    lengths(monkeypatch, 3600.0)


def lengths(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """How long recordings last."""
    for name in ("FIRST", "SHORTEST", "LONGEST"):
        monkeypatch.setattr(torch_recording, name, seconds)


def test_every_operator_of_a_loop_is_counted(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    without_ends(monkeypatch)
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


def test_whoever_starts_and_stops_it_the_main_thread_is_recorded_and_no_other(taken: Taken) -> None:
    meanwhile(lambda: taken.start(Kind.API))
    recorded()
    on_a_thread(lambda: product(20))
    product(20)
    meanwhile(taken.source.stop)
    calls = taken.of(Kind.API)
    assert calls is not None
    mm = calls["name"] == taken.strings.number("aten::mm")
    assert Counter(calls["thread"][mm].tolist()) == {threading.get_native_id(): 20}
    assert not taken.source.losses


def test_recordings_that_change_between_steps_miss_nothing(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths(monkeypatch, 0.0)
    monkeypatch.setattr(torch_recording, "MOST_WAITING", 100)
    taken.start(Kind.API)
    for number in range(1, 22):
        product(7)
        taken.source.step(number)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 21 * 7
    assert len({id(one) for one in taken.batches}) >= 21
    assert not taken.source.losses


def test_recordings_of_a_job_that_does_not_step_follow_each_other_without_a_gap(taken: Taken) -> None:
    taken.start(Kind.API)
    rounds = 0

    def seen() -> bool:
        nonlocal rounds
        rounds += 1
        product(50)
        return len(taken.batches) > 6

    wait_until(seen, SECONDS)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == rounds * 50
    assert not taken.source.losses


def test_steps_of_another_thread_are_said_not_to_be_recorded(taken: Taken) -> None:
    taken.start(Kind.API)

    def work() -> None:
        product(3)
        taken.source.step(1)

    on_a_thread(work)
    taken.source.stop()
    assert "aten::mm" not in taken.names(Kind.API)
    assert taken.source.losses == {torch_recording.ELSEWHERE: 1}


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


def test_allocations_and_releases(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    without_ends(monkeypatch)
    taken.start(Kind.MEMORY, Kind.API)
    held = torch.empty(1 << 18, dtype=torch.float32)  # 1 MiB
    del held
    taken.source.stop()
    memory = taken.of(Kind.MEMORY)
    assert memory is not None
    ours = memory.where(memory["bytes"] == 1 << 20)
    assert ours["operation"].tolist() == [0, 1]
    assert ours["start"][0] < ours["start"][1]
    assert set(memory["device"]) == {-1}
    calls = taken.of(Kind.API)
    assert calls is not None
    by = calls["correlation"] == ours["correlation"][0]
    assert [taken.strings.texts[number] for number in calls["name"][by]] == ["aten::empty"]
    assert ours["correlation"][1] == 0  # given back outside any operator


def test_a_recording_that_the_main_thread_does_not_end_in_time(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_recording, "STOP_SECONDS", 0.1)
    taken.start(Kind.API)
    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(lambda gradient: on_a_thread(taken.source.stop))  # in a backward pass nothing ends
    weight.sum().backward()
    assert taken.source.losses == {torch_recording.LEFT: 1}
    batches = len(taken.batches)
    wait_until(lambda: RECORDING._going is None, SECONDS)
    # Nothing is delivered after a stop; the next collection, perhaps by another source, begins anew.
    taken.source = TorchSource()
    taken.start(Kind.API)
    product()
    taken.source.stop()
    assert taken.names(Kind.API).count("aten::mm") == 1
    assert len(taken.batches) == batches + 1
    wait_until(lambda: not any(thread.name.startswith(torch_recording.NAME) for thread in threading.enumerate()), 60)


def test_the_end_of_the_agent_on_the_jobs_thread(taken: Taken) -> None:
    taken.start(Kind.API)
    product()
    taken.source.leave()
    on_a_thread(taken.source.stop)
    assert taken.names(Kind.API).count("aten::mm") == 1
    assert not taken.source.losses


def test_nothing_begins_or_ends_in_a_hook_of_a_backward_pass(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths(monkeypatch, 0.0)
    weight = torch.ones(8, 8, requires_grad=True)
    weight.register_hook(lambda gradient: taken.source.step(1))
    taken.start(Kind.API)
    before = RECORDING._going
    (weight @ weight).sum().backward()
    assert RECORDING._going is before
    taken.source.stop()
    assert not torch._C._autograd._profiler_enabled()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 3  # one forward, two backward


def test_two_sources_at_a_time(taken: Taken) -> None:
    taken.start(Kind.API)
    other = Taken()
    with pytest.raises(Unavailable, match="already"):
        other.start(Kind.API)
    product()
    other.source.stop()
    taken.source.stop()
    assert "aten::mm" in taken.names(Kind.API)


def test_a_profiler_of_another_thread_is_nothing_to_ours(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    without_ends(monkeypatch)
    taken.start(Kind.API)
    counts = []

    def profile() -> None:
        with torch.profiler.profile() as own:
            product(3)
        counts.append(Counter(event.name for event in own.events())["aten::mm"])

    product()
    on_a_thread(profile)
    product()
    taken.source.stop()
    assert counts == [3]
    assert taken.names(Kind.API).count("aten::mm") == 2
    assert not taken.source.losses


def test_a_profiler_of_all_threads_is_nothing_to_ours(taken: Taken) -> None:
    every = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    taken.start(Kind.API)
    product()
    with torch.profiler.profile(experimental_config=every) as own:
        product(3)
        taken.source.step(1)
        product(2)
        taken.source.step(2)
    product()
    taken.source.stop()
    assert Counter(event.name for event in own.events())["aten::mm"] == 5
    assert 2 <= taken.names(Kind.API).count("aten::mm") <= 7


def test_a_profiler_that_begins_inside_an_operator_is_refused_by_pytorch(taken: Taken) -> None:
    class Profiled(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            with pytest.raises(RuntimeError, match="already enabled"):
                torch.autograd.profiler.profile(use_kineto=True).__enter__()
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    taken.start(Kind.API)
    Profiled.apply(torch.ones(3))
    taken.source.stop()
    assert not torch._C._autograd._profiler_enabled()


def test_with_remote_calls_nothing_is_recorded(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    class Calls:
        _is_current_rpc_agent_set = staticmethod(lambda: True)

    monkeypatch.setitem(sys.modules, "torch.distributed.rpc.api", Calls)
    with pytest.raises(Unavailable, match="rpc"):
        taken.start(Kind.API)


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


def test_a_profiler_that_only_warms_up_loses_nothing(taken: Taken) -> None:
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(schedule=schedule) as own:
        taken.start(Kind.API)
        product()
        own.step()
        product(2)
        own.step()
    taken.source.stop()
    assert Counter(event.name for event in own.events())["aten::mm"] == 2
    assert Counter(taken.names(Kind.API))["aten::mm"] == 1


def test_a_range_around_all_and_a_profiler_of_the_jobs_inside_it(taken: Taken) -> None:
    taken.start(Kind.API, Kind.MARKER)
    with record_function("epoch"):
        product()
        with torch.profiler.profile() as own:
            product(3)
            with record_function("inside"):
                product()
    taken.source.stop()
    assert Counter(event.name for event in own.events())["aten::mm"] == 4
    assert Counter(event.name for event in own.events())["inside"] == 1
    assert taken.names(Kind.MARKER) == ["epoch", "inside", "inside", "epoch"]


def test_ours_makes_way_for_the_jobs_own_profiler_and_comes_back(taken: Taken) -> None:
    taken.start(Kind.API)
    product(5)
    with torch.profiler.profile() as own:
        product(3)
    assert Counter(event.name for event in own.events())["aten::mm"] == 3
    taken.source.flush()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 5
    recorded()
    product(2)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 7


def test_ranges_go_on_while_the_jobs_own_profiler_runs(taken: Taken) -> None:
    with torch.profiler.profile() as own:
        taken.start(Kind.API, Kind.MARKER)
        with record_function("mine"):
            product()
        wait_until(lambda: taken.source.losses.get(torch_recording.OTHER, 0) > 0, SECONDS)
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
    monkeypatch.setitem(sys.modules, "torch_npu", object())
    assert TorchSource().kinds == {Kind.MARKER}


def test_without_pytorch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.autograd.profiler")
    with pytest.raises(Unavailable, match="not imported"):
        Taken().start(Kind.MARKER)
