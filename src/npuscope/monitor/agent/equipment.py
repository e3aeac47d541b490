"""What this process's agent has at hand: its sources, its processors, its tracer."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from npuscope.monitor.agent.collector import Build
from npuscope.monitor.agent.commands import Command, Refused
from npuscope.monitor.agent.groups import parallel_groups as parallel_groups
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.processors.processor import Processor, Run
from npuscope.monitor.agent.sources.source import Source
from npuscope.monitor.agent.tracing import Tracer
from npuscope.monitor.protocol.codes import Code

SOURCES = {
    "mspti": "MsptiSource",
    "cupti": "CuptiSource",
    "torch_profiler": "TorchSource",
    "sim": "SimSource",
    "mstx": "MstxSource",
    "steps": "StepSource",
}
"""File and class, in the order in which they are started."""
HERE = "npuscope.monitor.agent"
Send = Callable[[bytes], bool]


def sources(log: Log) -> list[Source]:
    """All sources. One that cannot even be made is left out, and the log says so."""
    found: list[Source] = []
    for file, name in SOURCES.items():
        try:
            found.append(getattr(importlib.import_module(f"{HERE}.sources.{file}"), name)())
        except Exception as error:
            log.warn_once(f"there is no source {file}: {error!r}")
    return found


def builder(send: Send) -> Build:
    """Makes processors; measurements go out by `send`."""

    def build(command: Command, run: Run) -> Processor:
        if not command.folder:
            return importlib.import_module(f"{HERE}.processors.metric").Metric(send, run)
        if command.export == "DB":
            return importlib.import_module(f"{HERE}.processors.sqlite").Database(command.folder, run)
        if command.export == "Jsonl":
            lines = importlib.import_module(f"{HERE}.processors.jsonl").JsonLines
            return lines(command.folder, run, command.rotate_lines, command.rotate_files)
        raise Refused(Code.VALUE, f"there is no export type {command.export}")

    return build


def tracer(log: Log) -> Tracer:
    """Takes traces."""
    return importlib.import_module(f"{HERE}.trace").Tracer(log)


def supply_vendor_names(log: Log) -> None:
    """Let code that was written for the vendor's package import its names."""
    try:
        importlib.import_module(f"{HERE}.vendor").supply()
    except ModuleNotFoundError:
        return
    except Exception as error:
        log.warn_once(f"the vendor's names cannot be supplied: {error!r}")
