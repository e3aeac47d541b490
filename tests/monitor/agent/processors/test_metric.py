"""What is sent to the daemon (monitor formats, 3)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from processor_records import Maker

from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.agent.processors import metric
from npuscope.monitor.agent.processors.durations import Durations
from npuscope.monitor.agent.processors.metric import Metric
from npuscope.monitor.metrics.plugin import parse

NOW = 1_700_000_000_123_456_789
VENDOR = {"deviceId", "duration", "kind", "timestamp"}
EXTRA = {"count", "min", "max", "p50", "p99", "pid", "rank"}


class Wire:
    """Takes messages; refuses the first so many."""

    def __init__(self, refuse: int = 0) -> None:
        self.payloads: list[bytes] = []
        self.refuse = refuse

    def __call__(self, payload: bytes) -> bool:
        if self.refuse:
            self.refuse -= 1
            return False
        self.payloads.append(payload)
        return True

    def take(self) -> list[dict[str, Any]]:
        taken, self.payloads = self.payloads, []
        return [json.loads(payload) for payload in taken]


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_three_kernels_on_two_devices(maker: Maker, wire: Wire) -> None:
    processor = Metric(wire, maker.run)
    processor.add(maker.kernel(10, 20, device=0))
    processor.add(maker.kernel(100, 107, device=1))
    processor.add(maker.kernel(30, 35, device=0))
    processor.report(NOW)
    first, second = wire.payloads
    assert first == (
        b'{"count":2,"deviceId":0,"duration":15,"kind":"Kernel","max":10,"min":5,"p50":5,"p99":10,"pid":42,"rank":3,'
        b'"timestamp":1700000000123456789}'
    )
    assert json.loads(second) | {"timestamp": 0} == {
        "kind": "Kernel", "deviceId": 1, "duration": 7, "timestamp": 0, "count": 1, "min": 7, "max": 7, "p50": 7, "p99": 7,
        "pid": 42, "rank": 3,
    }  # fmt: skip
    processor.report(NOW)
    assert len(wire.payloads) == 2, "nothing is sent for an interval without records"


def test_devices_in_one_batch(maker: Maker, wire: Wire) -> None:
    batch = maker.batch(Kind.MEMCPY, start=[0, 0, 0, 9], end=[1, 20, 300, 4], device=[2, 7, 2, 7])
    processor = Metric(wire, maker.run)
    processor.add(batch)
    processor.report(NOW)
    # The last one ends before it starts: it took no time.
    assert [(one["deviceId"], one["duration"], one["count"], one["min"]) for one in wire.take()] == [
        (2, 301, 2, 1), (7, 20, 2, 0)
    ]  # fmt: skip


def test_a_message_for_every_kind(maker: Maker, wire: Wire) -> None:
    processor = Metric(wire, maker.run)
    for batch in maker.one_of_each():
        processor.add(batch)
    processor.report(NOW)
    messages = wire.take()
    ranges = [one for one in messages if one["kind"] == "Marker"]
    others = {one["kind"]: one for one in messages if one["kind"] != "Marker"}
    assert len(others) == len(messages) - 2 == 10
    for kind, message in others.items():
        assert message.keys() == VENDOR | EXTRA
        assert message["deviceId"] == (-1 if kind.endswith("API") else 0)
        assert (message["duration"], message["timestamp"]) == (10, NOW)
    host, device = ranges
    assert host == {
        "kind": "Marker", "deviceId": 4294967295, "domain": "train", "name": "forward", "duration": 50, "timestamp": 100,
        "pid": 42, "rank": 3,
    }  # fmt: skip
    assert device == host | {"deviceId": 5, "duration": 60, "timestamp": 110}
    for message in messages:
        parse(json.dumps(message).encode())
    assert processor.counts == {"sent": 12}


@pytest.mark.parametrize("missing", range(4))
def test_three_records_of_a_range_are_no_range(maker: Maker, wire: Wire, missing: int) -> None:
    processor = Metric(wire, maker.run)
    batch = maker.four()
    processor.add(batch.where(np.array([place for place in range(4) if place != missing])))
    processor.report(NOW)
    processor.close()
    assert wire.payloads == []
    # The host's half is what a range is missed by; a device's alone is what a filter leaves.
    assert processor.counts == ({} if missing == 0 else {metric.HALF: 1})


def test_the_four_records_may_come_in_four_reports(maker: Maker, wire: Wire) -> None:
    processor = Metric(wire, maker.run)
    batch = maker.four()
    for place in (1, 0, 3, 2):
        assert wire.payloads == []
        processor.add(batch.where(np.array([place])))
        processor.report(NOW)
    assert [one["duration"] for one in wire.take()] == [50, 60]


def test_a_range_of_the_host_alone(maker: Maker, wire: Wire) -> None:
    """It never has a device's side, so that waiting for four records would be for ever."""
    processor = Metric(wire, maker.run)
    processor.add(
        maker.marks(
            (Flag.START, Side.HOST, 100, 1, "load", ""), (Flag.INSTANT, Side.HOST, 110, 2, "here", "d"),
            (Flag.END, Side.HOST, 130, 1, "", ""),
        )
    )  # fmt: skip
    processor.report(NOW)
    (message,) = wire.take()
    assert message == {
        "kind": "Marker", "deviceId": 4294967295, "domain": "default", "name": "load", "duration": 30, "timestamp": 100,
        "pid": 42, "rank": 3,
    }  # fmt: skip


def test_long_and_broken_names_still_fit(maker: Maker, wire: Wire) -> None:
    processor = Metric(wire, maker.run)
    for number, name in enumerate(["\x01" * 5000, "\ud800x", "名" * 5000]):
        processor.add(
            maker.marks((Flag.START, Side.HOST, 1, number, name, "d"), (Flag.END, Side.HOST, 2, number, "", ""))
        )
    processor.report(NOW)
    assert len(wire.payloads) == 3
    for payload in wire.payloads:
        assert len(payload) <= 4096 and parse(payload).kind == "Marker"


def test_an_absent_daemon_costs_one_interval_and_little_time(maker: Maker) -> None:
    wire = Wire(refuse=10**9)
    processor = Metric(wire, maker.run)
    for number in range(100):
        processor.add(maker.four(number))
    processor.add(maker.kernel())
    processor.report(NOW)
    assert processor.counts == {metric.UNSENT: 201}
    assert 10**9 - wire.refuse == metric.FAILURES, "after so many the daemon is gone"
    wire.refuse = 0
    processor.add(maker.kernel(1, 5))
    processor.report(NOW)
    (message,) = wire.take()
    assert (message["duration"], message["count"]) == (4, 1)


def test_one_refusal_costs_one_message(maker: Maker) -> None:
    wire = Wire(refuse=1)
    processor = Metric(wire, maker.run)
    for device in range(5):
        processor.add(maker.kernel(device=device))
    processor.report(NOW)
    assert [one["deviceId"] for one in wire.take()] == [1, 2, 3, 4]
    assert processor.counts == {"sent": 4, metric.UNSENT: 1}


def test_an_error_of_the_socket_is_a_refusal(maker: Maker) -> None:
    def broken(payload: bytes) -> bool:
        raise ConnectionRefusedError(111, "Connection refused")

    processor = Metric(broken, maker.run)
    processor.add(maker.kernel())
    processor.report(NOW)
    assert processor.counts == {metric.UNSENT: 1}


def test_a_slow_daemon_does_not_hold_up_the_agent(maker: Maker, wire: Wire) -> None:
    clock = iter(range(0, 100_000, 1))  # a second for every look
    processor = Metric(wire, maker.run, clock=lambda: float(next(clock)))
    for number in range(50):
        processor.add(maker.four(number))
    processor.report(NOW)
    assert processor.counts["sent"] < 10
    assert sum(processor.counts.values()) == 100


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    durations = Durations()
    values = np.random.default_rng(3).permutation(np.arange(1, 1001))
    for part in np.array_split(values, 7):
        durations.add(part)
    summary = durations.summary()
    # Of 1 to 1000 the 500th and the 990th.
    assert (summary.median, summary.p99, summary.shortest, summary.longest) == (500, 990, 1, 1000)
    assert (summary.total, summary.count) == (500_500, 1000)


def test_of_very_many_durations_a_sample_is_kept() -> None:
    durations = Durations(most_kept=1 << 14)
    random = np.random.default_rng(4)
    for _ in range(50):
        durations.add(random.integers(0, 1_000_000, 10_000))
    summary = durations.summary()
    assert summary.count == 500_000
    # 8,192 or more were kept: of evenly spread values one in 8,192 lies six standard deviations off.
    assert abs(summary.median - 500_000) < 6 * 1_000_000 * (0.25 / 8192) ** 0.5
    assert abs(summary.p99 - 990_000) < 6 * 1_000_000 * (0.0099 / 8192) ** 0.5
    assert summary.longest > 999_900 and sum(map(len, durations._kept)) <= 1 << 14


def test_a_sum_beyond_64_bits_is_still_the_sum() -> None:
    durations = Durations()
    durations.add(np.array([2**62, 2**62, 2**62]))
    assert durations.summary().total == 3 * 2**62
