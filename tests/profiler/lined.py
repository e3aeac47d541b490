"""Slices made by hand that have lines of source, and long launches of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from made_timeline import Maker

from npuscope.npu.chip import load_chip
from npuscope.profiler.profile import Profile
from npuscope.trace.schema import Site, SourceFrame
from npuscope.trace.timeline import EDGE_COLUMNS, SLICE_COLUMNS, Lane, Step, Timeline

CHIP = load_chip("Ascend910B4")


def on_line(maker: Maker, number: int, line: int, file: str = "kernel.py") -> int:
    """Say that a slice's instruction stands on that line; the slice's number."""
    step = maker.steps[number]
    maker.steps[number] = replace(step, site=Site(step.site.name, (SourceFrame(file, line),)))
    return number


def profile(maker: Maker, cycles: int = 1000) -> Profile:
    """The profile of what was made."""
    return Profile(maker.timeline(cycles), CHIP)


def long_timeline(slices: int, blocks: int = 40) -> Timeline:
    """A launch of about that many slices on `blocks` vector cores: copy in, compute, copy out, two by two, with flags."""
    maker = Maker("vector", blocks)
    names = [("MOV_OUT_TO_UB", Lane.MTE2), ("SET_FLAG", Lane.MTE2), ("WAIT_FLAG", Lane.VECTOR), ("VADD", Lane.VECTOR),
             ("MOV_UB_TO_OUT", Lane.MTE3)]  # fmt: skip
    steps = [
        Step(4 * at, text, lane, Site(text, (SourceFrame("kernel.py", 10 + at),)), dtype="float32")
        for at, (text, lane) in enumerate(names)
    ]
    tiles = slices // (blocks * len(steps))
    core, tile, step = np.meshgrid(np.arange(blocks), np.arange(tiles), np.arange(len(steps)), indexing="ij")
    core, tile, step = core.ravel(), tile.ravel(), step.ravel()
    begin = np.array([0, 90, 5, 95, 160])[step] + 100 * tile + 1000 + core
    length = np.array([90, 1, 88, 60, 70])[step]
    table = np.full((len(SLICE_COLUMNS), core.size), -1, np.int64)
    lanes = np.array([lane for _, lane in names])[step]
    known = {
        "core": core, "lane": lanes, "step": step, "row": np.arange(core.size), "issue": begin - 4, "start": begin,
        "end": begin + length, "bytes": np.where(np.isin(step, (0, 4)), 4096, 0), "work": np.full(core.size, 1024),
        "bank_group": np.zeros(core.size), "bank": np.zeros(core.size),
    }  # fmt: skip
    for name, values in known.items():
        table[SLICE_COLUMNS.index(name)] = values
    sets = np.flatnonzero(step == 1)
    edges = np.zeros((len(EDGE_COLUMNS), sets.size), np.int64)
    edges[:2] = sets, sets + 1
    made = maker.timeline(int((begin + length).max()))
    return replace(made, steps=steps, slices=table, edges=edges, details=[""] * core.size, overhead=1000)
