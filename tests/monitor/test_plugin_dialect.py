"""The vendor's plug-in: its sockets, its statuses, and what its trace and its monitor exclude."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npuscope.monitor.daemon.addresses import Address
from npuscope.monitor.daemon.desk import Desk
from npuscope.monitor.daemon.folders import Folders
from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.fabric import Channel, Context, Dialect, Status, Types

NPUTRACE = "ACTIVITIES_LOG_FILE=/tmp/npu\nPROFILE_START_ITERATION=0\nPROFILE_START_STEP=5\nACTIVITIES_ITERATIONS=2"
MONITOR = "NPU_MONITOR_START=true\nNPU_MONITOR_STOP=false\nREPORT_INTERVAL_S=60\nDURATION=0"
POLL = fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(), os.getppid()))


class Plugin:
    """A client as the protocol describes the plug-in, and the desk at which `dyno` asks."""

    def __init__(self, folder: Path) -> None:
        self.paths = [f"{folder}/dynolog.sock", f"{folder}/dynolog_data.sock"]
        self.reader = Reader([Address(path.encode(), Dialect.MSMONITOR, 0o600) for path in self.paths], Registry())
        self.reader.start()
        self.desk = Desk(self.reader.call, Folders())
        self.endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.endpoint.bind(b"\0dynoconfigclient" + str(os.getpid()).encode() + b"\0")
        self.endpoint.settimeout(10)

    def send(self, datagram: bytes, path: int = 0) -> None:
        self.endpoint.sendto(datagram, self.paths[path])

    def poll(self) -> str:
        self.send(POLL)
        answer = self.endpoint.recv(65536)
        assert answer[:8] == (len(answer) - 40).to_bytes(8, "little")
        return answer[40:].decode()

    def status(self, channel: Channel, status: int, **steps: int) -> None:
        self.send(fabric.encode_status(Status(channel, status, pid=os.getpid(), **steps)))
        self.poll()  # the datagram before it has been read by then

    def ask(self, config: str) -> Any:
        request = {"fn": "setKinetOnDemandRequest", "config": config, "pids": [0], "job_id": 0}
        return json.loads(self.desk.answer(json.dumps(request).encode(), os.getuid()))

    def shown(self) -> Any:
        return json.loads(self.desk.answer(b'{"fn":"getStatus"}', os.getuid()))


@pytest.fixture
def plugin(folder: Path) -> Iterator[Plugin]:
    plugin = Plugin(folder)
    yield plugin
    plugin.endpoint.close()
    plugin.reader.stop()
    assert list(folder.iterdir()) == []


def test_a_registration_is_not_answered_so_that_polls_do_not_lag(plugin: Plugin) -> None:
    plugin.send(fabric.encode_context(Context(0, os.getpid(), 0)))
    assert plugin.poll() == ""
    plugin.status(Channel.TRACE, 0)
    plugin.status(Channel.MONITOR, 0)
    plugin.ask(NPUTRACE)
    assert "PROFILE_START_STEP=5" in plugin.poll()  # with this poll and not with the next
    plugin.endpoint.settimeout(0.2)
    with pytest.raises(TimeoutError):
        plugin.endpoint.recv(100)  # nothing unasked for lies in the queue


def test_only_the_own_user_can_write_to_the_sockets(plugin: Plugin) -> None:
    assert [os.stat(path).st_mode & 0o777 for path in plugin.paths] == [0o600, 0o600]


def test_a_trace_reaches_the_plugin_once_it_is_idle(plugin: Plugin) -> None:
    plugin.poll()
    assert plugin.ask(NPUTRACE)["commandStatus"] == "ineffective"  # it has not said where it stands
    plugin.status(Channel.TRACE, 0)
    assert plugin.ask(NPUTRACE)["commandStatus"] == "unknown"
    plugin.status(Channel.MONITOR, 0)
    reply = plugin.ask(NPUTRACE)
    assert reply["commandStatus"] == "effective" and reply["processesMatched"] == [os.getpid()]
    text = plugin.poll()
    indented = "\n            "
    assert text.startswith(f"{indented}{NPUTRACE}{indented}REQUEST_TRACE_ID=") and text.endswith("\n")


INEFFECTIVE, EFFECTIVE, UNKNOWN = "ineffective", "effective", "unknown"
# A row for each status of the trace (-1, 0, 1, 2), in it an entry for each status of the monitor (-1, 0, 1, 2).
NPU_MONITOR_TABLE = [
    [INEFFECTIVE, UNKNOWN, UNKNOWN, UNKNOWN],
    [INEFFECTIVE, EFFECTIVE, EFFECTIVE, EFFECTIVE],
    [INEFFECTIVE, INEFFECTIVE, INEFFECTIVE, INEFFECTIVE],
    [INEFFECTIVE, EFFECTIVE, EFFECTIVE, EFFECTIVE],
]
NPUTRACE_TABLE = [
    [INEFFECTIVE, INEFFECTIVE, INEFFECTIVE, INEFFECTIVE],
    [UNKNOWN, EFFECTIVE, INEFFECTIVE, UNKNOWN],
    [UNKNOWN, EFFECTIVE, INEFFECTIVE, UNKNOWN],
    [UNKNOWN, EFFECTIVE, INEFFECTIVE, UNKNOWN],
]
FIVE = {
    "activityProfilersBusy", "activityProfilersTriggered", "eventProfilersBusy", "eventProfilersTriggered",
    "processesMatched",
}  # fmt: skip
STATUSES = (-1, 0, 1, 2)


@pytest.mark.parametrize("monitor", STATUSES)
@pytest.mark.parametrize("trace", STATUSES)
@pytest.mark.parametrize(("config", "table"), [(MONITOR, NPU_MONITOR_TABLE), (NPUTRACE, NPUTRACE_TABLE)])
def test_the_published_table_of_conflicts(
    plugin: Plugin, config: str, table: list[list[str]], trace: int, monitor: int
) -> None:
    plugin.poll()
    for channel, status in ((Channel.TRACE, trace), (Channel.MONITOR, monitor)):
        if status != -1:
            plugin.status(channel, status)
    reply = plugin.ask(config)
    expected = table[STATUSES.index(trace)][STATUSES.index(monitor)]
    assert reply["commandStatus"] == expected
    assert reply.keys() >= FIVE  # also when nothing matched
    assert reply["processesMatched"] == ([os.getpid()] if expected == EFFECTIVE else [])
    assert bool(reply.get("reason")) == (expected != EFFECTIVE)
    assert bool(plugin.poll()) == (expected == EFFECTIVE)  # only then it is forwarded


def test_an_order_that_reaches_nobody_is_ineffective(plugin: Plugin) -> None:
    plugin.poll()
    plugin.status(Channel.TRACE, 0)
    plugin.status(Channel.MONITOR, 0)
    request = {"fn": "setKinetOnDemandRequest", "config": NPUTRACE, "pids": [1], "job_id": 0}
    reply = json.loads(plugin.desk.answer(json.dumps(request).encode(), os.getuid()))
    assert reply["commandStatus"] == "ineffective" and reply.keys() >= FIVE and reply["processesMatched"] == []


def test_an_order_that_was_not_fetched_makes_busy(plugin: Plugin) -> None:
    plugin.poll()
    plugin.status(Channel.TRACE, 0)
    plugin.status(Channel.MONITOR, 0)
    assert plugin.ask(NPUTRACE)["activityProfilersTriggered"] == [os.getpid()]
    second = plugin.ask(NPUTRACE.replace("/tmp/npu", "/tmp/second"))
    assert (second["activityProfilersBusy"], second["activityProfilersTriggered"]) == (1, [])
    assert second["processesMatched"] == [os.getpid()] and "busy" in second["reason"]
    assert "/tmp/npu" in plugin.poll() and plugin.poll() == ""
    assert plugin.ask(NPUTRACE)["activityProfilersTriggered"] == [os.getpid()]  # it reports its state itself


def test_the_last_report_counts(plugin: Plugin) -> None:
    for status, shown in ((1, "Running"), (2, "Ready"), (0, "Idle"), (-1, "Uninitialized"), (5, "unknown")):
        plugin.status(Channel.TRACE, status)
        assert plugin.shown()["nputrace"] == shown
        plugin.status(Channel.MONITOR, 1 if status > 0 else 0)
        assert plugin.shown()["npumonitor"] == ("Running" if status > 0 else "Idle")


def test_a_planned_trace_has_its_steps_too(plugin: Plugin) -> None:
    plugin.status(Channel.TRACE, 2, current_step=3, start_step=10, stop_step=12)
    shown = plugin.shown()
    assert (shown["current_step"], shown["start_step"], shown["stop_step"]) == (3, 10, 12)
    assert plugin.shown().keys() >= {"status", "nputrace", "npumonitor"}


def test_the_status_of_a_running_trace_has_its_steps(plugin: Plugin) -> None:
    plugin.status(Channel.TRACE, 1, current_step=10, start_step=10, stop_step=12)
    shown = plugin.shown()
    assert (shown["nputrace"], shown["npumonitor"]) == ("Running", "Uninitialized")
    assert (shown["current_step"], shown["start_step"], shown["stop_step"]) == (10, 10, 12)
    plugin.status(Channel.TRACE, 0, current_step=13)
    assert "start_step" not in plugin.shown()


def test_a_stock_trace_is_not_for_the_plugin(plugin: Plugin) -> None:
    plugin.poll()
    assert "no PyTorch process" in plugin.ask("ACTIVITIES_LOG_FILE=/tmp/x.json")["reason"]


def test_measurements_are_taken(plugin: Plugin) -> None:
    plugin.send(fabric.encode("data", b'{"kind":"Kernel"}'), path=1)
    plugin.poll()
    for _ in range(100):
        if plugin.reader.counts.data:
            break
        plugin.poll()
    assert plugin.reader.counts.data == 1
