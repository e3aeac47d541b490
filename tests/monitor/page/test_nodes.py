"""Other daemons on the page: those that answer, those that do not, and since when."""

from __future__ import annotations

import os
import socket
import time

from page_running import running, state, wait_until

from npuscope import __version__
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.page.nodes import STALE_SECONDS, Seen, Watch, describe, host_values
from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.fabric import Types

POLL = fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(), os.getppid()))


def test_other_nodes_are_shown_with_since_when_they_are_silent() -> None:
    with running() as other, socket.create_server(("127.0.0.1", 0)) as mute:  # it takes connections and says nothing
        other.daemon.exchange(other.daemon.client(), POLL)
        node, silent = f"127.0.0.1:{other.daemon.port}", f"127.0.0.1:{mute.getsockname()[1]}"
        with running(node, silent) as watching:
            wait_until(lambda: all(one["reachable"] is not None for one in state(watching.port)["nodes"]))
            first, second = state(watching.port)["nodes"]
            assert (first["node"], first["reachable"], first["version"]) == (node, True, __version__)
            assert first["summary"]["processes"] == 1
            assert (second["node"], second["reachable"]) == (silent, False) and second["error"]
            other.daemon.process.terminate()
            other.daemon.process.wait(10)
            wait_until(lambda: state(watching.port)["nodes"][0]["reachable"] is False)
            shown = state(watching.port)
            assert shown["nodes"][0]["error"] == "Connection refused"
            assert 0 <= shown["now"] - shown["nodes"][0]["since"] < 30
            assert any("2 of 2 nodes do not answer" in problem["text"] for problem in shown["problems"])


def test_nodes_are_asked_side_by_side_and_each_by_one_only() -> None:
    calls: list[str] = []

    def asks(host: str, port: int, request: str, seconds: float) -> str:
        calls.append(host)
        if host == "hangs":
            time.sleep(3)
        return {"none": "[]", "odd": '{"processes":5}'}.get(host, '{"status":1,"processes":[]}')

    watch = Watch([Endpoint("hangs"), Endpoint("well"), Endpoint("none"), Endpoint("odd")], asks, period=0.1)
    watch.start()
    try:
        wait_until(lambda: calls.count("well") > 12, 20)
        assert calls.count("hangs") <= 2
        shown = {node["node"]: node for node in watch.shown(time.time())}
    finally:
        watch.stop()
    assert shown["well"]["reachable"] is True and shown["well"]["summary"] == {"processes": 0, "tracing": 0}
    assert shown["none"]["reachable"] is False and shown["odd"]["error"] == "no proper reply"


def test_an_old_answer_is_none() -> None:
    seen = Seen(Endpoint("a"), reachable=True, changed=10.0, answered=100.0)
    assert describe(seen, 100.0 + STALE_SECONDS)["reachable"] is True
    assert (describe(seen, 101.0 + STALE_SECONDS)["reachable"], describe(seen, 200.0)["since"]) == (False, 100.0)


def test_the_figures_of_a_host_are_picked_from_its_metrics() -> None:
    records = [
        {"entity": "process", "values": {"cpu_util": 1}},
        {"entity": "host", "values": {"cpu_util": 42.5, "uptime": 7, "cpu_u": 3}},
        {"entity": "host"},
        5,
    ]
    assert host_values(records) == {"cpu_util": 42.5, "uptime": 7}
    assert host_values("none") == {}
