"""The daemons that are asked: one, or a list of hosts."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from npuscope.monitor.certificates.folder import NO_CERTS
from npuscope.monitor.client import SECONDS, ask
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.fanout import Limits

WHOLE_CLUSTER = Limits()


@dataclass(frozen=True)
class Server:
    """The daemon that is asked, unless hosts are listed."""

    host: str
    port: int
    certs_dir: str = NO_CERTS
    certificates: ssl.SSLContext | None = None
    seconds: float = SECONDS

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return Endpoint(self.host, self.port)

    def ask(self, request: str | Callable[[], str]) -> str:
        """Its reply to a request, which may be made when the connection is there already."""
        return ask(self.host, self.port, request, self.seconds, self.certificates)


@dataclass(frozen=True)
class Call:
    """Who is asked, and how the answers are shown."""

    server: Server
    hosts: tuple[Endpoint, ...] = ()
    limits: Limits = WHOLE_CLUSTER
    as_json: bool = False
