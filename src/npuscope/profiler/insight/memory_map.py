"""Block STORAGE_ACCESS_HEAT_MAP: the memory graph of each block."""

from __future__ import annotations

from collections.abc import Collection

from npuscope.profiler.charts.heat_map import DETAIL_WAYS, BlockMemory, Flow, HeatMap, MemoryPath, UnitBox
from npuscope.profiler.insight.plain import NOT_AVAILABLE, Json, count, figure

INVALID = -1.0
"""A share of a peak that is not known."""

L0, UB = "MemoryL0", "MemoryUB"
TABLE_OF = {
    **dict.fromkeys(
        (
            MemoryPath.GM_OR_L1_TO_L0A, MemoryPath.GM_OR_L1_TO_L0B, MemoryPath.L1_TO_L0A, MemoryPath.L2_OR_L1_TO_L0B,
            MemoryPath.L0A_TO_CUBE, MemoryPath.L0B_TO_CUBE, MemoryPath.CUBE_TO_L0C, MemoryPath.L0C_TO_CUBE,
            MemoryPath.VEC_TO_L0C, MemoryPath.L0C_TO_VEC,
        ),
        L0,
    ),
    **dict.fromkeys(
        (MemoryPath.UB_TO_VEC, MemoryPath.VEC_TO_UB, MemoryPath.UB_TO_VEC_2, MemoryPath.VEC_TO_UB_2), UB
    ),
    MemoryPath.GM_TO_L2: "L2Cache",
    MemoryPath.L2_TO_GM: "L2Cache",
}  # fmt: skip
"""The group of counters that tells a way; ``Memory`` tells the others (opprof.md 2.3)."""


def memory_map(chart: HeatMap, tables: Collection[str], *, detail: bool, advice: list[str]) -> Json:
    """The document. Figures of groups that are not among `tables` are ``NA``; `detail` adds what filled L0."""
    return {"core_memory_map": [_block(block, chart.family, tables, detail, advice) for block in chart.blocks]}


def known_flow(flow: Flow, tables: Collection[str]) -> Flow:
    """A flow with its figures, or without where its group of counters was not asked for."""
    if TABLE_OF.get(flow.path, "Memory") in tables:
        return flow
    return Flow(flow.path, None, None, None, None)


def shown_flows(block: BlockMemory, tables: Collection[str], *, detail: bool) -> list[Flow]:
    """The flows that a block's graph has."""
    return [known_flow(flow, tables) for flow in block.flows if detail or flow.path not in DETAIL_WAYS]


def _block(block: BlockMemory, family: str, tables: Collection[str], detail: bool, advice: list[str]) -> Json:
    cache = block.l2 if "L2Cache" in tables else None
    document: Json = {
        "core_no": block.block,
        "op_type": block.kind,
        "soc": family,
        "memory_unit": [_flow(flow) for flow in shown_flows(block, tables, detail=detail)],
        "L2cache": {
            "hit": count(cache.hits if cache else None),
            "miss": count(cache.misses if cache else None),
            "total_request": count(cache.requests if cache else None),
            "hit_ratio": figure(cache.rate if cache else None),
        },
        "memory_detail": int(detail),
        "advice": advice,
    }
    document.update((unit.name, _unit(unit, "PipeUtilization" in tables)) for unit in block.units)
    return document


def _flow(flow: Flow) -> Json:
    return {
        "memory_path": int(flow.path),
        "request": count(flow.requests),
        "bandwidth": figure(flow.bandwidth),
        "peak_ratio": INVALID if flow.share is None else round(flow.share, 6),
        "display": 1,
        "bandwidth_suffix": "GB/s",
        "request_suffix": "",
    }


def _unit(unit: UnitBox, known: bool) -> Json:
    return {
        "cycle": count(unit.cycles) if known else NOT_AVAILABLE,
        "total_cycles": count(unit.total_cycles),
        "ratio": figure(unit.ratio) if known else NOT_AVAILABLE,
    }
