"""Processes of another user, for tests that run as root."""

from __future__ import annotations

import os
import subprocess

OTHER, THIRD = 54321, 54322
"""Not 65534, which the kernel also names when it cannot name the real one."""

POLL = """
import os, socket, struct, sys
endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
endpoint.bind(b"\\0npuscope-" + str(os.getpid()).encode() + b"\\0")
endpoint.sendto(struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, os.getpid()), sys.argv[1] + "/dynolog")
endpoint.settimeout(float(sys.argv[2]))
try:
    print(endpoint.recv(100)[8:11].decode(), flush=True)
except TimeoutError:
    print("silence", flush=True)
sys.stdin.read()
"""
ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as connection:
    connection.sendall(bytes.fromhex(sys.argv[2]))
    received = b""
    while piece := connection.recv(65536):
        received += piece
print(received[4:].decode())
"""


def command(script: str, *words: str) -> list[str]:
    """Runs a script with a Python that everybody can run."""
    return ["/usr/bin/env", "python3", "-c", script, *words]


def run(script: str, *words: str, user: int = OTHER) -> str:
    """What a script of the user prints."""
    done = subprocess.run(
        command(script, *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        timeout=60,
    )
    return done.stdout.strip()


def possible() -> bool:
    """Whether another user's processes can be started, and have a Python."""
    try:
        return os.getuid() == 0 and run("print(1)") == "1"
    except OSError:
        return False
