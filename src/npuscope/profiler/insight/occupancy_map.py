"""Block OCCUPANCY_MAP: what each core did, held against the others."""

from __future__ import annotations

from npuscope.profiler.charts.heat_map import FAMILIES
from npuscope.profiler.charts.occupancy import CoreLoad
from npuscope.profiler.insight.plain import Json, count, figure, written
from npuscope.profiler.metrics import kernel_type
from npuscope.profiler.profile import Profile


def occupancy_map(profile: Profile) -> Json:
    """The document."""
    chart = profile.occupancy
    simt = FAMILIES[profile.counters.columns] == FAMILIES["A5"]
    cores: dict[int, list[Json]] = {}
    for core in chart.cores:
        cores.setdefault(core.block, []).append(_core(core, simt))
    return {
        "soc": FAMILIES[profile.counters.columns],
        "op_type": kernel_type(profile.timeline, profile.chip),
        "advice": "\n".join(chart.advice),
        "op_detail": [{"core_id": block, "core_detail": cores[block]} for block in sorted(cores)],
    }


def _core(core: CoreLoad, simt: bool) -> Json:
    document: Json = {
        "subcore_type": core.type,
        "subcore_id": core.number,
        "throughput": written(core.throughput),
        "cycles": written(core.cycles),
        "L2cache_hit_rate": written(core.hit_rate),
    }
    if simt:
        document["simt_vf_instructions"] = {
            "instructions": count(core.instructions),
            "instruction_per_cycle": figure(core.per_cycle),
        }
    return document
