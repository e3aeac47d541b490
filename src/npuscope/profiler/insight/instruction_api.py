"""Block INSTR_API: the instructions with their figures, by address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from npuscope.profiler.cores import core_names
from npuscope.profiler.insight.columns import ALL_CORES, instruction_columns
from npuscope.profiler.insight.plain import PERCENTAGE_DETAILS, STRING, Json, text, whole
from npuscope.profiler.profile import Profile
from npuscope.profiler.writers.bin import LIMITS, BlockType
from npuscope.trace.timeline import Loss, Step

NOT_ISSUED, SAMPLED = "Stall Sampling(Not Issue)", "Stall Sampling(All Samples)"
ACTIVE = "Active"
Stalls = Mapping[int, Mapping[str, int]]
"""Samples of warps by reason, for each step that has any; the reason :data:`ACTIVE` is none to wait."""

ROOM = 4096
"""Bytes that everything but the instructions may take."""


def instruction_api(
    profile: Profile, *, merged: bool, stalls: Stalls | None = None, limit: int = LIMITS[BlockType.INSTR_API]
) -> tuple[bytes, list[Loss]]:
    """The document as JSON, no longer than `limit`: instructions with the fewest cycles are left out where it would
    be, and that is told."""
    columns = instruction_columns(profile.hot_spots, merged=merged)
    kinds = {"Address": STRING, "AscendC Inner Code": STRING, "Source": STRING, "Pipe": STRING}
    kinds.update({column.name: column.kind for column in columns})
    if stalls:
        kinds.update({NOT_ISSUED: PERCENTAGE_DETAILS, SAMPLED: PERCENTAGE_DETAILS})
    cores = [ALL_CORES] if merged else core_names(profile.timeline.launch)
    document: Json = {
        "Cores": cores,
        "Instructions Dtype": {"Instructions": kinds},
        "Provenance": profile.timeline.source.word,
        "Instructions": [],
    }
    steps = profile.timeline.steps
    details = first_details(profile)
    figures = {column.name: column.rows() for column in columns}
    ran = np.flatnonzero(profile.hot_spots.executed.any(1))
    entries = {
        int(number): orjson.dumps(_entry(steps[number], details[number], int(number), figures, stalls))
        for number in ran[np.argsort([steps[number].address for number in ran], kind="stable")]
    }
    kept = _hottest(profile, entries, limit - len(text(document)) - ROOM)
    document["Instructions"] = [orjson.Fragment(entries[number]) for number in entries if number in kept]
    lost = len(entries) - len(kept)
    sentence = f"the instruction table holds {len(kept)} of {len(entries)} instructions, those with the most cycles"
    return text(document), [Loss("instructions", sentence, count=lost, total=len(entries))] if lost else []


def first_details(profile: Profile) -> list[str]:
    """The operands of each step the first time it ran; "" for one that never did."""
    timeline = profile.timeline
    ran, rows = np.unique(timeline.slice("step"), return_index=True)
    found = [""] * len(timeline.steps)
    for number, row in zip(ran.tolist(), rows.tolist(), strict=True):
        found[number] = str(timeline.details[row])
    return found


def _entry(step: Step, detail: str, number: int, figures: dict[str, list[Any]], stalls: Stalls | None) -> Json:
    frames = step.site.frames
    entry: Json = {
        "Address": hex(step.address),
        "AscendC Inner Code": f"{frames[0].file}:{frames[0].line}" if frames else "",
        "Source": f"{step.text} {detail}".rstrip(),
        "Pipe": step.lane.name,
    }
    entry.update((name, rows[number]) for name, rows in figures.items())
    if stalls:
        entry.update(_stalls(stalls, number))
    return entry


def _stalls(stalls: Stalls, number: int) -> Json:
    """Both columns of an instruction: a share of all samples of its kind in the kernel, and its own reasons."""
    found = {}
    for name, active in ((NOT_ISSUED, False), (SAMPLED, True)):
        chosen = {
            step: {reason: times for reason, times in reasons.items() if active or reason != ACTIVE}
            for step, reasons in stalls.items()
        }
        total = sum(sum(reasons.values()) for reasons in chosen.values())
        mine = chosen.get(number, {})
        share = 100 * sum(mine.values()) / total if total else 0.0
        found[name] = {"Percent": round(float(share), 6), "Details": {key: whole(n) for key, n in mine.items()}}
    return found


def _hottest(profile: Profile, entries: dict[int, bytes], room: int) -> set[int]:
    """The instructions that fit into `room` bytes, those with the most cycles first."""
    if sum(map(len, entries.values())) + len(entries) <= room:
        return set(entries)
    cycles = profile.hot_spots.cycles.clip(0).sum(1)
    kept = set()
    for number in sorted(entries, key=lambda number: -int(cycles[number])):
        room -= len(entries[number]) + 1
        if room < 0:
            break
        kept.add(number)
    return kept
