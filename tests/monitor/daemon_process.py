"""A real daemon in a process of its own, on a free port and in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npuscope.monitor.protocol import fabric, rpc

SOURCE = Path(__file__).resolve().parents[2] / "src"
START_SECONDS = 60.0


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What a process needs to meet the daemon of `folder`."""
    return os.environ | {"KINETO_IPC_SOCKET_DIR": str(folder), "PYTHONPATH": str(SOURCE)} | more


def python(words: Sequence[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `python -m <words>` to its end."""
    return subprocess.run([sys.executable, "-m", *words], env=env, text=True, capture_output=True, timeout=60)


@dataclass
class Daemon:
    """A running daemon."""

    folder: Path
    process: subprocess.Popen[str]
    log: Path
    port: int = 0
    clients: list[socket.socket] = field(default_factory=list)

    def wait_until_it_listens(self) -> None:
        """Learn the port from the log."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := re.search(r"listening on port (\d+)", self.log.read_text()):
                self.port = int(found[1])
                return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError("the daemon did not start")

    def dyno(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `dyno` against it."""
        return python(["npuscope.cli.dyno", "--port", str(self.port), *words], environment(self.folder))

    def raw(self, message: bytes, host: str = "127.0.0.1") -> bytes:
        """Send bytes to the RPC port; returns everything that comes back."""
        with socket.create_connection((host, self.port), timeout=10) as connection:
            connection.sendall(message)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return received

    def ask(self, text: str, host: str = "127.0.0.1") -> Any:
        """The reply to an RPC."""
        received = self.raw(rpc.frame(text), host)
        assert rpc.length(received[:4], 1 << 30) == len(received) - 4
        return json.loads(received[4:])

    def client(self) -> socket.socket:
        """A socket as a training process has it."""
        endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        endpoint.bind(f"{self.folder}/client{len(self.clients)}")
        endpoint.settimeout(10)
        self.clients.append(endpoint)
        return endpoint

    def exchange(self, endpoint: socket.socket, datagram: bytes) -> bytes:
        """Send a datagram to the daemon; returns its answer."""
        endpoint.sendto(datagram, f"{self.folder}/{fabric.FILE_NAME}")
        answer, source = endpoint.recvfrom(65536)
        assert source == f"{self.folder}/{fabric.FILE_NAME}"
        return answer
