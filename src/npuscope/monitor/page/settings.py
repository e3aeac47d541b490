"""How the page is served, and which other daemons it shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npuscope.errors import UserError
from npuscope.monitor.endpoint import Endpoint, read_endpoints

PORT = 1779
LOOPBACK = "127.0.0.1"
MOST_NODES = 8192


@dataclass(frozen=True)
class PageSettings:
    """Where the page listens. Unless the port is `required`, a daemon whose page finds it in use runs without one."""

    port: int = PORT
    host: str = LOOPBACK
    required: bool = False
    nodes: tuple[Endpoint, ...] = ()


def read_nodes(lines: Iterable[str]) -> tuple[Endpoint, ...]:
    """The nodes of a list, one a line. Raises UserError for what is none, and for too many."""
    try:
        nodes = read_endpoints(lines)
    except ValueError as error:
        raise UserError(f"a node is HOST or HOST:PORT: {error}") from None
    if len(nodes) > MOST_NODES:
        raise UserError(f"{len(nodes)} nodes are more than one page shows ({MOST_NODES})")
    return nodes
