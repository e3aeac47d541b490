"""The source for stock PyTorch, against PyTorch: what it calls happens, no more and no less."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from daemon_process import environment
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

    def start(self, *kinds: Kind, step: bool = True) -> None:
        """Start, and be between two steps."""
        self.source.start(frozenset(kinds), self.strings, self.batches.append)
        if step:
            self.source.step(0)

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


def test_the_jobs_thread_and_what_pytorch_does_for_it(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    without_gaps(monkeypatch)
    weight = torch.ones(8, 8, requires_grad=True)
    on_a_thread(lambda: taken.start(Kind.API, step=False))
    taken.source.step(1)
    torch.mm(weight, weight).sum().backward()
    on_a_thread(lambda: product(20))  # a thread that loads data, say
    taken.source.step(2)
    stopping = threading.Thread(target=taken.source.stop)
    stopping.start()
    while stopping.is_alive():
        taken.source.step(3)
        time.sleep(0.001)
    assert Counter(taken.names(Kind.API))["aten::mm"] == 1 + 2  # forward, and the gradients of both factors
    assert "MmBackward0" in taken.names(Kind.API)
    assert not taken.source.losses


def test_windows_that_change_between_steps_miss_nothing(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST", "LONGEST", "SHORTEST"):
        monkeypatch.setattr(torch_windows, name, 0.0)
    taken.start(Kind.API)
    for number in range(1, 21):
        product(7)
        taken.source.step(number)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 20 * 7
    assert not any("npuscope" in name for name in taken.names(Kind.API))
    assert not taken.source.losses


def test_windows_change_under_open_ranges(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an optimizer's step, which PyTorch makes a range of. Ranges that PyTorch's profiler knew would end in
    freed memory here."""
    for name in ("FIRST", "LONGEST", "SHORTEST"):
        monkeypatch.setattr(torch_windows, name, 0.0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    numbers = iter(range(1, 1000))
    hook = optimizer.register_step_post_hook(lambda *_: taken.source.step(next(numbers)))
    taken.start(Kind.API)
    for _ in range(3):
        with record_function("epoch"):
            for _ in range(30):
                model(torch.ones(2, 4)).sum().backward()
                optimizer.step()
    hook.remove()
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::addmm"] == 90
    assert not taken.source.losses


def test_no_window_changes_within_a_backward_pass(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST", "LONGEST", "SHORTEST"):
        monkeypatch.setattr(torch_windows, name, 0.0)
    weight = torch.ones(4, requires_grad=True)
    weight.register_post_accumulate_grad_hook(lambda _: taken.source.step(1))  # an optimizer may be called there
    taken.start(Kind.API)
    for _ in range(5):
        (weight * 2).sum().backward()
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["SumBackward0"] == 5
    assert not taken.source.losses


def test_a_job_that_does_not_step_is_not_recorded_and_that_is_said(taken: Taken) -> None:
    taken.start(Kind.API, step=False)
    product(50)
    taken.source.stop()
    assert taken.of(Kind.API) is None
    assert taken.source.losses == {torch_windows.IDLE: 1}


UNFINISHED = """
import torch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_windows
from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_profiler import TorchSource

torch_windows.FIRST = torch_windows.SHORTEST = torch_windows.LONGEST = 0.0
source, strings, got = TorchSource(), Strings(), []
source.start(frozenset({Kind.API}), strings, got.append)
source.step(1)
with torch._C._profiler._RecordFunctionFast("a region of PyTorch's own"):
    for number in range(2, 6):
        torch.ones(3) + 1
        source.step(number)
source.stop()
names = [strings.texts[number] for one in got for number in one["name"]]
print(names.count("aten::add"), dict(source.losses))
try:
    source.start(frozenset({Kind.API}), strings, got.append)
except Unavailable as reason:
    print(reason)
source.start(frozenset({Kind.MARKER, Kind.API}), strings, got.append)
with torch.profiler.record_function("range"):
    source.step(6)
source.stop()
print(got[-1].kind.label, len(got[-1]))
"""


def test_an_operator_that_outlasts_its_window_ends_recording_for_good(tmp_path: Path) -> None:
    said = job_says(tmp_path, UNFINISHED).splitlines()
    assert said == [
        f"1 {{{torch_windows.UNSAFE!r}: 1}}",
        "an operator outlasted its window, so PyTorch's profiler is not opened again in here",
        "Marker 2",
    ]


def job_says(folder: Path, text: str) -> str:
    """What a script prints that ends well."""
    (folder / "job.py").write_text(text)
    command = [sys.executable, str(folder / "job.py")]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def test_a_window_of_the_job_that_no_step_closes(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_windows, "STOP_SECONDS", 0.1)
    taken.start(Kind.MEMORY)
    on_a_thread(taken.source.stop)
    assert taken.source.losses == {torch_windows.LEFT: 1}
    # The next collection, perhaps by another source, finds it.
    taken.source = TorchSource()
    taken.source.step(2)
    taken.start(Kind.API)
    product()
    taken.source.stop()
    assert taken.names(Kind.API).count("aten::mm") == 1
    assert taken.of(Kind.MEMORY) is None


def test_a_stop_waits_for_the_step_that_closes_the_window(taken: Taken) -> None:
    taken.start(Kind.MEMORY)
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


def test_the_end_of_the_agent_on_the_jobs_thread(taken: Taken) -> None:
    taken.start(Kind.MEMORY)
    held = torch.empty(1 << 18)
    taken.source.leave()
    on_a_thread(taken.source.stop)
    memory = taken.of(Kind.MEMORY)
    assert memory is not None
    assert held.data_ptr() in memory["address"]
    assert not taken.source.losses


def test_two_sources_at_a_time(taken: Taken) -> None:
    taken.start(Kind.API)
    other = Taken()
    with pytest.raises(Unavailable, match="already"):
        other.start(Kind.API)
    product()
    other.source.stop()
    taken.source.stop()
    assert "aten::mm" in taken.names(Kind.API)


def test_a_profiler_of_another_thread_waits_for_the_jobs_window(taken: Taken) -> None:
    taken.start(Kind.MEMORY, Kind.API)
    product()
    counts = []

    def profile() -> None:
        with torch.profiler.profile() as own:
            product(3)
        counts.append(Counter(event.name for event in own.events())["aten::mm"])

    thread = threading.Thread(target=profile)
    thread.start()
    while thread.is_alive():
        taken.source.step(2)
        time.sleep(0.001)
    assert counts == [3]
    taken.source.step(3)
    taken.source.stop()
    assert taken.names(Kind.API).count("aten::mm") >= 1


TAKEN_OVER = """
import threading, torch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_windows
from npuscope.monitor.agent.sources.torch_profiler import TorchSource

torch_windows.STOP_SECONDS = 0.1
source, got = TorchSource(), []
source.start(frozenset({Kind.MEMORY}), Strings(), got.append)
source.step(1)
assert source._windows.recording
counts = []

def profile():
    with torch.profiler.profile() as own:
        torch.ones(3) + 1
    counts.append([event.name for event in own.events()].count("aten::add"))

thread = threading.Thread(target=profile)
thread.start()
thread.join()
source.step(2)
torch.ones(3) + 1
source.step(3)
source.stop()
print(counts, dict(source.losses))
"""


def test_a_profiler_of_another_thread_that_cannot_wait_longer(tmp_path: Path) -> None:
    assert job_says(tmp_path, TAKEN_OVER) == f"[1] {{'{torch_windows.TAKEN}': 1, '{torch_windows.UNSAFE}': 1}}\n"


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
    taken.source.step(1)
    product(2)
    taken.source.stop()
    assert Counter(taken.names(Kind.API))["aten::mm"] == 7
    assert taken.source.losses == {torch_windows.OTHER: 1}


def test_ranges_go_on_while_the_jobs_own_profiler_runs(taken: Taken) -> None:
    with torch.profiler.profile() as own:
        taken.start(Kind.API, Kind.MARKER)
        with record_function("mine"):
            product()
        taken.source.stop()
    assert taken.source.losses == {torch_windows.OTHER: 1}
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
    taken.source.step(1)
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
