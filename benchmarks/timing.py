"""The timing model against published times: every row's modelled figure beside the published one.

``python benchmarks/timing.py`` prints the table; ``--write`` makes docs/timing.md of the same run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from timing_cases import page  # noqa: E402
from timing_cases.measure import Spent  # noqa: E402
from timing_cases.results import Result, Summary, silicon_rows, simulator, summaries  # noqa: E402


def main() -> None:
    """Run the kernels and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="*", default=[""], help="only rows whose name contains one of these")
    parser.add_argument("--group", choices=("simulator", "silicon"), help="only this group")
    parser.add_argument("--fact", action="append", default=[], metavar="NAME=VALUE", help="another value for a fact")
    parser.add_argument("--write", action="store_true", help="write docs/timing.md")
    parser.add_argument("--json", action="store_true", help="each figure as a line of JSON, and nothing else")
    options = parser.parse_args()
    if options.write and (any(options.wanted) or options.group or options.fact):
        parser.error("--write needs a whole run")
    facts = {name: float(value) for name, _, value in (fact.partition("=") for fact in options.fact)}
    found = chain(
        simulator(options.wanted, facts) if options.group != "silicon" else (),
        silicon_rows(options.wanted, facts) if options.group != "simulator" else (),
    )
    if options.json:
        for result, _ in found:
            print(json.dumps(asdict(result) | {"error": result.error}))
        return
    report([result for result, _ in shown(found)], options.write)


def report(results: list[Result], write: bool) -> None:
    """The errors of each group, and the page."""
    found = summaries(results)
    print("\n".join(map(summary_line, found)))
    print(f"{time.process_time():.0f} CPU s")
    if write:
        (ROOT / "docs" / "timing.md").write_text(page.text(results, found, time.process_time() / 60))


def shown(results: Iterator[tuple[Result, Spent]]) -> Iterator[tuple[Result, Spent]]:
    """The same, each printed as it comes."""
    for result, spent in results:
        print(line(result, spent), flush=True)
        yield result, spent


def line(result: Result, spent: Spent) -> str:
    """One figure: published, modelled, by how much it is off, what it was used for, CPU seconds of run and timing."""
    name = f"{result.row} {result.chip[6:]} {result.case}"
    figures = f"{result.metric:8} {result.published:12.3f} {result.modelled:12.3f} {result.error:+7.1%}"
    return f"{name:60.60} {figures}  {result.use:8} {spent.run:5.1f} {spent.timing:5.2f}"


def summary_line(summary: Summary) -> str:
    """A group's errors."""
    limits = " and ".join(
        f"{what} < {limit:.0%}" for what, limit in zip(("median", "90 %"), summary.targets, strict=True) if limit
    )
    verdict = f"  (target {limits}: {'met' if summary.met else 'missed'})" if limits else ""
    return (
        f"{summary.group:10} {summary.use or 'all':9} {summary.count:4} figures, "
        f"error: median {summary.median:6.1%}, 90 % of them below {summary.high:6.1%}{verdict}"
    )


if __name__ == "__main__":
    main()
