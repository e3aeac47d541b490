"""What Prometheus reads, as its own parser sees it."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from npuscope.errors import UserError
from npuscope.monitor.metrics.record import Record
from npuscope.monitor.metrics.store import Store
from npuscope.monitor.sinks.prometheus import Prometheus

PROCESS = {"pid": "7", "host_pid": "1007", "rank": "3", "job": "42", "uid": "0", "command": 'python "x"\n'}
DEVICE = {"device": "2", "kind": "Kernel", "pid": "9", "host_pid": "9", "rank": "1"}
HOST = {"cpu_util": 12.5, "uptime": 60, "rx_bytes.eth0": 100, "rx_bytes.lo.1": 5, "cpu_u_node1": 3.0}
Samples = dict[str, list[tuple[dict[str, str], float]]]


def samples(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def prometheus(store: Store) -> Prometheus:
    return Prometheus(store.latest, "node7")


def read(prometheus: Prometheus) -> Samples:
    text, content_type = prometheus.exposition()
    assert content_type.startswith("text/plain; version=")
    return samples(text.decode())


def test_the_host(store: Store, prometheus: Prometheus) -> None:
    store.put([Record(1, "host", {}, HOST)])
    node = {"host_name": "node7"}
    assert read(prometheus) == {
        "npuscope_host_cpu_util": [(node, 12.5)],
        "npuscope_host_uptime": [(node, 60)],
        "npuscope_host_rx_bytes": [(node | {"net": "eth0"}, 100), (node | {"net": "lo.1"}, 5)],
        "npuscope_host_cpu_u_node": [(node | {"node": "1"}, 3)],
    }


def test_the_names_of_the_stock_daemon(store: Store) -> None:
    store.put([Record(1, "host", {}, HOST)])
    found = read(Prometheus(store.latest, "node7", host_prefix=""))
    assert found["cpu_util"] == [({"host_name": "node7"}, 12.5)]
    assert found["rx_bytes"][0] == ({"host_name": "node7", "net": "eth0"}, 100)


def test_processes_and_the_daemon(store: Store, prometheus: Prometheus) -> None:
    store.put([Record(1, "process", PROCESS, {"rss_bytes": 4096, "cpu_user_seconds": 1.5, "threads": 8})])
    store.put([Record(1, "daemon", {}, {"polls": 17, "answers_waiting": 2})])
    labels = {"host_name": "node7", "pid": "7", "host_pid": "1007", "rank": "3", "job": "42"}
    assert read(prometheus) == {
        "npuscope_process_rss_bytes": [(labels, 4096)],
        "npuscope_process_cpu_user_seconds_total": [(labels, 1.5)],
        "npuscope_process_threads": [(labels, 8)],
        "npuscope_daemon_polls_total": [({"host_name": "node7"}, 17)],
        "npuscope_daemon_answers_waiting": [({"host_name": "node7"}, 2)],
    }


def test_every_kind_on_every_device_has_a_series_of_its_own(store: Store, prometheus: Prometheus) -> None:
    durations = [("Kernel", "0", 10**9), ("Kernel", "0", 2 * 10**9), ("Kernel", "1", 5 * 10**8), ("API", "host", 250)]
    for kind, device, duration in durations:
        records = [Record(1, "device", DEVICE | {"kind": kind, "device": device}, {"duration": duration})]
        store.put(records)
        prometheus.totals.add(records)
    found = read(prometheus)

    def shown(name: str) -> dict[tuple[str, str], float]:
        return {(labels["kind"], labels["device"]): value for labels, value in found[name]}

    assert shown("npuscope_activity_last_seconds") == {
        ("Kernel", "0"): 2, ("Kernel", "1"): 0.5, ("API", "host"): pytest.approx(2.5e-7)
    }  # fmt: skip
    assert shown("npuscope_activity_seconds_total") == {
        ("Kernel", "0"): 3, ("Kernel", "1"): 0.5, ("API", "host"): pytest.approx(2.5e-7)
    }  # fmt: skip
    assert shown("npuscope_activity_reports_total") == {("Kernel", "0"): 2, ("Kernel", "1"): 1, ("API", "host"): 1}
    assert set(found["npuscope_activity_last_seconds"][0][0]) == {
        "host_name", "device", "kind", "domain", "pid", "host_pid", "rank"
    }  # fmt: skip


def test_how_the_durations_of_a_report_spread(store: Store, prometheus: Prometheus) -> None:
    first = {"duration": 10**9, "count": 4, "min": 10**8, "max": 7 * 10**8, "p50": 10**8, "p99": 7 * 10**8}
    second = {"duration": 2 * 10**9, "count": 6, "min": 2 * 10**8, "max": 10**9, "p50": 3 * 10**8, "p99": 9 * 10**8}
    for values in (first, second):
        records = [Record(1, "device", DEVICE, values)]
        store.put(records)
        prometheus.totals.add(records)
    found = read(prometheus)
    names = ("last", "min", "max", "p50", "p99")
    shown = {name: found[f"npuscope_activity_{name}_seconds"] for name in names}
    assert [value for ((_, value),) in shown.values()] == [2, 0.2, 1, 0.3, 0.9]
    ((labels, count),) = found["npuscope_activity_records_total"]
    assert count == 10
    assert labels == {"host_name": "node7", "domain": "", **DEVICE}


def test_sums_are_bounded(prometheus: Prometheus) -> None:
    for number in range(5000):
        prometheus.totals.add([Record(1, "device", DEVICE | {"domain": str(number)}, {"duration": 1})])
    kept = prometheus.totals.all()
    assert len(kept) == 4096 and kept[-1][0][2] == "4999"


def test_an_endpoint_of_its_own(store: Store, prometheus: Prometheus) -> None:
    store.put([Record(1, "host", {}, HOST)])
    port = prometheus.serve("127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            assert samples(answer.read().decode())["npuscope_host_uptime"] == [({"host_name": "node7"}, 60)]
        with pytest.raises(
            UserError, match=f"cannot serve metrics on port {port} of 127.0.0.1: Address already in use"
        ):
            Prometheus(store.latest, "node7").serve("127.0.0.1", port)
    finally:
        prometheus.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.parametrize("address", ["192.0.2.1", "x" * 300])
def test_an_address_that_is_none(prometheus: Prometheus, address: str) -> None:
    with pytest.raises(UserError, match="cannot serve metrics on port 0"):
        prometheus.serve(address, 0)
