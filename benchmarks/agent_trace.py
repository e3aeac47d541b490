"""Traces on demand: how long the program stands still when one ends, with the data parsed inline and beside it, and how
fast it is parsed. One process, one loop, interleaved; the ratio is inline to beside.

    python -P benchmarks/agent_trace.py [STEPS]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import torch

from npuscope.monitor.agent.trace import Tracer
from npuscope.monitor.agent.trace.parsing.deliver import deliver
from npuscope.monitor.agent.trace.parsing.events import read

ROUNDS = 3


class Silent:
    """Says nothing."""

    def info(self, text: str) -> None:
        """Nothing."""

    warning = info


def main() -> None:
    """Print the figures."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tracer = Tracer(Silent())

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        model(torch.randn(4, 32)).sum().backward()
        optimizer.step()
        tracer.step()
        return time.perf_counter() - began

    still: dict[str, list[float]] = {"inline": [], "beside": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2 * ROUNDS):
            mode = ("inline", "beside")[number % 2]
            order = {
                "ACTIVITIES_LOG_FILE": f"{folder}/{mode}{number}",
                "PROFILE_START_STEP": "-1",
                "ACTIVITIES_ITERATIONS": str(steps),
                "PROFILE_ANALYSE": "true",
                "PROFILE_ASYNC_MODE": str(mode == "beside"),
            }
            tracer.obey(order)
            taken = [step() for _ in range(steps + 1)]
            still[mode].append(taken[-1])
            while tracer.parsing or tracer.status.status:
                time.sleep(0.1)
        trace = next(Path(folder).glob("beside1/*_ascend_pt"))
        raw = trace / "FRAMEWORK" / "torch_trace.json"
        told = json.loads((trace / "profiler_metadata.json").read_text())["stopped_ms"]
        events = raw.read_text().count('"ph":')
        plain = cpu(lambda: orjson.loads(raw.read_bytes()))
        reading = cpu(lambda: read(raw))
        text, database = cpu(lambda: deliver(trace, "text")), cpu(lambda: deliver(trace, "db"))
    inline, beside = (statistics.median(still[mode]) for mode in ("inline", "beside"))
    print(f"{steps} steps, {events} events; medians of {ROUNDS}")
    print(f"stands still at the end: parsed inline {inline:.3f} s, beside {beside:.3f} s, ratio {inline / beside:.1f}")
    print(f"  of the latter: PyTorch's stop {told['stop'] / 1000:.3f} s, its export {told['write'] / 1000:.3f} s")
    print(f"  {beside / events * 1e6:.1f} us an event")
    figures = {"orjson alone": plain, "reading": reading, "text files": text, "database": database}
    words = (f"{name} {seconds / events * 1e6:.1f} s" for name, seconds in figures.items())
    print(f"processor time for a million events: {', '.join(words)}")


def cpu(action: Callable[[], object]) -> float:
    """Seconds of processor time."""
    began = time.process_time()
    action()
    return time.process_time() - began


if __name__ == "__main__":
    main()
