"""Datagrams of the IPC fabric, by which training processes register and ask for work.

A datagram is a header of 40 bytes (payload size, name of the message) and a payload. Stock Kineto and the vendor's
plug-in share the layout and differ in the addresses they use and in which messages they send. Integers are in the
machine's own byte order.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

HEADER = struct.Struct("=Q32s")
CONTEXT = struct.Struct("=iiq")
REQUEST = struct.Struct("=iiq")
STATUS = struct.Struct("=5i4xq")

ABSTRACT_NAME = b"\0dynolog\0"
"""The abstract address of the daemon. The NUL at its end belongs to the name."""
FILE_NAME = "dynolog"
HOME_NAME = "dynolog.sock"
HOME_DATA_NAME = "dynolog_data.sock"
MAX_PIDS = 64
"""More than any client sends; a bound for what a datagram may claim."""


class Dialect(enum.Enum):
    """Whose client speaks: the address it uses tells."""

    KINETO = "kineto"
    MSMONITOR = "msmonitor"


class Malformed(ValueError):
    """A datagram that no client sends; it gets no reply."""


class Types(enum.IntFlag):
    """What a polling process can take."""

    NONE = 0
    EVENTS = 1
    ACTIVITIES = 2


@dataclass(frozen=True)
class Context:
    """`ctxt`: a process says that it uses a device."""

    device: int
    pid: int
    job: int


@dataclass(frozen=True)
class Poll:
    """`req`: a process asks whether there is work. `pids` is the process itself, then its ancestors."""

    types: Types
    job: int
    pids: tuple[int, ...]


class Channel(enum.Enum):
    """What a status speaks of; the value is the name of the message."""

    TRACE = "npuTraceStatus"
    MONITOR = "npuMonitorStatus"


@dataclass(frozen=True)
class Status:
    """The vendor's plug-in reports where its trace or its monitor stands."""

    channel: Channel
    status: int = -1
    current_step: int = -1
    start_step: int = -1
    stop_step: int = -1
    pid: int = 0
    job: int = 0


@dataclass(frozen=True)
class Data:
    """`data`: one measurement as a JSON object, not yet parsed."""

    payload: bytes


Message = Context | Poll | Status | Data


def decode(datagram: bytes) -> Message:
    """The message in a datagram. Raises Malformed for anything that no client sends."""
    if len(datagram) < HEADER.size:
        raise Malformed("shorter than a header")
    size, name = HEADER.unpack_from(datagram)
    if len(datagram) != HEADER.size + size:
        raise Malformed("the header's size is not the payload's")
    text, end, _ = name.partition(b"\0")
    if not end:
        raise Malformed("the message's name has no end")
    return _payload(text, datagram[HEADER.size :])


def _payload(name: bytes, payload: bytes) -> Message:
    if name == b"req":
        return _poll(payload)
    if name == b"ctxt":
        _require(len(payload) == CONTEXT.size, "a context has 16 bytes")
        context = Context(*CONTEXT.unpack(payload))
        _require(context.pid > 0, "a context's process has a number")
        return context
    for channel in Channel:
        if name == channel.value.encode():
            _require(len(payload) == STATUS.size, "a status has 32 bytes")
            return Status(channel, *STATUS.unpack(payload))
    _require(name == b"data", "unknown message")
    return Data(payload)


def _poll(payload: bytes) -> Poll:
    _require(len(payload) >= REQUEST.size, "shorter than a request")
    types, count, job = REQUEST.unpack_from(payload)
    _require(0 <= types <= 3, "unknown kinds of work")
    _require(0 < count <= MAX_PIDS, "no processes, or too many")
    _require(len(payload) == REQUEST.size + 4 * count, "not as many processes as announced")
    pids = struct.unpack_from(f"={count}i", payload, REQUEST.size)
    _require(pids[0] > 0 and min(pids) >= 0, "a process has a positive number")
    return Poll(Types(types), job, pids)


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Malformed(sentence)


def encode(name: str, payload: bytes) -> bytes:
    """A datagram."""
    return HEADER.pack(len(payload), name.encode()) + payload


def context_reply(count: int) -> bytes:
    """The answer to `ctxt`: how many processes of the job use the device."""
    return encode("ctxt", struct.pack("=i", count))


def config_reply(config: str) -> bytes:
    """The answer to `req`: a configuration, or nothing to do.

    The vendor's client takes any four bytes for the answer to a registration, so a text is never that long.
    """
    payload = config.encode()
    return encode("req", payload + b"\n" if len(payload) == 4 else payload)


def encode_context(context: Context) -> bytes:
    """What a client sends to say that it uses a device."""
    return encode("ctxt", CONTEXT.pack(context.device, context.pid, context.job))


def encode_poll(types: Types, job: int, pids: Sequence[int]) -> bytes:
    """What a client sends to ask for work."""
    return encode("req", REQUEST.pack(types, len(pids), job) + struct.pack(f"={len(pids)}i", *pids))


def encode_status(status: Status) -> bytes:
    """What the vendor's plug-in sends to report a status."""
    steps = (status.status, status.current_step, status.start_step, status.stop_step)
    return encode(status.channel.value, STATUS.pack(*steps, status.pid, status.job))
