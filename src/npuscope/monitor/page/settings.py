"""How the page is served, and which other daemons it shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npuscope.errors import UserError
from npuscope.monitor.protocol import rpc

PORT = 1779
LOOPBACK = "127.0.0.1"
MOST_NODES = 8192


@dataclass(frozen=True)
class Node:
    """Another daemon."""

    host: str
    port: int = rpc.PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == rpc.PORT else f"{host}:{self.port}"


@dataclass(frozen=True)
class PageSettings:
    """Where the page listens. Unless the port is `required`, a daemon whose page finds it in use runs without one."""

    port: int = PORT
    host: str = LOOPBACK
    required: bool = False
    nodes: tuple[Node, ...] = ()


def read_node(text: str) -> Node:
    """HOST, HOST:PORT, or an address of IPv6, in brackets when a port follows. Raises UserError."""
    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or any(character.isspace() for character in host) or (text.endswith(":") and not port):
        raise UserError(f"a node is HOST or HOST:PORT, not {text!r}")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65535):
        raise UserError(f"the port of a node is between 1 and 65535, not {port!r}")
    return Node(host, int(port) if port else rpc.PORT)


def read_nodes(lines: Iterable[str]) -> tuple[Node, ...]:
    """The nodes of a list, one a line; text after # is a comment, and a node named twice counts once."""
    words = (line.partition("#")[0].strip() for line in lines)
    nodes = tuple(dict.fromkeys(read_node(word) for word in words if word))
    if len(nodes) > MOST_NODES:
        raise UserError(f"{len(nodes)} nodes are more than one page shows ({MOST_NODES})")
    return nodes
