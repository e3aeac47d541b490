"""The charts as the page carries them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from npuscope.profiler.charts.cache_map import CacheMap
from npuscope.profiler.instruction_timeline.throughput import NAMES, throughput
from npuscope.profiler.profile import Profile

MOST_CELLS = 4096
"""Cells of the cache map; where there are more lines, a cell stands for several neighbours."""
MOST_STEPS = 16
"""Instructions that are named for a cell."""
BINS = 240
"""Points of the transfer chart, about."""


def chart_payload(profile: Profile) -> dict[str, Any]:
    """Every chart of a launch; None for one that its source does not know."""
    return {
        "rooflines": _rooflines(profile),
        "memory": _memory(profile),
        "load": _load(profile),
        "occupancy": _occupancy(profile),
        "cache": _cache(profile.cache_map) if profile.cache_map is not None else None,
        "transfer": _transfer(profile),
    }


def _rooflines(profile: Profile) -> dict[str, Any]:
    return {
        "advice": profile.roofline.advice,
        "charts": [
            {
                "title": chart.title,
                "lines": [
                    {
                        "unit": roof.unit, "peak": _finite(roof.peak), "path": roof.path,
                        "bandwidth": _finite(roof.bandwidth), "x": _finite(roof.x), "y": _finite(roof.y),
                        "ratio": roof.ratio, "bound": roof.bound,
                    }
                    for roof in chart.lines
                ],
            }
            for chart in profile.roofline.charts
        ],
    }  # fmt: skip


def _memory(profile: Profile) -> dict[str, Any]:
    return {
        "family": profile.heat_map.family,
        "blocks": [
            {
                "block": block.block,
                "kind": block.kind,
                "flows": [
                    {
                        "from": flow.path.ends[0], "to": flow.path.ends[1], "second": flow.path.second,
                        "requests": flow.requests, "bytes": flow.bytes, "bandwidth": flow.bandwidth,
                        "share": flow.share,
                    }
                    for flow in block.flows
                ],
                "l2": block.l2 and {"hits": block.l2.hits, "misses": block.l2.misses, "rate": block.l2.rate},
                "units": [
                    {"name": unit.name, "cycles": unit.cycles, "total": unit.total_cycles, "ratio": unit.ratio}
                    for unit in block.units
                ],
            }
            for block in profile.heat_map.blocks
        ],
    }  # fmt: skip


def _load(profile: Profile) -> dict[str, Any]:
    def records(loads: Any) -> list[dict[str, Any]]:
        return [
            {
                "block": load.block, "core": load.core, "name": load.name, "unit": load.unit.word,
                "value": load.value, "origin": load.origin,
            }
            for load in loads
        ]  # fmt: skip

    return {"bars": records(profile.compute_load.bars), "table": records(profile.compute_load.table)}


def _occupancy(profile: Profile) -> dict[str, Any]:
    return {
        "advice": list(profile.occupancy.advice),
        "cores": [
            {
                "block": core.block, "type": core.type, "number": core.number, "cycles": core.cycles,
                "throughput": core.throughput, "hitRate": core.hit_rate, "levels": core.levels,
                "balanced": core.balanced,
            }
            for core in profile.occupancy.cores
        ],
    }  # fmt: skip


def _cache(chart: CacheMap) -> dict[str, Any]:
    count = chart.address.size
    group = -(-count // MOST_CELLS) if count else 1
    first = np.arange(0, count, group)
    return {
        "size": chart.size,
        "group": group,
        "lines": count,
        "hits": int(chart.hits.sum()),
        "misses": int(chart.misses.sum()),
        "address": [f"{address:#x}" for address in chart.address[first].tolist()],
        "cellHits": np.add.reduceat(chart.hits, first) if count else [],
        "cellMisses": np.add.reduceat(chart.misses, first) if count else [],
        "steps": list(_cell_steps(chart, first, group)),
    }


def _cell_steps(chart: CacheMap, first: np.ndarray, group: int) -> Iterator[list[int]]:
    """The steps that touched each cell, ascending, the first few of them."""
    row, step = chart.touched
    width = int(step.max(initial=0)) + 1
    cell, step = np.divmod(np.unique(row // group * width + step), width)
    bounds = np.searchsorted(cell, np.arange(first.size + 1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield step[begin : min(end, begin + MOST_STEPS)].tolist()


def _transfer(profile: Profile) -> dict[str, Any] | None:
    """MB/s on each way over time. The vendor's bins are a microsecond; a short launch gets finer ones."""
    timeline = profile.timeline
    if not timeline.transfers.shape[1]:
        return None
    width = max(timeline.microseconds / BINS, 0.02)
    found = throughput(replace(timeline, mhz=timeline.mhz * width))
    return {"names": NAMES, "width": width, "rates": np.round(found.bytes / width, 1), "cut": found.cut}


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
