"""The host's metrics against the published formulas, worked out by hand, and against the kernel's own tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuscope.monitor.metrics.host import Host, Snapshot, Ticks, Traffic, host_values, online, packages

BEFORE = Snapshot(100, Ticks(10, 1, 5, 100, 2, 0.5, 0.25, 0, 3, 0), {}, {"lo": Traffic(), "eth0": Traffic(100, 10)})
# Ticks of 10 ms in between: u 150, n 10, s 50, i 250, w 20, x 5, y 10, z 5, guest 100, guest_nice 5; total 500.
AFTER = Snapshot(
    105,
    Ticks(11.5, 1.1, 5.5, 102.5, 2.2, 0.55, 0.35, 0.05, 4, 0.05),
    {},
    {"lo": Traffic(), "eth0": Traffic(1100, 12, 1, 2, 30, 4, 5, 6), "eth1": Traffic(9, 9, 9, 9, 9, 9, 9, 9)},
)


def test_the_first_sample_has_the_uptime_only() -> None:
    assert host_values(None, AFTER) == {"uptime": 105}


def test_processor_time() -> None:
    values = host_values(BEFORE, AFTER)
    shares = {"cpu_u": 30, "cpu_s": 10, "cpu_i": 50, "cpu_util": 50, "cpu_guest": 20, "cpu_guest_nice": 1}
    for name, share in shares.items():
        assert values[name] == pytest.approx(share), name
    milliseconds = {
        "u": 1500,
        "s": 500,
        "w": 200,
        "n": 100,
        "x": 50,
        "y": 100,
        "z": 50,
        "guest": 1000,
        "guest_nice": 50,
    }
    assert {name: value for name, value in values.items() if name.endswith("_ms")} == {
        f"cpu_{key}_ms": value for key, value in milliseconds.items()
    }
    assert not any("node" in name for name in values)


def test_traffic_is_what_has_come_and_a_new_interface_begins_at_zero() -> None:
    values = host_values(BEFORE, AFTER)
    kinds = [f"{way}_{what}" for way in ("rx", "tx") for what in ("bytes", "packets", "errors", "drops")]
    assert [values[f"{kind}.eth0"] for kind in kinds] == [1000, 2, 1, 2, 30, 4, 5, 6]
    assert [values[f"{kind}.eth1"] for kind in kinds] == [0] * 8
    assert [values[f"{kind}.lo"] for kind in kinds] == [0] * 8


def test_only_some_interfaces() -> None:
    values = host_values(BEFORE, AFTER, ("ens", "eth0"))
    assert {name.partition(".")[2] for name in values if "." in name} == {"eth0"}


def test_an_interface_that_was_made_anew_counts_from_zero() -> None:
    values = host_values(AFTER, Snapshot(110, AFTER.ticks, {}, {"eth0": Traffic(50, 1)}))
    assert values["rx_bytes.eth0"] == 50 and values["rx_packets.eth0"] == 1


def test_packages_are_told_apart_when_there_are_several() -> None:
    before = Snapshot(1, Ticks(), {0: Ticks(), 1: Ticks(user=10)}, {})
    after = Snapshot(2, Ticks(user=5, idle=5), {0: Ticks(user=1, idle=3), 1: Ticks(user=12, system=1, idle=1)}, {})
    values = host_values(before, after)
    nodes = {name: value for name, value in values.items() if "node" in name}
    assert nodes == {
        "cpu_u_node0": 25, "cpu_s_node0": 0, "cpu_i_node0": 75, "cpu_u_node1": 50, "cpu_s_node1": 25, "cpu_i_node1": 25
    }  # fmt: skip
    single = host_values(Snapshot(1, Ticks(), {0: Ticks()}, {}), Snapshot(2, Ticks(user=1), {0: Ticks(user=1)}, {}))
    assert not any("node" in name for name in single)


def test_without_a_tick_in_between_there_is_no_share() -> None:
    values = host_values(AFTER, AFTER)
    assert "cpu_util" not in values and values["cpu_u_ms"] == 0


def test_counters_that_go_back_have_not_moved() -> None:
    values = host_values(Snapshot(1, Ticks(idle=10, iowait=5), {}, {}), Snapshot(2, Ticks(idle=11, iowait=4), {}, {}))
    assert values["cpu_i"] == 100 and values["cpu_w_ms"] == 0


def test_which_processors_there_are(tmp_path: Path) -> None:
    (tmp_path / "online").write_text("0-1,4\n")
    assert online(tmp_path) == [0, 1, 4]
    assert packages(tmp_path) == {}  # the system does not say where they sit
    for number, package in ((0, 0), (1, 1), (4, 1)):
        topology = tmp_path / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
    assert packages(tmp_path) == {0: 0, 1: 1, 4: 1}


def test_this_host() -> None:
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    host = Host()
    (first,) = host.sample()
    assert set(first.values) == {"uptime"} and abs(int(first.values["uptime"]) - uptime) < 30
    begin = sum(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]))
    host.sample()
    while sum(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])) < begin + 20:
        sum(range(10000))
    (record,) = host.sample()
    shares = [float(record.values[name]) for name in ("cpu_u", "cpu_s", "cpu_i")]
    assert all(0 <= share <= 100 for share in shares) and 0 < sum(shares) <= 100.001
    interfaces = {line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    assert {name.partition(".")[2] for name in record.values if name.startswith("rx_bytes.")} == interfaces
    assert record.entity == "host"
