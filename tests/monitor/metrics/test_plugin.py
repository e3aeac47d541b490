"""Messages of the vendor's plug-in."""

from __future__ import annotations

import json

import pytest

from npuscope.monitor.daemon.inbox import Inbox, Letter
from npuscope.monitor.metrics.intake import Intake
from npuscope.monitor.metrics.plugin import BadData, parse
from npuscope.monitor.metrics.record import Record
from npuscope.monitor.protocol.npu_monitor import KINDS
from npuscope.monitor.sinks.json_lines import stock_lines

GOOD = {"deviceId": 3, "duration": 2500, "kind": "Kernel", "timestamp": 1_700_000_000_123_456_789}


def message(**changes: object) -> bytes:
    return json.dumps(GOOD | changes, separators=(",", ":"), sort_keys=True).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str) -> None:
    record = parse(message(kind=kind)).record({"pid": "7", "rank": "1"})
    assert record.labels == {"device": "3", "kind": kind, "pid": "7", "rank": "1"}
    assert record.values == {"timestamp": 1_700_000_000_123_456_789, "duration": 2500}
    assert record.time == pytest.approx(1_700_000_000.123457) and record.entity == "device"


def test_there_are_eleven_kinds() -> None:
    assert len(set(KINDS)) == 11


@pytest.mark.parametrize("device", [-1, 4294967295, 18446744073709551615])
def test_the_host_has_three_numbers(device: int) -> None:
    assert parse(message(deviceId=device)).device == "host"


def test_markers_have_a_domain_and_a_name() -> None:
    record = parse(message(kind="Marker", domain="train", name="step\n1")).record({})
    assert record.labels == {"device": "3", "kind": "Marker", "domain": "train"}
    assert record.values["name"] == "step 1"


def test_what_our_agent_says_besides() -> None:
    spread = {"count": 4, "min": 100, "max": 1900, "p50": 200, "p99": 1900}
    measurement = parse(message(**spread, pid=42, rank=5))
    record = measurement.record({"pid": "7", "rank": "1"})
    # The kernel says who sent it; the rank is what the process knows better than its environment.
    assert record.labels == {"device": "3", "kind": "Kernel", "pid": "7", "rank": "5"}
    assert record.values == {"timestamp": GOOD["timestamp"], "duration": 2500} | spread
    assert parse(message(rank=-1)).record({"rank": "1"}).labels["rank"] == "1"
    assert json.loads(stock_lines(record)[1].split("data = ")[1]) == GOOD | {"deviceId": "3"}


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"x", b"[]", b"null", b"\xff", b"{" * 5000, b"[" * 60000, message()[:-1],
        *(json.dumps({key: value for key, value in GOOD.items() if key != left}).encode() for left in GOOD),
        message(timestamp="1"), message(timestamp=-1), message(timestamp=2**64), message(timestamp=True),
        message(duration=1.5), message(duration=None), message(duration=-1),
        message(deviceId=-2), message(deviceId="0"), message(deviceId=2**31), message(deviceId=2**64),
        message(kind=""), message(kind=5), message(domain=5), message(name=[]),
        message(count="4"), message(p99=-1), message(rank=1.5), message(rank=-2), message(rank=2**31),
    ],
)  # fmt: skip
def test_what_is_no_measurement(payload: bytes) -> None:
    with pytest.raises(BadData) as raised:
        parse(payload)
    assert "\n" not in str(raised.value)


def test_the_intake_counts_bad_messages_and_names_one_of_a_hundred() -> None:
    inbox, taken, lines = Inbox(), list[Record](), list[str]()
    intake = Intake(inbox, taken.extend, lines.append)
    for _ in range(250):
        inbox.put(Letter(1, 0, b"nonsense"))
    inbox.put(Letter(1, 0, message()))
    intake.start()
    intake.stop()
    assert intake.bad == 250 and len(lines) == 3 and all("process 1" in line for line in lines)
    assert [record.values["duration"] for record in taken] == [2500]
    assert [subject.pid for subject in intake.subjects()] == [1]


def test_the_inbox_is_bounded_and_gives_everything_back() -> None:
    inbox = Inbox(most_bytes=100)
    assert [inbox.put(Letter(1, 0, bytes(40))) for _ in range(3)] == [True, True, False]
    assert len(inbox.take(1)) == 1
    assert inbox.put(Letter(1, 0, bytes(40)))
    inbox.close()
    assert len(inbox.take(10)) == 2
    assert inbox.take(10) == inbox.take(10) == []
