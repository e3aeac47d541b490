"""Block STORAGE_ACCESS_TABLE: what each memory and pipe of a block did, as tables."""

from __future__ import annotations

from collections.abc import Collection

from npuscope.profiler.charts.blocks import Block, blocks_of
from npuscope.profiler.charts.heat_map import BlockMemory, Flow
from npuscope.profiler.charts.pipes import PipeFigures, pipe_figures
from npuscope.profiler.charts.traffic import ways
from npuscope.profiler.insight.memory_map import shown_flows
from npuscope.profiler.insight.plain import Json, written
from npuscope.profiler.profile import Profile

FLOW_HEADS = ["Request", "Throughput(GB/s)", "Peak(%)"]
PIPE_HEADS = ["Instructions", "Cycles", "Wait Cycles", "Active Rate(%)"]
UNIT_HEADS = ["Cycles", "Wait Cycles", "Active Rate(%)"]
CACHE_HEADS = ["Hit", "Miss", "Total Request", "Hit Rate(%)"]
MEMORIES = {
    "GM": "GM", "UB": "UB", "L1": "L1", "L0A": "L0A", "L0B": "L0B", "L0C": "L0C", "DCACHE": "DCache",
}  # fmt: skip
"""The box of the graph that a table is about, and the table's name."""

PIPE_NAMES = {"cube0": "Pipe Cube", "vector0": "Pipe Vector Core0", "vector1": "Pipe Vector Core1", "AiCore": "Pipe"}
UNITS = ("Cube", "Vector", "Scalar")


def memory_tables(profile: Profile, tables: Collection[str], *, detail: bool, advice: list[str]) -> Json:
    """The document. Figures of groups that are not among `tables` are ``NA``."""
    cycles = ways(profile.timeline, profile.chip, profile.counters).cycles
    found = []
    blocks = zip(blocks_of(profile.timeline.launch, profile.chip), profile.heat_map.blocks, strict=True)
    for block, graph in blocks:
        pipes = {
            name: pipe_figures(profile.counters, name, core, float(cycles[core])) for name, core in block.cores.items()
        }
        if "PipeUtilization" not in tables:
            pipes = {name: [_unknown(pipe) for pipe in figures] for name, figures in pipes.items()}
        detailed = [*_memories(graph, tables, detail), _cache(graph, tables), *_pipes(pipes), *_units(block, pipes)]
        found.append(
            {"block_id": block.number, "table_op_type": block.kind, "table_detail": detailed, "advice": advice}
        )
    return {"table_per_block": found}


def _memories(graph: BlockMemory, tables: Collection[str], detail: bool) -> list[Json]:
    flows = shown_flows(graph, tables, detail=detail)
    made = []
    for box, name in MEMORIES.items():
        mine = [flow for flow in flows if any(box in end.split("/") for end in flow.path.ends)]
        if mine:
            made.append(_table(name, FLOW_HEADS, [(_way(flow), _flow(flow)) for flow in mine]))
    return made


def _way(flow: Flow) -> str:
    source, target = flow.path.ends
    return f"{source} to {target}{' (Vector1)' if flow.path.second else ''}"


def _flow(flow: Flow) -> list[str]:
    return [written(flow.requests), written(flow.bandwidth), written(flow.share)]


def _cache(graph: BlockMemory, tables: Collection[str]) -> Json:
    box = graph.l2 if "L2Cache" in tables else None
    row = [box.hits, box.misses, box.requests, box.rate] if box else [None] * len(CACHE_HEADS)
    return _table("Cache", CACHE_HEADS, [("L2", [written(value) for value in row])])


def _pipes(pipes: dict[str, list[PipeFigures]]) -> list[Json]:
    made = []
    for name, figures in pipes.items():
        rows = [(pipe.name, [_plain(pipe.instructions), *_rate(pipe)]) for pipe in figures]
        made.append(_table(PIPE_NAMES[name], PIPE_HEADS, rows))
    return made


def _units(block: Block, pipes: dict[str, list[PipeFigures]]) -> list[Json]:
    """The computing units and the scalar unit, one row a core."""
    made = []
    for unit in UNITS:
        rows = [(name, _rate(pipe)) for name in block.cores for pipe in pipes[name] if pipe.name == unit]
        if rows:
            made.append(_table(unit, UNIT_HEADS, rows))
    return made


def _rate(pipe: PipeFigures) -> list[str]:
    share = None if pipe.share is None else 100 * pipe.share
    return [_plain(pipe.busy), _plain(pipe.waiting), written(share)]


def _plain(value: float | None) -> str:
    return written(None if value is None else int(value))


def _unknown(pipe: PipeFigures) -> PipeFigures:
    return PipeFigures(pipe.name, None, None, None, None)


def _table(name: str, heads: list[str], rows: list[tuple[str, list[str]]]) -> Json:
    plain = [{"name": label, "value": values} for label, values in rows]
    return {"table_name": name, "size": [len(rows), len(heads)], "header_name": heads, "row": plain}
