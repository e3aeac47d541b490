"""The daemon as a whole: IPC reader, RPC listener and log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from npuscope.monitor.daemon.addresses import KINDS, addresses
from npuscope.monitor.daemon.desk import Desk
from npuscope.monitor.daemon.folders import Folders
from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.rpc_server import LOOPBACK, RpcServer, bind, is_loopback
from npuscope.monitor.protocol.fabric import Data
from npuscope.monitor.protocol.rpc import PORT

PRIORITY = -10


@dataclass(frozen=True)
class Settings:
    """How the daemon runs."""

    port: int = PORT
    hosts: tuple[str, ...] = LOOPBACK
    ipc: tuple[str, ...] = KINDS
    trace_folders: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


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
        self._server = RpcServer(Desk(self.reader.call, Folders(settings.trace_folders)), self._listeners)
        for host in settings.hosts:
            if not is_loopback(host):
                log(f"warning: {host} is open to other hosts, which can have this user's processes traced")
        where = ", ".join(map(str, places)) or "no IPC socket"
        log(f"listening on port {self.port} of {', '.join(settings.hosts)} and on {where}")

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        # Jobs may keep every processor busy and wait for an answer all the same. The threads to come inherit this: one
        # that holds the interpreter must not be kept from giving it up. Only root may ask to go first.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
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
        await self._server.serve(stop)

    def _write_log(self) -> None:
        while True:
            event = self.reader.events.get()
            if not isinstance(event, Data):
                self._log(event)
