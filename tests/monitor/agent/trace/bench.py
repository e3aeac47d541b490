"""Processes that are traced: with PyTorch and a `Tracer` of their own, or under a daemon with an agent."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from daemon_process import environment

PRELUDE = """
import gc, json, os, signal, sys, threading, time
import torch
from npuscope.monitor.agent.trace import Tracer
torch.set_num_threads(1)

class Log:
    def info(self, text):
        print(text, flush=True)
    warning = info

model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
tracer = Tracer(Log())

def train(steps=1):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 32)).sum().backward()
        optimizer.step()
        tracer.step()

def obey(**more):
    tracer.obey({"ACTIVITIES_LOG_FILE": sys.argv[1]} | {key: str(value) for key, value in more.items()})

def settle():
    while tracer.parsing or tracer.status.status:
        time.sleep(0.02)

def by_steps(count=2, start=-1, **more):
    obey(PROFILE_START_STEP=start, ACTIVITIES_ITERATIONS=count, **more)
"""
"""A model, and a tracer that writes its log to standard output."""


def run(folder: Path, text: str, code: int = 0, **more: str) -> str:
    """Run a program with the prelude to its end; returns what it said. Its traces go below `folder`."""
    path = folder / "traced.py"
    path.write_text(PRELUDE + text)
    done = subprocess.run(
        [sys.executable, str(path), str(folder / "out")],
        env=environment(folder, OMP_NUM_THREADS="1", **more),
        text=True,
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def traces(folder: Path) -> list[Path]:
    """The folders of traces, the oldest first."""
    return sorted(folder.glob("*_ascend_pt"), key=lambda path: path.name.split("_")[-3])


def output(trace: Path, name: str = "") -> Path:
    """The deliverables of a trace, or one of them."""
    return trace / "ASCEND_PROFILER_OUTPUT" / name


def table(trace: Path, name: str) -> list[dict[str, str]]:
    """The rows of a table."""
    with output(trace, name).open(newline="") as file:
        return list(csv.DictReader(file))


def metadata(trace: Path) -> dict[str, Any]:
    """What a trace says of itself."""
    return dict(json.loads((trace / "profiler_metadata.json").read_text()))


def leftovers(folder: Path) -> list[str]:
    """Files that no finished trace has."""
    return [str(path) for path in folder.rglob("*") if path.name.endswith((".part", ".old", ".tmp"))]


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for its exit code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parsers(of: int) -> list[int]:
    """The parsers that wait for or work for a process, or did before it died."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"npuscope.monitor.agent.trace.parse" in words and str(of).encode() in words:
            found.append(int(path.parent.name))
    return [pid for pid in found if lives(pid) and pid != os.getpid()]
