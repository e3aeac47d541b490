"""Frames between `dyno` and the daemon: the length of a JSON text (four bytes, the machine's order), then the text."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

LENGTH = struct.Struct("=i")
LARGEST_REQUEST = 64 * 1024
"""Clients send less than 8 KiB; parsing a longer text would keep the interpreter from answering polls."""
LARGEST_REPLY = 64 * 1024 * 1024
DEEPEST = 10
PORT = 1778


class BadFrame(ValueError):
    """A frame, or the JSON in it, that cannot be read."""


def length(header: bytes, largest: int = LARGEST_REQUEST) -> int:
    """How many bytes follow the four of `header`. Raises BadFrame when that is out of bounds."""
    if len(header) != LENGTH.size:
        raise BadFrame("the length of the message is missing")
    size: int = LENGTH.unpack(header)[0]
    if not 0 < size <= largest:
        raise BadFrame(f"a message has between 1 and {largest} bytes, not {size}")
    return size


def frame(text: str) -> bytes:
    """The text as it goes over the wire."""
    payload = text.encode(errors="replace")
    return LENGTH.pack(len(payload)) + payload


def compact(reply: Mapping[str, Any]) -> str:
    """A reply as text: no spaces, keys in order."""
    return json.dumps(reply, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


NEEDS_TLS = compact({"status": "failed with exception = this port speaks TLS only, see --certs-dir"})
"""What a daemon with certificates replies, outside of TLS, to whoever does not speak it."""


def parse(payload: bytes) -> dict[str, Any]:
    """The JSON object in a payload. Raises BadFrame for anything else."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"json.exception: {error}") from None
    if not isinstance(value, dict):
        raise BadFrame("json.exception: the message is not an object")
    if depth(value) > DEEPEST:
        raise BadFrame(f"json.exception: nested deeper than {DEEPEST} levels")
    return value


def depth(value: Any) -> int:
    """How many objects and arrays lie inside each other; no more are counted than matter."""
    level, deep = [value], 0
    while deep <= DEEPEST:
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            break
        deep += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return deep


def simple_request(function: str) -> str:
    """A request without arguments, such as `getStatus`."""
    return compact({"fn": function})


def trace_request(config: str, job: int, pids: Sequence[int], limit: int) -> str:
    """A request to trace, laid out as the stock command line does it."""
    lines = {
        "fn": '"setKinetOnDemandRequest"',
        "config": json.dumps(config, ensure_ascii=False),
        "job_id": str(job),
        "pids": f"[{','.join(map(str, pids))}]",
        "process_limit": str(limit),
    }
    return "\n{\n" + ",\n".join(f'    "{key}": {value}' for key, value in lines.items()) + "\n}"
