"""`communication.json`, as the vendor lays it out: step, kind, operation, figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from npuscope.monitor.agent.trace.parsing.communication import Communication
from npuscope.monitor.agent.trace.parsing.model import Model

NO_STEP = "step"
"""The key of what lies in no step, and of a trace without steps."""


def write_communication(path: Path, model: Model, transfers: Communication) -> None:
    """The start and the length of each operation. How much of it was waiting cannot be told by one rank: the fields
    for that are left out."""
    path.write_bytes(orjson.dumps(communication_tree(model, transfers), option=orjson.OPT_INDENT_2))


def communication_tree(model: Model, transfers: Communication) -> dict[str, Any]:
    """What the file holds."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    counts: dict[tuple[str, str], int] = {}
    start = model.slices.start[transfers.row]
    length = model.lengths[transfers.row]
    steps = model.steps.of(start)
    directs = transfers.point_to_point()
    sizes = transfers.bytes()
    for row, (operation, group) in enumerate(zip(transfers.operation, transfers.group, strict=True)):
        step = NO_STEP if steps[row] < 0 else f"{NO_STEP}{steps[row]}"
        kinds = found.setdefault(step, {"p2p": {}, "collective": {}})
        number = counts[operation, group] = counts.get((operation, group), -1) + 1
        figures: dict[str, Any] = {
            "Communication Time Info": {
                "Start Timestamp(us)": int(start[row]) / 1000,
                "Elapse Time(ms)": int(length[row]) / 1e6,
            },
            "Communication Bandwidth Info": {},
        }
        if sizes[row] >= 0:
            figures["Size(B)"] = sizes[row]
        kinds["p2p" if directs[row] else "collective"][f"{operation}__{number}@{group or 'unknown'}"] = figures
    return found
