"""Make the picture in monitor-page.md: a real daemon, two real PyTorch ranks, one of them being traced.

    python docs/make_screenshot.py [picture.png]

Needs torch, selenium and Chromium with its driver (Debian: apt install chromium chromium-driver); takes a minute and a
half. Everything runs on this machine: the page is opened by a browser without a window.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "monitor")]

from page_browser import browser  # noqa: E402

from npuscope.monitor.client import ask  # noqa: E402
from npuscope.monitor.protocol import config, rpc  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "monitor-page.png"
RANKS = 2
SECONDS_OF_CHARTS = 45
TRAIN = """
import time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(64, 512)).sum().backward()
        optimizer.step()
    time.sleep(0.5)
"""


def wait_for(found: Callable[[], object], what: str, seconds: float = 90) -> object:
    """What `found` returns, once it returns something."""
    deadline = time.monotonic() + seconds
    while not (it := found()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {seconds:g} seconds")
        time.sleep(0.2)
    return it


def started(stack: ExitStack, words: list[str], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """A process that ends with the stack."""
    # Called by its name and from its folder, as a person would: the page shows command lines.
    process = subprocess.Popen(words, env=env, cwd=log.parent, stdout=log.open("w"), stderr=subprocess.STDOUT)
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)
    return process


def make(picture: Path) -> None:
    """Run it all and take the picture."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llama-", dir="/tmp")))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "KINETO_IPC_SOCKET_DIR": str(folder), "PATH": path}
        daemon = ["monitor", "daemon", "--port", "0", "--ipc", "directory", "--http", "0", "--interval", "1"]
        log = folder / "daemon.log"
        started(stack, [sys.executable, "-m", "npuscope", *daemon], env, log)
        find = lambda pattern: re.search(pattern, log.read_text())  # noqa: E731
        port = int(wait_for(lambda: find(r"listening on port (\d+)"), "the daemon")[1])  # type: ignore[index]
        url = wait_for(lambda: find(r"page at (\S+)"), "the page")[1]  # type: ignore[index]

        (folder / "train.py").write_text(TRAIN)
        (folder / "kineto.conf").write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        env |= {"KINETO_USE_DAEMON": "1", "KINETO_CONFIG": str(folder / "kineto.conf"), "WORLD_SIZE": str(RANKS)}
        for rank in range(RANKS):
            words = ["python", "train.py", "--config", "llama-7b.toml"]
            started(stack, words, env | {"RANK": str(rank)}, folder / f"rank{rank}.log")
        status = lambda: json.loads(ask("127.0.0.1", port, rpc.simple_request("getStatus")))  # noqa: E731
        wait_for(lambda: len(status()["processes"]) == RANKS, "the ranks")
        time.sleep(SECONDS_OF_CHARTS - 20)

        def trace(name: str, milliseconds: int, pids: list[int]) -> None:
            text = config.build(config.Trace(f"{folder}/{name}.json", duration_ms=milliseconds))
            ask("127.0.0.1", port, rpc.trace_request(text, 0, pids, RANKS))

        trace("both", 500, [0])
        wait_for(lambda: {one["outcome"] for one in status()["traces"]} == {"written"}, "the first traces")
        wait_for(lambda: {one["state"] for one in status()["processes"]} == {"idle"}, "the end of the first traces")
        time.sleep(8)
        first = min(status()["processes"], key=lambda process: process["rank"])
        trace("rank0", 12000, [first["pid"]])
        wait_for(lambda: any(one["state"] == "tracing" for one in status()["processes"]), "the trace")
        with browser(folder / "profile", 1280, 900) as chrome:
            chrome.get(url)
            time.sleep(4)
            picture.parent.mkdir(parents=True, exist_ok=True)
            chrome.save_screenshot(str(picture))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
