"""The host: processor time, network traffic, uptime. Names and formulas are those of the stock daemon."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

from npuscope.monitor.metrics.record import HOST, Record, Value

CPUS = Path("/sys/devices/system/cpu")
LETTERS = {
    "u": "user", "s": "system", "w": "iowait", "n": "nice", "x": "irq", "y": "softirq", "z": "steal",
    "guest": "guest", "guest_nice": "guest_nice",
}  # fmt: skip
"""How the stock daemon calls the kinds of processor time, but for `i`, idle."""
COUNTED = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
NIC_PREFIXES = ("eno", "ens", "enp", "enx", "eth")


@dataclass(frozen=True)
class Ticks:
    """Seconds that processors have spent since the start. Guest time is part of user time and not counted again."""

    user: float = 0.0
    nice: float = 0.0
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    irq: float = 0.0
    softirq: float = 0.0
    steal: float = 0.0
    guest: float = 0.0
    guest_nice: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return sum(getattr(self, name) for name in COUNTED)

    def since(self, before: Ticks) -> Ticks:
        """What has come since. A counter that went back, as the idle ones can, has not moved."""
        return Ticks(*(max(0.0, getattr(self, one.name) - getattr(before, one.name)) for one in fields(Ticks)))


@dataclass(frozen=True)
class Traffic:
    """What an interface has carried since it came up."""

    rx_bytes: int = 0
    rx_packets: int = 0
    rx_errors: int = 0
    rx_drops: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_errors: int = 0
    tx_drops: int = 0


@dataclass(frozen=True)
class Snapshot:
    """The counters at one moment; `sockets` has those of each processor package."""

    uptime: int
    ticks: Ticks
    sockets: Mapping[int, Ticks]
    traffic: Mapping[str, Traffic]


def host_values(before: Snapshot | None, after: Snapshot, prefixes: Sequence[str] | None = None) -> dict[str, Value]:
    """The metrics of the time between two snapshots; of the first one only the uptime.

    `prefixes` are those of the interfaces that count, None for all.
    """
    values: dict[str, Value] = {"uptime": after.uptime}
    if before is None:
        return values
    values |= _cpu(after.ticks.since(before.ticks))
    if len(after.sockets) > 1:
        for number, ticks in after.sockets.items():
            values |= _shares(ticks.since(before.sockets.get(number, ticks)), ("u", "s", "i"), f"_node{number}")
    for name, traffic in after.traffic.items():
        if prefixes is None or name.startswith(tuple(prefixes)):
            values |= _network(name, before.traffic.get(name, traffic), traffic)
    return values


def _cpu(delta: Ticks) -> dict[str, Value]:
    values: dict[str, Value] = _shares(delta, ("u", "s", "i", "guest", "guest_nice"))
    if delta.total:
        values["cpu_util"] = 100 * (1 - delta.idle / delta.total)
    return values | {f"cpu_{key}_ms": round(getattr(delta, name) * 1000) for key, name in LETTERS.items()}


def _shares(delta: Ticks, letters: Sequence[str], ending: str = "") -> dict[str, Value]:
    if not delta.total:  # no tick between the snapshots: nothing to divide
        return {}
    names = LETTERS | {"i": "idle"}
    return {f"cpu_{key}{ending}": 100 * getattr(delta, names[key]) / delta.total for key in letters}


def _network(name: str, before: Traffic, after: Traffic) -> dict[str, Value]:
    """Differences. An interface that was made anew counts from 0 again: then that is what has come."""
    values: dict[str, Value] = {}
    for one in fields(Traffic):
        now, then = getattr(after, one.name), getattr(before, one.name)
        values[f"{one.name}.{name}"] = now - then if now >= then else now
    return values


class Host:
    """The source of the host's metrics."""

    name = "host"

    def __init__(self, prefixes: Sequence[str] | None = None) -> None:
        self._prefixes = prefixes
        self._packages = packages()
        self._before: Snapshot | None = None

    def sample(self) -> list[Record]:
        """One record."""
        after = snapshot(self._packages)
        values = host_values(self._before, after, self._prefixes)
        if self._before is not None:
            memory = psutil.virtual_memory()  # the stock daemon does not measure it
            values |= {"mem_used_bytes": memory.total - memory.available, "mem_total_bytes": memory.total}
        self._before = after
        return [Record(time.time(), HOST, {}, values)]


def snapshot(package_of: Mapping[int, int]) -> Snapshot:
    """The counters now; `package_of` tells the package of each processor."""
    traffic = {
        name: Traffic(
            found.bytes_recv, found.packets_recv, found.errin, found.dropin,
            found.bytes_sent, found.packets_sent, found.errout, found.dropout,
        )
        for name, found in psutil.net_io_counters(pernic=True, nowrap=False).items()
    }  # fmt: skip
    uptime = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    sockets = _sockets(package_of) if len(set(package_of.values())) > 1 else {}
    return Snapshot(uptime, _ticks(psutil.cpu_times()), sockets, traffic)


def _ticks(times: object) -> Ticks:
    return Ticks(*(getattr(times, one.name, 0.0) for one in fields(Ticks)))


def _sockets(package_of: Mapping[int, int]) -> dict[int, Ticks]:
    numbers, found = online(), psutil.cpu_times(percpu=True)
    if len(numbers) != len(found):  # a processor came or went just now
        return {}
    sums: dict[int, list[float]] = {}
    for number, times in zip(numbers, found, strict=True):
        row = sums.setdefault(package_of.get(number, 0), [0.0] * len(fields(Ticks)))
        for place, one in enumerate(fields(Ticks)):
            row[place] += getattr(times, one.name, 0.0)
    return {package: Ticks(*row) for package, row in sorted(sums.items())}


def online(root: Path = CPUS) -> list[int]:
    """The numbers of the processors that are in use."""
    try:
        text = (root / "online").read_text().strip()
    except OSError:
        return []
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def packages(root: Path = CPUS) -> dict[int, int]:
    """The package in which each processor sits; empty when the system does not say."""
    found: dict[int, int] = {}
    for number in online(root):
        try:
            found[number] = int((root / f"cpu{number}" / "topology" / "physical_package_id").read_text())
        except (OSError, ValueError):
            return {}
    return found
