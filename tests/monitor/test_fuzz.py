"""Made-up datagrams and requests: no crash, no answer to what no client sends, no memory lost. More: `benchmarks/`."""

from __future__ import annotations

import json
import os
import random
import re
import socket
from pathlib import Path

import pytest
from daemon_process import Daemon
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Channel, Context, Malformed, Poll, Status, Types

NAMES = ("req", "ctxt", "npuTraceStatus", "npuMonitorStatus", "data")
DATAGRAMS, REQUESTS = 3000, 300
MOST_KIB = 16 * 1024
EMPTY_REPLY = bytes.fromhex("00" * 8 + "726571" + "00" * 29)

unhurried = settings(deadline=None, max_examples=60)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
numbers = st.integers(1, 2**31 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | int64 | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@unhurried
@given(st.integers(0, 3), int64, st.lists(numbers, min_size=1, max_size=fabric.MAX_PIDS))
def test_every_poll_is_read_as_it_was_written(types: int, job: int, pids: list[int]) -> None:
    datagram = fabric.encode_poll(Types(types), job, pids)
    assert len(datagram) == 40 + 16 + 4 * len(pids)
    assert fabric.decode(datagram) == Poll(Types(types), job, tuple(pids))


@unhurried
@given(st.sampled_from(Channel), st.tuples(*[int32] * 5), int64)
def test_every_status_is_read_as_it_was_written(channel: Channel, values: tuple[int, ...], job: int) -> None:
    status = Status(channel, *values, job)
    datagram = fabric.encode_status(status)
    assert len(datagram) == 72 and fabric.decode(datagram) == status


@unhurried
@given(int32, numbers, int64)
def test_every_context_is_read_as_it_was_written(device: int, pid: int, job: int) -> None:
    assert fabric.decode(fabric.encode_context(Context(device, pid, job))) == Context(device, pid, job)


@unhurried
@given(st.binary(max_size=200) | st.builds(fabric.encode, st.sampled_from(NAMES), st.binary(max_size=300)))
@example(fabric.encode("req", b"\x03\0\0\0\xff\xff\xff\x7f" + bytes(8)))
def test_any_bytes_are_a_message_or_refused(datagram: bytes) -> None:
    try:
        message = fabric.decode(datagram)
    except Malformed:
        return
    if isinstance(message, Poll):  # whoever reads a poll may rely on this
        assert message.pids[0] > 0 and len(datagram) == 56 + 4 * len(message.pids)


@unhurried
@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_every_object_of_bounded_depth_is_read_as_it_was_written(value: dict[str, object]) -> None:
    deep = rpc.depth(value) > rpc.DEEPEST
    payload = json.dumps(value).encode()
    if deep:
        with pytest.raises(rpc.BadFrame):
            rpc.parse(payload)
    else:
        assert rpc.parse(payload) == value
        assert rpc.parse(rpc.compact(value).encode("utf-8", "surrogatepass")) == value


@unhurried
@given(st.binary(max_size=300))
@example(b"\xef\xbb\xbf{}")
@example(b'{"a":1e999999}')
@example(b"9" * 5000)
def test_any_bytes_are_a_request_or_refused(payload: bytes) -> None:
    try:
        assert isinstance(rpc.parse(payload), dict)
    except rpc.BadFrame as error:
        assert "\n" not in str(error)


@unhurried
@given(st.text(max_size=300), st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**31 - 1), max_size=5))
def test_every_trace_request_is_read_as_it_was_written(config: str, job: int, pids: list[int]) -> None:
    framed = rpc.frame(rpc.trace_request(config, job, pids, 3))
    assert rpc.length(framed[:4]) == len(framed) - 4
    request = rpc.parse(framed[4:])
    assert request == {
        "fn": "setKinetOnDemandRequest",
        "config": config,
        "job_id": job,
        "pids": pids,
        "process_limit": 3,
    }


def memory(pid: int) -> int:
    """KiB in use."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def made_up(chance: random.Random) -> bytes:
    """A header as it should be and a payload by chance."""
    return fabric.encode(chance.choice(NAMES), chance.randbytes(chance.choice((0, 4, 15, 16, 20, 24, 32, 33, 200))))


def test_payloads_by_chance_get_no_answer_and_cost_no_memory(daemon: Daemon) -> None:
    chance = random.Random(11)
    stranger, client = daemon.client(), daemon.client()
    poll = fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(),))
    for number in range(2 * DATAGRAMS):
        if number == DATAGRAMS:
            assert daemon.exchange(client, poll) == EMPTY_REPLY
            before = memory(daemon.process.pid)
        stranger.sendto(made_up(chance), f"{daemon.folder}/dynolog")
    assert daemon.exchange(client, poll) == EMPTY_REPLY
    stranger.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stranger.recv(100)
    assert memory(daemon.process.pid) - before < MOST_KIB
    assert [one["pid"] for one in daemon.ask(rpc.simple_request("getStatus"))["processes"]] == [os.getpid()]


def test_requests_by_chance_are_answered_properly_or_not_at_all(daemon: Daemon) -> None:
    chance = random.Random(12)
    good = rpc.frame(rpc.trace_request("ACTIVITIES_LOG_FILE=/tmp/x.json", 0, [0], 3))
    before = memory(daemon.process.pid)
    for _ in range(REQUESTS):
        request = bytearray(good)
        for _ in range(chance.randint(1, 8)):
            request[chance.randrange(len(request))] = chance.randrange(256)
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as peer:
            peer.sendall(request[: chance.randint(0, len(request))] if chance.random() < 0.3 else request)
            peer.shutdown(socket.SHUT_WR)
            received = b""
            try:
                while piece := peer.recv(65536):
                    received += piece
            except ConnectionResetError:
                continue
        if received:
            assert rpc.length(received[:4], rpc.LARGEST_REPLY) == len(received) - 4
            assert isinstance(json.loads(received[4:]), dict)
    assert daemon.ask(rpc.simple_request("getVersion")).keys() == {"version"}
    assert memory(daemon.process.pid) - before < MOST_KIB
    assert "Traceback" not in daemon.log.read_text()
