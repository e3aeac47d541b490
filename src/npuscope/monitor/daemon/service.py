"""The daemon as a whole: IPC reader, RPC listener and log."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from npuscope.monitor.daemon.addresses import KINDS, addresses
from npuscope.monitor.daemon.desk import Desk
from npuscope.monitor.daemon.folders import Folders
from npuscope.monitor.daemon.ledger import Ledger
from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.rpc_server import LOOPBACK, RpcServer, bind, is_loopback
from npuscope.monitor.daemon.status import Account
from npuscope.monitor.page.page import open_page
from npuscope.monitor.page.settings import PageSettings
from npuscope.monitor.page.sources import Sources
from npuscope.monitor.protocol.fabric import Data
from npuscope.monitor.protocol.rpc import PORT


@dataclass(frozen=True)
class Settings:
    """How the daemon runs."""

    port: int = PORT
    hosts: tuple[str, ...] = LOOPBACK
    ipc: tuple[str, ...] = KINDS
    trace_folders: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    page: PageSettings | None = None


class Service:
    """A daemon whose sockets are bound; `run` serves until a signal or `stop`."""

    def __init__(self, settings: Settings, log: Callable[[str], None]) -> None:
        """Raises UserError when a port or a socket cannot be had."""
        self._log = log
        self._listeners = bind(settings.hosts, settings.port)
        self.port: int = self._listeners[0].getsockname()[1]
        try:
            places = addresses(settings.ipc, settings.environment)
            self.reader = Reader(places, Registry(socket.gethostname()))
        except BaseException:
            for listener in self._listeners:
                listener.close()
            raise
        account = Account(self.reader.call, Ledger(), lambda: asdict(self.reader.counts))
        desk = Desk(self.reader.call, Folders(settings.trace_folders), account)
        self._server = RpcServer(desk, self._listeners)
        for host in settings.hosts:
            if not is_loopback(host):
                log(f"warning: {host} is open to other hosts, which can have this user's processes traced")
        where = ", ".join(map(str, places)) or "no IPC socket"
        try:
            self._page = open_page(settings.page, self._sources(account), log)
        except BaseException:
            self._close()
            raise
        log(f"listening on port {self.port} of {', '.join(settings.hosts)} and on {where}")

    def _sources(self, account: Account) -> Sources:
        return Sources(status=account.status, counts=account.counts)

    def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self.reader.stop()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        try:
            asyncio.run(self._serve())
        finally:
            self.reader.stop()

    async def _serve(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        # Only now: whoever has had an answer may count on an orderly end.
        self.reader.start()
        # A full disk must stop neither thread: writing the log is the business of one of its own.
        threading.Thread(target=self._write_log, name="log", daemon=True).start()
        parts = [self._server.serve(stop)] + ([self._page.serve(stop)] if self._page else [])
        await asyncio.gather(*parts)

    def _write_log(self) -> None:
        while True:
            event = self.reader.events.get()
            if not isinstance(event, Data):
                self._log(event)
