"""Where the page takes its facts from: plain functions, so that it knows neither registry nor metrics store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sources:
    """What the page asks for.

    `status(uid)` is the daemon's account as user `uid` may see it (None: nobody's details). `history()` yields series:
    {"name", "entity": "host" | "process" | "device" | "daemon", "labels", "times", "values"}. `exposition()` is the
    Prometheus text and its content type, None where no metrics are collected. `counts()` says what went by on the IPC
    sockets.
    """

    status: Callable[[int | None], dict[str, Any]]
    history: Callable[[], list[dict[str, Any]]] = list
    exposition: Callable[[], tuple[bytes, str]] | None = None
    counts: Callable[[], dict[str, int]] = dict
