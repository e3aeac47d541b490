"""The monitor daemon under load: how long a poll takes with many processes polling, and what rubbish does to it.

    python benchmarks/monitor.py [processes] [seconds]

Stock PyTorch waits 90 ms for an answer; what comes later is a poll late. Every process polls once a second at a moment
of its own. Two times are taken of each answer: until the daemon handed it to the kernel, which stamps it (the daemon's
doing), and until the process that asked had it (the daemon's doing, and how soon a processor was free for the process).
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
RPC_EVERY = 10
SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("qq")
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
    """A socket that can be answered, and has the kernel write on each answer when it was sent."""
    endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    Path(f"{folder}/client{number}").unlink(missing_ok=True)
    endpoint.bind(f"{folder}/client{number}")
    endpoint.connect(f"{folder}/dynolog")
    endpoint.settimeout(5)
    endpoint.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return endpoint


def exchange(endpoint: socket.socket, datagram: bytes) -> tuple[int, int]:
    """Ask once; returns the nanoseconds until the daemon sent its answer, and until it was here."""
    begin = time.time_ns()
    endpoint.send(datagram)
    _, ancillary, _, _ = endpoint.recvmsg(65536, 64)
    end = time.time_ns()
    ((_, _, stamp),) = ancillary
    seconds, nanoseconds = TIMESPEC.unpack(stamp)
    return seconds * 10**9 + nanoseconds - begin, end - begin


def poll_for(folder: str, number: int, begin_at: float, seconds: float) -> list[tuple[int, int]]:
    """Poll once a second, each process at a moment of its own; returns the times of each answer."""
    endpoint = client(folder, number)
    datagram = fabric.encode_poll(BOTH, 0, (os.getpid(), os.getppid()))
    times = []
    end = begin_at + seconds
    time.sleep(max(0.0, begin_at - time.monotonic()) + random.Random(number).random())
    while time.monotonic() < end:
        times.append(exchange(endpoint, datagram))
        time.sleep(1)
    return times


def polls(folder: str, processes: int, seconds: float) -> np.ndarray:
    """The two times of every answer, in milliseconds, of so many processes: a row for each answer."""
    readers = []
    begin_at = time.monotonic() + processes / 300  # starting processes is not what is measured
    for number in range(processes):
        reader, writer = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                os.close(reader)
                times = poll_for(folder, number, begin_at, seconds)
                os.write(writer, np.array(times, dtype=np.int64).tobytes())
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        readers.append(reader)
    pieces = []
    for reader in readers:
        with os.fdopen(reader, "rb") as stream:
            pieces.append(np.frombuffer(stream.read(), dtype=np.int64))
    failed = sum(os.wait()[1] != 0 for _ in range(processes))
    if failed:
        print(f"{failed} processes failed, or got no answer within 5 s")
    return np.concatenate(pieces).reshape(-1, 2) / 1e6


def told(what: str, times: np.ndarray) -> str:
    """Median, percentiles and maximum."""
    median, most, nearly_all = np.percentile(times, [50, 99, 99.9])
    return (
        f"  {what:32} median {median:6.2f} ms, p99 {most:6.2f} ms, p99.9 {nearly_all:6.2f} ms, "
        f"longest {times.max():6.2f} ms"
    )


def memory(pid: int) -> int:
    """Resident memory of a process, in KiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", text)
    return int(found[1]) if found else 0


def rubbish(folder: str, port: int, count: int) -> int:
    """Send mutated datagrams, and a mutated RPC for every ten; returns how many answers came to the sender."""
    chance = random.Random(1)
    endpoint = client(folder, 1_000_000)
    endpoint.settimeout(0.5)
    good = fabric.encode_poll(BOTH, 0, (1, 1))  # process 1 is somebody else: never a proper poll
    request = rpc.frame(rpc.trace_request("A=1", 0, [0], 3))
    for number in range(count):
        endpoint.send(mutated(good, chance))
        if number % RPC_EVERY == 0:
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
            for number in (1, processes):
                times = polls(folder, number, seconds)
                print(f"{number} processes, {len(times)} polls in {seconds:g} s")
                print(told("until the daemon has answered", times[:, 0]))
                print(told("until the process has the answer", times[:, 1]), flush=True)
            rubbish(folder, port, 10_000)
            before, begin = memory(daemon.pid), time.perf_counter()
            answers = rubbish(folder, port, MALFORMED)
            rate = MALFORMED / (time.perf_counter() - begin)
            print(
                f"{MALFORMED} mutated datagrams, {MALFORMED // RPC_EVERY} mutated requests: {rate:.0f} a second, "
                f"{answers} answers, memory +{memory(daemon.pid) - before} KiB, daemon "
                f"{'lives' if daemon.poll() is None else 'died'}"
            )
        finally:
            daemon.terminate()
            daemon.wait(10)


if __name__ == "__main__":
    main()
