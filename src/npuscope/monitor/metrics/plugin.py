"""Measurements that the vendor's plug-in and our agent send: how long work of one kind took on one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from npuscope.monitor.metrics.record import DEVICE, Record, Value

HOST_DEVICES = frozenset({-1, 2**32 - 1, 2**64 - 1})
"""How the plug-in writes, on its different ways, that no device was meant."""
HOST_NAME = "host"
MOST_DEVICE = 2**31 - 1
LONGEST_KIND, LONGEST_DOMAIN, LONGEST_NAME = 64, 128, 1024
NANOSECONDS = 1e9
SPREAD = ("count", "min", "max", "p50", "p99")
"""What our agent says besides: how many activities there were, and in nanoseconds how long single ones took."""
NO_RANK = -1
MOST_RANK = 2**31 - 1


class BadData(ValueError):
    """A message that is no measurement; the text says why."""


@dataclass(frozen=True)
class Measurement:
    """One message. Times are in nanoseconds, `device` is a number or "host"."""

    timestamp: int
    duration: int
    device: str
    kind: str
    domain: str = ""
    name: str = ""
    spread: Mapping[str, int] = field(default_factory=dict)
    """Of SPREAD what the message has."""
    rank: int = NO_RANK
    """As the sender knows it; it may have learned it after its start."""

    def record(self, sender: dict[str, str]) -> Record:
        """As others see it; `sender` are the labels of the process that sent it."""
        labels = {"device": self.device, "kind": self.kind} | sender
        if self.domain:
            labels["domain"] = self.domain
        if self.rank != NO_RANK:
            labels["rank"] = str(self.rank)
        values: dict[str, Value] = {"timestamp": self.timestamp, "duration": self.duration, **self.spread}
        if self.name:  # no label: there may be a new one with every step
            values["name"] = self.name
        return Record(self.timestamp / NANOSECONDS, DEVICE, labels, values)


def parse(payload: bytes) -> Measurement:
    """The measurement in a message. Raises BadData."""
    try:
        message = orjson.loads(payload.rstrip(b"\0"))
    except orjson.JSONDecodeError as error:
        raise BadData(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise BadData("not an object")
    return Measurement(
        _number(message, "timestamp"),
        _number(message, "duration"),
        _device(message),
        _text(message, "kind", LONGEST_KIND),
        _text(message, "domain", LONGEST_DOMAIN, ""),
        _text(message, "name", LONGEST_NAME, ""),
        {key: _number(message, key) for key in SPREAD if key in message},
        _rank(message),
    )


def _number(message: dict[str, object], key: str, least: int = 0) -> int:
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**64:
        raise BadData(f"{key} is not a whole number of 64 bits")
    return value


def _device(message: dict[str, object]) -> str:
    number = _number(message, "deviceId", least=-1)
    if number in HOST_DEVICES:
        return HOST_NAME
    if number > MOST_DEVICE:
        raise BadData("deviceId is no device")
    return str(number)


def _rank(message: dict[str, object]) -> int:
    number = _number(message, "rank", least=NO_RANK) if "rank" in message else NO_RANK
    if number > MOST_RANK:
        raise BadData("rank is no rank")
    return number


def _text(message: dict[str, object], key: str, longest: int, default: str | None = None) -> str:
    value = message.get(key, default)
    if not isinstance(value, str) or not (value or default == ""):
        raise BadData(f"{key} is not a text")
    value = value[:longest]
    return value if value.isprintable() else "".join(one if one.isprintable() else " " for one in value)
