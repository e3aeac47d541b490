"""Measurements on their way to a real daemon."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.conftest import serving
from daemon_process import Daemon
from processor_records import Maker, many_kernels

from npuscope.monitor.agent.client import Client
from npuscope.monitor.agent.processors.metric import Metric
from npuscope.monitor.protocol import rpc

WAIT_SECONDS = 60.0


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    with serving(folder, "daemon", "--interval", "1") as one:
        yield one


def devices(daemon: Daemon, count: int) -> list[dict[str, Any]]:
    """What the daemon knows of devices, once it knows so many."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        records = daemon.ask(rpc.simple_request("getMetrics"))["records"]
        found = [one for one in records if one["entity"] == "device"]
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, records
        time.sleep(0.1)


def test_the_daemon_knows_what_each_rank_did(daemon: Daemon, folder: Path) -> None:
    client = Client(str(folder))
    maker = Maker(rank=6, pid=os.getpid())
    processor = Metric(client.measure, maker.run)
    kernels = many_kernels(maker, 10_000)
    processor.add(kernels)
    processor.add(maker.four())
    processor.report(time.time_ns())
    client.close()
    assert processor.counts == {"sent": 3}
    found = {(one["labels"]["kind"], one["labels"]["device"]): one for one in devices(daemon, 3)}
    assert found.keys() == {("Kernel", "0"), ("Marker", "host"), ("Marker", "5")}
    kernel = found["Kernel", "0"]
    assert (kernel["labels"]["pid"], kernel["labels"]["rank"]) == (str(os.getpid()), "6")
    took = sorted((kernels["end"] - kernels["start"]).tolist())
    values = {"duration": sum(took), "count": 10_000, "min": took[0], "max": took[-1], "p50": took[4999], "p99": took[9899]}
    assert values.items() <= kernel["values"].items()
    assert found["Marker", "host"]["labels"]["domain"] == "train"
    assert (found["Marker", "host"]["values"]["duration"], found["Marker", "5"]["values"]["duration"]) == (50, 60)
    assert found["Marker", "5"]["values"]["name"] == "forward"


def test_without_a_daemon_it_is_counted(folder: Path) -> None:
    client = Client(str(folder / "nobody"))
    maker = Maker()
    processor = Metric(client.measure, maker.run)
    processor.add(maker.four())
    processor.report(time.time_ns())
    client.close()
    assert processor.counts == {"the daemon did not take them": 2}
