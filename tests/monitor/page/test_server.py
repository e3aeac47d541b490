"""The page over real HTTP, from a real daemon: routes, headers, and what slow, many or strange clients get."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from daemon_process import Daemon, environment, python
from page_running import Paged, get, running, state, wait_until

from npuscope import __version__
from npuscope.monitor.page.server import MOST_CONNECTIONS, READ_SECONDS
from npuscope.monitor.page.settings import PORT
from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.fabric import Types

NOBODY = 65534
POLL = fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(), os.getppid()))


@pytest.mark.parametrize(
    ("path", "content_type", "words"),
    [
        ("/", "text/html; charset=utf-8", b"<!doctype html>"),
        ("/page.css", "text/css; charset=utf-8", b"prefers-color-scheme"),
        ("/page.js", "text/javascript; charset=utf-8", b"state.json"),
        ("/icon.svg", "image/svg+xml", b"<svg"),
        ("/state.json", "application/json", b'"processes":'),
        ("/history.json", "application/json", b'"cpu_util"'),
        ("/metrics", "text/plain; version=0.0.4", b"# nothing"),
        ("/healthz", "application/json", b'{"status":"ok"}'),
    ],
)
def test_every_route_and_its_headers(page: Paged, path: str, content_type: str, words: bytes) -> None:
    response, body = get(page.port, path)
    assert (response.status, response.headers["Content-Type"]) == (200, content_type) and words in body
    assert response.headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert response.headers["X-Content-Type-Options"] == "nosniff" and response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["Referrer-Policy"] == "no-referrer" and response.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in response.headers
    head, nothing = get(page.port, path, "HEAD")
    assert (head.status, nothing) == (200, b"") and int(head.headers["Content-Length"]) > 0


def test_every_file_of_the_page_is_served_and_asks_for_nothing_elsewhere(page: Paged) -> None:
    todo, seen = ["/"], set()
    while todo:
        path = todo.pop()
        seen.add(path)
        response, body = get(page.port, path)
        assert response.status == 200, path
        text = body.decode().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert not re.search(r"https?://|@import|url\(|<script>|style=|\son\w+=", text), path
        names = re.findall(r'(?:src=|href=|from )"(?:\./)?([\w.]+\.(?:js|css|svg))"', text)
        todo += [f"/{name}" for name in names if f"/{name}" not in seen]
    assert {"/page.js", "/chart.js", "/page.css", "/icon.svg"} <= seen


def test_a_long_answer_is_packed_for_those_who_can_unpack(page: Paged) -> None:
    response, body = get(page.port, "/history.json", **{"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(body)).keys() == {"now", "leftOut", "series"}
    assert get(page.port, "/history.json?since=x")[0].status == 400


@pytest.mark.parametrize("path", ["/nothing", "/../pyproject.toml", "/static/page.js", "/index.html", "//", "/%2e%2e/"])
def test_what_is_not_there_is_said_in_words(page: Paged, path: str) -> None:
    response, body = get(page.port, path)
    assert response.status == 404
    assert body == b"404: there is nothing here; there are /, /state.json, /history.json, /metrics and /healthz\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(page: Paged, method: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    connection.request(method, "/state.json", body=b"x" * 100_000)
    response = connection.getresponse()
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    assert b"for reading only" in response.read()


@pytest.mark.parametrize(("host", "status"), [("localhost:9", 200), ("127.0.0.1", 200), ("evil.example", 403)])
def test_a_foreign_name_may_not_lead_here(page: Paged, host: str, status: int) -> None:
    assert get(page.port, "/state.json", Host=host)[0].status == status


def raw(port: int, message: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(message)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def test_what_is_no_request_is_answered(page: Paged) -> None:
    assert raw(page.port, b"\x16\x03\x01\x02\x00 hello\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request")
    assert raw(page.port, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400")
    long = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000
    assert raw(page.port, long).startswith(b"HTTP/1.1 431")


def test_slow_clients_cost_little_and_get_an_answer_in_the_end(page: Paged) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", page.port), timeout=30) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHo")
        assert get(page.port, "/healthz")[0].status == 200  # others are served meanwhile
        answer = slow.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408") and READ_SECONDS - 1 < time.monotonic() - began < 25


def test_more_connections_than_there_is_room_for(page: Paged) -> None:
    idle = [socket.create_connection(("127.0.0.1", page.port), timeout=30) for _ in range(MOST_CONNECTIONS + 5)]
    try:
        refused = [connection.recv(65536)[:12] for connection in idle]
    finally:
        for connection in idle:
            connection.close()
    assert refused.count(b"HTTP/1.1 503") >= 5
    assert set(refused) == {b"HTTP/1.1 503", b"HTTP/1.1 408"}
    wait_until(lambda: get(page.port, "/healthz")[0].status == 200)


def test_many_viewers_at_once(page: Paged) -> None:
    with ThreadPoolExecutor(16) as viewers:
        answers = list(viewers.map(lambda _: get(page.port, "/state.json")[0].status, range(300)))
    assert answers == [200] * 300


def test_the_state_of_a_registered_process() -> None:
    with running() as paged:
        assert state(paged.port)["processes"] == []
        paged.daemon.exchange(paged.daemon.client(), POLL)
        wait_until(lambda: state(paged.port)["processes"])
        shown = state(paged.port)
        (process,) = shown["processes"]
        assert (process["pid"], process["state"], process["launcher"]) == (os.getpid(), "idle", False)
        assert shown["version"] == __version__ and shown["host"] == socket.gethostname()
        assert shown["viewer"]["user"] == os.getuid()
        assert shown["daemon"]["counts"]["polls"] == 1
        stranger = fabric.encode_poll(Types.ACTIVITIES, 0, (os.getppid(),))
        paged.daemon.client().sendto(stranger, f"{paged.daemon.folder}/dynolog")
        wait_until(lambda: state(paged.port)["problems"])
        (problem,) = state(paged.port)["problems"]
        assert problem["severity"] == "warning" and "gave another process's number" in problem["text"]


FETCH = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=20).read())"


def can_be_nobody() -> bool:
    try:
        words = ["/usr/bin/env", "python3", "-c", ""]
        return subprocess.run(words, capture_output=True, user=NOBODY, group=NOBODY, cwd="/").returncode == 0
    except (OSError, PermissionError):
        return False


@pytest.mark.skipif(os.getuid() != 0 or not can_be_nobody(), reason="only root can look as two users")
def test_another_user_sees_that_there_is_a_process_and_nothing_of_it(page: Paged) -> None:
    page.daemon.exchange(page.daemon.client(), POLL)
    page.daemon.dyno("gputrace", "--log-file", f"{page.daemon.folder}/secret.json")

    def as_nobody(path: str) -> bytes:
        words = ["/usr/bin/env", "python3", "-c", FETCH, f"{page.url}{path}"]
        done = subprocess.run(words, capture_output=True, user=NOBODY, group=NOBODY, cwd="/", timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    seen = as_nobody("state.json")
    found = json.loads(seen)
    assert found["viewer"]["user"] == NOBODY and found["viewer"]["sees"] == "own"
    assert found["processes"] == [] == found["traces"] and found["hidden"]["others"] == 1
    assert (found["summary"]["processes"], found["summary"]["waiting"]) == (1, 1)
    assert b"secret.json" not in seen and b"pytest" not in seen
    entities = {series["entity"] for series in json.loads(as_nobody("history.json"))["series"]}
    assert entities == {"host"}
    assert "secret" in json.dumps(state(page.port))


def test_a_page_without_metrics_says_so_and_where_it_is(start: Callable[..., Daemon]) -> None:
    daemon = start("--http", "0")
    found = re.search(r"page at http://127\.0\.0\.1:(\d+)/", daemon.log.read_text())
    assert found and int(found[1]) not in (0, PORT)
    assert state(int(found[1]))["processes"] == []


def test_a_port_in_use_ends_a_daemon_only_when_it_was_asked_for(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", "--http", str(port)]
        done = python(words, environment(folder))
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert f"127.0.0.1:{port}, where the page is to be, is in use" in done.stderr


def test_the_usual_port_in_use_is_one_line_of_the_log() -> None:
    from npuscope.monitor.page.page import open_page
    from npuscope.monitor.page.settings import PageSettings
    from npuscope.monitor.page.sources import Sources

    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = PageSettings(taken.getsockname()[1])
        assert open_page(settings, Sources(lambda viewer: {}), lines.append) is None
    assert len(lines) == 1 and lines[0].startswith("no page: 127.0.0.1:") and "is in use" in lines[0]
    assert open_page(None, Sources(lambda viewer: {}), lines.append) is None and len(lines) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--no-http", "--http", "0"], "--no-http leaves no page"),
        (["--node", "a b"], "a node is HOST or HOST:PORT"),
        (["--nodes", "/no/such/list"], "cannot read the list of nodes /no/such/list: No such file"),
    ],
)
def test_wrong_words_are_one_line(folder: Path, words: list[str], text: str) -> None:
    done = python(["npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", *words], environment(folder))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and text in done.stderr
