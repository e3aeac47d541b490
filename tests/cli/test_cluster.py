"""`npuscope cluster` as a person runs it."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPLAINED = "rank 5 on node0 is slow steadily: its own time is "


def simulated() -> ModuleType:
    """The simulated job of the benchmarks."""
    spec = spec_from_file_location("simulated_cluster", ROOT / "benchmarks" / "simulated_cluster.py")
    assert spec and spec.loader
    module = sys.modules["simulated_cluster"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cluster(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "npuscope", "cluster", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files(tmp_path_factory.mktemp("slow"), slow={5: 1.1}, tensor=2)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files(tmp_path_factory.mktemp("healthy"))


def files(folder: Path, **about: object) -> Path:
    made = simulated()
    for one in made.all_records(made.simulate(made.Job(ranks=8, steps=60, **about))):
        made.write_database(one, folder)
    return folder


def test_a_slow_rank_is_named_with_its_evidence(slow: Path) -> None:
    done = cluster(slow)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("8 ranks on 1 host, 60 steps, 6 communicators; a step takes ")
    assert lines[1] == "rank 5 is slow"
    (found,) = (at for at, line in enumerate(lines) if line.startswith(EXPLAINED))
    assert "above that of its 7 peers; confidence above 99.99 %" in lines[found]
    assert lines[found + 2].startswith("  waits ")
    alike = re.fullmatch(r"  all its operators take (\S+) times as long: look at the card \(.*\)", lines[found + 4])
    assert alike and float(alike[1]) == pytest.approx(1.1, abs=0.015)
    assert lines[-1].startswith("  dyno --hostname node0 nputrace --rank-list 5 --process-limit 8 ")


@pytest.mark.parametrize(
    ("named", "flags", "code"), [(True, ["--fail-if-slow"], 1), (False, ["--fail-if-slow"], 0), (True, [], 0)]
)
def test_exit_codes(named: bool, flags: list[str], code: int, slow: Path, healthy: Path) -> None:
    done = cluster(slow if named else healthy, *flags)
    assert done.returncode == code
    verdict = done.stdout.splitlines()[1]
    assert (
        verdict == "rank 5 is slow"
        if named
        else verdict.startswith("no rank is slow beyond noise: the largest deviation is rank ")
    )


def test_the_document_and_the_tables(slow: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    done = cluster(slow, "--format", "json", "-o", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((out / "cluster.json").read_text())
    (one,) = found["slow_ranks"]
    assert (one["rank"], one["pattern"], one["cause"], one["host"]) == (5, "steady", "compute", "node0")
    assert found["trace"] and not found["partial"]
    assert found["steps"] == list(range(1, 61))
    with (out / "rank_steps.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8 * 60
    for row in rows:
        duration, compute, alone, idle = (
            int(row[name]) for name in ("duration_ns", "compute_ns", "exposed_communication_ns", "idle_ns")
        )
        assert duration == compute + alone + idle
        assert int(row["waiting_ns"]) <= alone <= int(row["communication_ns"])
    mine = sorted(int(row["waiting_ns"]) for row in rows if row["rank"] == "5")
    assert one["waiting"] == (mine[29] + mine[30]) / 2
    with (out / "communicator_steps.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6 * 60
    assert {row["communicator"] for row in rows} >= {"dp (dp_1)", "tp (tp_2)"}
    assert all(int(row["transfer_ns"]) > 0 and int(row["longest_wait_ns"]) <= int(row["waiting_ns"]) for row in rows)
    assert (out / "cluster.html").read_text().startswith("<!doctype html>")


def test_limits_are_what_was_asked_for(slow: Path) -> None:
    assert "rank 5 is slow" in cluster(slow, "--threshold", "5").stdout
    quiet = cluster(slow, "--threshold", "20", "--fail-if-slow")
    assert quiet.returncode == 0 and "20 % would count" in quiet.stdout
    few = cluster(slow, "--skip-steps", "55")
    assert "5 steps are too few to name a steadily slow rank: 17 are needed" in few.stdout
    assert few.returncode == 0 and few.stdout.splitlines()[0].startswith("8 ranks on 1 host, 5 steps")


def test_what_is_left_out_is_said(slow: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(slow, tmp_path / "files"))
    next(folder.glob("*_3.db")).write_bytes(b"")
    done = cluster(folder)
    assert "left out: rank 3: " in done.stdout and "the file is empty" in done.stdout
    assert "note: no file of rank 3, which the communicators name" in done.stdout
    assert json.loads(cluster(folder, "--format", "json").stdout)["partial"] is True


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "Missing argument"),
        (["/nowhere/at/all"], "npuscope: there is no /nowhere/at/all"),
        (["{empty}"], "npuscope: no files of ranks in "),
        (
            ["{empty}", "--scheduler", "tcp://127.0.0.1:9", "--processes", "2"],
            "npuscope: --processes are this machine's",
        ),
        (["{empty}", "http://127.0.0.1:9"], "npuscope: either URLs or files can be compared"),
        (["http://127.0.0.1:9/metrics"], "npuscope: no metrics from http://127.0.0.1:9/metrics: "),
        (["{slow}", "-o", "{slow}/file/below"], "npuscope: cannot make "),
        (["{slow}", "--threshold", "0"], "Invalid value for '--threshold'"),
        (["{slow}", "--skip-steps", "60"], "npuscope: no steps are left after the first 60"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(words: list[str], line: str, slow: Path, tmp_path: Path) -> None:
    (slow / "file").write_text("")
    done = cluster(*(word.format(empty=tmp_path, slow=slow) for word in words))
    assert done.returncode == 2
    assert line in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
