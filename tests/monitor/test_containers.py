"""A daemon in a container of its own: the kernel gives it no process numbers of those outside, only their users."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import other_user
import pytest
from daemon_process import Daemon, environment

from npuscope.monitor.daemon.registry import MOST_HIDDEN
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Channel, Status, Types

PIDS = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
USERS = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
BOTH = Types.EVENTS | Types.ACTIVITIES
REQUEST = rpc.trace_request("ACTIVITIES_LOG_FILE=/tmp/x.json", 0, [0], 3)


def possible(words: Sequence[str]) -> bool:
    try:
        return subprocess.run([*words, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


@contextmanager
def contained(folder: Path, words: Sequence[str]) -> Iterator[Daemon]:
    log = folder / "contained.log"
    command = [*words, sys.executable, "-m", "npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory"]
    with log.open("w") as stream:
        process = subprocess.Popen(command, env=environment(folder), stderr=stream, text=True)
    daemon = Daemon(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        yield daemon
    finally:
        process.kill()
        process.wait(10)
        for endpoint in daemon.clients:
            endpoint.close()


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    if not possible(PIDS):
        pytest.skip("no pid namespace can be made here")
    with contained(folder, PIDS) as daemon:
        yield daemon


def poll(pid: int) -> bytes:
    return fabric.encode_poll(BOTH, 0, (pid,))


def test_a_process_out_of_sight_is_traced_under_its_own_number(daemon: Daemon) -> None:
    client = daemon.client()
    assert daemon.exchange(client, poll(os.getpid()))[8:11] == b"req"
    (shown,) = daemon.ask(rpc.simple_request("getStatus"))["processes"]
    assert (shown["pid"], shown["container"], shown["user"]) == (os.getpid(), True, os.getuid())
    reply = daemon.ask(REQUEST)
    assert reply["activityProfilersTriggered"] == [os.getpid()]
    assert reply["processes"][0]["container"] and reply["processes"][0]["command"] == ""
    assert b"ACTIVITIES_LOG_FILE=/tmp/x.json" in daemon.exchange(client, poll(os.getpid()))


def test_two_processes_out_of_sight_are_two(daemon: Daemon) -> None:
    for number, client in enumerate((daemon.client(), daemon.client())):
        daemon.exchange(client, poll(7 + number))
        daemon.exchange(client, poll(7 + number))
    assert [one["pid"] for one in daemon.ask(rpc.simple_request("getStatus"))["processes"]] == [7, 8]


def test_a_number_that_is_not_known_inside_is_explained(daemon: Daemon) -> None:
    daemon.exchange(daemon.client(), poll(7))
    reply = daemon.ask(rpc.trace_request("ACTIVITIES_LOG_FILE=/tmp/x.json", 0, [os.getpid()], 3))
    assert reply["processesMatched"] == []
    assert "1 in containers out of the daemon's sight go by the numbers they have in there" in reply["reason"]


def test_the_plugins_reports_are_taken_from_out_of_sight(daemon: Daemon) -> None:
    client = daemon.client()
    client.sendto(fabric.encode_status(Status(Channel.TRACE, 2, pid=os.getpid())), f"{daemon.folder}/dynolog")
    daemon.exchange(client, poll(os.getpid()))
    assert daemon.ask(rpc.simple_request("getStatus"))["nputrace"] == "Ready"


@pytest.mark.skipif(not other_user.possible(), reason="only root can act for two users")
def test_users_stay_apart_out_of_sight(daemon: Daemon) -> None:
    daemon.folder.chmod(0o755)
    daemon.exchange(daemon.client(), poll(os.getpid()))
    reply = other_user.run(other_user.ASK, str(daemon.port), rpc.frame(REQUEST).hex())
    assert "belong to other users" in reply and '"processesMatched":[]' in reply
    assert other_user.run(other_user.POLL, str(daemon.folder), "20") == "req"  # what is out of sight is not seen to end
    users = {process["user"] for process in daemon.ask(rpc.simple_request("getStatus"))["processes"]}
    assert users == {os.getuid(), other_user.OTHER}


def test_one_process_out_of_sight_cannot_fill_the_registry(daemon: Daemon) -> None:
    path = f"{daemon.folder}/dynolog"
    for number in range(MOST_HIDDEN + 20):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as endpoint:
            endpoint.bind(f"\0npuscope-{os.getpid()}-{number}\0".encode())
            endpoint.sendto(poll(1000 + number), path)
            endpoint.settimeout(20 if number < MOST_HIDDEN else 0.05)
            if number < MOST_HIDDEN:
                assert endpoint.recv(100)[8:11] == b"req"
            else:
                with pytest.raises(TimeoutError):
                    endpoint.recv(100)
    shown = daemon.ask(rpc.simple_request("getStatus"))
    assert len(shown["processes"]) == MOST_HIDDEN
    assert "was turned away: too many are registered" in daemon.log.read_text()
    reply = daemon.ask(rpc.trace_request("ACTIVITIES_LOG_FILE=/tmp/x.json", 9, [0], 3))
    assert "20 polls were turned away" in reply["reason"]


@pytest.mark.skipif(not other_user.possible() or not possible(USERS), reason="no user namespace can be made here")
def test_a_user_that_cannot_be_told_is_not_answered_and_a_person_learns_it(folder: Path) -> None:
    folder.chmod(0o755)
    with contained(folder, USERS) as daemon:
        assert other_user.run(other_user.POLL, str(folder), "1") == "silence"
        assert daemon.ask(rpc.simple_request("getStatus"))["processes"] == []
        reason = daemon.ask(REQUEST)["reason"]
        assert "1 polls came from containers whose processes and users the daemon cannot tell" in reason
        assert "share the pid namespace or the user namespace" in reason
