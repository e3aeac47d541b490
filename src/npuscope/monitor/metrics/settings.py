"""What is measured, how often, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

INTERVAL_SECONDS = 10.0
STOCK_INTERVAL_SECONDS = 60.0


@dataclass(frozen=True)
class MetricsSettings:
    """How the daemon measures. An interval of 0: it measures nothing, but still takes what the plug-in sends."""

    interval: float = INTERVAL_SECONDS
    log_file: Path | None = None
    """JSON lines are appended here."""
    stock_json: bool = False
    """Every record goes to the daemon's log, as the stock daemon writes it."""
    tensorboard: Path | None = None
    prometheus: tuple[str, int] | None = None
    """Address and port of an endpoint of its own."""
    relay: tuple[str, int] | None = None
    """Address and port to which records are sent over TCP."""
    stock_names: bool = False
    """The host's metrics are called for Prometheus as the stock daemon calls them."""
    nic_prefixes: tuple[str, ...] | None = None
    """Only interfaces whose names begin so count; None for all."""
    from_environment: bool = True
    """Whether processes are attributed by what the batch system put into their environment."""
