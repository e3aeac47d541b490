"""`npuscope cluster` on the files of a simulated job: how often it is right, how long it takes, and what a peer takes.

    python benchmarks/cluster.py accuracy [SEEDS]
    python benchmarks/cluster.py scale [RANKS] [STEPS] [--keep FOLDER] [--processes N]
    python benchmarks/cluster.py peer MSPROF_ANALYZE [RANKS]

`accuracy` lets healthy jobs and jobs with one slow rank run, with 3 % noise, and counts false alarms and hits. `scale`
writes real databases of a job with one slow rank and one slow link, and takes the time and the memory of the command.
`peer` takes the time of the peer's recipes on the same files, those that read kernels and collectives as ours does.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simulated_cluster import Job, Run, all_records, records, simulate, write_database

from npuscope.monitor.analysis.cluster import Cluster, analyse
from npuscope.monitor.analysis.reduction import reduced

SLOW_RANK, SLOW_COLUMN = 37, 3
RECIPES = ("compute_op_sum", "hccl_sum")


def judged(job: Job) -> Cluster:
    """A job, without files in between."""
    return analyse([reduced(one) for one in all_records(simulate(job))])


def accuracy(most: int) -> None:
    """Count false alarms and hits."""
    for ranks, tensor, seeds in ((2, 1, most), (8, 1, most), (16, 4, most), (64, 8, most // 4)):
        alarms = sum(
            bool((found := judged(Job(ranks, tensor, seed=seed))).slow or found.links) for seed in range(seeds)
        )
        hiccups = sum(bool(judged(Job(ranks, tensor, seed=seed, hiccups=0.01)).slow) for seed in range(seeds))
        line = f"{ranks:4} ranks: {alarms} false alarms in {seeds} healthy jobs, {hiccups} in {seeds} with hiccups"
        for slower in (1.05, 1.1):
            hits = wrong = 0
            for seed in range(seeds):
                slow = seed % ranks
                named = {one.rank for one in judged(Job(ranks, tensor, seed=seed, slow={slow: slower})).slow}
                hits += slow in named
                wrong += bool(named - {slow})
            line += f"; {slower - 1:.0%} slower: {hits} of {seeds} named, {wrong} times another"
        print(line, flush=True)


def write(folder: Path, ranks: int, steps: int) -> Run:
    """The files of a job; one rank is 5 % slow, one column's link half as fast again."""
    tensor = 8 if ranks % 8 == 0 and ranks >= 64 else 1
    job = Job(ranks, tensor, steps, slow={min(SLOW_RANK, ranks - 1): 1.05}, links={SLOW_COLUMN: 1.5})
    run = simulate(job)
    for rank in range(ranks):
        write_database(records(run, rank), folder)
    return run


def scale(ranks: int, steps: int, keep: Path | None, processes: int | None) -> None:
    """Write the files where they are not there, and take the command's time."""
    folder = keep or Path(tempfile.mkdtemp(prefix="npuscope-cluster-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        there = len(list(folder.glob("msmonitor_*.db")))
        begin = time.perf_counter()
        if there != ranks:
            write(folder, ranks, steps)
        size = sum(one.stat().st_size for one in folder.glob("msmonitor_*.db"))
        print(f"{ranks} files, {size / 1e9:.2f} GB, written in {time.perf_counter() - begin:.0f} s", flush=True)
        words = [sys.executable, "-m", "npuscope", "cluster", str(folder), "--format", "json"]
        words += ["--processes", str(processes)] if processes else []
        begin = time.perf_counter()
        with subprocess.Popen(words, stdout=subprocess.PIPE) as command:
            assert command.stdout
            answer = json.loads(command.stdout.read())
            _, _, usage = os.wait4(command.pid, 0)
        seconds = time.perf_counter() - begin
        print(f"npuscope cluster: {seconds:.1f} s on {os.cpu_count()} cores, {ranks / seconds:.0f} ranks a second, ")
        worked = usage.ru_utime + usage.ru_stime
        print(f"  {worked:.1f} s of processor and {usage.ru_maxrss / 1e6:.2f} GB in the process that compares")
        print(f"  {answer['verdict']}")
        for one in answer["slow_ranks"]:
            print(f"  {one['text'][0]}")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def peer(tool: str, ranks: int) -> None:
    """Our command and the peer's recipes on the same files."""
    with tempfile.TemporaryDirectory(prefix="npuscope-cluster-") as name:
        folder = Path(name) / "data"
        folder.mkdir()
        write(folder, ranks, 200)
        words = [sys.executable, "-m", "npuscope", "cluster", str(folder), "--processes", "1", "-o", f"{name}/ours"]
        ours, work = timed(words)
        print(
            f"npuscope cluster, {ranks} ranks, one process, page and tables: {ours:.1f} s, {work:.1f} s of processor",
            flush=True,
        )
        for recipe in RECIPES:
            words = ["cluster", "-m", recipe, "-d", str(folder), "-o", f"{name}/{recipe}", "--export_type", "db"]
            theirs, worked = timed([tool, *words])
            print(
                f"msprof-analyze {recipe}: {theirs:.1f} s ({theirs / ours:.1f} times as long), "
                f"{worked:.1f} s of processor ({worked / work:.1f} times as much)",
                flush=True,
            )


def timed(words: list[str]) -> tuple[float, float]:
    """Seconds of a command, and those that it and its processes worked. What it says is kept for when it fails."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begin, worked


def main() -> None:
    """One of the three."""
    words = sys.argv[1:]
    options = {word: words[words.index(word) + 1] for word in ("--keep", "--processes") if word in words}
    plain = [word for word in words if word not in options and word not in options.values()]
    verb, *rest = plain or ["accuracy"]
    if verb == "accuracy":
        accuracy(int(rest[0]) if rest else 100)
    elif verb == "scale":
        ranks, steps = int(rest[0]) if rest else 4096, int(rest[1]) if len(rest) > 1 else 200
        keep = Path(options["--keep"]) if "--keep" in options else None
        scale(ranks, steps, keep, int(options["--processes"]) if "--processes" in options else None)
    elif verb == "peer" and rest:
        peer(rest[0], int(rest[1]) if len(rest) > 1 else 64)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
