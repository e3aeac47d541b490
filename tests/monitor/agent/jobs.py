"""Training jobs with an agent, in processes of their own, under a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon_process import Daemon, environment
from training import REGISTER_SECONDS, running, wait_until

from npuscope.monitor.protocol import rpc

ROOT = Path(__file__).resolve().parents[3]

PARTS = '''
"""A source that gives one kernel for each step, and a processor that writes what it got: at the agent's seams."""
import json, os, time
import numpy as np
from npuscope.monitor.activity.batch import COLUMNS, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent import equipment

class Source:
    name, kinds, losses = "steps", frozenset({Kind.KERNEL, Kind.MEMCPY}), {}
    deliver = None

    def start(self, kinds, strings, deliver):
        self.kept, self.strings, self.deliver = kinds, strings, deliver

    def change(self, kinds):
        self.kept = kinds

    def flush(self):
        pass

    def stop(self):
        self.deliver = None

    def give(self, name):
        deliver, now = self.deliver, time.time_ns()
        if deliver:
            for kind in self.kept:
                columns = {one: np.zeros(1, dtype) for one, dtype in COLUMNS[kind].items()}
                columns["start"][0] = columns["end"][0] = now
                if "name" in columns:
                    columns["name"][0] = self.strings.number(name)
                deliver(batch(kind, columns))

class Processor:
    counts = {}

    def __init__(self, folder, run):
        self.folder, self.run, self.names, self.starts, self.kinds = folder, run, [], [], []

    def add(self, batch):
        self.kinds += [batch.kind.label] * len(batch)
        self.starts += batch["start"].tolist()
        if "name" in batch.columns:
            self.names += [self.run.strings.texts[number] for number in batch["name"]]

    def report(self, now):
        pass

    def close(self):
        run = self.run
        found = dict(started=run.started, ended=run.ended, rank=run.rank, pid=run.pid, groups=run.groups,
                     names=self.names, starts=self.starts, kinds=self.kinds)
        path = f"{self.folder or os.environ['OWN_FOLDER']}/run_{run.pid}_{run.started}.json"
        with open(path + ".part", "w") as file:
            json.dump(found, file)
        os.rename(path + ".part", path)

SOURCE = Source()
equipment.sources = lambda log: [SOURCE]
equipment.builder = lambda send: lambda command, run: Processor(command.folder, run)
'''

LOOP = """
import os, sys, time
import own_parts
import torch

def train(steps=10**9, seconds=240):
    torch.set_num_threads(1)
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    end = time.time() + seconds
    for step in range(steps):
        if time.time() > end:
            break
        optimizer.zero_grad()
        model(torch.randn(4, 32)).sum().backward()
        optimizer.step()
        own_parts.SOURCE.give("MatMul" if step % 2 else "Conv2D")
        time.sleep(0.01)

if __name__ == "__main__":
    train()
"""

LIGHT = """
import sys, time
import own_parts
from npuscope.monitor import agent
agent.start()
end = time.time() + 240
while time.time() < end:
    own_parts.SOURCE.give("MatMul")
    time.sleep(0.02)
"""
"""A rank that does without torch, and so is cheap to have many of."""


def offered(folder: Path) -> str:
    """A folder with the package's own entry points, as an installed package has them."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["torch.backends"]
    info = folder / "entry" / "npuscope_offered-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: npuscope-offered\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in data.items())
    (info / "entry_points.txt").write_text(f"[torch.backends]\n{lines}")
    return str(info.parent)


def agents(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a job whose processes have agents that ask often."""
    parts = folder / "own_parts.py"
    if not parts.exists():  # another rank may be reading it
        parts.write_text(PARTS)
    path = f"{environment(folder)['PYTHONPATH']}:{offered(folder)}:{folder}"
    return environment(
        folder, NPUSCOPE_AGENT="1", NPUSCOPE_IPC_DIR=str(folder), NPUSCOPE_POLL_SECONDS="0.2", PYTHONPATH=path,
        MSMONITOR_LOG_PATH=str(folder), OWN_FOLDER=str(folder), OMP_NUM_THREADS="1",
    ) | more  # fmt: skip


def words(folder: Path, text: str = LOOP, name: str = "job.py") -> list[str]:
    """The command line of a script."""
    if not (folder / name).exists():
        (folder / name).write_text(text)
    return [sys.executable, str(folder / name)]


@contextmanager
def ranks(folder: Path, count: int, text: str = LIGHT) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Several processes of one job."""
    if not count:
        yield []
        return
    env = agents(folder, RANK=str(count - 1))
    with ranks(folder, count - 1, text) as others, running(folder, words(folder, text), env, unharmed=False) as job:
        yield [*others, job]


def state(daemon: Daemon) -> dict[int, dict[str, Any]]:
    """The agents that the daemon knows, by their numbers."""
    shown = daemon.ask(rpc.simple_request("getStatus"))["processes"]
    return {one["pid"]: one for one in shown if one["client"] == "msmonitor" and one.get("health") != "exited"}


def known(daemon: Daemon, pids: Sequence[int]) -> None:
    """Wait until the processes have registered and said where they stand."""
    wait_until(
        lambda: all(state(daemon).get(pid, {}).get("monitor") for pid in pids), REGISTER_SECONDS, "not registered"
    )


def shows(daemon: Daemon, pid: int, seconds: float = 60.0, **what: object) -> None:
    """Wait until the daemon shows this of a process."""
    wait_until(
        lambda: what.items() <= state(daemon).get(pid, {}).items(), seconds, f"not {what}: {state(daemon).get(pid)}"
    )


def steps(job: Any, count: int) -> None:
    """Wait until a job has taken so many more steps."""
    begin = state(job.daemon)[job.pid]["step"]
    wait_until(lambda: state(job.daemon)[job.pid]["step"] >= begin + count, 90, "the job does not step")


def monitor(daemon: Daemon, *flags: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`dyno npu-monitor`."""
    done = daemon.dyno("npu-monitor", *flags)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def runs(folder: Path, pid: int | None = None) -> list[dict[str, Any]]:
    """What was collected, one entry for each collection, the oldest first."""
    found = [json.loads(path.read_text()) for path in folder.glob(f"run_{pid or '*'}_*.json")]
    return sorted(found, key=lambda run: run["started"])


def log(folder: Path, pid: int) -> str:
    """What a process's agent has logged."""
    return "".join(path.read_text() for path in (folder / "msmonitor_log").glob(f"msmonitor_{pid}_*.log"))


def length(run: dict[str, Any]) -> float:
    """Seconds that a collection took, by its own account."""
    return (run["ended"] - run["started"]) / 1e9


def here(pid: int) -> bool:
    """Whether a process is there."""
    return os.path.exists(f"/proc/{pid}")
