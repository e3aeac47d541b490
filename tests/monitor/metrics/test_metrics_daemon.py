"""A real daemon that measures, with real clients and the files it writes."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, environment, python

from npuscope.monitor.daemon.desk import Desk
from npuscope.monitor.daemon.folders import Folders
from npuscope.monitor.daemon.process import Sender
from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.metrics.record import Record
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Data, Dialect, Types

SECONDS = 40.0
REQUEST = rpc.simple_request("getMetrics")
MESSAGE = {"deviceId": 2, "duration": 1500, "kind": "Kernel", "timestamp": 1_700_000_000_000_000_000}
HOME = """
import os, pwd, sys
entry = list(pwd.getpwuid(os.getuid()))
entry[5] = sys.argv.pop(1)
pwd.getpwuid = lambda uid: pwd.struct_passwd(entry)
from npuscope.cli.main import main
main()
"""
"""The daemon in the home of nobody else: the entry of the user is what the vendor's plug-in looks at."""


def data(**changes: object) -> bytes:
    return fabric.encode("data", json.dumps(MESSAGE | changes, separators=(",", ":"), sort_keys=True).encode())


def poll() -> bytes:
    return fabric.encode_poll(Types.ACTIVITIES, 42, (os.getpid(), os.getppid()))


def until(daemon: Daemon, found: Callable[[list[dict[str, Any]]], Any]) -> Any:
    """Ask for the metrics until they hold what is looked for."""
    deadline = time.monotonic() + SECONDS
    while True:
        records = daemon.ask(REQUEST)["records"]
        if result := found(records):
            return result
        assert time.monotonic() < deadline, records
        time.sleep(0.1)


def of(entity: str, **labels: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda records: [
        one for one in records if one["entity"] == entity and labels.items() <= one["labels"].items()
    ]


def test_a_registered_process_the_host_and_the_daemon_are_measured(start: Callable[..., Daemon]) -> None:
    daemon = start("--interval", "0.3")
    daemon.exchange(daemon.client(), poll())

    def whole(records: list[dict[str, Any]]) -> Any:
        return [one for one in of("process", pid=str(os.getpid()))(records) if "cpu_percent" in one["values"]]

    (record,) = until(daemon, whole)
    assert abs(record["time"] - time.time()) < SECONDS
    assert record["labels"]["job"] == "42" and record["labels"]["uid"] == str(os.getuid())
    assert record["values"]["rss_bytes"] > 1_000_000 and record["values"]["threads"] >= 1
    (host,) = until(daemon, lambda records: [one for one in of("host")(records) if "cpu_util" in one["values"]])
    assert 0 <= host["values"]["cpu_util"] <= 100.001 and "rx_bytes.lo" in host["values"]
    (own,) = until(daemon, lambda records: [one for one in of("daemon")(records) if one["values"]["polls"]])
    assert own["values"]["registered_processes"] == 1 and own["values"]["faults"] == 0


def test_measurements_of_a_client_reach_everything(start: Callable[..., Daemon], folder: Path) -> None:
    pytest.importorskip("tensorboardX")
    log, board = folder / "metrics.jsonl", folder / "board"
    daemon = start("--interval", "0", "--metrics-log", str(log), "--tensorboard", str(board))
    client = daemon.client()
    for message in (
        data(),
        fabric.encode("data", b"nonsense"),
        data(duration=2500),
        data(kind="API", deviceId=2**64 - 1),
    ):
        client.sendto(message, f"{folder}/dynolog")
    (api,) = until(daemon, of("device", kind="API"))
    (kernel,) = until(daemon, of("device", kind="Kernel"))
    assert api["labels"]["device"] == "host" and kernel["labels"]["device"] == "2"
    assert kernel["values"] == {"duration": 2500, "timestamp": MESSAGE["timestamp"]}
    assert kernel["labels"]["pid"] == str(os.getpid()) and kernel["time"] == 1_700_000_000
    assert until(daemon, lambda records: not of("host")(records))  # nothing else is measured
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["values"]["duration"] for one in written] == [1500, 2500, 1500]
    assert sorted(path.name for path in board.iterdir()) == ["device_2", "device_host"]
    assert "is none (1 so far): not JSON" in daemon.log.read_text()


@pytest.fixture
def home(folder: Path) -> Iterator[Daemon]:
    """A daemon on the sockets that the vendor's plug-in looks for."""
    log = folder / "home.log"
    words = [str(folder), "monitor", "daemon", "--port", "0", "--ipc", "home", "--interval", "0.3"]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", HOME, *words], env=environment(folder), stderr=stream, text=True
        )
    daemon = Daemon(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        yield daemon
    finally:
        process.terminate()
        process.wait(20)


def test_the_data_socket_in_the_home(home: Daemon) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as rank:
        for duration in range(100):
            rank.sendto(data(kind="Marker", domain="train", name=f"step {duration}", duration=duration),
                        f"{home.folder}/dynolog_data.sock")  # fmt: skip
    (marker,) = until(home, lambda records: [one for one in of("device")(records) if one["values"]["duration"] == 99])
    assert marker["labels"]["domain"] == "train" and marker["values"]["name"] == "step 99"
    # It has not registered; that it sends is enough to be looked at.
    (process,) = until(home, of("process", pid=str(os.getpid())))
    assert process["labels"]["client"] == "data"


def test_the_stock_command(folder: Path) -> None:
    log, board = folder / "stock.log", folder / "board"
    flags = [
        "--noenable_ipc_monitor", "--port=0", "--use_JSON", "--use_prometheus", "--prometheus_port=0",
        "--kernel_monitor_reporting_interval_s=1", "--filter_nic_interfaces", "--allow_interface_prefixes=lo,none",
    ]  # fmt: skip
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "npuscope.cli.dynolog", *flags], env=environment(folder), stderr=stream, text=True
        )
    try:
        deadline = time.monotonic() + SECONDS
        while '"rx_bytes.lo":' not in log.read_text():
            assert time.monotonic() < deadline and process.poll() is None, log.read_text()
            time.sleep(0.1)
        port = re.search(r"metrics for Prometheus on port (\d+) of 127.0.0.1", log.read_text())
        assert port
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    finally:
        process.terminate()
        process.wait(20)
    line = next(line for line in log.read_text().splitlines() if '"rx_bytes.lo":' in line)
    found = json.loads(line.partition(" data = ")[2])
    assert re.fullmatch(r"\d+\.\d{3}", found["cpu_util"]) and isinstance(found["cpu_u_ms"], int)
    assert {name.partition(".")[2] for name in found if "." in name} == {"lo"}
    assert re.search(r'^cpu_util\{host_name="[^"]+"\} [0-9.]+$', text, re.MULTILINE)
    assert re.search(r'^rx_bytes\{host_name="[^"]+",net="lo"\} [0-9.]+$', text, re.MULTILINE)
    assert not board.exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["npuscope", "monitor", "daemon", "--metrics-log", "/no/such/folder/x"], "cannot write the metrics log"),
        (["npuscope", "monitor", "daemon", "--tensorboard", "/dev/null"], "Unable to record logs in the target folder"),
        (["npuscope", "monitor", "daemon", "--interval", "0.01"], "--interval is 0 or at least 0.1 seconds"),
        (["npuscope.cli.dynolog", "--metric_log_dir=/dev/null"], "Unable to record logs in the target folder"),
        (["npuscope.cli.dynolog", "--use_prometheus", "--prometheus_address=192.0.2.1"], "cannot serve metrics"),
        (["npuscope.cli.dynolog", "--use_fbrelay", "--fbrelay_port=x"], "--fbrelay_port is a number"),
        (["npuscope.cli.dynolog", "--kernel_monitor_reporting_interval_s=-1"], "reporting_interval_s is a number"),
    ],
)
def test_one_line_for_what_cannot_be(folder: Path, words: list[str], text: str) -> None:
    words += ["--port", "0"] + (["--ipc", "directory"] if words[0] == "npuscope" else ["--noenable_ipc_monitor"])
    done = python(words, environment(folder))
    assert done.returncode == 2 and text in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []


def test_processes_are_shown_to_their_user_only() -> None:
    records = [
        Record(1, "host", {}, {"uptime": 1}),
        Record(1, "device", {"device": "0", "kind": "API"}, {"duration": 1}),
        Record(1, "process", {"pid": "5", "uid": "1000"}, {"threads": 1}),
        Record(1, "process", {"pid": "6", "uid": str(os.getuid())}, {"threads": 2}),
    ]
    desk = Desk(lambda function: function(Registry()), Folders(), lambda: records)

    def pids(uid: int | None) -> list[str]:
        shown = json.loads(desk.answer(REQUEST.encode(), uid))["records"]
        assert [one["entity"] for one in shown[:2]] == ["host", "device"]
        return [one["labels"]["pid"] for one in shown[2:]]

    assert pids(1000) == ["5"]
    assert pids(4242) == []
    assert pids(0) == ["5", "6"]
    assert pids(None) == ["6"]  # another host's requests count as the daemon's own user's, not as root's


@pytest.mark.parametrize(("pid", "user", "taken"), [(1, "own", 1), (1, "root", 1), (0, "own", 0), (1, "other", 0)])
def test_whose_measurements_are_believed(pid: int, user: str, taken: int) -> None:
    uid = {"own": os.getuid(), "root": 0, "other": os.getuid() + 1}[user]
    reader = Reader([], Registry())
    reader._take_data(Data(b"{}"), Sender(Dialect.KINETO, pid, uid, b""))
    reader.stop()
    assert (reader.counts.data, reader.counts.data_refused) == (1, 1 - taken)
    reader.inbox.close()
    assert len(reader.inbox.take(10)) == taken
