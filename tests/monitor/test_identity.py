"""Whose datagram and whose connection it is, by the kernel's word."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon

from npuscope.monitor.daemon.connections import owner, peer_in_table, peer_user
from npuscope.monitor.daemon.folders import Folders, Refused
from npuscope.monitor.daemon.identity import Identities
from npuscope.monitor.proc import command, own_number
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Types

NOBODY = 65534
SEND = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as connection:
    connection.sendall(bytes.fromhex(sys.argv[2]))
    sys.stdout.buffer.write(connection.recv(65536))
"""


def test_a_process_knows_its_number() -> None:
    assert own_number(os.getpid()) == os.getpid()
    assert own_number(2**22 + 1) is None
    assert Identities().holds(os.getpid(), os.getpid(), b"")
    assert not Identities().holds(os.getpid(), os.getppid(), b"")
    assert not Identities().holds(0, os.getpid(), b"")
    assert "python" in command(os.getpid())


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def can_be_nobody() -> bool:
    """Whether there is a Python that another user can run."""
    try:
        words = ["/usr/bin/env", "python3", "-c", ""]
        return subprocess.run(words, capture_output=True, user=NOBODY, group=NOBODY, cwd="/").returncode == 0
    except (OSError, PermissionError):
        return False


@pytest.mark.parametrize(("listen", "connect"), [("127.0.0.1", "127.0.0.1"), ("::", "::1"), ("::", "127.0.0.1")])
def test_the_user_at_the_other_end(listen: str, connect: str) -> None:
    if ":" in listen and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.socket(socket.AF_INET6 if ":" in listen else socket.AF_INET) as server:
        if ":" in listen:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((listen, 0))
        server.listen()
        client = socket.create_connection((connect, server.getsockname()[1]))
        connection, peer = server.accept()
        with connection:
            here = connection.getsockname()[:2]
            for user_of in (owner, peer_in_table, peer_user):
                assert user_of(peer[:2], here) == os.getuid()
            client.close()  # a closed socket is nobody's, and least of all root's
            for user_of in (owner, peer_in_table, peer_user):
                assert user_of(peer[:2], here) is None
            server_end = server.getsockname()[:2]
            assert owner(server_end, ("127.0.0.1", 9)) is None  # a socket that listens is no connection


@pytest.mark.skipif(os.getuid() != 0 or not can_be_nobody(), reason="only root can act for two users")
def test_another_users_request_does_not_reach_a_process(daemon: Daemon) -> None:
    poll = fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(),))
    daemon.exchange(daemon.client(), poll)
    request = rpc.frame(rpc.trace_request("ACTIVITIES_LOG_FILE=/tmp/x.json", 0, [0], 3))
    words = ["/usr/bin/env", "python3", "-c", SEND, str(daemon.port), request.hex()]
    done = subprocess.run(words, capture_output=True, user=NOBODY, group=NOBODY, cwd="/", timeout=20)
    assert b"belong to other users" in done.stdout and b'"processesMatched":[]' in done.stdout, done.stderr
    mine = subprocess.run([sys.executable, *words[2:]], capture_output=True, timeout=20)
    assert f'"activityProfilersTriggered":[{os.getpid()}]'.encode() in mine.stdout


CONTAINED = """
import os, socket, struct, sys
assert os.getpid() < 10
endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
endpoint.bind(sys.argv[1] + "/contained")
endpoint.settimeout(3)
for claimed in (os.getpid() + 1, os.getpid()):
    endpoint.sendto(struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, claimed), sys.argv[1] + "/dynolog")
print(endpoint.recv(100).hex(), os.getpid())
endpoint.settimeout(0.3)
try:
    print(endpoint.recv(100))
except TimeoutError:
    pass
sys.stdout.flush()
sys.stdin.read()  # a process that has ended is not shown
"""
UNSHARE = ["unshare", "--pid", "--fork"]


def can_contain() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_contain(), reason="no pid namespace can be made here")
def test_a_process_in_a_container_is_known_by_its_own_number(daemon: Daemon) -> None:
    words = [*UNSHARE, sys.executable, "-c", CONTAINED, str(daemon.folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        answer, pid = process.stdout.readline().split()
        assert answer == "00" * 8 + "726571" + "00" * 29
        assert [process["pid"] for process in daemon.ask(rpc.simple_request("getStatus"))["processes"]] == [int(pid)]
        process.stdin.close()
        process.wait(20)
    assert daemon.ask(rpc.simple_request("getStatus"))["processes"] == []


def test_links_do_not_lead_out_of_the_allowed_folders(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "out").symlink_to("/etc")
    folders = Folders((str(inside),))
    folders.check(f"{inside}/x.json", os.getuid())
    for path in (f"{inside}/out/x.json", f"{tmp_path}/x.json", f"{inside}side/x.json", "/etc/x.json"):
        with pytest.raises(Refused, match="below"):
            folders.check(path, os.getuid())
