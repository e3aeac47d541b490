"""Simulator dumps: how fast they are read, beside the public package `cannlog` on the same files.

    python benchmarks/ingest.py [--peer PYTHON] [--megabytes N]

The logs are written from our own model: a kernel's timeline, repeated until they have the size wanted. PYTHON is an
interpreter that has `cannlog` (``python -m venv peer && peer/bin/pip install cannlog``); without one only our own speed
is shown. Both sides run on one thread and are measured in CPU seconds: ours reads, pairs and links everything into a
timeline; the peer turns every line into an event, which is the first thing that its pages ask for, and pairs flags. The
last line is what the first run on a machine costs, on which the reader is compiled.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.ingest import read_dumps, write_dumps
from npuscope.trace.file import read_batches
from npuscope.trace.rows import launches
from npuscope.trace.timeline import SLICE_COLUMNS, TRANSFER_COLUMNS, UNKNOWN, Timeline

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "examples" / "pyasc" / "add_queues.py"
CHIP = "Ascend950PR"  # its logs have IDs, without which the peer reads no instruction
TARGET_SPEED, TARGET_RATIO, TARGET_COMPILED = 30, 10, 6
REPEATS = 3
TIMES = ("fetch", "control", "issue", "start", "end")

PEER = """
import sys, time
from cannlog.parser import LogParser
best = {}
for _ in range(int(sys.argv[3])):
    for what in ("events", "flags"):
        parser = LogParser(sys.argv[1])
        start = time.process_time()
        if what == "flags":
            parser.sync_analysis()
        else:
            count = 0
            for file in parser._files:
                if sys.argv[2] in file.name:
                    for event in parser._iter_events(file, parser.absolute_path(file.path)):
                        count += 1
        best[what] = min(best.get(what, 1e9), time.process_time() - start)
print(best["events"], best["flags"], count)
"""


READ_ONE = """
import sys
from pathlib import Path
from npuscope.npu.chip import load_chip
from npuscope.profiler.ingest import read_dumps
list(read_dumps(Path(sys.argv[1]), load_chip(sys.argv[2])))
"""


class Repeated(Sequence[str]):
    """A sequence's items over and over."""

    def __init__(self, items: list[str], times: int) -> None:
        self.items, self.times = items, times

    def __len__(self) -> int:
        return len(self.items) * self.times

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return self.items[int(index) % len(self.items)]


def repeated(timeline: Timeline, times: int) -> Timeline:
    """The same launch run `times` times in a row on the same cores."""
    count, span = timeline.slices.shape[1], timeline.cycles
    turn = np.repeat(np.arange(times), count)
    slices = np.tile(timeline.slices, times)
    for name in TIMES:
        row = SLICE_COLUMNS.index(name)
        slices[row] = np.where(slices[row] == UNKNOWN, UNKNOWN, slices[row] + turn * span)
    transfers = np.tile(timeline.transfers, times)
    turn = np.repeat(np.arange(times), timeline.transfers.shape[1])
    transfers[TRANSFER_COLUMNS.index("slice")] += turn * count
    for name in ("start", "end"):
        transfers[TRANSFER_COLUMNS.index(name)] += turn * span
    edges = np.tile(timeline.edges, times)
    edges[:2] += np.repeat(np.arange(times), timeline.edges.shape[1]) * count
    details = Repeated(list(map(timeline.details.__getitem__, range(count))), times)
    return replace(timeline, cycles=span * times, slices=slices, details=details, transfers=transfers, edges=edges)


def model(folder: Path) -> Timeline:
    """The timeline of a kernel."""
    trace = folder / "kernel.trace"
    command = [sys.executable, "-m", "npuscope", "record", "-o", str(trace), str(KERNEL)]
    subprocess.run(command, check=True, capture_output=True)
    rows = next(launches(read_batches(trace)))
    return time_launch(rows, load_chip(CHIP))


def size(folder: Path, word: str = "") -> float:
    """Megabytes of the files whose name has `word` in it."""
    return sum(file.stat().st_size for file in folder.iterdir() if word in file.name) / 1e6


def cpu(folder: Path) -> tuple[float, Timeline]:
    """(CPU seconds of the best of some runs, what was read)."""
    best = float("inf")
    chip = load_chip(CHIP)
    for _ in range(REPEATS):
        start = time.process_time()
        (timeline,) = read_dumps(folder, chip)
        best = min(best, time.process_time() - start)
    return best, timeline


def peer(python: str, folder: Path, word: str) -> tuple[float, float, int]:
    """(CPU seconds for events, for flags, events) of the peer on the files whose name has `word` in it."""
    command = [python, "-c", PEER, str(folder), word, "1"]
    events, flags, count = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(events), float(flags), int(count)


def compiled(folder: Path, cache: Path) -> float:
    """CPU seconds that a first run takes more than a second one."""
    spent = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", READ_ONE, str(folder), CHIP]
        subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return spent[0] - spent[1]


def show(what: str, megabytes: float, ours: float, theirs: float | None) -> None:
    """One line."""
    beside = (
        f"  cannlog {megabytes / theirs:6.1f} MB/s  ratio {theirs / ours:5.1f} (target >= {TARGET_RATIO})"
        if theirs
        else ""
    )
    print(
        f"{what:<44} {megabytes:6.1f} MB {ours:6.2f} s {megabytes / ours:7.1f} MB/s (target >= {TARGET_SPEED}){beside}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="interpreter that has cannlog")
    parser.add_argument("--megabytes", type=float, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        timeline = model(folder)
        write_dumps(timeline, folder / "once")
        read_dumps(folder / "once", load_chip(CHIP))  # compiles
        instructions = replace(timeline, transfers=timeline.transfers[:, :0])
        for row in ("fetch", "control"):
            instructions.slices[SLICE_COLUMNS.index(row)] = UNKNOWN
        for what, one, word in (("instruction logs", instructions, "instr"), ("all logs", model(folder), "")):
            dumps = folder / what.split()[0]
            write_dumps(one, dumps / "once")
            times = int(np.ceil(options.megabytes / size(dumps / "once")))
            write_dumps(repeated(one, times), dumps / "many")
            seconds, read = cpu(dumps / "many")
            theirs = peer(options.peer, dumps / "many", word) if options.peer else None
            assert read.slices.shape[1] == times * one.slices.shape[1]
            show(
                f"{what}: {read.slices.shape[1]} slices",
                size(dumps / "many"),
                seconds,
                sum(theirs[:2]) if theirs else None,
            )
            if theirs:
                show("  events of the peer only, without flags", size(dumps / "many"), seconds, theirs[0])
        seconds = compiled(folder / "once", folder / "cache")
        print(f"compiling the reader, once on a machine{'':<18} {seconds:6.2f} s (limit {TARGET_COMPILED})")


if __name__ == "__main__":
    main()
