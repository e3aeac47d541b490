"""Frames between the command line and the daemon."""

from __future__ import annotations

import json

import pytest

from npuscope.monitor.protocol import rpc


def test_the_published_vector() -> None:
    assert rpc.frame(rpc.simple_request("getStatus")) == bytes.fromhex("12000000") + b'{"fn":"getStatus"}'
    assert len(rpc.simple_request("getVersion")) == 19


def test_a_trace_request_is_laid_out_as_the_stock_command_does() -> None:
    text = rpc.trace_request("A=1\nB=2", 7, [0], 3)
    assert text.startswith('\n{\n    "fn": "setKinetOnDemandRequest",\n    "config": "A=1\\nB=2",\n    "job_id": 7,')
    assert list(json.loads(text)) == ["fn", "config", "job_id", "pids", "process_limit"]
    assert json.loads(text)["pids"] == [0]


def test_what_the_stock_command_would_break_is_escaped() -> None:
    assert json.loads(rpc.trace_request('F=/tmp/"a"\\b.json', 0, [1, 2], 3))["config"] == 'F=/tmp/"a"\\b.json'


@pytest.mark.parametrize("header", [b"", b"\0\0\0", bytes(4), b"\xff" * 4, (65537).to_bytes(4, "little")])
def test_lengths_out_of_bounds(header: bytes) -> None:
    with pytest.raises(rpc.BadFrame):
        rpc.length(header)


def test_the_longest_request_of_the_vendor_fits() -> None:
    assert rpc.length((8191).to_bytes(4, "little")) == 8191


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 5000, b'{"a":' + b"[" * 10 + b"]" * 10 + b"}", b"{}x"]
)
def test_json_that_is_no_request(payload: bytes) -> None:
    with pytest.raises(rpc.BadFrame):
        rpc.parse(payload)


def test_ten_levels_are_enough() -> None:
    assert "a" in rpc.parse(b'{"a":' + b"[" * 9 + b"]" * 9 + b"}")
