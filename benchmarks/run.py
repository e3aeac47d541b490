"""Speed figures: each beside its limit or peer, in one run, as a ratio. ``make bench``."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 15


def best_of(*functions: Callable[[], object]) -> list[float]:
    """The shortest time of each function in seconds, the functions taking turns so that drift hits all alike."""
    times = [float("inf")] * len(functions)
    for _ in range(REPEATS):
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[index] = min(times[index], time.perf_counter() - start)
    return times


def show(what: str, value: float, unit: str, limit: float, limit_name: str, target: str) -> None:
    """One line: the figure, the limit, the ratio, the target."""
    figures = f"{value:9.2f} {unit:<4} {limit_name} {limit:9.2f} {unit:<4} ratio {value / limit:6.2f}"
    print(f"{what:<44} {figures}  ({target})")


def simulated_add() -> None:
    """`run` against the numpy copies that the kernel stands for; `check` against `run`."""
    from npuscope.frontends import install_all
    from npuscope.frontends.launch import Session
    from npuscope.sanitizer.suite import Suite

    session = Session()
    install_all(session)
    import add_kernel

    data = add_kernel.prepare()

    def run() -> None:
        session.recorder.consumers.clear()
        add_kernel.launch(*data)

    def check() -> None:
        session.recorder.consumers[:] = [Suite().check]
        add_kernel.launch(*data)

    run()
    assert (data[2] == data[0] + data[1]).all()
    plain, simulated, checked = (1e3 * value for value in best_of(lambda: add_kernel.plain(*data), run, check))
    show("add of 4 Mi floats, 8 cores: run", simulated, "ms", plain, "numpy copies", "target <= 3")
    show("add of 4 Mi floats, 8 cores: check", checked, "ms", simulated, "run         ", "target <= 2")


def start_to_exit() -> None:
    """CPU seconds of a whole `npuscope check` process, against an interpreter that imports numpy and pyasc."""
    program = "from npuscope.cli.main import main; main()"
    command = [sys.executable, "-c", program, "check", str(ROOT / "examples" / "pyasc" / "add_flags.py")]
    bare = [sys.executable, "-c", "import numpy, asc"]
    show("check examples/pyasc/add_flags.py, process", cpu_seconds(command), "s", cpu_seconds(bare), "bare imports",
         "target < 3 s")


def cpu_seconds(command: list[str]) -> float:
    """User and system time of a process, the least of three runs."""
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def main() -> None:
    """All figures."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    simulated_add()
    start_to_exit()


if __name__ == "__main__":
    main()
