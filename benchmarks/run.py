"""Speed figures: each beside its limit or peer, in one run, as a ratio. ``make bench``."""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuscope.frontends.launch import Session

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
    print(f"{what:<46} {figures}  {f'({target})' if target else ''}".rstrip())


def simulated_add() -> None:
    """`run` against the numpy copies that the kernel stands for."""
    import add_kernel

    session = simulated()
    data = add_kernel.prepare()
    add_kernel.launch(*data)
    assert (data[2] == data[0] + data[1]).all()
    session.recorder.consumers.clear()
    plain, ran = (1e3 * value for value in best_of(lambda: add_kernel.plain(*data), lambda: add_kernel.launch(*data)))
    show("add of 4 Mi floats, 8 cores: run", ran, "ms", plain, "numpy copies", "target <= 3")


@cache
def simulated() -> Session:
    """The session whose front ends are installed in this process."""
    from npuscope.frontends import install_all
    from npuscope.frontends.launch import Session

    session = Session()
    install_all(session)
    return session


def all_checks() -> None:
    """`check` with every check on against `run`, for each kernel."""
    from npuscope.sanitizer.suite import Suite

    session = simulated()
    names = {"add": "add of 4 Mi floats", "softmax": "softmax of 2048 x 1024", "matmul": "matmul of 512"}
    for name, what in names.items():
        kernel = importlib.import_module(f"{name}_kernel")
        data = kernel.prepare()

        def run() -> None:
            session.recorder.consumers.clear()
            kernel.launch(*data)  # noqa: B023 - called in this turn

        def check() -> None:
            session.recorder.consumers[:] = [Suite().check]
            kernel.launch(*data)  # noqa: B023

        check()
        ran, checked = (1e3 * value for value in best_of(run, check))
        show(f"{what}: all checks", checked, "ms", ran, "run         ", "target <= 2")


def small_tiles() -> None:
    """Instructions a second through all checks: an add in tiles of 256 floats, its trace recorded before."""
    import add_kernel

    from npuscope.sanitizer.suite import Suite
    from npuscope.trace.recorder import Batch

    session = simulated()
    batches: list[Batch] = []
    session.recorder.consumers[:] = [batches.append]
    data = add_kernel.prepare()
    add_kernel.launch(*data, tile=256)
    instructions = sum(batch.instruction.shape[1] for batch in batches)

    def check() -> None:
        suite = Suite()
        for batch in batches:
            suite.check(batch)
        assert not suite.findings

    def run() -> None:
        session.recorder.consumers.clear()
        add_kernel.launch(*data, tile=256)

    def both() -> None:
        session.recorder.consumers[:] = [Suite().check]
        add_kernel.launch(*data, tile=256)

    check()
    checked, ran, together = (instructions / spent / 1e3 for spent in best_of(check, run, both))
    show(f"add, {instructions:,} instructions: all checks", checked, "k/s", 300, "floor       ", "target >= 1")
    show("the same: run and all checks together", together, "k/s", ran, "run         ", "")


def memory() -> None:
    """Peak memory of a `check` process whose kernel adds 4 Mi floats (48 MB of arrays)."""
    launches = "data = add_kernel.prepare(); add_kernel.launch(*data); add_kernel.launch(*data, tile=256)"
    code = (
        "import resource, sys;"
        "from npuscope.cli.session import run_in_session; from npuscope.sanitizer.suite import Suite;"
        "run_in_session((Suite().check,), None, sys.argv[1], [], False);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "add.py"
        file.write_text(f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import add_kernel; {launches}")
        done = subprocess.run([sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True)
    peak = int(done.stdout) / 1024
    show("add of 4 Mi floats, two launches: memory", peak, "MB", 400, "limit       ", "target <= 1")


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
    all_checks()
    small_tiles()
    memory()
    start_to_exit()


if __name__ == "__main__":
    main()
