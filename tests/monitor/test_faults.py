"""What goes wrong on a node: each fault is one clear line for a person, and the daemon goes on serving everybody else."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import other_user
import pytest
from daemon_process import Daemon, environment, python

from npuscope import __version__
from npuscope.monitor import proc
from npuscope.monitor.daemon import connections, identity, registry, unmatched
from npuscope.monitor.daemon.addresses import Address
from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.rpc_server import MOST_CONNECTIONS
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Channel, Dialect, Status, Types

BOTH = Types.EVENTS | Types.ACTIVITIES
EMPTY_REPLY = bytes.fromhex("00" * 8 + "726571" + "00" * 29)
POLL = fabric.encode_poll(BOTH, 0, (os.getpid(), os.getppid()))
VERSION = rpc.simple_request("getVersion")
needs_root = pytest.mark.skipif(not other_user.possible(), reason="only root can act for two users")


def can_mount() -> bool:
    words = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        return os.getuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        return False


needs_mount = pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")


def asked(daemon: Daemon, log_file: str, pids: tuple[int, ...] = (0,)) -> Any:
    return daemon.ask(rpc.trace_request(f"ACTIVITIES_LOG_FILE={log_file}", 0, pids, 3))


def refused_start(folder: Path, *words: str) -> str:
    """The one line with which a daemon does not start."""
    done = python(["npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", *words], environment(folder))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


# Peers on the network.


@contextlib.contextmanager
def polling(daemon: Daemon) -> Iterator[list[float]]:
    """Polls all the while; the seconds that each answer took."""
    client, stop, times = daemon.client(), threading.Event(), list[float]()

    def work() -> None:
        while not stop.is_set():
            begin = time.monotonic()
            assert daemon.exchange(client, POLL) == EMPTY_REPLY
            times.append(time.monotonic() - begin)
            time.sleep(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield times
    finally:
        stop.set()
        thread.join(20)


def test_a_crowd_of_idle_peers_keeps_nobody_out(daemon: Daemon) -> None:
    with contextlib.ExitStack() as open_connections, polling(daemon) as times:
        for number in range(MOST_CONNECTIONS + 150):
            peer = open_connections.enter_context(socket.create_connection(("127.0.0.1", daemon.port), timeout=20))
            if number % 3 == 0:
                peer.sendall(rpc.LENGTH.pack(100))  # a header and no more
            elif number % 3 == 1:
                peer.sendall(rpc.LENGTH.pack(100)[:2])
            if number % 50 == 49:
                assert daemon.ask(VERSION) == {"version": __version__}
        done = daemon.dyno("version")
        assert done.returncode == 0 and __version__ in done.stdout
        assert times and max(times) < 5


def test_a_request_that_comes_byte_by_byte_is_answered(daemon: Daemon) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as peer, polling(daemon) as times:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in rpc.frame(VERSION):
            peer.sendall(bytes([byte]))
            time.sleep(0.01)
        assert __version__ in peer.recv(65536)[4:].decode()
        assert times and max(times) < 5


def test_peers_that_leave_before_their_answer_cost_nothing(daemon: Daemon) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as peer:
            peer.sendall(rpc.frame(VERSION))  # and leaves at once
    assert daemon.ask(VERSION) == {"version": __version__}


def test_an_end_amid_requests_is_an_orderly_one(daemon: Daemon) -> None:
    status = rpc.frame(rpc.simple_request("getStatus"))
    with contextlib.ExitStack() as open_connections:
        for number in range(120):
            peer = open_connections.enter_context(socket.create_connection(("127.0.0.1", daemon.port), timeout=20))
            peer.sendall(status if number % 2 else status[:3])
        daemon.process.terminate()
        assert daemon.process.wait(20) == 0
    log = daemon.log.read_text()
    assert "Traceback" not in log and "Exception" not in log


# Disks and folders.


@needs_mount
@pytest.mark.parametrize(
    ("options", "reason"),
    [("size=64k", "the disk of the trace file is full"), ("size=8m,ro", "is on a read-only file system")],
)
def test_a_disk_that_takes_no_trace_is_named(daemon: Daemon, options: str, reason: str) -> None:
    place = daemon.folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)
    try:
        client = daemon.client()
        assert daemon.exchange(client, POLL) == EMPTY_REPLY
        done = daemon.dyno("gputrace", "--log-file", f"{place}/x.json")
        assert done.returncode == 1 and reason in done.stderr and len(done.stderr.splitlines()) == 1
        assert daemon.exchange(client, POLL) == EMPTY_REPLY  # nothing was sent that could only fail
        reply = asked(daemon, f"{daemon.folder}/x.json")
        assert reply["activityProfilersTriggered"] == [os.getpid()]
    finally:
        subprocess.run(["umount", place], check=True)


@needs_mount
def test_a_log_on_a_full_disk_costs_lines_and_nothing_else(start: Callable[..., Daemon], folder: Path) -> None:
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", place], check=True)
    try:
        daemon = start("--log-file", str(place / "log"), wait=False)
        daemon.log = place / "log"
        deadline = time.monotonic() + 60
        while not daemon.log.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        daemon.wait_until_it_listens()
        for number in range(400):  # a line each, for a process that is not who it says
            daemon.client().sendto(fabric.encode_poll(BOTH, number, (1,)), f"{folder}/dynolog")
        (place / "filler").write_bytes(b"")
        with contextlib.suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        assert daemon.exchange(daemon.client(), POLL) == EMPTY_REPLY
        assert daemon.ask(VERSION) == {"version": __version__}
        daemon.process.terminate()
        assert daemon.process.wait(20) == 0
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@needs_root
def test_a_folder_that_its_own_user_may_not_write_to(folder: Path) -> None:
    """As root nothing is closed, so another user looks."""
    folder.chmod(0o755)
    locked = folder / "locked"
    locked.mkdir(mode=0o755)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from npuscope.monitor.daemon.folders import Folders, Refused\n"
        "import os\n"
        "try:\n    Folders((sys.argv[2],)).check(sys.argv[2] + '/locked/x.json', os.getuid())\n"
        "except Refused as error:\n    print(error)"
    )
    source = environment(folder)["PYTHONPATH"]
    if other_user.run("import os, sys; print(os.access(sys.argv[1], os.R_OK))", source) != "True":
        pytest.skip("another user cannot read the source")
    assert "is not writable" in other_user.run(script, source, str(folder))


# Sockets.


def test_what_is_in_the_way_of_the_socket_is_left_alone(folder: Path) -> None:
    path = folder / "dynolog"
    path.symlink_to("/dev/null")
    assert "is in the way and is not a socket" in refused_start(folder)
    assert path.is_symlink()
    path.unlink()
    path.mkdir()
    assert "is in the way and is not a socket" in refused_start(folder)
    assert path.is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_another_users_socket_in_the_way_is_left_alone(folder: Path) -> None:
    path = folder / "dynolog"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left_behind:
        left_behind.bind(str(path))
    os.chown(path, other_user.OTHER, other_user.OTHER)
    assert "is in the way and belongs to another user" in refused_start(folder)
    assert path.is_socket()


def test_a_folder_for_the_socket_that_is_not_there(folder: Path) -> None:
    line = refused_start(folder / "none")
    assert "cannot listen on the IPC socket" in line and "No such file or directory" in line


def test_a_folder_whose_name_is_too_long(folder: Path) -> None:
    deep = folder / ("x" * 110)
    deep.mkdir()
    assert "longer than 106 bytes" in refused_start(deep)


def test_a_socket_that_is_taken_away_does_not_end_the_daemon(daemon: Daemon) -> None:
    client = daemon.client()
    assert daemon.exchange(client, POLL) == EMPTY_REPLY
    (daemon.folder / "dynolog").unlink()
    assert daemon.ask(VERSION) == {"version": __version__}
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0


# Other users.


@needs_root
def test_users_reach_their_own_processes_only_and_root_reaches_all(daemon: Daemon) -> None:
    daemon.folder.chmod(0o755)
    process = subprocess.Popen(
        other_user.command(other_user.POLL, str(daemon.folder), "20"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=other_user.OTHER,
        group=other_user.OTHER,
        extra_groups=[],
        cwd="/",
    )
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == "req\n"
        request = rpc.frame(rpc.trace_request("ACTIVITIES_LOG_FILE=/tmp/x.json", 0, [0], 3)).hex()
        third = json.loads(other_user.run(other_user.ASK, str(daemon.port), request, user=other_user.THIRD))
        assert third["processesMatched"] == [] and "belong to other users" in third["reason"]
        own = json.loads(other_user.run(other_user.ASK, str(daemon.port), request))
        assert own["activityProfilersTriggered"] == [process.pid]
        assert asked(daemon, "/tmp/x.json")["activityProfilersBusy"] == 1  # root sees it too, and that it has work
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


@needs_root
def test_another_user_does_not_speak_for_the_vendors_plugin(daemon: Daemon) -> None:
    daemon.folder.chmod(0o755)
    status = fabric.encode_status(Status(Channel.MONITOR, 1, pid=1))
    report = (
        "import os, socket, sys\n"
        "datagram = bytes.fromhex(sys.argv[2])\n"
        "own = os.getpid().to_bytes(4, 'little')\n"
        "with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as endpoint:\n"
        "    endpoint.sendto(datagram[:56] + own + datagram[60:], sys.argv[1] + '/dynolog')\n"
        "print('sent')"
    )
    assert other_user.run(report, str(daemon.folder), status.hex()) == "sent"
    assert daemon.exchange(daemon.client(), POLL) == EMPTY_REPLY
    assert daemon.ask(rpc.simple_request("getStatus"))["npumonitor"] == "Uninitialized"
    assert "not this daemon's user" in daemon.log.read_text()


# Too many, and too few.


def test_a_full_registry_turns_newcomers_away_in_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (registry, unmatched):
        monkeypatch.setattr(module, "MOST_PROCESSES", 1)
    reader = Reader([Address(f"{folder}/dynolog".encode(), Dialect.KINETO, 0o666)], Registry())
    reader.start()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.bind(f"{folder}/client")
            client.settimeout(20)
            client.sendto(POLL, f"{folder}/dynolog")
            assert client.recv(100) == EMPTY_REPLY
            words = other_user.command(other_user.POLL, str(folder), "1")
            late = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            assert late.stdout == "silence\n"
            client.sendto(POLL, f"{folder}/dynolog")
            assert client.recv(100) == EMPTY_REPLY
        lines = [str(reader.events.get(timeout=5)) for _ in range(reader.events.qsize())]
        assert any("was turned away: too many are registered" in line for line in lines)
        order = Order("A=1", 9, (0,), 3, None, Dialect.KINETO)
        said = reader.call(lambda known: known.trigger(order, time.time())).reason or ""
        assert "1 polls were turned away: the daemon keeps at most 1 processes" in said
    finally:
        reader.stop()


def test_processes_that_vanish_leave_no_trace_and_no_trouble(daemon: Daemon) -> None:
    daemon.folder.chmod(0o755)
    words = other_user.command(other_user.POLL, str(daemon.folder), "20")
    for _ in range(5):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.stdout == "req\n"
    assert daemon.ask(rpc.simple_request("getStatus"))["processes"] == []
    assert asked(daemon, "/tmp/x.json")["processesMatched"] == []


def test_what_proc_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (proc, identity, connections):
        monkeypatch.setattr(module, "PROC", tmp_path)
    assert proc.command(os.getpid()) == "" and proc.environment(os.getpid()) is None and proc.rank(None) is None
    assert proc.own_number(os.getpid()) is None and proc.user_of(os.getpid()) is None
    assert connections.peer_in_table(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert not proc.gone(os.getpid()) and not proc.gone(0) and proc.gone(2**22 + 1)
    assert identity.Identities().holds(os.getpid(), os.getpid(), b"")
    assert identity.overflow_user() == 65534
