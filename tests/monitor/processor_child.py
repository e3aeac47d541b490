"""A process that writes records without end, for tests that kill it.

    python processor_child.py db|jsonl

It reads the name of a folder from each line of its standard input, forks a child that writes there, and prints the
child's number; when the child has died it prints `dead`.
"""

from __future__ import annotations

import os
import sys
import time

from processor_records import Maker, many_calls, many_kernels

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.processors.jsonl import JsonLines
from npuscope.monitor.agent.processors.processor import Processor
from npuscope.monitor.agent.processors.sqlite import Database

KERNELS, CALLS, COLLECTIVES, RANGES = 400, 700, 50, 20


def round_of(maker: Maker, number: int) -> list[Batch]:
    """What one report writes; some names are new in every round."""
    kernels = many_kernels(maker, KERNELS, names=10)
    fresh = maker.run.strings.numbers([f"Fused_{number}_{one}" for one in range(KERNELS)])
    names = f"group_{number}", f"algorithm_{number}", f"allreduce_{number}"
    collectives = maker.batch(
        Kind.COMMUNICATION, data_type=[4] * COLLECTIVES, count=[1] * COLLECTIVES, device=[0] * COLLECTIVES,
        stream=[1] * COLLECTIVES, start=[1] * COLLECTIVES, end=[2] * COLLECTIVES,
        **{key: [name] * COLLECTIVES for key, name in zip(("comm", "algorithm", "name"), names, strict=True)},
    )  # fmt: skip
    ranges = [maker.four(RANGES * number + one, name=f"range {number} {one}") for one in range(RANGES)]
    return [
        Batch(Kind.KERNEL, dict(kernels.columns) | {"name": fresh}),
        many_calls(maker, CALLS, names=10),
        collectives,
        *ranges,
    ]


def write(what: str, folder: str) -> None:
    """Write for ever."""
    maker = Maker(pid=os.getpid())
    processor: Processor = Database(folder, maker.run) if what == "db" else JsonLines(folder, maker.run, 1000, 3)
    number = 0
    while True:
        for batch in round_of(maker, number):
            processor.add(batch)
        processor.report(time.time_ns())
        number += 1


def main() -> None:
    """Serve."""
    for folder in sys.stdin:
        child = os.fork()
        if child == 0:
            write(sys.argv[1], folder.strip())
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)
        sys.stdout.write("dead\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
