"""Records over TCP to a relay, one JSON object per line, in the stock daemon's envelope."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

from npuscope.monitor.metrics.record import DEVICE, HOST, Record
from npuscope.monitor.sinks.json_lines import sample, timestamp

SECONDS = 5.0
AGENT_VERSION = "0.1.0"
"""Of the envelope, as relays know it."""


class Relay:
    """Keeps a connection; after an error it makes a new one and sends the same records again."""

    def __init__(self, host: str, port: int) -> None:
        self.name = f"the relay at {host}:{port}"
        self._place = host, port
        self._here = socket.gethostname()
        self._connection: socket.socket | None = None

    def write(self, records: Sequence[Record]) -> None:
        """Send all of them."""
        text = "".join(json.dumps(envelope(record, self._here), sort_keys=True) + "\n" for record in records)
        try:
            if self._connection is None:
                self._connection = socket.create_connection(self._place, timeout=SECONDS)
            self._connection.sendall(text.encode(errors="replace"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        if self._connection:
            self._connection.close()
            self._connection = None


def envelope(record: Record, host: str) -> dict[str, Any]:
    """A record as a relay expects it."""
    if record.entity == DEVICE:
        module = f"dyno.device{record.labels['device']}"
    else:
        module = "dyno" if record.entity == HOST else f"dyno.{record.entity}"
    return {
        "@timestamp": timestamp(record.time),
        "agent": {"hostname": host, "name": host, "type": "dyno", "version": AGENT_VERSION},
        "event": {"module": module},
        "backend": 0,
        "stack_metrics": False,
        module: sample(record),
    }
