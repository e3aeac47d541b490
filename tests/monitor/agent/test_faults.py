"""What goes wrong around an agent: the daemon, the disk, the job itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agent import jobs
from agent.jobs import LIGHT, agents, known, log, monitor, ranks, runs, shows, state, words
from daemon_process import Daemon
from training import running, wait_until

from npuscope.monitor.protocol import rpc

START = ("--npu-monitor-start", "--mspti-activity-kind", "Kernel")
ENDING = """
import atexit, os, sys, time
times = []
atexit.register(lambda: open("times", "w").write(f"{times[0]} {time.monotonic()}"))
import own_parts
from npuscope.monitor import agent
agent.start()
given = 0
while given < 5 or not os.path.exists("end"):
    own_parts.SOURCE.give("MatMul")
    given += own_parts.SOURCE.deliver is not None
    time.sleep(0.01)
times.append(time.monotonic())
"""


def test_a_daemon_that_dies_and_returns_finds_all_as_it_was(
    folder: Path, start_daemon: Callable[[str], Daemon]
) -> None:
    first = start_daemon("first")
    with running(folder, words(folder, LIGHT), agents(folder)) as job:
        known(first, [job.pid])
        monitor(first, *START, "--duration", "0")
        shows(first, job.pid, monitor="Running")
        first.process.kill()
        first.process.wait(20)
        died = time.time_ns()
        second = start_daemon("second")
        known(second, [job.pid])
        shows(second, job.pid, monitor="Running")  # it was told with the registration
        wait_until(lambda: time.time_ns() - died > 1e9, 60)
        monitor(second, "--npu-monitor-stop")
        shows(second, job.pid, monitor="Idle", monitorEnded="stopped")
    (run,) = runs(folder)
    assert run["started"] < died and max(run["starts"]) > died  # it went on without a daemon


def test_a_job_waits_for_no_daemon_at_its_end(folder: Path, start_daemon: Callable[[str], Daemon]) -> None:
    daemon = start_daemon("first")
    text = f"import os\nos.chdir({str(folder)!r})\n{ENDING}"
    with running(folder, words(folder, text), agents(folder), unharmed=False) as job:
        known(daemon, [job.pid])
        monitor(daemon, *START, "--duration", "3600")  # longer than the job
        shows(daemon, job.pid, monitor="Running")
        daemon.process.kill()
        daemon.process.wait(20)
        (folder / "end").touch()
        assert job.wait(60) == 0
        begin, end = map(float, (folder / "times").read_text().split())
        assert end - begin < 5  # the tries of a single message take ten
        (run,) = runs(folder)
        assert len(run["names"]) > 3 and run["ended"] >= max(run["starts"])


def test_a_job_that_ends_says_good_bye(folder: Path, agent_daemon: Daemon) -> None:
    text = f"import os\nos.chdir({str(folder)!r})\n{ENDING}"
    with running(folder, words(folder, text), agents(folder), unharmed=False) as job:
        known(agent_daemon, [job.pid])
        monitor(agent_daemon, *START)
        shows(agent_daemon, job.pid, monitor="Running")
        (folder / "end").touch()
        assert job.wait(60) == 0
    wait_until(lambda: agent_daemon.ask(rpc.simple_request("getStatus"))["npumonitor"] == "Uninitialized", 60)


def test_every_rank_is_told_and_one_that_dies_hides_no_other(folder: Path, agent_daemon: Daemon) -> None:
    with ranks(folder, 5) as members:
        pids = [one.pid for one in members]
        known(agent_daemon, pids)
        done = monitor(agent_daemon, *START, "--duration", "0")
        assert '"activityProfilersTriggered"' in done.stdout  # five, though the command line always says three
        for pid in pids:
            shows(agent_daemon, pid, monitor="Running")
        assert sorted(one["rank"] for one in state(agent_daemon).values()) == [0, 1, 2, 3, 4]
        members[1].kill()
        members[1].wait(20)
        wait_until(lambda: agent_daemon.ask(rpc.simple_request("getStatus"))["summary"]["ranks"] == 4, 60)
        assert agent_daemon.ask(rpc.simple_request("getStatus"))["npumonitor"] == "Running"
        monitor(agent_daemon, "--npu-monitor-stop")
        for pid in set(pids) - {pids[1]}:
            shows(agent_daemon, pid, monitor="Idle", monitorEnded="stopped")
        assert agent_daemon.ask(rpc.simple_request("getStatus"))["npumonitor"] == "Idle"  # the dead one says no more
    assert len(runs(folder)) == 4


def test_one_rank_that_cannot_write_is_told_from_the_others(folder: Path, agent_daemon: Daemon) -> None:
    """Each rank starts in a folder of its own, so that a relative path means another one for each."""
    for name in ("good", "bad"):
        (folder / name).mkdir()
    (folder / "bad" / "out").touch()  # a file where the folder is to be
    script = words(folder, f"import os\nos.chdir(os.environ['PLACE'])\n{LIGHT}")
    with (
        running(folder, script, agents(folder, PLACE=str(folder / "good"))) as good,
        running(folder, script, agents(folder, PLACE=str(folder / "bad"))) as bad,
    ):
        known(agent_daemon, [good.pid, bad.pid])
        text = "NPU_MONITOR_START=true\nMSPTI_ACTIVITY_KIND=Kernel,Oops\nNPU_MONITOR_LOG_FILE="
        # The daemon takes absolute paths only; what is relative comes through one that leads elsewhere for each. It
        # is below the temporary folder for the daemon too, which runs in `folder`.
        reply = agent_daemon.ask(rpc.trace_request(text + "/proc/self/cwd/out", 0, [0], 3))
        assert reply["activityProfilersTriggered"], reply
        shows(agent_daemon, good.pid, monitor="Running")
        shows(agent_daemon, bad.pid, monitor="Idle", monitorError="permission error")
        assert "ERR00012" in log(folder, bad.pid) and "the kind 'Oops' is skipped" in log(folder, good.pid)
        assert good.poll() is None and bad.poll() is None
        table = daemon_table(agent_daemon)
        assert "monitor runs" in table and "last command: permission error" in table


def daemon_table(daemon: Daemon) -> str:
    """What `dyno status` shows at a terminal."""
    words = [sys.executable, "-m", "npuscope.cli.dyno", "--port", str(daemon.port), "status"]
    command = f"import pty; pty.spawn({words!r})"
    env = jobs.environment(daemon.folder, COLUMNS="200")
    return subprocess.run([sys.executable, "-c", command], env=env, capture_output=True, text=True, timeout=60).stdout


def test_commands_that_make_no_sense_are_refused_by_the_process(folder: Path, agent_daemon: Daemon) -> None:
    with running(folder, words(folder, LIGHT), agents(folder)) as job:
        known(agent_daemon, [job.pid])
        for text, error in (
            ("DURATION=inf", "invalid value"), ("MSPTI_ACTIVITY_KIND=Oops", "invalid parameter"),
            ("MSPTI_ACTIVITY_KIND=Hccl", "resource unavailable"),
        ):  # fmt: skip
            agent_daemon.ask(rpc.trace_request(f"NPU_MONITOR_START=true\n{text}", 0, [0], 3))
            shows(agent_daemon, job.pid, monitor="Idle", monitorError=error)
        monitor(agent_daemon, *START, "--duration", "0.1")
        shows(agent_daemon, job.pid, monitor="Idle", monitorEnded="expired")
        assert "monitorError" not in state(agent_daemon)[job.pid] and len(runs(folder)) == 1
