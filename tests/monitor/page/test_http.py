"""Requests and responses of the page, byte by byte and without a socket."""

from __future__ import annotations

import pytest

from npuscope.errors import UserError
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.page.http import Refusal, Response, encode, parse, require_known
from npuscope.monitor.page.settings import read_nodes


def request(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_request_is_read() -> None:
    found = parse(
        request("GET /history.json?since=5&names=a,b HTTP/1.1", "Host: localhost:8080", "Accept-Encoding: br, gzip")
    )
    assert (found.method, found.path, found.host, found.gzip) == ("GET", "/history.json", "localhost", True)
    assert found.query == {"since": "5", "names": "a,b"}
    assert parse(request("HEAD / HTTP/1.1", "host: [::1]:1779")).host == "::1"
    assert parse(request("GET / HTTP/1.0")).host == "localhost"


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (400, ["GET / HTTP/2.0", "Host: localhost"]),
        (400, ["hello"]),
        (400, ["GET /a b HTTP/1.1", "Host: localhost"]),
        (400, ["GET / HTTP/1.1"]),
        (400, ["GET / HTTP/1.1", "Host: localhost", "Host: localhost"]),
        (400, ["GET / HTTP/1.1", "Host: localhost:x"]),
        (400, ["GET / HTTP/1.1", "Host: me@localhost"]),
        (400, ["GET / HTTP/1.1", "Host: [::1"]),
        (400, ["GET / HTTP/1.1", "Host: localhost", "no header"]),
        (400, ["GET /?" + "&".join(f"a{n}=1" for n in range(99)) + " HTTP/1.1", "Host: localhost"]),
        (405, ["POST / HTTP/1.1", "Host: localhost"]),
        (405, ["DELETE /state.json HTTP/1.1", "Host: localhost"]),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused_in_words(status: int, lines: list[str]) -> None:
    with pytest.raises(Refusal) as refused:
        parse(request(*lines))
    response = refused.value.response
    assert response.status == status and response.body.startswith(f"{status}: ".encode())
    assert response.headers == ({"Allow": "GET, HEAD"} if status == 405 else {})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "node7"])
def test_the_names_of_this_page(host: str) -> None:
    require_known(host, {"10.1.2.3", "node7"})


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.1.2.4", "0.0.0.0", "127.0.0.1.nip.io"])
def test_foreign_names_may_not_lead_here(host: str) -> None:
    with pytest.raises(Refusal) as refused:
        require_known(host, {"10.1.2.3"})
    assert refused.value.response.status == 403


def test_a_response_as_it_goes_over_the_wire() -> None:
    wire = encode(Response(200, b"abc", "text/plain", {"X-More": "1"}))
    head, _, body = wire.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert (first, body) == ("HTTP/1.1 200 OK", b"abc")
    assert headers["Content-Length"] == "3" and headers["Connection"] == "close" and headers["X-More"] == "1"
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert encode(Response(200, b"abc", "text/plain", {"X-More": "1"}), with_body=False) == head + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("node7", Endpoint("node7", 1778)),
        ("node7:1900", Endpoint("node7", 1900)),
        ("10.0.0.1:1", Endpoint("10.0.0.1", 1)),
        ("fe80::1", Endpoint("fe80::1", 1778)),
        ("[fe80::1]:1900", Endpoint("fe80::1", 1900)),
    ],
)
def test_nodes_are_read(text: str, node: Endpoint) -> None:
    assert read_nodes([text]) == (node,)


@pytest.mark.parametrize("text", [":1", "a b", "node7:", "node7:0", "node7:99999", "node7:x", "[::1]:x"])
def test_nodes_that_cannot_be(text: str) -> None:
    with pytest.raises(UserError):
        read_nodes([text])


def test_a_list_of_nodes() -> None:
    assert read_nodes(["# all", "a", "", "b:9 # spare", "a"]) == (Endpoint("a"), Endpoint("b", 9))
    assert [node.short for node in (Endpoint("a"), Endpoint("a", 9), Endpoint("::1", 9))] == ["a", "a:9", "[::1]:9"]
