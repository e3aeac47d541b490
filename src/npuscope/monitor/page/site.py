"""The routes of the page: a request in, a response out."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

from npuscope.monitor.daemon.identity import ROOT
from npuscope.monitor.page.history import history, read_wanted
from npuscope.monitor.page.http import Request, Response, refusal
from npuscope.monitor.page.nodes import Watch
from npuscope.monitor.page.sources import Sources
from npuscope.monitor.page.state import encode, page_state
from npuscope.monitor.page.tally import WINDOW_SECONDS, Tally

JSON = "application/json"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FRESH_SECONDS = 0.5
"""For how long an account is good for another viewer of the same rights."""
LEAST_TO_PACK = 2048
ROUTES = "/, /state.json, /history.json, /metrics and /healthz"


class Site:
    """Answers requests from the sources."""

    def __init__(self, sources: Sources, watch: Watch) -> None:
        self._sources = sources
        self._watch = watch
        self.tally = Tally(sources.counts)
        self._files = static_files()
        self._lock = threading.Lock()
        self._accounts: dict[int | None, tuple[float, dict[str, Any]]] = {}
        self._routes: dict[str, Callable[[Request, int | None], Response]] = {
            "/state.json": self._state,
            "/history.json": self._history,
            "/metrics": self._metrics,
            "/healthz": self._health,
        }

    def answer(self, request: Request, viewer: int | None) -> Response:
        """The response for user `viewer`, None for one who is not known."""
        if route := self._routes.get(request.path):
            response = route(request, viewer)
        elif file := self._files.get(request.path):
            response = file
        else:
            response = refusal(404, f"there is nothing here; there are {ROUTES}")
        return packed(response) if request.gzip else response

    def _account(self, viewer: int | None) -> dict[str, Any]:
        with self._lock:
            at, account = self._accounts.get(viewer, (float("-inf"), {}))
            if time.monotonic() - at > FRESH_SECONDS:
                account = self._sources.status(viewer)
                if len(self._accounts) > 64:
                    self._accounts.clear()
                self._accounts[viewer] = (time.monotonic(), account)
            return account

    def _state(self, request: Request, viewer: int | None) -> Response:
        account = self._account(viewer)
        nodes = self._watch.shown(account["now"])  # one clock for the whole document
        state = page_state(account, viewer, self.tally.recent(), round(WINDOW_SECONDS / 60), nodes)
        return Response(200, encode(state), JSON)

    def _history(self, request: Request, viewer: int | None) -> Response:
        try:
            wanted = read_wanted(request.query)
        except ValueError:
            return refusal(400, "since is a time, in seconds since 1970")
        pids = None if viewer == ROOT else self._own(viewer)
        return Response(200, history(self._sources.history(), pids, wanted, time.time()), JSON)

    def _own(self, viewer: int | None) -> set[str]:
        shown = [process for process in self._account(viewer)["processes"] if "command" in process]
        # One in a container that is out of sight has no number here.
        seen = [process for process in shown if "hostPid" in process or "container" not in process]
        return {str(process.get("hostPid", process["pid"])) for process in seen}

    def _metrics(self, request: Request, viewer: int | None) -> Response:
        if self._sources.exposition is None:
            return refusal(404, "this daemon collects no metrics")
        body, content_type = self._sources.exposition()
        return Response(200, body, content_type)

    def _health(self, request: Request, viewer: int | None) -> Response:
        self._sources.status(None)  # raises TimeoutError when the thread that answers polls is stuck
        return Response(200, b'{"status":"ok"}', JSON)


def static_files() -> dict[str, Response]:
    """The files of the page, by path."""
    folder = resources.files("npuscope.monitor.page") / "static"
    files = {}
    for file in folder.iterdir():
        ending = f".{file.name.rpartition('.')[2]}"
        if ending in TYPES:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            files[path] = Response(200, file.read_bytes(), TYPES[ending])
    return files


def packed(response: Response) -> Response:
    """A response in gzip, where that is worth it."""
    if len(response.body) < LEAST_TO_PACK or response.status != 200:
        return response
    headers = {**response.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(200, gzip.compress(response.body, compresslevel=1), response.content_type, headers)
