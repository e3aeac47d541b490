"""What the agent costs a training loop: step times of stock PyTorch on the CPU without an agent, with an idle one, with
user ranges in metric mode, and with everything that PyTorch tells going to a database.

    python benchmarks/agent_steps.py [rounds] [steps]

One process, a real daemon. Each mode has short windows of so many steps, each between two windows without an agent: its
ratio is against the mean of these two, so that a machine that becomes slower or faster meanwhile does not matter. "No
agent again" is such a window too: it shows how far two equal ones differ by chance. Of a window counts the mean of the
faster half of its steps, which other programs disturb least. Wall: the time of a step. CPU: the processor time of the
job's thread, and what all other threads took, by step: the agent's. The median over the rounds is printed, and where it
lies with 95 % (bootstrap). The goals: idle within 1 %, ranges 2 %.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path = [one for one in sys.path if Path(one) != Path(__file__).parent]  # a file in here is called triton

import numpy as np  # noqa: E402
import torch  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from torch.profiler import record_function  # noqa: E402

from npuscope.monitor.agent import starting  # noqa: E402
from npuscope.monitor.agent.agent import Agent  # noqa: E402
from npuscope.monitor.protocol import rpc  # noqa: E402
from npuscope.monitor.protocol.npu_monitor import NpuMonitor, build  # noqa: E402

BARE, CONTROL, IDLE, RANGES, EVERYTHING = "no agent", "no agent again", "idle", "ranges, metric", "all kinds, database"
GOALS = {IDLE: 1.01, RANGES: 1.02}
WAIT_SECONDS = 30.0
SETTLING = 3
"""Steps after a change that do not count."""


class Job:
    """A transformer layer on one thread: steps of some 10 ms with some 350 operators and four ranges."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(8, 64, 128)

    def step(self) -> None:
        """One step."""
        with record_function("forward"):
            loss = self.model(self.batch).square().mean()
        with record_function("backward"):
            loss.backward()
        with record_function("update"):
            self.optimizer.step()
            self.optimizer.zero_grad()

    def run(self, steps: int) -> NDArray[np.float64]:
        """Milliseconds of a step: by the wall clock, of the processor, and the other threads' part of the latter."""
        walls, own = np.zeros(steps), np.zeros(steps)
        cpu, mine = time.process_time(), time.thread_time()
        for number in range(steps):
            before, first = time.perf_counter(), time.thread_time()
            self.step()
            own[number] = time.thread_time() - first
            walls[number] = time.perf_counter() - before
        others = (time.process_time() - cpu - (time.thread_time() - mine)) / steps
        return 1e3 * np.array([_quick(walls), _quick(own) + others, others])


def _quick(times: NDArray[np.float64]) -> float:
    """The mean of the faster half."""
    return float(np.sort(times)[: (times.size + 1) // 2].mean())


class Daemon:
    """A real one, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        log = folder / "log"
        os.environ |= {"KINETO_IPC_SOCKET_DIR": str(folder), "NPUSCOPE_IPC_DIR": str(folder)}
        os.environ["MSMONITOR_LOG_PATH"] = str(folder)
        words = ["-m", "npuscope", "monitor", "daemon", "--port", "0", "--no-http", "--interval", "0"]
        words += ["--ipc", "home", "--ipc", "directory", "--log-file", str(log)]
        self.process = subprocess.Popen([sys.executable, *words])
        wait(lambda: log.exists() and re.search(r"port \d+", log.read_text()), "the daemon did not start")
        self.port = int(re.findall(r"port (\d+)", log.read_text())[0])

    def ask(self, text: str) -> dict:
        """The reply to a request."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(rpc.frame(text))
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return json.loads(received[4:])

    def collect(self, kinds: str, folder: str = "") -> None:
        """What `dyno npu-monitor` asks for."""
        text = build(NpuMonitor(start=True, report_interval_s=1, kinds=kinds, folder=folder))
        self.ask(rpc.trace_request(text, 0, [os.getpid()], 1))

    def knows(self) -> bool:
        """Whether this process has registered."""
        shown = self.ask(rpc.simple_request("getStatus"))["processes"]
        return any(one["pid"] == os.getpid() and one["client"] == "msmonitor" for one in shown)


def wait(holds: Callable[[], object], what: str) -> None:
    """Until it holds."""
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(what)
        time.sleep(0.02)


def agent(daemon: Daemon, job: Job) -> Agent:
    """A new agent that the daemon knows."""
    one = starting.start()
    wait(lambda: job.step() or daemon.knows(), "the agent did not register")
    return one


def collecting(daemon: Daemon, job: Job, one: Agent, kinds: str, folder: str = "") -> None:
    """Have the agent collect."""
    daemon.collect(kinds, folder)
    wait(lambda: job.step() or one.standing.running, "the agent does not collect")


def window(mode: str, daemon: Daemon, job: Job, steps: int) -> NDArray[np.float64]:
    """The figures of one mode."""
    if mode in (BARE, CONTROL):
        return job.run(steps)
    one = agent(daemon, job)
    try:
        if mode == RANGES:
            collecting(daemon, job, one, "Marker")
        elif mode == EVERYTHING:
            collecting(daemon, job, one, "Marker,API,Memory,Communication", tempfile.mkdtemp(dir=daemon.folder))
        job.run(SETTLING)
        return job.run(steps)
    finally:
        starting.stop()


def spread(ratios: NDArray[np.float64]) -> tuple[float, float, float]:
    """The median and where it lies with 95 %."""
    drawn = np.median(np.random.default_rng(0).choice(ratios, (2000, len(ratios))), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def measured(modes: list[str], daemon: Daemon, job: Job, rounds: int, steps: int) -> NDArray[np.float64]:
    """(rounds, modes, 4): a mode's wall and CPU time against the windows around it, the other threads' part of its
    CPU time, and the wall time without an agent in milliseconds."""
    figures = np.zeros((rounds, len(modes), 4))
    before = window(BARE, daemon, job, steps)
    draw = np.random.default_rng(0)
    for turn in range(rounds):
        for at in draw.permutation(len(modes)):
            mine = window(modes[at], daemon, job, steps)
            job.run(SETTLING)
            after = window(BARE, daemon, job, steps)
            around = (before + after) / 2
            figures[turn, at] = [mine[0] / around[0], mine[1] / around[1], mine[2] / mine[1], around[0]]
            before = after
    return figures


def main(rounds: int, steps: int) -> None:
    """Measure and print."""
    modes = [CONTROL, IDLE, RANGES, EVERYTHING]
    job = Job()
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder))
        try:
            for mode in modes:
                window(mode, daemon, job, steps)  # warm
            figures = measured(modes, daemon, job, rounds, steps)
        finally:
            daemon.process.terminate()
            daemon.process.wait()
    print(f"a step without an agent: {np.median(figures[..., 3]):.2f} ms; {rounds} windows of {steps} steps for each")
    for at, mode in enumerate(modes):
        texts = []
        for column, name in enumerate(("wall", "CPU")):
            middle, low, high = spread(figures[:, at, column])
            texts.append(f"{name} {middle:.4f} [{low:.4f}, {high:.4f}]")
        texts.append(f"other threads {np.median(figures[:, at, 2]):.2%} of it")
        goal = f"  goal {GOALS[mode]}" if mode in GOALS else ""
        print(f"{mode:20}  {'  '.join(texts)}{goal}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 30)
