"""Triton kernels under npuscope and under its peers, in one run.

    python benchmarks/triton.py [--venvs DIR] [--tools A,B] [--cases A,B] [--repeat N]

Every figure is of a process of its own: CPU seconds of the launch (inputs and reference included, imports not), the
peak memory of the process, whether the values are right. Medians of N runs; what takes longer than ten seconds runs
once. npuscope runs with every check on, a first time with an empty cache and then again.

The peers lie in environments under DIR (each with torch 2.13.0; `--venvs`): `base` with triton 3.9.0, `tsm` with triton
3.8.0 and ttsem 0.1.0, `tl36` with triton 3.6.0, tilelens 3.1.1 and 'numpy<2.4'. What is not there is said and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "benchmarks" / "triton_cases" / "kernels.py"
CASES = ("add", "softmax", "matmul", "layernorm", "attention", "histogram")
TARGETS = {"add": 0.10, "softmax": 0.30, "matmul": 0.30, "layernorm": 0.30, "attention": 0.25, "histogram": 0.10}
SMALL = ROOT / "benchmarks" / "triton_cases" / "small.py"
COLD_START = 4.0
LONG_S = 10.0
LIMIT_S = 600
OURS = "npuscope check"


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is run: which environment (None: this one), what comes before the script, and its variables."""

    venv: str | None = None
    prefix: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    cold: bool = False


TOOLS = {
    OURS: Tool(prefix=("-m", "npuscope", "check")),
    "npuscope first run": Tool(prefix=("-m", "npuscope", "check"), cold=True),
    "npuscope run": Tool(prefix=("-m", "npuscope", "run")),
    "Triton's interpreter": Tool("base", environment={"TRITON_INTERPRET": "1"}),
    "ttsem": Tool("tsm", ("-m", "ttsem.sanitize"), {"CASE_DEVICE": "cuda"}),
    "tilelens": Tool("tl36", environment={"CASE_TOOL": "tilelens:sanitizer"}),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """What a case took under a tool; `trouble` when it did not end well."""

    cpu: float = 0.0
    peak: int = 0
    right: bool = False
    trouble: str = ""

    @property
    def text(self) -> str:
        """For the table."""
        return self.trouble or f"{self.cpu:.2f} ({self.peak}{'' if self.right else ', wrong'})"


def python_of(tool: Tool, venvs: Path | None) -> str | None:
    """The interpreter of a tool, None when it is not installed."""
    if tool.venv is None:
        return sys.executable
    if venvs is None:
        return None
    path = venvs / tool.venv / "bin" / "python"
    return str(path) if path.exists() else None


def run_once(python: str, tool: Tool, case: str, cache: str) -> Figure:
    """One process."""
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XDG_CACHE_HOME": cache,
        "TRITON_CACHE_DIR": f"{cache}/triton", **tool.environment,
    }  # fmt: skip
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a tool that is installed has its bytecode
    if tool.venv is None:
        del environment["TRITON_CACHE_DIR"]
    command = [python, *tool.prefix, str(KERNELS), case]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Figure(trouble=f"over {LIMIT_S} s")
    found = re.search(r"^RESULT (\{.*\})$", done.stdout, re.MULTILINE)
    if found is None or (tool.venv is None and done.returncode):
        return Figure(trouble=f"fails ({done.returncode})")
    return Figure(**json.loads(found[1]))


def measure(python: str, tool: Tool, case: str, repeat: int, cache: str) -> Figure:
    """The median of several runs."""
    figures: list[Figure] = []
    if tool.venv is None and not tool.cold:
        run_once(python, tool, case, cache)  # fills the cache
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as empty:
            figure = run_once(python, tool, case, empty if tool.cold else cache)
        figures.append(figure)
        if figure.trouble:
            return figure
        if figure.cpu > LONG_S:
            break
    return Figure(
        statistics.median(figure.cpu for figure in figures),
        int(statistics.median(figure.peak for figure in figures)),
        all(figure.right for figure in figures),
    )


def table(rows: dict[str, dict[str, Figure]], cases: Sequence[str]) -> list[str]:
    """CPU seconds (peak MB) by tool and case, as Markdown."""
    lines = [f"| tool | {' | '.join(cases)} |", f"| --- |{' --- |' * len(cases)}"]
    lines += [f"| {name} | {' | '.join(row[case].text for case in cases)} |" for name, row in rows.items()]
    lines.append(f"| target | {' | '.join(f'{TARGETS[case]:.2f}' for case in cases)} |")
    return lines


def ratios(rows: dict[str, dict[str, Figure]], cases: Sequence[str]) -> list[str]:
    """How much longer each other tool takes than ours, case by case and as geometric mean."""
    ours = rows.get(OURS, {})
    lines = []
    for name, row in rows.items():
        if name == OURS:
            continue
        both = [case for case in cases if case in ours and not (ours[case].trouble or row[case].trouble)]
        factors = [max(row[case].cpu, 1e-3) / max(ours[case].cpu, 1e-3) for case in both]
        if factors:
            mean = exp(sum(map(log, factors)) / len(factors))
            words = ", ".join(f"{case} {factor:.1f}" for case, factor in zip(both, factors, strict=True))
            lines.append(f"{name} / {OURS}: {mean:.1f} (geometric mean; {words})")
    return lines


def cold_start(repeat: int, cache: str) -> list[str]:
    """CPU seconds of whole processes, the shortest of several: what a small script costs to check, imports and all."""
    commands = {
        "check of a 20-line script": ["-m", "npuscope", "check", str(SMALL)],
        "import torch, triton": ["-c", "import torch, triton"],
    }
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(repeat + 1):  # the first one fills the cache
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], env=environment, capture_output=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best[name] = min(best[name], spent)
    return [f"{name}: {value:.2f} CPU s" for name, value in best.items()] + [f"target: {COLD_START} CPU s"]


def chosen(text: str, known: Iterable[str]) -> list[str]:
    """Names with commas between, each one of those that are known."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return names


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=Path)
    parser.add_argument("--tools", default=",".join(TOOLS), type=lambda text: chosen(text, TOOLS))
    parser.add_argument("--cases", default=",".join(CASES), type=lambda text: chosen(text, CASES))
    parser.add_argument("--repeat", type=int, default=3)
    options: Any = parser.parse_args()
    cases = options.cases
    rows: dict[str, dict[str, Figure]] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in options.tools:
            python = python_of(TOOLS[name], options.venvs)
            if python is None:
                print(f"{name}: not installed (--venvs DIR/{TOOLS[name].venv}), left out")
                continue
            rows[name] = {}
            for case in cases:
                rows[name][case] = measure(python, TOOLS[name], case, options.repeat, cache)
                print(f"{name:22} {case:10} {rows[name][case].text}", file=sys.stderr, flush=True)
        start = cold_start(options.repeat, cache)
    print("CPU seconds of the launch (peak MB):\n")
    print("\n".join([*table(rows, cases), "", *ratios(rows, cases), "", *start]))


if __name__ == "__main__":
    main()
