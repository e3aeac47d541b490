"""A daemon whose page draws figures that a test can foresee, in place of real metrics. Run as a program."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from typing import Any

from npuscope.cli.monitor import logger
from npuscope.monitor.daemon.service import Service, Settings
from npuscope.monitor.daemon.status import Account
from npuscope.monitor.page.settings import PageSettings, read_nodes
from npuscope.monitor.page.sources import Sources

STEP, POINTS = 5, 60
GIB = 1 << 30


class Foreseen(Service):
    """A daemon with such figures."""

    def _sources(self, account: Account) -> Sources:
        def history() -> list[dict[str, Any]]:
            return series([(str(one["pid"]), str(one["rank"] or 0)) for one in account.status(0)["processes"]])

        return dataclasses.replace(
            super()._sources(account), history=history, exposition=lambda: (b"# nothing\n", "text/plain; version=0.0.4")
        )


def series(processes: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """A wave for everything that the page draws."""
    last = int(time.time()) // STEP * STEP
    times = [float(last - STEP * back) for back in range(POINTS - 1, -1, -1)]

    def one(entity: str, name: str, base: float, swing: float, labels: dict[str, str], grows: bool = False) -> Any:
        shift = float(labels.get("rank") or 0)
        values = [base + swing * math.sin(moment / 37 + shift) for moment in times]
        if grows:
            values = [(base + swing) * (moment - times[0] // 3600 * 3600) for moment in times]
        return {"name": name, "entity": entity, "labels": labels, "times": times, "values": values}

    found = [
        one("host", "cpu_util", 55, 30, {}),
        one("host", "mem_used_bytes", 210 * GIB, 20 * GIB, {}),
        one("host", "mem_total_bytes", 512 * GIB, 0, {}),
        *(one("host", f"{way}_bytes.{nic}", 4e6, 3e6, {}) for way in ("rx", "tx") for nic in ("eth0", "lo")),
    ]
    for pid, rank in processes:
        labels = {"pid": pid, "rank": rank}
        found += [
            one("process", "cpu_percent", 97, 3, labels),
            one("process", "rss_bytes", 3 * GIB, GIB, labels),
            one("process", "threads", 40, 0, labels),
            one("process", "read_bytes", 2e6, 0, labels, grows=True),
            one("process", "write_bytes", 1e5, 0, labels, grows=True),
        ]
    return found


if __name__ == "__main__":
    page = PageSettings(0, required=True, nodes=read_nodes(sys.argv[1:]))
    Foreseen(Settings(port=0, ipc=("directory",), page=page), logger(sys.stderr)).run()
