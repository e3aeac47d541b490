"""Ranks from what daemons tell Prometheus: a real exposition of the library, files and a real HTTP server."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from npuscope.errors import UserError
from npuscope.monitor.analysis.cluster import analyse
from npuscope.monitor.analysis.exposition import read_expositions, scraped

LABELS = ["host_name", "device", "kind", "domain", "pid", "host_pid", "rank"]
RANKS, SLOW = 8, 5


class Daemon:
    """Counts what the ranks of a host report: each computes 8 ms a report, one of them 6 % more, and waits for it."""

    def __init__(self, ranks: range) -> None:
        self.ranks = ranks
        self.registry = CollectorRegistry()
        self.seconds = Counter("npuscope_activity_seconds", "Sum.", LABELS, registry=self.registry)
        self.reports = Counter("npuscope_activity_reports", "How often.", LABELS, registry=self.registry)
        self.random = np.random.default_rng(ranks.start)

    def text(self) -> str:
        """Three reports later."""
        for rank in self.ranks:
            compute = 0.008 * (1.06 if rank == SLOW else 1.0) * (1 + 0.01 * self.random.standard_normal())
            for kind, spent in (("Kernel", compute), ("Communication", 0.012 - compute)):
                labels = [f"node{self.ranks.start}", str(rank), kind, "", str(100 + rank), "", str(rank)]
                self.seconds.labels(*labels).inc(3 * spent)
                self.reports.labels(*labels).inc(3)
        return generate_latest(self.registry).decode()


@pytest.fixture
def url() -> Iterator[str]:
    daemon = Daemon(range(RANKS))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(daemon.text().encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()


def test_daemons_that_are_asked(url: str) -> None:
    cluster = analyse(scraped([url], 30, 0.0))
    (one,) = cluster.slow
    assert one.rank == SLOW
    assert one.excess == pytest.approx(0.06 * 8e6, rel=0.15)
    assert one.peers_waiting - one.waiting == pytest.approx(0.06 * 8e6, rel=0.25)
    assert cluster.matrices.ranks[SLOW].pid == 100 + SLOW
    assert any("sums of daemons, not single collectives" in note for note in cluster.notes)


def test_files_of_two_hosts(tmp_path: Path) -> None:
    daemons = [Daemon(range(4)), Daemon(range(4, 8))]
    paths = []
    for scrape in range(25):
        for number, daemon in enumerate(daemons):
            path = tmp_path / f"node{number}-{scrape:02}.prom"
            path.write_text(daemon.text())
            os.utime(path, (scrape, scrape))
            paths.append(path)
    summaries = read_expositions(paths)
    assert [one.host for one in summaries] == ["node0"] * 4 + ["node4"] * 4
    assert {len(one.label) for one in summaries} == {24}
    assert [one.rank for one in analyse(summaries).slow] == [SLOW]


def test_what_says_nothing_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no metrics from http://127.0.0.1:9/metrics: .*refused"):
        scraped(["http://127.0.0.1:9/metrics"], 3, 0.0)
    for number in range(3):
        (tmp_path / f"{number}.prom").write_text("# TYPE up gauge\nup 1\n")
    with pytest.raises(UserError, match="the daemons tell of no rank's collectives"):
        read_expositions(sorted(tmp_path.glob("*.prom")))
    with pytest.raises(UserError, match="1 scrapes of all hosts; at least 3"):
        read_expositions(sorted(tmp_path.glob("*.prom"))[:1])
    (tmp_path / "0.prom").write_text("}{ nonsense")
    with pytest.raises(UserError, match="0.prom holds no metrics"):
        read_expositions(sorted(tmp_path.glob("*.prom")))
