"""Kernels of the simulated device as activities."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import orjson
import pytest

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import sim
from npuscope.monitor.agent.sources.sim import Launched, SimSource
from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.streams import Streams

ALL = frozenset(Kind)
EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


def launched(began: int, returned: int, duration: int | None, kernel: str = "add", stream: int = 0) -> Launched:
    return Launched(kernel, "KERNEL_AIVEC", 0, stream, began, returned, duration)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> SimSource:
    monkeypatch.setattr(sim, "_connected", True)
    return SimSource()


def collect(source: SimSource, kinds: frozenset[Kind], launches: list[Launched]) -> tuple[dict[Kind, Batch], Strings]:
    strings, found = Strings(), list[Batch]()
    source.start(kinds, strings, found.append)
    streams = Streams()
    for one in launches:
        assert sim.wanted(streams)
        sim.report(one, streams)
    source.stop()
    assert not sim.wanted(streams)
    return {batch.kind: batch for batch in found}, strings


def test_a_kernel_runs_after_its_launch_and_after_the_one_before(source: SimSource) -> None:
    """By hand: the first from 20 to 120, the second waits for it, the third finds the stream free; another stream
    does not wait."""
    given = [launched(10, 20, 100), launched(30, 40, 50), launched(490, 500, 5), launched(41, 42, 9, stream=1)]
    found, strings = collect(source, ALL, given)
    kernel = found[Kind.KERNEL]
    assert kernel["start"].tolist() == [20, 120, 500, 42] and kernel["end"].tolist() == [120, 170, 505, 51]
    assert kernel["stream"].tolist() == [0, 0, 0, 1] and set(kernel["device"]) == {0}
    assert {strings.texts[number] for number in kernel["name"]} == {"add"}
    assert {strings.texts[number] for number in kernel["type"]} == {"KERNEL_AIVEC"}


def test_the_launch_on_the_host(source: SimSource) -> None:
    """With the kernel's correlation, in the thread that launched."""
    found, strings = collect(source, ALL, [launched(10, 20, 100), launched(30, 40, 50)])
    for kind in (Kind.API, Kind.RUNTIME_API):
        call = found[kind]
        assert call["start"].tolist() == [10, 30] and call["end"].tolist() == [20, 40]
        assert call["correlation"].tolist() == found[Kind.KERNEL]["correlation"].tolist() == [1, 2]
        assert set(call["process"]) == {os.getpid()} and set(call["thread"]) == {threading.get_native_id()}
    assert strings.texts[found[Kind.RUNTIME_API]["name"][0]] == "KernelLaunch"


def test_only_what_is_asked_for(source: SimSource) -> None:
    found, _ = collect(source, frozenset({Kind.KERNEL, Kind.MARKER}), [launched(1, 2, 3)])
    assert list(found) == [Kind.KERNEL]
    assert collect(source, frozenset({Kind.API}), [launched(1, 2, 3)])[0].keys() == {Kind.API}


def test_a_kernel_without_a_time_is_counted(source: SimSource) -> None:
    """Its launch is there all the same."""
    found, _ = collect(source, ALL, [launched(1, 2, None), launched(3, 4, 5)])
    assert len(found[Kind.KERNEL]) == 1 and len(found[Kind.RUNTIME_API]) == 2
    assert source.losses == {"kernels without a model of their time": 1}


def test_streams_that_are_watched_want_launches_too() -> None:
    """Markers in a stream need to know when it is free, though nobody collects kernels."""
    streams = Streams()
    assert not sim.wanted(streams)
    streams.watched = True
    assert sim.wanted(streams)
    sim.report(launched(10, 20, 100), streams)
    assert streams.reached(0, 50) == (0, 0, 120) and streams.reached(0, 500) == (0, 0, 500)


def test_without_a_simulated_device() -> None:
    with pytest.raises(Unavailable, match="no simulated device"):
        SimSource().start(ALL, Strings(), lambda batch: None)


RUN = """
import sys
import orjson
from npuscope.cli.device_activity import reporting
from npuscope.cli.script import run_script
from npuscope.frontends import install_all
from npuscope.frontends.launch import Session
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.sim import SimSource

source, strings, found = SimSource(), Strings(), []
recorder = reporting()
session = Session(recorder)
install_all(session)
script = sys.argv[1]
code = run_script(script, [])
assert code == 0 and not recorder.consumers  # nobody collects: nothing is kept
source.start(frozenset(Kind), strings, found.append)
sys.path[0] = "."
assert run_script(script, []) == 0
source.stop()
print(orjson.dumps({
    batch.kind.label: [
        {name: strings.texts[value] if name in ("name", "type") else value for name, value in zip(batch.columns, row)}
        for row in zip(*(column.tolist() for column in batch.columns.values()))
    ]
    for batch in found
}).decode(), file=sys.stderr)
"""


def run(script: Path) -> dict[str, list[dict[str, int | str]]]:
    """Records of a script's second run in one process; nobody collected during the first."""
    done = subprocess.run([sys.executable, "-c", RUN, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, int | str]]] = orjson.loads(done.stderr.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("script", "kernel", "kind"),
    [
        ("pyasc/add_queues.py", "add_kernel", "KERNEL_AIVEC"),
        ("pyasc/matmul_leaky_relu.py", "matmul_relu_kernel", "KERNEL_MIX_AIC"),
        ("triton/softmax_rows_triton.py", "softmax_kernel", "KERNEL_AIVEC"),
    ],
)
def test_a_real_script(script: str, kernel: str, kind: str) -> None:
    """Each kernel of an example after its launch, with a length by the model: more than the launch's overhead of
    2.5 us that the chip's file has, less than a millisecond."""
    pytest.importorskip("asc" if script.startswith("pyasc") else "triton")
    found = run(EXAMPLES / script)
    (one,), (call,) = found["Kernel"], found["RuntimeAPI"]
    assert kernel in str(one["name"]) and one["type"] == kind
    assert one["correlation"] == call["correlation"] and one["start"] >= call["end"] > call["start"]
    assert 2500 < int(one["end"]) - int(one["start"]) < 1_000_000
    if script.startswith("triton"):
        # 64 rows of 200 floats are read and written at 1800 GB/s; 2.5 us before and 0.5 us after belong to a launch.
        assert int(one["end"]) - int(one["start"]) == round(3000 + 2 * 64 * 200 * 4 / 1800)
