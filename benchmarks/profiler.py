"""What the profiler costs, each figure beside its limit or peer, in one run.

    python benchmarks/profiler.py

* A profile (timing, counters, tables) against the plain simulation of the same kernel, in CPU seconds.
* A trace of a million instructions to all files, stage by stage and as a whole process.
* The page of 100,000 instructions in a browser without a window (left out where there is no chromium).
* The first run on a machine, on which the timing model and the writers are compiled.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from run import show, simulated  # noqa: E402

CORES, TILE, TILES = 40, 64, 2500
"""An add on all vector cores whose tiles are so small that it has a million instructions: ten for each tile."""
REPEATS = 3
TIME_ONE = """
import sys
from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.trace.file import read_batches
from npuscope.trace.rows import launches
rows = next(launches(read_batches(sys.argv[1])))
time_launch(rows, load_chip(rows.launch.chip))
"""
FORMATS = ("csv", "trace", "bin", "perfetto")
"""Of the files of one launch, in the order in which they are measured: later ones find what earlier ones made."""


def spent() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def least(function: Callable[[], object], times: int = REPEATS) -> float:
    """CPU seconds of a call, the least of several."""
    best = float("inf")
    for _ in range(times):
        start = spent()
        function()
        best = min(best, spent() - start)
    return best


def process(*command: str, **environment: str) -> float:
    """CPU seconds of a process of npuscope, or of Python where the command begins with ``-c``."""
    program = command if command[0] == "-c" else ("-m", "npuscope", *command)
    variables = {**os.environ, **environment}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # a tool that is installed has its bytecode
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *program], check=True, capture_output=True, cwd=ROOT, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def small_tiles(tiles: int = TILES) -> Callable[[], None]:
    """The launch of an add in small tiles, `tiles` on each core."""
    import add_kernel
    import asc.runtime.config as config
    import numpy as np

    config.set_platform(config.Backend.Model)
    x, y, z = (np.zeros(CORES * tiles * TILE, np.float32) for _ in range(3))
    return lambda: add_kernel.add_kernel[CORES](x, y, z, tiles * TILE, tiles, TILE)


def benchmark(name: str) -> Callable[[], None]:
    """The launch of a kernel of this folder."""
    kernel = importlib.import_module(f"{name}_kernel")
    data = kernel.prepare()
    return lambda: kernel.launch(*data)


def recorded(launch: Callable[[], None]) -> Any:
    """The rows of a launch."""
    from npuscope.trace.recorder import Batch
    from npuscope.trace.rows import launches

    batches: list[Batch] = []
    session = simulated()
    session.recorder.consumers[:] = [batches.append]
    launch()
    session.recorder.consumers.clear()
    return next(launches(batches))


def profiled(rows: Any) -> Any:
    """The profile of a launch, with its counters and tables."""
    from npuscope.npu.chip import load_chip
    from npuscope.npu.timing import time_launch
    from npuscope.profiler.profile import Profile

    chip = load_chip(rows.launch.chip)
    profile = Profile(time_launch(rows, chip), chip)
    assert profile.tables
    return profile


def against_simulation() -> None:
    """A profile beside the simulation that it is of."""
    kernels = {
        "add in small tiles": small_tiles(),
        "softmax of 2048 x 1024": benchmark("softmax"),
        "matmul of 512": benchmark("matmul"),
    }
    profiled(recorded(small_tiles(1)))  # what is compiled is loaded
    for name, launch in kernels.items():
        rows = recorded(launch)
        ran, took = least(launch), least(lambda: profiled(rows))  # noqa: B023 - called in this turn
        what = f"{name}, {rows.instruction.shape[1]:,} instructions: profile"
        show(what, 1e3 * took, "ms", 1e3 * ran, "run         ", "target < 1")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Prints the CPU seconds of a part."""
    start = spent()
    yield
    print(f"  {name:<44} {spent() - start:9.2f} s")


def saved(folder: Path, tiles: int) -> Path:
    """The trace of an add in small tiles, as `npuscope record` writes it."""
    script, trace = folder / f"add_{tiles}.py", folder / f"add_{tiles}.trace"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r})\n"
        f"import profiler\nprofiler.small_tiles({tiles})()\n"
    )
    process("record", "-o", str(trace), str(script))
    return trace


def stages(folder: Path, trace: Path) -> None:
    """A trace to all files: the parts, and the whole in a process of its own."""
    from npuscope.cli.profile_files import Wanted, write_launch
    from npuscope.cli.profile_folder import RunFolder
    from npuscope.profiler.selection import columns_of, select
    from npuscope.report.profile.document import profile_json
    from npuscope.report.profile.page import page
    from npuscope.trace.file import read_batches
    from npuscope.trace.rows import launches

    print("A trace of a million instructions to all files:")
    with stage("read"):
        rows = next(launches(read_batches(trace)))
    with stage("timing, counters, tables"):
        profile = profiled(rows)
    selection = select(["full", "TimelineDetail"], columns_of(profile.chip))
    with RunFolder(folder / "stages").launch(0, "kernel", 0) as place:
        for form in FORMATS:
            with stage(form):
                write_launch(place, profile, Wanted(selection, frozenset({form})))
    with stage("summary, advice, json"):
        profile_json([profile])
    with stage("html"):
        page([profile])
    shutil.rmtree(folder / "stages")
    command = ("profile", "-o", str(folder / "files"), str(trace))
    whole = process(*command)
    size = sum(file.stat().st_size for file in (folder / "files").rglob("*") if file.is_file())
    show(f"the whole process, {size / 1e6:,.0f} MB of files", whole, "s", 10, "limit       ", "target < 1")


def opening(folder: Path) -> None:
    """The page of 100,000 instructions, until it says that it is ready."""
    from npuscope.report.profile.page import page

    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("the page in a browser: left out, there is no chromium with chromedriver")
        return
    sys.path[:0] = [str(ROOT / "tests" / "monitor"), str(ROOT / "tests" / "profiler")]
    from opened_page import Opened
    from page_browser import browser

    file = folder / "page.html"
    rows = recorded(small_tiles(TILES // 10))
    file.write_bytes(page([profiled(rows)]))
    with browser(folder / "chrome") as chrome:
        seconds = min(Opened(chrome, file).seconds for _ in range(REPEATS))
    what = f"page of {rows.instruction.shape[1]:,} instructions, {file.stat().st_size / 1e6:.1f} MB: open"
    show(what, seconds, "s", 2, "limit       ", "target < 1")


def first_run(folder: Path) -> None:
    """A first run beside a second one: what compiling costs, of the whole command and of the timing model alone."""
    trace = saved(folder, 4)
    cache = str(folder / "cache")
    command = ("profile", "-o", str(folder / "first"), str(trace))
    first, second = (process(*command, NUMBA_CACHE_DIR=cache) for _ in range(2))
    show("first run of the profiler, process", first, "s", second, "second run  ", "")
    shutil.rmtree(cache)
    first, second = (process("-c", TIME_ONE, str(trace), NUMBA_CACHE_DIR=cache) for _ in range(2))
    show("compiling the timing model", first - second, "s", 8, "limit       ", "target < 1")


def main() -> None:
    """All figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulated()
        against_simulation()
        stages(folder, saved(folder, TILES))
        opening(folder)
        first_run(folder)


if __name__ == "__main__":
    main()
