"""Asking other daemons how they are, over and over, without ever waiting for one of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from npuscope.errors import UserError
from npuscope.monitor.client import ask
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.protocol import rpc

PERIOD_SECONDS = 5.0
ANSWER_SECONDS = 3.0
STALE_SECONDS = 30.0
"""An answer that is older counts as none, whatever its node is doing meanwhile."""
WORKERS = 64
HOST_VALUES = ("cpu_util", "uptime")

Ask = Callable[[str, int, str, float], str]


@dataclass
class Seen:
    """What is known of a node. `changed` is when it last began, or ceased, to answer."""

    node: Endpoint
    reachable: bool | None = None
    changed: float = 0.0
    answered: float | None = None
    error: str = ""
    status: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    asking: bool = False


class Watch:
    """Keeps an eye on nodes from threads of its own; each node is asked by at most one at a time."""

    def __init__(self, nodes: Sequence[Endpoint], asks: Ask = ask, period: float = PERIOD_SECONDS) -> None:
        self._seen = [Seen(node) for node in nodes]
        self._ask = asks
        self._period = period
        self._stopping = threading.Event()
        self._workers = ThreadPoolExecutor(max(1, min(WORKERS, len(nodes))), thread_name_prefix="node")
        self._clock = threading.Thread(target=self._run, name="nodes", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        if self._seen:
            self._clock.start()

    def stop(self) -> None:
        """Ask no more; does not wait for answers under way."""
        self._stopping.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def shown(self, now: float) -> list[dict[str, Any]]:
        """What is known, node by node."""
        return [describe(seen, now) for seen in self._seen]

    def _run(self) -> None:
        while not self._stopping.is_set():
            for seen in self._seen:
                if not seen.asking and not self._stopping.is_set():
                    seen.asking = True
                    try:
                        self._workers.submit(self._look, seen)
                    except RuntimeError:  # stopped meanwhile
                        return
            self._stopping.wait(self._period)

    def _look(self, seen: Seen) -> None:
        try:
            self._asked(seen)
        except UserError as error:
            self._turned(seen, False, _brief(str(error)))
        except Exception as error:  # whatever answers there, it is no daemon
            self._turned(seen, False, f"no proper reply: {type(error).__name__}")
        else:
            seen.answered = time.time()
            self._turned(seen, True, "")
        finally:
            seen.asking = False

    def _asked(self, seen: Seen) -> None:
        status = self._request(seen.node, "getStatus")
        if not isinstance(status.get("processes", []), list):
            raise UserError("no proper reply")
        version = status.get("version") or self._request(seen.node, "getVersion").get("version", "")
        records = self._request(seen.node, "getMetrics").get("records", [])
        seen.status, seen.version, seen.metrics = status, str(version)[:40], host_values(records)

    def _request(self, node: Endpoint, function: str) -> dict[str, Any]:
        reply = json.loads(self._ask(node.host, node.port, rpc.simple_request(function), ANSWER_SECONDS))
        if not isinstance(reply, dict):
            raise UserError("no proper reply")
        return reply

    @staticmethod
    def _turned(seen: Seen, reachable: bool, error: str) -> None:
        if seen.reachable is not reachable:
            seen.changed = time.time()
        seen.reachable, seen.error = reachable, error


def describe(seen: Seen, now: float) -> dict[str, Any]:
    """A node as the page shows it."""
    stale = seen.reachable is True and seen.answered is not None and now - seen.answered > STALE_SECONDS
    since = seen.answered if stale else seen.changed or None
    shown: dict[str, Any] = {
        "node": seen.node.short,
        "reachable": False if stale else seen.reachable,
        "since": since and min(since, now),  # it may have changed since the page was begun
        "answered": seen.answered,
        "error": "the last answer is old" if stale else seen.error,
        "version": seen.version,
    }
    if seen.reachable and not stale:
        shown |= {"metrics": seen.metrics, "summary": _summary(seen.status)}
    return shown


def host_values(records: object) -> dict[str, float]:
    """The newest figures of a host that a node table has room for."""
    values: dict[str, float] = {}
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict) and record.get("entity") == "host" and isinstance(record.get("values"), dict):
            for name in HOST_VALUES:
                if isinstance(value := record["values"].get(name), int | float):
                    values[name] = value
    return values


def _summary(status: dict[str, Any]) -> dict[str, int]:
    told = status.get("summary")
    if isinstance(told, dict):
        return {str(name): value for name, value in told.items() if isinstance(value, int)}
    processes = [process for process in status.get("processes", []) if isinstance(process, dict)]
    return {
        "processes": len(processes),
        "tracing": sum(process.get("state") in ("delivered", "tracing") for process in processes),
    }


def _brief(error: str) -> str:
    """The reason out of the client's sentence, which names the node and how to start a daemon."""
    return error.split(": ", 1)[-1].split(" (start one", 1)[0][:200]
