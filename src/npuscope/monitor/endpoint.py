"""Where a daemon listens, and how people write that down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npuscope.monitor.protocol import rpc


@dataclass(frozen=True)
class Endpoint:
    """A host's name or address, and the port of its daemon."""

    host: str
    port: int = rpc.PORT

    def __str__(self) -> str:
        return f"{self._host}:{self.port}"

    @property
    def short(self) -> str:
        """The same without the usual port."""
        return self._host if self.port == rpc.PORT else str(self)

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def read_endpoint(word: str, port: int = rpc.PORT) -> Endpoint:
    """`host`, `host:port`, `address`, `[address]:port`; where there is no port, it is `port`. Raises ValueError, in one
    line."""
    host, colon, number = word, "", ""
    if word.startswith("["):
        host, bracket, rest = word[1:].partition("]")
        colon, number = rest[:1], rest[1:]
        if not bracket or colon not in ("", ":"):
            raise ValueError(f"not a host: '{word}'")
    elif word.count(":") == 1:
        host, colon, number = word.partition(":")
    if not host or any(character.isspace() for character in host):
        raise ValueError(f"not a host: '{word}'")
    if not colon:
        return Endpoint(host, port)
    if not (number.isascii() and number.isdigit() and 0 < int(number[:6]) < 65536):
        raise ValueError(f"not a port: '{number}' in '{word}'")
    return Endpoint(host, int(number))


def read_endpoints(lines: Iterable[str], port: int = rpc.PORT) -> tuple[Endpoint, ...]:
    """The endpoints of a list, one a line, each once; text after # is a comment. Raises ValueError."""
    words = (line.partition("#")[0].strip() for line in lines)
    return tuple(dict.fromkeys(read_endpoint(word, port) for word in words if word))
