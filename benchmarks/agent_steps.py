"""What the agent costs a training loop: step times of stock PyTorch on the CPU without an agent, with an idle one, with
user ranges in metric mode, and with everything that PyTorch tells going to a database.

    python -P benchmarks/agent_steps.py [rounds] [steps]

Two processes with the same job take their steps in turn, on one processor. One never has an agent: it is the clock, so
a machine that becomes slower or faster meanwhile does not matter. The other one has windows of so many steps in each
mode, each between two windows without an agent, so how its memory happens to lie does not matter either. Of a window
counts the median of its steps against the clock's steps right after them; of a mode the median over the rounds, against
the windows around it, and where it lies with 95 % (bootstrap). "No agent again" is such a window too: it shows what is
left to chance. Threads: the processor time of all other threads of the process, the agent's, for each second. The
goals: idle within 1 %, ranges 2 %.
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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.profiler import record_function

from npuscope.monitor.agent import starting
from npuscope.monitor.agent.agent import Agent
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.npu_monitor import NpuMonitor, build

CONTROL, IDLE, RANGES, EVERYTHING = "no agent again", "idle", "ranges, metric", "all kinds, database"
MODES = (CONTROL, IDLE, RANGES, EVERYTHING)
KINDS = {RANGES: "Marker", EVERYTHING: "Marker,API,Memory,Communication"}
GOALS = {IDLE: 1.01, RANGES: 1.02}
WAIT_SECONDS = 60.0
SETTLING = 3
"""Steps after a change that do not count."""


class Job:
    """A transformer layer on one thread: steps of some 20 ms with some 350 operators and three ranges."""

    def __init__(self) -> None:
        # Threads that begin later are bound too: what the agent's take is taken from the job.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(8, 64, 128)

    def step(self) -> float:
        """Take one step; its seconds."""
        begin = time.perf_counter()
        with record_function("forward"):
            loss = self.model(self.batch).square().mean()
        with record_function("backward"):
            loss.backward()
        with record_function("update"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        return time.perf_counter() - begin


class Clock:
    """The job in a process without an agent."""

    def __init__(self) -> None:
        words = [sys.executable, "-P", __file__, "--clock"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self) -> float:
        """The seconds of one step more."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    @staticmethod
    def serve() -> None:
        """A step for each line."""
        job = Job()
        for _ in sys.stdin:
            print(job.step(), flush=True)


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

    def ask(self, text: str) -> Any:
        """The reply to a request."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(rpc.frame(text))
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return json.loads(received[4:])

    def collect(self, kinds: str, folder: str) -> None:
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


class Bench:
    """The job of this process beside the clock."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon, self.job, self.clock = daemon, Job(), Clock()

    def window(self, mode: str, steps: int) -> tuple[float, float]:
        """(a step's time against the clock's, seconds of the other threads for each second) in a mode."""
        if mode == CONTROL:
            return self.steps(steps)
        one = starting.start()
        try:
            self.until(self.daemon.knows, "the agent did not register")
            if mode in KINDS:
                self.collect(one, mode)
            return self.steps(steps)
        finally:
            starting.stop()

    def collect(self, agent: Agent, mode: str) -> None:
        """Have the agent collect."""
        folder = tempfile.mkdtemp(dir=self.daemon.folder) if mode == EVERYTHING else ""
        self.daemon.collect(KINDS[mode], folder)
        self.until(lambda: agent.standing.running, "the agent does not collect")

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Go on stepping until it holds."""
        wait(lambda: self.job.step() and holds(), what)

    def steps(self, count: int) -> tuple[float, float]:
        """`window` as things are now."""
        for _ in range(SETTLING):
            self.job.step(), self.clock.step()
        ratios = np.zeros(count)
        wall, cpu, mine = time.perf_counter(), time.process_time(), time.thread_time()
        for number in range(count):
            ratios[number] = self.job.step() / self.clock.step()
        others = time.process_time() - cpu - (time.thread_time() - mine)
        return float(np.median(ratios)), others / (time.perf_counter() - wall)

    def measured(self, rounds: int, steps: int) -> NDArray[np.float64]:
        """(rounds, modes, 2): each mode against the windows around it, and the seconds of the other threads."""
        figures = np.zeros((rounds, len(MODES), 2))
        draw, (before, _) = np.random.default_rng(0), self.steps(steps)
        for row in figures:
            for at in draw.permutation(len(MODES)):
                here, others = self.window(MODES[at], steps)
                after, _ = self.steps(steps)
                row[at] = 2 * here / (before + after), others
                before = after
        return figures


def spread(ratios: NDArray[np.float64]) -> tuple[float, float, float]:
    """The median, and where it lies with 95 %."""
    drawn = np.median(np.random.default_rng(0).choice(ratios, (5000, len(ratios))), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def main(rounds: int, steps: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        daemon = Daemon(Path(name))
        bench = Bench(daemon)
        try:
            for mode in MODES:
                bench.window(mode, steps)  # warm
            figures = bench.measured(rounds, steps)
        finally:
            for process in (daemon.process, bench.clock.process):
                process.terminate()
                process.wait()
    print(f"a step of {1e3 * bench.job.step():.1f} ms; {rounds} windows of {steps} steps in each mode")
    for at, mode in enumerate(MODES):
        middle, low, high = spread(figures[:, at, 0])
        goal = f"  goal {GOALS[mode]}" if mode in GOALS else ""
        print(f"{mode:20}  wall {middle:.4f} [{low:.4f}, {high:.4f}]  threads {figures[:, at, 1].mean():.4f}{goal}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--clock"]:
        Clock.serve()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, int(sys.argv[2]) if len(sys.argv) > 2 else 30)
