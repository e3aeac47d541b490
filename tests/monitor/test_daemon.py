"""The daemon with real sockets: answers to the byte, and nothing that a stranger sends stops it."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_process import Daemon, environment, python

from npuscope import __version__
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Context, Poll, Types

BOTH = Types.EVENTS | Types.ACTIVITIES
EMPTY_REPLY = bytes.fromhex("00" * 8 + "726571" + "00" * 29)


def poll(types: Types = BOTH, pid: int | None = None) -> bytes:
    return fabric.encode_poll(types, 0, (pid or os.getpid(), os.getppid()))


def test_a_poll_registers_and_brings_the_work_that_dyno_asked_for(daemon: Daemon) -> None:
    client = daemon.client()
    assert daemon.exchange(client, poll()) == EMPTY_REPLY
    done = daemon.dyno("gputrace", "--log-file", f"{daemon.folder}/x.json", "--pids", str(os.getpid()))
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:2] == ["Kineto config = ", f"ACTIVITIES_LOG_FILE={daemon.folder}/x.json"]
    length = next(line for line in lines if line.startswith("response length"))
    reply = next(line for line in lines if line.startswith("response = ")).removeprefix("response = ")
    assert length == f"response length = {len(reply)}"
    assert lines[lines.index(f"response = {reply}") + 1 :][:4] == [
        "",
        "Matched 1 processes",
        "Trace output files will be written to:",
        f"    {daemon.folder}/x_{os.getpid()}.json",
    ]
    answer = daemon.exchange(client, poll())
    header, config = answer[:40], answer[40:].decode()
    assert header == len(config).to_bytes(8, "little") + b"req" + bytes(29)
    assert re.fullmatch(r"\n    ACTIVITIES_LOG_FILE=.*\n    REQUEST_TRACE_ID=\d+\n", config, re.DOTALL)
    assert daemon.exchange(client, poll()) == EMPTY_REPLY


def test_a_context_is_answered_with_a_count(daemon: Daemon) -> None:
    answer = daemon.exchange(daemon.client(), fabric.encode_context(Context(2, os.getpid(), 7)))
    assert answer == bytes.fromhex("0400000000000000" + "63747874" + "00" * 28 + "01000000")


def test_a_process_speaks_for_itself_only(daemon: Daemon) -> None:
    client = daemon.client()
    client.sendto(poll(pid=os.getppid()), f"{daemon.folder}/dynolog")
    client.settimeout(0.5)
    with pytest.raises(TimeoutError):
        client.recv(100)
    assert daemon.ask(rpc.simple_request("getStatus"))["processes"] == []


def test_mutated_datagrams_get_no_answer_and_stop_nothing(daemon: Daemon) -> None:
    chance = random.Random(7)
    stranger, client = daemon.client(), daemon.client()
    sent = 0
    while sent < 3000:
        datagram = bytearray(chance.choice((poll(), fabric.encode_context(Context(0, os.getpid(), 0)))))
        for _ in range(chance.randint(1, 8)):
            datagram[chance.randrange(len(datagram))] = chance.randrange(256)
        try:
            message = fabric.decode(bytes(datagram))
        except fabric.Malformed:
            pass
        else:
            if (message.pids[0] if isinstance(message, Poll) else getattr(message, "pid", 0)) == os.getpid():
                continue  # still a proper message of ours
        stranger.sendto(bytes(datagram), f"{daemon.folder}/dynolog")
        sent += 1
    assert daemon.exchange(client, poll()) == EMPTY_REPLY
    stranger.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stranger.recv(100)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('{"fn":"getVersion"}', {"version": __version__}),
        ('{"fn":"setKinetOnDemandRequest"}', {"status": "failed"}),
        ('{"fn":"setKinetOnDemandRequest","config":"A=1"}', {"status": "failed"}),
        ('{"fn":"dcgmProfResume"}', {"status": False}),
    ],
)
def test_simple_requests(daemon: Daemon, text: str, reply: object) -> None:
    assert daemon.ask(text) == reply


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        '{"fn":"nonsense"}',
        "{}",
        '{"fn":{}}',
        '{"fn":"setKinetOnDemandRequest","config":1,"pids":[0]}',
        '{"fn":"setKinetOnDemandRequest","config":"A=1","pids":0}',
        '{"fn":"setKinetOnDemandRequest","config":"A=1","pids":["0"]}',
        '{"fn":"setKinetOnDemandRequest","config":"A=1","pids":[0],"job_id":"7"}',
        '{"fn":"setKinetOnDemandRequest","config":"A=1","pids":[0],"job_id":' + "9" * 40 + "}",
    ],
)
def test_bad_requests_are_answered(daemon: Daemon, text: str) -> None:
    assert daemon.ask(text)["status"].startswith("failed with exception = ")
    assert "json.exception" in daemon.ask(text)["status"]


def test_status_is_the_union_of_both_dialects(daemon: Daemon) -> None:
    reply = daemon.ask(rpc.simple_request("getStatus"), "::1" if socket.has_ipv6 else "127.0.0.1")
    assert reply["status"] == 1 and reply["nputrace"] == reply["npumonitor"] == "Uninitialized"
    assert reply["current_step"] == -1
    done = daemon.dyno("status")
    assert done.returncode == 0 and done.stdout.startswith("response length = ")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("ACTIVITIES_LOG_FILE=/etc/cron.d/x.json", "traces may be written below"),
        ("ACTIVITIES_LOG_FILE=/tmp/../etc/x.json", "without '..'"),
        ("ACTIVITIES_LOG_FILE=x.json", "absolute"),
        ("ACTIVITIES_LOG_FILE=/tmp/a=b.json", "not one key and one value"),
        ("ACTIVITIES_LOG_FILE=/tmp/no-such-folder/x.json", "does not exist"),
        ("ACTIVITIES_LOG_FILE=/tmp/x\0.json", "control characters"),
        ("ACTIVITIES_LOG_FILE=/tmp/\udc00.json", "control characters"),
        ("ACTIVITIES_LOG_FILE=/tmp/x.json\nPROFILE_START_TIME=1", "10 seconds ago"),
        ("ACTIVITIES_DURATION_MSECS=5", "no trace file"),
        ("NPU_MONITOR_START=true\nNPU_MONITOR_LOG_FILE=/etc", "traces may be written below"),
    ],
)
def test_what_would_fail_in_silence_is_refused_in_words(daemon: Daemon, config: str, reason: str) -> None:
    client = daemon.client()
    daemon.exchange(client, poll())
    request = json.dumps({"fn": "setKinetOnDemandRequest", "config": config, "pids": [0]})
    reply = daemon.ask(request)
    assert reply["processesMatched"] == reply["activityProfilersTriggered"] == []
    assert reply["refused"] and reason in reply["reason"]
    assert daemon.exchange(client, poll()) == EMPTY_REPLY


def test_slow_and_half_open_peers_do_not_hold_others_up(daemon: Daemon) -> None:
    idle = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(20)]
    idle[0].sendall(b"\x12\0")
    idle[1].sendall(rpc.LENGTH.pack(1000) + b"{")
    begin = time.monotonic()
    assert daemon.ask(rpc.simple_request("getVersion"))["version"] == __version__
    assert time.monotonic() - begin < 2
    idle[1].settimeout(8)
    assert idle[1].recv(10) == b""  # let go after three seconds
    for connection in idle:
        connection.close()


@pytest.mark.parametrize("header", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x7f"])
def test_lengths_out_of_bounds_are_answered(daemon: Daemon, header: bytes) -> None:
    assert daemon.raw(header)[4:].startswith(b'{"status":"failed with exception = ')


def test_no_process_is_explained_and_can_fail(daemon: Daemon) -> None:
    words = ("gputrace", "--log-file", "/tmp/x.json")
    done = daemon.dyno(*words)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "No processes were matched, please check --job-id or --pids flags"
    assert "KINETO_USE_DAEMON=1" in done.stderr and len(done.stderr.splitlines()) == 1
    assert daemon.dyno(*words, "--fail-on-no-process").returncode == 1


def test_a_refused_request_is_one_line_and_exit_1(daemon: Daemon) -> None:
    done = daemon.dyno("gputrace", "--log-file", "/etc/x.json")
    assert done.returncode == 1 and done.stderr.startswith("dyno: traces may be written below")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["gputrace", "--log-file", "/tmp/x.json", "--pids", "1,x"], 2, "process numbers"),
        (["gputrace", "--log-file", "/tmp/x.json", "--with-stack-please"], 2, "unexpected argument"),
        (["nonsense"], 2, "unrecognized subcommand"),
        (
            ["gputrace", "--log-file", "/tmp/x.json", "--iterations", "2", "--profile-memory"],
            101,
            "Please only use -profile-memory with duration mode, i.e. set --duration-ms",
        ),
    ],
)
def test_wrong_words(daemon: Daemon, words: list[str], code: int, text: str) -> None:
    done = daemon.dyno(*words)
    assert done.returncode == code and text in done.stderr and len(done.stderr.splitlines()) == 1


def test_no_daemon_is_one_line_and_exit_101(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = python(["npuscope.cli.dyno", "--hostname", "127.0.0.1", "--port", str(port), "status"], environment(folder))
    assert done.returncode == 101
    assert done.stderr.startswith("dyno: Couldn't connect to the server") and len(done.stderr.splitlines()) == 1


def test_a_port_in_use_is_one_line(daemon: Daemon, folder: Path) -> None:
    done = python(["npuscope", "monitor", "daemon", "--port", str(daemon.port)], environment(folder))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"port {daemon.port} of 127.0.0.1 is in use" in done.stderr


def second(folder: Path, *words: str) -> str:
    done = python(["npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", *words], environment(folder))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_second_daemon_in_a_folder_is_refused(daemon: Daemon) -> None:
    assert "another daemon runs" in second(daemon.folder)
    assert daemon.exchange(daemon.client(), poll()) == EMPTY_REPLY


def test_a_file_in_the_way_is_not_touched(folder: Path) -> None:
    (folder / "dynolog").write_text("mine")
    assert "is in the way and is not a socket" in second(folder)
    assert (folder / "dynolog").read_text() == "mine"


def test_folders_that_cannot_be_written(folder: Path) -> None:
    assert "does not exist" in second(folder, "--trace-dir", str(folder / "none"))
    assert "cannot write the log" in second(folder, "--log-file", str(folder / "none" / "log"))


def test_a_full_disk_costs_the_log_and_nothing_else(start: Callable[..., Daemon]) -> None:
    daemon = start("--log-file", "/dev/full", wait=False)
    path, deadline = daemon.folder / "dynolog", time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # from the socket's file to the thread that reads it
    client = daemon.client()
    assert daemon.exchange(client, poll()) == EMPTY_REPLY
    assert daemon.exchange(client, poll()) == EMPTY_REPLY
    assert daemon.process.poll() is None


def test_after_a_kill_the_socket_is_taken_over_and_at_the_end_it_is_gone(start: Callable[..., Daemon]) -> None:
    first = start()
    first.process.send_signal(signal.SIGKILL)
    first.process.wait(10)
    assert (first.folder / "dynolog").exists()
    again = start()
    assert again.exchange(again.client(), poll()) == EMPTY_REPLY
    again.process.terminate()
    assert again.process.wait(10) == 0
    assert not (again.folder / "dynolog").exists()


def test_sockets_that_processes_left_behind_are_removed(folder: Path, start: Callable[..., Daemon]) -> None:
    kept = {folder / "dynoconfigclient-file", folder / "dynoconfigclient-alive", folder / "other"}
    left = folder / "dynoconfigclient-left"
    (folder / "dynoconfigclient-file").touch()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as alive:
        alive.bind(str(folder / "dynoconfigclient-alive"))
        for path in (left, folder / "other"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ended:
                ended.bind(str(path))
        for path in (*kept, left):
            os.utime(path, (time.time() - 100, time.time() - 100))
        start()
        deadline = time.monotonic() + 30
        while left.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left.exists() and all(path.exists() for path in kept)


def test_the_socket_is_open_to_all_users(daemon: Daemon) -> None:
    assert (daemon.folder / "dynolog").stat().st_mode & 0o777 == 0o666
