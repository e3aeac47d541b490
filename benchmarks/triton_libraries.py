"""Public Triton libraries on the simulated grid, every check on: ``triton_libraries.py [LIBRARY ...] [--only PART]``.

For each call of the tables in `libraries/`: launches, whether the values are those of torch, findings by kind, and CPU
seconds of it all, of Triton's front end, of running the programs and of the checks. Exits 1 when a value is wrong or a
call fails. A library that is not installed is said and left out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))  # the module triton.py beside this one is not what is meant by its name
LIBRARIES = ("liger", "conch", "fla", "flag_gems")


class Clock:
    """CPU seconds spent in functions by part; a part inside a part counts for the inner one."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._inner: list[float] = []

    def timed(self, part: str, function: Any) -> Any:
        """The function, timed."""

        def run(*arguments: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            begin = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                whole = time.process_time() - begin
                self.spent[part] += whole - self._inner.pop()
                if self._inner:
                    self._inner[-1] += whole

        return run


class Bench:
    """The simulated device with every check, and the calls that run on it."""

    def __init__(self, details: bool) -> None:
        from npuscope.frontends import triton as front_end
        from npuscope.frontends.launch import Session
        from npuscope.frontends.uninitialised import Poison

        self.details = details
        self.clock = Clock()
        self.session = Session(poison=Poison())
        front_end.install(self.session)
        import torch
        import triton
        import triton.compiler.compiler as compiler

        from npuscope.frontends.triton_launch import Launches

        compiler.compile = self.clock.timed("front end", compiler.compile)
        triton.compiler.compile = compiler.compile
        torch.empty(0, device="cuda")  # from now on tensors say that they lie there, as in scripts for a GPU
        Launches.launch = self.clock.timed("run", Launches.launch)

    def run(self, library: str, call: Any) -> dict[str, Any]:
        """A call's row."""
        import torch
        from libraries.call import copied, judge, outcome

        from npuscope.sanitizer.suite import Suite

        suite = Suite()
        recorder = self.session.recorder
        recorder.consumers[:] = [self.clock.timed("checks", suite.check)]
        self.clock.spent.clear()
        before = self.session.launches
        torch.manual_seed(0)
        row: dict[str, Any] = {"library": library, "call": str(call), "wrong": ""}
        begin = time.process_time()
        try:
            function, reference, arguments = call.make(call.dtype)
            begin = time.process_time()
            with self.session.poison:
                ours = outcome(function, copied(arguments, False))
            recorder.finish()
            row["seconds"] = time.process_time() - begin
            row["wrong"] = judge(call, ours, outcome(reference, copied(arguments, True)))
        except Exception as error:
            row.setdefault("seconds", time.process_time() - begin)
            row["wrong"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if self.details:
                traceback.print_exc()
        row["launches"] = self.session.launches - before
        row["parts"] = dict(self.clock.spent)
        row["findings"] = dict(
            Counter(f"{finding.severity.name.lower()}: {finding.kind}" for finding in suite.findings)
        )
        row["places"] = sorted({place(finding) for finding in suite.findings})
        row["limits"] = sorted({limit for outcome_ in suite.outcomes for limit in outcome_.limits})
        if self.details and suite.findings:
            from npuscope.report.text import findings_text

            print(findings_text(suite.findings))
        return row


def place(finding: Any) -> str:
    """Severity, class, kernel, and the line within its package."""
    frames = finding.frames or (finding.access.frames if finding.access else ())
    line = f"{frames[0].file.rpartition('site-packages/')[2]}:{frames[0].line}" if frames else ""
    return f"{finding.severity.name.lower()} {finding.kind} {finding.kernel} {line}"


def show(row: dict[str, Any]) -> None:
    """One line for a call, and more where there is more to say."""
    parts = row["parts"]
    times = "".join(f"{parts.get(part, 0.0):8.2f}" for part in ("front end", "run", "checks"))
    findings = ", ".join(f"{count} {name}" for name, count in row["findings"].items()) or "-"
    verdict = "WRONG" if row["wrong"] else "right"
    print(f"{row['library']:10}{row['call']:46}{row['launches']:5}  {verdict} {row['seconds']:8.2f}{times}  {findings}")
    for text in (*filter(None, [row["wrong"]]), *row["limits"]):
        print(f"{'':12}{text}")
    sys.stdout.flush()


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", default=LIBRARIES, metavar="LIBRARY", help=", ".join(LIBRARIES))
    parser.add_argument("--only", default="", metavar="PART", help="calls whose name has this in it")
    parser.add_argument("--details", action="store_true", help="reports of findings and tracebacks of failures")
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args()
    os.environ.setdefault("GEMS_VENDOR", "nvidia")  # flag_gems asks nvidia-smi else
    os.environ.setdefault("FLAGGEMS_CACHE_DIR", tempfile.mkdtemp(prefix="gems-"))
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    bench = Bench(options.details)
    import torch

    torch.set_num_threads(1)
    print(f"{'':56}launches values  seconds front end    run  checks  findings")
    rows = []
    for library in options.libraries:
        try:
            table = importlib.import_module(f"libraries.{library}").TABLE
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] == "libraries":
                raise
            print(f"{library}: left out, {error.name} is not installed")
            continue
        for call in table:
            if options.only in str(call):
                rows.append(bench.run(library, call))
                show(rows[-1])
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return summary(rows)


def summary(rows: list[dict[str, Any]]) -> int:
    """The last lines; 1 when something is wrong."""
    wrong = [row for row in rows if row["wrong"]]
    findings: Counter[str] = Counter()
    for row in rows:
        findings.update(row["findings"])
    launches, seconds = sum(row["launches"] for row in rows), sum(row["seconds"] for row in rows)
    told = ", ".join(f"{count} {name}" for name, count in sorted(findings.items())) or "none"
    print(
        f"{len(rows)} calls, {launches} launches, {len(rows) - len(wrong)} right, {seconds:.1f} CPU s; findings: {told}"
    )
    for row in sorted(rows, key=lambda row: -row["seconds"])[:10]:
        parts = ", ".join(f"{part} {spent:.2f}" for part, spent in row["parts"].items())
        print(f"  slowest: {row['library']} {row['call']} {row['seconds']:.2f} s ({parts})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
