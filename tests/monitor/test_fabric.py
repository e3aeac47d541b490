"""The IPC fabric's datagrams, byte by byte, and what is not one."""

from __future__ import annotations

import random

import pytest

from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.fabric import Channel, Context, Data, Malformed, Poll, Status, Types

CONTEXT = bytes.fromhex("1000000000000000" + "63747874" + "00" * 28 + "02000000" + "92100000" + "0700000000000000")
CONTEXT_REPLY = bytes.fromhex("0400000000000000" + "63747874" + "00" * 28 + "01000000")
POLL = bytes.fromhex(
    "1c00000000000000" + "726571" + "00" * 29 + "03000000" * 2 + "00" * 8 + "92100000" + "68100000" + "a00f0000"
)
EMPTY_REPLY = bytes.fromhex("00" * 8 + "726571" + "00" * 29)
STATUS = bytes.fromhex(
    "2000000000000000" + "6e70755472616365537461747573" + "00" * 18
    + "01000000" + "0a000000" + "0a000000" + "0c000000" + "92100000" + "00000000" + "00" * 8
)  # fmt: skip


def test_the_published_vectors() -> None:
    assert [len(vector) for vector in (CONTEXT, CONTEXT_REPLY, POLL, EMPTY_REPLY, STATUS)] == [56, 44, 68, 40, 72]
    context, poll = Context(2, 4242, 7), Poll(Types.EVENTS | Types.ACTIVITIES, 0, (4242, 4200, 4000))
    status = Status(Channel.TRACE, 1, 10, 10, 12, 4242, 0)
    assert fabric.decode(CONTEXT) == context
    assert fabric.decode(POLL) == poll
    assert fabric.decode(STATUS) == status
    assert fabric.encode_context(context) == CONTEXT
    assert fabric.encode_poll(poll.types, poll.job, poll.pids) == POLL
    assert fabric.encode_status(status) == STATUS
    assert fabric.context_reply(1) == CONTEXT_REPLY
    assert fabric.config_reply("") == EMPTY_REPLY


def test_a_configuration_is_not_terminated_and_never_four_bytes_long() -> None:
    reply = fabric.config_reply("A=é\n")
    assert reply[:8] == (5).to_bytes(8, "little") and reply[40:] == "A=é\n".encode()
    assert fabric.config_reply("A=bc")[40:] == b"A=bc\n"


def test_data_is_passed_on() -> None:
    assert fabric.decode(fabric.encode("data", b'{"kind":"Kernel"}')) == Data(b'{"kind":"Kernel"}')


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        POLL[:39],
        POLL[:-1],
        POLL + b"\0",
        (2**63).to_bytes(8, "little") + POLL[8:],
        POLL[:8] + b"x" * 32 + POLL[40:],
        fabric.encode("request", POLL[40:]),
        fabric.encode("req", b""),
        fabric.encode("req", POLL[40:55]),
        fabric.encode("req", POLL[40:-4]),
        fabric.encode_poll(Types.NONE, 0, ()),
        fabric.encode_poll(Types.NONE, 0, (0,)),
        fabric.encode_poll(Types.NONE, 0, (-5, 1)),
        fabric.encode_poll(Types.NONE, 0, tuple(range(1, 66))),
        fabric.encode("req", (4).to_bytes(4, "little") + POLL[44:]),
        fabric.encode("ctxt", CONTEXT[40:-1]),
        fabric.encode_context(Context(0, 0, 0)),
        fabric.encode("npuTraceStatus", STATUS[40:-8]),
    ],
)
def test_what_no_client_sends_is_refused(datagram: bytes) -> None:
    with pytest.raises(Malformed):
        fabric.decode(datagram)


def test_mutated_datagrams_are_read_or_refused() -> None:
    chance = random.Random(4)
    refused = 0
    for _ in range(20_000):
        datagram = bytearray(chance.choice((CONTEXT, POLL, STATUS)))
        for _ in range(chance.randint(1, 6)):
            datagram[chance.randrange(len(datagram))] = chance.randrange(256)
        try:
            fabric.decode(bytes(datagram[: chance.randint(0, len(datagram))] if chance.random() < 0.3 else datagram))
        except Malformed:
            refused += 1
    assert 10_000 < refused < 20_000
