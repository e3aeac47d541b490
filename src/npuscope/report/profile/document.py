"""The JSON document of a profile, ``profile.json``: stable, with a version.

At the top: ``format`` (:data:`FORMAT`), ``version``, ``npuscope`` (the version that wrote it), ``partial`` and
``launches``. Each launch has:

* ``kernel``, ``index`` (its number in the run), ``chip``, ``provenance`` (``modelled`` or ``vendor simulator``: how
  every figure of the launch came about), ``blocks``, ``cores`` (names), ``grid``, ``notes``;
* ``cycles`` (of the whole task), ``overhead`` (of them, before the first core starts), ``mhz``, ``time_us``;
* ``partial``, and ``losses``: what is missing, each with ``kind``, ``text``, ``core``, ``lane``, ``count``, ``total``;
* ``bound``: ``resource`` and ``text``; ``critical_path``: cycles by resource, the most first;
* ``speed_of_light``: ``name``, ``kind`` (``busy`` or ``rate``), ``share`` (0..1 or null), ``reached``, ``limit``;
* ``pipes``: for each pipe that did anything ``busy``, ``wait`` (cycles, summed over the cores), ``instructions``, and
  of a pipe that copies ``overlap``: the busy cycles in which its core's vector or cube unit worked as well;
* ``traffic``: ``gm_read``, ``gm_written`` (bytes), ``l2_hits``, ``l2_misses`` (lines); null is not known;
* ``lines``: ``file``, ``line``, ``function``, ``text`` (null where the source was not there), ``critical`` (cycles on
  the critical path), ``cycles``, ``covered``, ``executed``, ``bytes``, the last four summed over the cores;
* ``advice``: ``rule``, ``text``, ``remedy``, ``gain`` (share of the task, or null), ``estimate``, ``evidence``,
  ``threshold``, ``lines``; the greatest gain first;
* ``tables``: by name ``columns`` and ``rows``; null is a cell that does not apply.

Fields are added within a version; one that goes or changes its meaning makes a new version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson

from npuscope import __version__
from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.profile import Profile
from npuscope.profiler.sources import source_line
from npuscope.profiler.summary import Summary
from npuscope.profiler.traffic import COMPUTE, traffic
from npuscope.trace.schema import SourceFrame
from npuscope.trace.timeline import Lane, Loss

FORMAT = "npuscope profile"
VERSION = 1
COPIES = (Lane.MTE1, Lane.MTE2, Lane.MTE3, Lane.FIXP)


def profile_json(profiles: Iterable[Profile]) -> bytes:
    """The document of some launches, UTF-8."""
    return orjson.dumps(document(profiles), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n"


def document(profiles: Iterable[Profile]) -> dict[str, Any]:
    """The document as plain values."""
    launches = [launch(profile) for profile in profiles]
    return {
        "format": FORMAT,
        "version": VERSION,
        "npuscope": __version__,
        "partial": any(one["partial"] for one in launches),
        "launches": launches,
    }


def launch(profile: Profile) -> dict[str, Any]:
    """One launch of the document."""
    timeline, summary = profile.timeline, profile.summary
    return {
        "kernel": summary.kernel,
        "index": summary.index,
        "chip": summary.chip,
        "provenance": summary.provenance,
        "blocks": summary.blocks,
        "cores": [core.name for core in timeline.launch.cores],
        "grid": list(timeline.launch.grid),
        "notes": dict(timeline.notes),
        "cycles": summary.cycles,
        "overhead": summary.overhead,
        "mhz": summary.mhz,
        "time_us": summary.microseconds,
        "partial": timeline.partial,
        "losses": [_loss(loss) for loss in timeline.losses],
        "bound": {"resource": summary.bound, "text": summary.bound_text},
        "critical_path": summary.path,
        "speed_of_light": [
            {"name": bar.name, "kind": bar.kind, "share": bar.share, "reached": bar.reached, "limit": bar.limit}
            for bar in summary.bars
        ],
        "pipes": _pipes(profile),
        "traffic": _traffic(profile),
        "lines": _lines(profile, summary),
        "advice": [advice_record(advice) for advice in profile.advice],
        "tables": {
            name: {"columns": list(table.columns), "rows": [list(row) for row in table.rows]}
            for name, table in profile.tables.items()
        },
    }


def advice_record(advice: Advice) -> dict[str, Any]:
    """One advice as plain values."""
    return {
        "rule": advice.rule,
        "text": advice.text,
        "remedy": advice.remedy,
        "gain": advice.gain,
        "estimate": advice.estimate,
        "evidence": dict(advice.evidence),
        "threshold": advice.threshold,
        "lines": [frame_record(frame) for frame in advice.frames],
    }


def frame_record(frame: SourceFrame) -> dict[str, Any]:
    """A line of source as plain values."""
    return {"file": frame.file, "line": frame.line, "function": frame.function}


def _loss(loss: Loss) -> dict[str, Any]:
    lane = None if loss.lane is None else loss.lane.name
    return {
        "kind": loss.kind, "text": loss.text, "core": loss.core, "lane": lane, "count": loss.count, "total": loss.total,
    }  # fmt: skip


def _pipes(profile: Profile) -> dict[str, dict[str, int]]:
    count = np.bincount(profile.timeline.slice("lane"), minlength=max(Lane) + 1)
    busy = profile.busy
    return {
        lane.name: {
            "busy": int(busy.work[lane].sum()),
            "wait": int(busy.wait[lane].sum()),
            "instructions": int(count[lane]),
        }
        | ({"overlap": int(profile.working.together((lane,), COMPUTE)[2].sum())} if lane in COPIES else {})
        for lane in Lane
        if count[lane]
    }


def _traffic(profile: Profile) -> dict[str, int | None]:
    moved = traffic(profile.timeline, profile.chip)
    return {"gm_read": moved.read, "gm_written": moved.written, "l2_hits": moved.hits, "l2_misses": moved.misses}


def _lines(profile: Profile, summary: Summary) -> list[dict[str, Any]]:
    spots = {(spot.frame.file, spot.frame.line): spot for spot in profile.hot_spots.lines}
    records = []
    for line in summary.lines:
        spot = spots[line.frame.file, line.frame.line]
        records.append(
            frame_record(line.frame)
            | {
                "text": _stripped(source_line(line.frame.file, line.frame.line)),
                "critical": line.path,
                "cycles": line.cycles,
                "covered": _sum(spot.covered),
                "executed": _sum(spot.executed),
                "bytes": _sum(spot.bytes),
            }
        )
    return records


def _stripped(text: str | None) -> str | None:
    return None if text is None else text.strip()


def _sum(values: np.ndarray) -> int | None:
    known = values[values >= 0]
    return int(known.sum()) if known.size else None
