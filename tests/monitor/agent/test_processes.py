"""Which of a job's processes have an agent: forks, ranks of a launcher, and those that stock PyTorch serves too."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from agent import jobs
from agent.jobs import agents, known, monitor, runs, shows, state, words
from daemon_process import Daemon
from training import running, wait_until

from npuscope.monitor.protocol import rpc

START = ("--npu-monitor-start", "--mspti-activity-kind", "Kernel")
FORKING = """
import os, sys, time
import own_parts, torch
from npuscope.monitor.agent import starting

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.set_num_threads(1)
while not os.path.exists("go"):
    optimizer.step()
    time.sleep(0.02)
for name in ("idle", "trains"):
    if os.fork() == 0:
        while True:
            if name == "trains":
                optimizer.step()
                own_parts.SOURCE.give(name)
            open(f"{name}_{os.getpid()}", "w").close()
            time.sleep(0.02)
while True:
    optimizer.step()
    own_parts.SOURCE.give("parent")
    time.sleep(0.02)
"""


def test_a_fork_that_trains_has_an_agent_of_its_own(folder: Path, agent_daemon: Daemon) -> None:
    script = words(folder, f"import os\nos.chdir({str(folder)!r})\n{FORKING}")
    with running(folder, script, agents(folder)) as job:
        known(agent_daemon, [job.pid])
        monitor(agent_daemon, *START, "--duration", "0")
        shows(agent_daemon, job.pid, monitor="Running")
        (folder / "go").touch()

        def child(name: str) -> int:
            wait_until(lambda: list(folder.glob(f"{name}_*")), 60)
            return int(next(folder.glob(f"{name}_*")).name.partition("_")[2])

        trains, idle = child("trains"), child("idle")
        known(agent_daemon, [trains])
        shows(agent_daemon, trains, monitor="Idle")  # what the parent collects is the parent's
        monitor(agent_daemon, *START, "--duration", "0")
        shows(agent_daemon, trains, monitor="Running")
        monitor(agent_daemon, "--npu-monitor-stop")
        for pid in (job.pid, trains):
            shows(agent_daemon, pid, monitor="Idle", monitorEnded="stopped")
        assert idle not in state(agent_daemon) and jobs.here(idle)
        assert set(runs(folder, job.pid)[0]["names"]) == {"parent"}
        assert set(runs(folder, trains)[0]["names"]) == {"trains"}
        os.kill(trains, signal.SIGKILL)
        os.kill(idle, signal.SIGKILL)
        assert job.poll() is None


def test_stock_pytorch_and_an_agent_in_one_process(folder: Path, agent_daemon: Daemon) -> None:
    base = folder / "kineto.conf"
    base.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    env = agents(folder, KINETO_USE_DAEMON="1", KINETO_CONFIG=str(base))
    with running(folder, words(folder), env) as job:
        known(agent_daemon, [job.pid])

        def clients() -> list[str]:
            shown = agent_daemon.ask(rpc.simple_request("getStatus"))
            return sorted(one["client"] for one in shown["processes"] if one["pid"] == job.pid)

        wait_until(lambda: clients() == ["kineto", "msmonitor"], 90)
        assert agent_daemon.ask(rpc.simple_request("getStatus"))["summary"]["processes"] == 1
        monitor(agent_daemon, *START, "--duration", "0")
        shows(agent_daemon, job.pid, monitor="Running")
        file = folder / "trace.json"
        done = agent_daemon.dyno("gputrace", "--log-file", str(file), "--duration-ms", "200", "--pids", str(job.pid))
        assert done.returncode == 0, done.stderr
        wait_until((folder / f"trace_{job.pid}.json").exists, 90)
        monitor(agent_daemon, "--npu-monitor-stop")
        shows(agent_daemon, job.pid, monitor="Idle", monitorEnded="stopped")


def test_a_launcher_has_no_agent_and_its_ranks_have(folder: Path, agent_daemon: Daemon) -> None:
    script = words(folder)[1]
    command = [sys.executable, "-m", "npuscope", "monitor", "run", "-m", "torch.distributed.run", "--nproc-per-node=2"]
    env = agents(folder)
    del env["NPUSCOPE_AGENT"]  # `run` sets it
    with running(folder, [*command, "--standalone", script], env):
        wait_until(lambda: {one["rank"] for one in state(agent_daemon).values()} >= {0, 1}, 150)
        assert sorted(str(one["rank"]) for one in state(agent_daemon).values()) == ["0", "1"]
        monitor(agent_daemon, *START, "--duration", "0.5")
        wait_until(lambda: len(runs(folder)) == 2, 90)
        assert sorted(run["rank"] for run in runs(folder)) == [0, 1]


SPAWNED = """
import os, sys, time
import own_parts
from npuscope.monitor import agent
from npuscope.monitor.agent.autostart import on_torch_import

on_torch_import()  # as `import torch` does
while True:
    if os.path.exists("go"):
        agent.step()
    time.sleep(0.02)
"""


def test_a_process_of_multiprocessing_has_an_agent_once_it_trains(folder: Path, agent_daemon: Daemon) -> None:
    """Those that load data only are never heard of; the word in the command line is multiprocessing's own."""
    text = f"import os\nos.chdir({str(folder)!r})\n{SPAWNED}"
    with (
        running(folder, [sys.executable, "-c", text, "--multiprocessing-fork"], agents(folder)) as spawned,
        running(folder, [sys.executable, "-c", text], agents(folder)) as other,
    ):
        known(agent_daemon, [other.pid])
        shown = state(agent_daemon)[other.pid]
        wait_until(lambda: state(agent_daemon)[other.pid]["polls"] > shown["polls"] + 5, 60)
        assert spawned.pid not in state(agent_daemon)
        (folder / "go").touch()
        known(agent_daemon, [spawned.pid])
        wait_until(lambda: state(agent_daemon)[spawned.pid]["step"] > 0, 60)
