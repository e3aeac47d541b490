"""Traces a PyTorch job while it runs: a daemon, two processes of `train_loop.py` as it is, and one command.

    python live_trace.py

Everything happens in a folder of its own and on a free port, and everything is ended and removed at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from processes import Trouble, dyno, listening, registered, show, started, tell_story, until

WAIT_SECONDS = 60
STEPS = 5
HERE = Path(__file__).resolve().parent


def own_times(operators: list[dict[str, Any]]) -> Counter[str]:
    """The microseconds that each operator took, without those that it called."""
    took = Counter[str]()
    for thread in {operator["tid"] for operator in operators}:
        around: list[dict[str, Any]] = []
        mine = (operator for operator in operators if operator["tid"] == thread)
        for operator in sorted(mine, key=lambda one: (one["ts"], -one["dur"])):
            while around and around[-1]["ts"] + around[-1]["dur"] <= operator["ts"]:
                around.pop()
            if around:
                took[around[-1]["name"]] -= operator["dur"]
            took[operator["name"]] += operator["dur"]
            around.append(operator)
    return took


def tell(trace: Path) -> None:
    """What a trace holds: its steps, and the operators that took the most time."""
    events = json.loads(trace.read_bytes())["traceEvents"]
    steps = {event["ts"] for event in events if str(event.get("name")).startswith("Optimizer.step#")}
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    if not operators:
        raise Trouble(f"{trace} holds no operator")
    calls = Counter(operator["name"] for operator in operators)
    print(f"\n{trace.name}: {len(steps)} optimizer steps, {len(operators)} operators. Most time went to:")
    for name, took in own_times(operators).most_common(5):
        print(f"  {name:40} {took / 1000:7.2f} ms in {calls[name]:3} calls")


def live_trace(folder: Path) -> None:
    """The whole story."""
    base = folder / "kineto.conf"
    base.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")  # jobs ask every five seconds otherwise
    environment = os.environ | {"KINETO_IPC_SOCKET_DIR": str(folder)}
    job = environment | {"KINETO_USE_DAEMON": "1", "KINETO_CONFIG": str(base), "KINETO_LOG_LEVEL": "99"}
    with contextlib.ExitStack() as processes:

        def start(words: list[str], env: dict[str, str], name: str) -> subprocess.Popen[bytes]:
            return processes.enter_context(started(words, env, folder / name))

        show("A daemon, and a training script that knows nothing of it, twice:", "npuscope monitor daemon &")
        print("  $ KINETO_USE_DAEMON=1 python train_loop.py &\n" * 2, end="", flush=True)
        words = ["-m", "npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory"]
        daemon = start(words, environment, "daemon.log")
        loops = [start([str(HERE / "train_loop.py"), "--seconds", "300"], job, f"loop{n}.log") for n in range(2)]
        port = listening(daemon, folder / "daemon.log")
        pids = {loop.pid for loop in loops}
        until(lambda: registered(environment, port).keys() >= pids, "the processes did not register")
        logs = [folder / f"loop{number}.log" for number in range(2)]
        until(lambda: all("loss" in log.read_text() for log in logs), "the processes did not train")
        show("They have registered by themselves:", "dyno status")
        for pid, state in sorted(registered(environment, port).items()):
            print(f"  process {pid}: {state}")

        log_file = folder / "trace.json"
        options = ["--iterations", str(STEPS), "--log-file", str(log_file), "--wait", str(WAIT_SECONDS)]
        show(f"{STEPS} steps of both, from outside, while they run:", f"dyno gputrace {' '.join(options)}")
        for line in dyno(environment, port, "gputrace", *options).splitlines():
            if line.startswith(("Matched", "  process")):
                print(f"  {line.strip()}")
        for pid in sorted(pids):
            tell(folder / f"trace_{pid}.json")
        show("Both train on:")
        for log in logs:
            print(f"  {log.stem}: {log.read_text().splitlines()[-1]}")


if __name__ == "__main__":
    sys.exit(tell_story("live trace", live_trace))
