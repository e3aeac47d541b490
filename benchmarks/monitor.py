"""The monitor daemon under load: how long a poll takes with many processes polling, and what rubbish does to it.

    python benchmarks/monitor.py [processes] [seconds]

Stock PyTorch waits 90 ms for an answer; what comes later is a poll late.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Types

MALFORMED = 100_000
BOTH = Types.EVENTS | Types.ACTIVITIES


def start(folder: str) -> tuple[subprocess.Popen[bytes], int]:
    """A daemon that listens in a folder of its own, and its port."""
    log = Path(folder, "log")
    words = ["-m", "npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", "--log-file", str(log)]
    daemon = subprocess.Popen([sys.executable, *words], env=os.environ | {"KINETO_IPC_SOCKET_DIR": folder})
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if log.exists() and (found := re.search(r"port (\d+)", log.read_text())):
            return daemon, int(found[1])
        time.sleep(0.05)
    raise SystemExit("the daemon did not start")


def client(folder: str, number: int) -> socket.socket:
    """A socket that can be answered."""
    endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    Path(f"{folder}/client{number}").unlink(missing_ok=True)
    endpoint.bind(f"{folder}/client{number}")
    endpoint.connect(f"{folder}/dynolog")
    endpoint.settimeout(5)
    return endpoint


def poll_for(folder: str, number: int, begin_at: float, seconds: float) -> list[float]:
    """Poll once a second, each process at a moment of its own; returns the seconds that each answer took."""
    endpoint = client(folder, number)
    datagram = fabric.encode_poll(BOTH, 0, (os.getpid(), os.getppid()))
    times = []
    end = begin_at + seconds
    time.sleep(max(0.0, begin_at - time.monotonic()) + random.Random(number).random())
    while time.monotonic() < end:
        begin = time.perf_counter()
        endpoint.send(datagram)
        endpoint.recv(65536)
        times.append(time.perf_counter() - begin)
        time.sleep(1)
    return times


def polls(folder: str, processes: int, seconds: float) -> np.ndarray:
    """The time of every answer, in milliseconds, of so many processes."""
    readers = []
    begin_at = time.monotonic() + processes / 300  # starting processes is not what is measured
    for number in range(processes):
        reader, writer = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                os.close(reader)
                times = poll_for(folder, number, begin_at, seconds)
                os.write(writer, struct.pack(f"{len(times)}d", *times))
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        readers.append(reader)
    pieces = []
    for reader in readers:
        with os.fdopen(reader, "rb") as stream:
            pieces.append(np.frombuffer(stream.read()))
    failed = sum(os.wait()[1] != 0 for _ in range(processes))
    if failed:
        print(f"{failed} processes failed, or got no answer within 5 s")
    return np.concatenate(pieces) * 1000


def memory(pid: int) -> int:
    """Resident memory of a process, in KiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", text)
    return int(found[1]) if found else 0


def rubbish(folder: str, port: int, count: int) -> int:
    """Send mutated datagrams, and a mutated RPC for every hundred; returns how many answers came to the sender."""
    chance = random.Random(1)
    endpoint = client(folder, 1_000_000)
    endpoint.settimeout(0.5)
    good = fabric.encode_poll(BOTH, 0, (1, 1))  # process 1 is somebody else: never a proper poll
    request = rpc.frame(rpc.trace_request("A=1", 0, [0], 3))
    for number in range(count):
        endpoint.send(mutated(good, chance))
        if number % 100 == 0:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(mutated(request, chance))
    answers = 0
    with contextlib.suppress(TimeoutError):
        while endpoint.recv(65536):
            answers += 1
    return answers


def mutated(message: bytes, chance: random.Random) -> bytes:
    """A message with some bytes changed, sometimes cut."""
    changed = bytearray(message)
    for _ in range(chance.randint(0, 8)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed[: chance.randint(0, len(changed))] if chance.random() < 0.2 else changed)


def main() -> None:
    """Print the figures."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        daemon, port = start(folder)
        try:
            alone = polls(folder, 1, 3)
            times = polls(folder, processes, seconds)
            print(f"1 process: median {np.median(alone):.2f} ms")
            print(
                f"{processes} processes, {len(times)} polls in {seconds:g} s: median {np.median(times):.2f} ms, "
                f"p99 {np.percentile(times, 99):.2f} ms, longest {times.max():.2f} ms"
            )
            rubbish(folder, port, 1000)
            before, begin = memory(daemon.pid), time.perf_counter()
            answers = rubbish(folder, port, MALFORMED)
            rate = MALFORMED / (time.perf_counter() - begin)
            print(
                f"{MALFORMED} mutated datagrams, {MALFORMED // 100} mutated requests: {rate:.0f} a second, "
                f"{answers} answers, memory +{memory(daemon.pid) - before} KiB, daemon "
                f"{'lives' if daemon.poll() is None else 'died'}"
            )
        finally:
            daemon.terminate()
            daemon.wait(10)


if __name__ == "__main__":
    main()
