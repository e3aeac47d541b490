"""HTTP, as far as a page for reading needs it: bytes in, a request out; a response in, bytes out. No socket here."""

from __future__ import annotations

import contextlib
import http
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from npuscope.monitor.daemon.connections import is_loopback

METHODS = ("GET", "HEAD")
LARGEST_HEAD = 16 * 1024
TEXT = "text/plain; charset=utf-8"
LINE = re.compile(rb"([A-Z]{1,32}) (\S{1,8192}) HTTP/1\.([01])")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")

SECURITY = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Response:
    """What goes back."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """A request that is not served, with the response that says so."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.response = refusal(status, sentence, **headers)


@dataclass(frozen=True)
class Request:
    """What a browser asks for. `host` is the name it knows the page by, without a port."""

    method: str
    path: str
    query: Mapping[str, str]
    host: str
    gzip: bool = False


def refusal(status: int, sentence: str, **headers: str) -> Response:
    """A refusal in words."""
    return Response(status, f"{status}: {sentence}\n".encode(), headers=headers)


def parse(head: bytes) -> Request:
    """The request whose line and headers are `head`. Raises Refusal."""
    first, *rest = head.rstrip(b"\r\n").split(b"\r\n")
    line = LINE.fullmatch(first)
    if not line:
        raise Refusal(400, "this is not a request of HTTP/1.1")
    method, target, minor = line[1].decode(), line[2].decode("latin-1"), line[3]
    headers = _headers(rest)
    if method not in METHODS:
        raise Refusal(405, f"this page is for reading only: {method} changes nothing here", Allow=", ".join(METHODS))
    if "host" not in headers and minor == b"1":
        raise Refusal(400, "the Host header is missing")
    try:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, max_num_fields=16))
        host = _name(headers.get("host", "localhost"))
    except ValueError:
        raise Refusal(400, "the address or the Host header cannot be read") from None
    return Request(method, parts.path, query, host, "gzip" in headers.get("accept-encoding", ""))


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        found = HEADER.fullmatch(line)
        if not found:
            raise Refusal(400, "a header cannot be read")
        name = found[1].decode().lower()
        if name == "host" and name in headers:
            raise Refusal(400, "there are two Host headers")
        headers[name] = found[2].decode("latin-1")
    return headers


def _name(host: str) -> str:
    parts = urlsplit(f"//{host}")
    _ = parts.port  # raises ValueError for one that is no number
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in host:
        raise ValueError(host)
    return parts.hostname


def require_known(host: str, names: Collection[str]) -> None:
    """Raises Refusal for a name that is not this page's: a foreign page may have had its own name lead here."""
    if host in names or host == "localhost":
        return
    with contextlib.suppress(ValueError):
        if is_loopback(host):
            return
    raise Refusal(403, "this page is not known by that name; open it as localhost or by the address it listens on")


def encode(response: Response, *, with_body: bool = True) -> bytes:
    """A response as it goes over the wire; the connection ends with it."""
    headers = {
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Connection": "close",
        **SECURITY,
        **response.headers,
    }
    lines = [f"HTTP/1.1 {response.status} {http.HTTPStatus(response.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head + response.body if with_body else head
