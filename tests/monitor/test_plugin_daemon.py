"""The vendor's plug-in and a real daemon: what the command line sends over TCP arrives in the plug-in to the letter."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, environment
from nputrace_text import DEFAULTS

from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Channel, Context, Status, Types

AT_HOME = """
import pwd, sys
real, home = pwd.getpwuid, sys.argv[1]
pwd.getpwuid = lambda uid: pwd.struct_passwd((*real(uid)[:5], home, real(uid)[6]))
sys.argv = ["npuscope", *sys.argv[2:]]
from npuscope.cli.main import main
main()
"""
NPUTRACE = f"""ACTIVITIES_LOG_FILE=/tmp/npu
PROFILE_START_ITERATION=0
PROFILE_START_STEP=10
ACTIVITIES_ITERATIONS=2
{DEFAULTS}"""
NPU_MONITOR = """NPU_MONITOR_START=true
NPU_MONITOR_STOP=false
REPORT_INTERVAL_S=60
DURATION=0.5
MSPTI_ACTIVITY_KIND=Marker,Kernel
NPU_MONITOR_LOG_FILE=
NPU_MONITOR_EXPORT_TYPE=DB
JSONL_ROTATE_LOG_LINES=
JSONL_ROTATE_LOG_FILES=
NPU_MONITOR_FILTER=Kernel:MatMul;Marker:step"""
INDENT = "\n" + " " * 12


class PluginClient:
    """The plug-in's side of the wire, from its description: header of 40 bytes, 64-bit size, 32 bytes of name."""

    def __init__(self, folder: Path) -> None:
        self.control, self.measurements = f"{folder}/dynolog.sock", f"{folder}/dynolog_data.sock"
        self.endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.endpoint.bind(f"\0dynoconfigclient{os.getpid()}-{id(self)}\0".encode())
        self.endpoint.settimeout(20)

    def send(self, datagram: bytes) -> None:
        self.endpoint.sendto(datagram, self.control)

    def poll(self) -> str:
        self.send(fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(), os.getppid())))
        answer, source = self.endpoint.recvfrom(65536)
        assert source == self.control  # the plug-in throws at any other
        assert answer[:40] == (len(answer) - 40).to_bytes(8, sys.byteorder) + b"req" + bytes(29)
        return answer[40:].decode()

    def report(self, channel: Channel, status: int, **steps: int) -> None:
        self.send(fabric.encode_status(Status(channel, status, pid=os.getpid(), **steps)))
        self.poll()


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon whose user's home is the folder."""
    words = ["monitor", "daemon", "--port", "0", "--ipc", "home"]
    log = folder / "daemon.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", AT_HOME, str(folder), *words], env=environment(folder), stderr=stream, text=True
        )
    daemon = Daemon(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        yield daemon
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def plugin(daemon: Daemon) -> Iterator[PluginClient]:
    client = PluginClient(daemon.folder)
    client.send(fabric.encode_context(Context(0, os.getpid(), 0)))
    assert client.poll() == ""
    client.report(Channel.TRACE, 0)
    client.report(Channel.MONITOR, 0)
    yield client
    client.endpoint.close()


def ask(daemon: Daemon, config: str, limit: int = 3) -> Any:
    return daemon.ask(rpc.trace_request(config, 0, [0], limit))


@pytest.mark.parametrize("config", [NPUTRACE, NPU_MONITOR])
def test_a_configuration_arrives_to_the_letter(daemon: Daemon, plugin: PluginClient, config: str) -> None:
    reply = ask(daemon, config)
    assert reply["commandStatus"] == "effective" and reply["activityProfilersTriggered"] == [os.getpid()]
    number = reply["processes"][0]["traceId"]
    assert plugin.poll() == f"{INDENT}{config}{INDENT}REQUEST_TRACE_ID={number}\n"
    assert plugin.poll() == ""


def test_a_trace_from_start_to_end(daemon: Daemon, plugin: PluginClient) -> None:
    ask(daemon, NPUTRACE)
    plugin.poll()
    plugin.report(Channel.TRACE, 2, current_step=7, start_step=10, stop_step=12)
    shown = daemon.ask(rpc.simple_request("getStatus"))
    assert (shown["nputrace"], shown["start_step"], shown["stop_step"]) == ("Ready", 10, 12)
    plugin.report(Channel.TRACE, 1, current_step=10, start_step=10, stop_step=12)
    refused = ask(daemon, NPU_MONITOR)
    assert refused["commandStatus"] == "ineffective" and "a trace is running" in refused["reason"]
    plugin.report(Channel.TRACE, 0, current_step=12)
    shown = daemon.ask(rpc.simple_request("getStatus"))
    assert (shown["nputrace"], shown["current_step"]) == ("Idle", 12) and "start_step" not in shown
    assert ask(daemon, NPU_MONITOR)["commandStatus"] == "effective"
    plugin.poll()
    plugin.report(Channel.MONITOR, 1)
    refused = ask(daemon, NPUTRACE)
    assert refused["commandStatus"] == "ineffective" and "a monitor is running" in refused["reason"]
    stop = NPU_MONITOR.replace("START=true", "START=false").replace("STOP=false", "STOP=true")
    assert ask(daemon, stop)["commandStatus"] == "effective"  # start, update and stop are one kind
    assert stop in plugin.poll()


def test_measurements_do_not_hold_up_polls(daemon: Daemon, plugin: PluginClient) -> None:
    record = json.dumps({"timestamp": 1, "duration": 2, "deviceId": -1, "kind": "API", "name": "aclrtMalloc"})
    datagram = fabric.encode("data", record.encode())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        for _ in range(3000):
            other.sendto(datagram, plugin.measurements)
        begin = time.monotonic()
        assert plugin.poll() == ""
        assert time.monotonic() - begin < 5
    assert daemon.process.poll() is None


def test_the_sockets_are_the_users_own_and_go_with_the_daemon(daemon: Daemon, plugin: PluginClient) -> None:
    for path in (plugin.control, plugin.measurements):
        assert Path(path).is_socket() and os.stat(path).st_mode & 0o777 == 0o600
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    assert not os.path.exists(plugin.control) and not os.path.exists(plugin.measurements)
