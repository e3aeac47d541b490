"""The daemon as a whole: IPC reader, RPC listener, metrics and log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from npuscope.monitor.certificates.daemon_side import CertificateFolder, DaemonCertificates
from npuscope.monitor.daemon.addresses import DIRECTORY, KINDS, addresses
from npuscope.monitor.daemon.connections import is_loopback
from npuscope.monitor.daemon.desk import Desk
from npuscope.monitor.daemon.folders import Folders
from npuscope.monitor.daemon.ledger import Ledger
from npuscope.monitor.daemon.leftovers import sweep
from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.rpc_server import LOOPBACK, RpcServer, bind
from npuscope.monitor.daemon.status import Account
from npuscope.monitor.metrics.collection import Collection
from npuscope.monitor.metrics.settings import MetricsSettings
from npuscope.monitor.page.page import open_page
from npuscope.monitor.page.settings import PageSettings
from npuscope.monitor.page.sources import Sources
from npuscope.monitor.protocol.rpc import PORT

LOG_SECONDS = 2.0
"""How long the last lines may take to be written."""
PRIORITY = -10
SWEEP_SECONDS = 60.0


@dataclass(frozen=True)
class Settings:
    """How the daemon runs."""

    port: int = PORT
    hosts: tuple[str, ...] = LOOPBACK
    ipc: tuple[str, ...] = KINDS
    trace_folders: tuple[str, ...] = ()
    certificates: CertificateFolder | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    page: PageSettings | None = None
    metrics: MetricsSettings = field(default_factory=MetricsSettings)


class Service:
    """A daemon whose sockets are bound; `run` serves until a signal or `stop`."""

    def __init__(self, settings: Settings, log: Callable[[str], None]) -> None:
        """Raises UserError when a port or a socket cannot be had, or a certificate is of no use."""
        self._log = log
        certificates = DaemonCertificates(settings.certificates, log) if settings.certificates else None
        self._listeners = bind(settings.hosts, settings.port)
        self.port: int = self._listeners[0].getsockname()[1]
        try:
            places = addresses(settings.ipc, settings.environment)
            self._directory = settings.environment.get(DIRECTORY, "") if "directory" in settings.ipc else ""
            self.reader = Reader(places, Registry(socket.gethostname()))
            try:
                self._collection = Collection(settings.metrics, self.reader, self.reader.note)
            except BaseException:
                self.reader.stop()
                raise
        except BaseException:
            for listener in self._listeners:
                listener.close()
            raise
        self._log_writer = threading.Thread(target=self._write_log, name="log", daemon=True)
        self.store = self._collection.store
        self.prometheus = self._collection.prometheus
        account = Account(self.reader.call, Ledger(), lambda: asdict(self.reader.counts))
        desk = Desk(self.reader.call, Folders(settings.trace_folders), self.store.latest, account, self.reader.note)
        self._server = RpcServer(desk, self._listeners, certificates, self.reader.note)
        for host in settings.hosts:
            if not certificates and not is_loopback(host):
                log(f"warning: {host} is open to other hosts, which can have this user's processes traced")
        where = ", ".join(map(str, places)) or "no IPC socket"
        try:
            self._page = open_page(settings.page, self._sources(account), log)
        except BaseException:
            self._close()
            raise
        tls = " with TLS" if certificates else ""
        log(f"listening on port {self.port} of {', '.join(settings.hosts)}{tls} and on {where}")

    def _sources(self, account: Account) -> Sources:
        return Sources(account.status, self.store.history, self.prometheus.exposition, account.counts)

    def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._collection.stop()
        self.reader.stop()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        # Jobs may keep every processor busy and wait for an answer all the same. The threads to come inherit this: one
        # that holds the interpreter must not be kept from giving it up. Only root may ask to go first.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
        try:
            asyncio.run(self._serve())
        finally:
            self._collection.stop()
            self.reader.stop()
            self.reader.events.put(None)
            if self._log_writer.is_alive():
                self._log_writer.join(LOG_SECONDS)

    async def _serve(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        # Only now: whoever has had an answer may count on an orderly end.
        self.reader.start()
        # A full disk must stop neither thread: writing the log is the business of one of its own.
        self._log_writer.start()
        self._collection.start()
        parts = [self._server.serve(stop)] + ([self._page.serve(stop)] if self._page else [])
        sweeping = asyncio.create_task(self._sweep())
        await asyncio.gather(*parts)
        sweeping.cancel()

    async def _sweep(self) -> None:
        while self._directory:
            await asyncio.to_thread(sweep, self._directory)
            await asyncio.sleep(SWEEP_SECONDS)

    def _write_log(self) -> None:
        while (line := self.reader.events.get()) is not None:
            self._log(line)
