"""How many operations a launch computed, and how many its chip could in the same time (opprof.md 3.2, 6.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.counters import Counters
from npuscope.profiler.element_types import element_bytes, operand_name
from npuscope.trace.timeline import Lane, Timeline


@dataclass(frozen=True, slots=True)
class Operations:
    """What one kind of unit computed: `count` operations, `peak` those of the whole chip in Tops/s. A multiplication
    and its addition are two."""

    name: str
    count: float
    peak: float

    def prefixed(self, word: str) -> Operations:
        """The same under a longer name."""
        return replace(self, name=f"{word} {self.name}")


ELEMENTS = {
    "Integer": "int8", "Single Precision": "hf32", "Half Precision": "half", "Quarter Precision": "fp8",
    "Eighth Precision": "fp4",
}  # fmt: skip
"""The type by whose rate a class of the cube's input is measured (opprof.md 6.4): single precision by the shortened
one, which is the faster."""

VECTOR_CLASSES = {
    "A2": {
        "Vec_FP32": ({75: 1, 76: -1}, 64), "Vec_FP16_128": ({76: 1}, 128), "Vec_FP16_64": ({77: 1}, 64),
        "Vec_FP16_32": ({174: 1}, 32), "Vec_S32": ({78: 1}, 64), "Vec_S16": ({186: 1}, 128), "Vec_MISC": ({79: 1}, 32),
    },
    "310P": {
        "Vec_FP32": ({75: 1}, 64), "Vec_FP16_128": ({76: 1}, 128), "Vec_FP16_64": ({77: 1}, 64),
        "Vec_FP16_32": ({174: 1}, 32), "Vec_S32": ({78: 1}, 16), "Vec_S16": ({186: 1}, 32), "Vec_MISC": ({79: 1}, 16),
    },
}  # fmt: skip
"""Counters whose sum is the cycles of a class of vector work, and the operations of each (``vec_fops``, opprof.md
2.3)."""

SIMT_LANES = 32 * 4
SIMT_INTEGER_LANES = 16 * 4
"""Threads that the four warp schedulers of a vector core serve in a cycle (opprof.md 6.4)."""


def precision(dtype: str) -> str:
    """The class of a cube's input type; half precision where the type is not known."""
    name, size = operand_name(dtype), element_bytes(dtype)
    if name.startswith(("S", "U", "B8")):
        return "Integer"
    return {4.0: "Single Precision", 1.0: "Quarter Precision", 0.5: "Eighth Precision"}.get(size, "Half Precision")


def cube_operations(timeline: Timeline, chip: Chip, counters: Counters) -> list[Operations]:
    """What the cubes computed: two operations for each multiply-accumulate that was executed. One entry a precision on
    A5; one for all of them elsewhere, named by the greater part, as the vendor has it."""
    counts = _executed(timeline)
    if not counts:
        return []
    rates = {kind: chip.cube_operations(ELEMENTS[kind]) for kind in counts}
    scale = chip.frequency_mhz * chip.cores.aic / 1e6
    if counters.columns == "A5":
        return [Operations(kind, count, rates[kind] * scale) for kind, count in sorted(counts.items())]
    total, whole = sum(counts.values()), counts.get("Integer", 0.0)
    cycles = sum(count / rates[kind] for kind, count in counts.items())
    share = 100 * max(whole, total - whole) / total
    name = f"Cube_{'INT' if 2 * whole > total else 'FP'}({share:.0f}%)"
    return [Operations(name, total, total / cycles * scale)]


def _executed(timeline: Timeline) -> dict[str, float]:
    """Operations by precision, read off the instructions."""
    work = np.where(timeline.slice("lane") == Lane.CUBE, timeline.slice("work"), 0).clip(0)
    by_step = np.bincount(timeline.slice("step"), work, minlength=len(timeline.steps))
    found: dict[str, float] = {}
    for number in np.flatnonzero(by_step).tolist():
        kind = precision(timeline.steps[number].dtype)
        found[kind] = found.get(kind, 0.0) + 2.0 * float(by_step[number])
    return found


def vector_operations(chip: Chip, counters: Counters) -> list[Operations]:
    """What the vector units computed, as their counters tell it; one entry, with the parts in its name."""
    parts: dict[str, float] = {}
    cycles = 0.0
    for name, (terms, each) in VECTOR_CLASSES.get(counters.columns, {}).items():
        ran = float(np.nansum(sum(factor * counters[number] for number, factor in terms.items())))
        if ran > 0:
            parts[name], cycles = ran * each, cycles + ran
    if not parts:
        return []
    total = sum(parts.values())
    cores = chip.cores.aiv if chip.split else chip.cores.aic
    name = ",".join(f"{part}({100 * count / total:.0f}%)" for part, count in parts.items())
    return [Operations(name, total, total * chip.frequency_mhz * cores / cycles / 1e6)]


def simt_operations(timeline: Timeline, chip: Chip, counters: Counters) -> list[Operations]:
    """What the threads of SIMT functions computed, floats and integers apart; chips without SIMT have none."""
    if counters.columns != "A5":
        return []
    threads = np.where(timeline.slice("lane") == Lane.VECTOR, timeline.slice("threads"), 0).clip(0)
    by_step = np.bincount(timeline.slice("step"), threads, minlength=len(timeline.steps))
    counts = {"Float": 0.0, "Integer": 0.0}
    for number in np.flatnonzero(by_step).tolist():
        dtype = timeline.steps[number].dtype
        if dtype:
            counts["Integer" if precision(dtype) == "Integer" else "Float"] += float(by_step[number])
    scale = chip.cores.aiv * chip.frequency_mhz / 1e6
    lanes = {"Float": SIMT_LANES, "Integer": SIMT_INTEGER_LANES}
    return [Operations(kind, count, lanes[kind] * scale) for kind, count in counts.items() if count]
