"""Records as JSON: lines in a file, the stock daemon's log, the relay's envelope."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from npuscope.errors import UserError
from npuscope.monitor.metrics.record import Record
from npuscope.monitor.sinks.json_lines import JsonLines, StockJson, stock_lines, timestamp
from npuscope.monitor.sinks.relay import Relay, envelope

HOST = Record(1_700_000_000.25, "host", {}, {"uptime": 5, "cpu_u": 12.3456, "rx_bytes.eth0": 7})
MARKER = Record(
    1_700_000_000.5,
    "device",
    {"device": "host", "kind": "Marker", "domain": "train", "pid": "9"},
    {"duration": 2**63, "timestamp": 2**64 - 1, "name": "step ü"},
)


def test_times_are_utc() -> None:
    assert timestamp(1_700_000_000.25) == "2023-11-14T22:13:20.250Z"
    assert datetime.fromisoformat(timestamp(0.001)) == datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)
    assert timestamp((2**64 - 1) / 1e9).startswith("2554-07-21T")


def test_a_line_for_each_record(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    sink = JsonLines(path)
    sink.write([HOST, MARKER])
    os.rename(path, tmp_path / "old")  # as log rotation does
    sink.write([HOST])
    assert [json.loads(line) for line in (tmp_path / "old").read_text().splitlines()] == [
        {"time": "2023-11-14T22:13:20.250Z", "entity": "host", "labels": {}, "values": dict(HOST.values)},
        {
            "time": "2023-11-14T22:13:20.500Z",
            "entity": "device",
            "labels": {"device": "host", "kind": "Marker", "domain": "train", "pid": "9"},
            "values": {"duration": 9223372036854775808, "timestamp": 18446744073709551615, "name": "step ü"},
        },
    ]
    assert path.read_text().count("\n") == 1
    assert path.stat().st_mode & 0o007 == 0  # it tells of the processes of all users


def test_a_write_that_fails_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    sink = JsonLines(path)
    sink.write([HOST])
    before, write = path.read_bytes(), os.write

    def full(file: int, text: bytes) -> int:
        if len(text) < 100:
            raise OSError(28, "No space left on device")
        return write(file, text[:100])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            sink.write([MARKER, MARKER])
    assert path.read_bytes() == before
    sink.write([MARKER])
    assert path.read_bytes().startswith(before) and path.read_bytes().count(b"\n") == 2


def test_a_full_disk_is_an_error_and_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        JsonLines(Path("/dev/full")).write([HOST])
    for path in (tmp_path, tmp_path / "none" / "x"):
        with pytest.raises(UserError, match="cannot write the metrics log"):
            JsonLines(path)


def test_the_stock_form() -> None:
    lines: list[str] = []
    StockJson(lines.append).write([HOST])
    assert lines == [
        "Logging : 3 values",
        'time = 2023-11-14T22:13:20.250Z data = {"cpu_u":"12.346","rx_bytes.eth0":7,"uptime":5}',
    ]
    count, text = stock_lines(MARKER)
    assert count == "Logging : 6 values"
    found = re.fullmatch(r"time = \S+Z data = (.*)", text)
    assert found and found[1] == (
        '{"deviceId":"host","domain":"train","duration":9223372036854775808,"kind":"Marker","name":"step ü",'
        '"timestamp":18446744073709551615}'
    )


def test_the_envelope_of_the_relay() -> None:
    assert envelope(HOST, "node7") == {
        "@timestamp": "2023-11-14T22:13:20.250Z",
        "agent": {"hostname": "node7", "name": "node7", "type": "dyno", "version": "0.1.0"},
        "event": {"module": "dyno"},
        "backend": 0,
        "stack_metrics": False,
        "dyno": {"uptime": 5, "cpu_u": 12.3456, "rx_bytes.eth0": 7},
    }
    device = envelope(Record(1, "device", {"device": "3", "kind": "API"}, {"duration": 1}), "node7")
    assert device["event"] == {"module": "dyno.device3"}
    assert device["dyno.device3"] == {"deviceId": "3", "kind": "API", "duration": 1}


def test_the_relay_is_called_again_after_it_went_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        received: list[bytes] = []

        def answer() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    received.append(connection.makefile("rb").readline())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        relay = Relay("127.0.0.1", server.getsockname()[1])
        relay.write([HOST])
        for _ in range(1000):  # the first ones may still go into a connection that nobody reads
            try:
                relay.write([HOST])
            except OSError:
                break
        relay.write([HOST])
        thread.join(20)
        relay.close()
    assert [json.loads(line)["dyno"]["uptime"] for line in received] == [5, 5]
